//===- CacheContents.cpp - Keys and values in a cache's layout ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/CacheContents.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Exceptions.h"

#include <cassert>
#include <cstring>
#include <random>

using namespace kf;

namespace {

constexpr int64_t kScaleBytes = 2;

std::vector<int64_t> shapeOf(const CacheSpec &spec, int64_t pages) {
  if (spec.isOfStates())
    return {spec.layers, spec.slots(pages), spec.kvHeads, spec.headDim};
  return {spec.layers, pages, 2, spec.kvHeads, spec.page, spec.headDim};
}

/// Calls fn(row, elements, step, scales, scaleStep) for each row of headDim
/// elements: its number, counted as the tensor's shape does, where its elements
/// (codes) lie and how many bytes it is from one to the next; the same of its
/// scales, where there are blocks.
template <typename Fn>
void forEachRow(const CacheSpec &spec, int64_t pages, Fn &&fn) {
  const bool blocks = isBlock(spec.type);
  const int64_t element = blocks ? 1 : int64_t(sizeOf(spec.type));
  const int64_t groups = spec.headDim / elementsPerBlock(spec.type);
  const int64_t codeBytes = spec.page * spec.headDim * element;
  const int64_t headBytes =
      codeBytes + (blocks ? spec.page * groups * kScaleBytes : 0);
  int64_t row = 0;
  for (int64_t page = 0; page < spec.layers * pages; ++page)
    for (int kind = 0; kind < 2; ++kind)
      for (int64_t head = 0; head < spec.kvHeads; ++head) {
        const int64_t at =
            ((page * 2 + kind) * spec.kvHeads + head) * headBytes;
        // Values are as keys in blocks of one position.
        const int64_t keys = kind == 0 ? spec.keyBlock : 1;
        for (int64_t place = 0; place < spec.page; ++place, ++row) {
          const int64_t first = place / keys * keys, lane = place % keys;
          fn(row, at + (first * spec.headDim + lane) * element, keys * element,
             at + codeBytes + (first * groups + lane) * kScaleBytes,
             keys * kScaleBytes);
        }
      }
}

/// Moves every element between the two forms: put(in the tensor, in the cache,
/// bytes), by offsets.
template <typename Fn>
void forEachElement(const CacheSpec &spec, int64_t pages, Fn &&put) {
  const bool blocks = isBlock(spec.type);
  const int64_t perBlock = elementsPerBlock(spec.type);
  const int64_t blockBytes = bytesPerBlock(spec.type);
  const BlockFormat *format = findBlockFormat(spec.type);
  forEachRow(spec, pages,
             [&](int64_t row, int64_t elements, int64_t step, int64_t scales,
                 int64_t scaleStep) {
               const int64_t at = row * spec.headDim / perBlock * blockBytes;
               for (int64_t d = 0; d < spec.headDim; ++d) {
                 const int64_t within =
                     blocks ? d / perBlock * blockBytes +
                                  format->low.byteOf(int(d % perBlock))
                            : d * blockBytes;
                 put(at + within, elements + d * step, blocks ? 1 : blockBytes);
               }
               for (int64_t group = 0;
                    blocks && group < spec.headDim / perBlock; ++group)
                 put(at + group * blockBytes + format->scaleOffset,
                     scales + group * scaleStep, kScaleBytes);
             });
}

} // namespace

Result<HostTensor> kf::makeCacheContents(const CacheSpec &spec, int64_t pages,
                                         uint64_t seed) try {
  KF_RETURN_IF_ERROR(spec.bytes(pages).status());
  KF_ASSIGN_OR_RETURN(HostTensor contents,
                      HostTensor::zeros(spec.type, shapeOf(spec, pages)));
  std::vector<float> values(contents.elementCount());
  std::mt19937_64 random(seed);
  for (float &value : values)
    value = static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f;
  if (isBlock(spec.type))
    quantizeBlocks(spec.type, values.data(),
                   static_cast<int64_t>(values.size()) /
                       elementsPerBlock(spec.type),
                   contents.bytes.data());
  else
    KF_RETURN_IF_ERROR(convertFromFloat(spec.type, values.data(),
                                        static_cast<int64_t>(values.size()),
                                        contents.bytes.data()));
  return contents;
} catch (...) {
  return statusOfException();
}

/// Layers are padded.
static Result<std::vector<std::byte>> layOutStates(const CacheSpec &spec,
                                                   const HostTensor &contents) {
  KF_ASSIGN_OR_RETURN(const int64_t size,
                      spec.bytes(contents.shape[1] * spec.slotPages));
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  const size_t layers = static_cast<size_t>(spec.layers),
               own = contents.bytes.size() / layers;
  for (size_t layer = 0; layer < layers; ++layer)
    std::memcpy(&bytes[layer * (bytes.size() / layers)],
                &contents.bytes[layer * own], own);
  return bytes;
}

Result<std::vector<std::byte>> kf::layOutCache(const CacheSpec &spec,
                                               const HostTensor &contents) try {
  assert(contents.type == spec.type && "another cache's contents");
  if (spec.isOfStates())
    return layOutStates(spec, contents);
  assert(contents.shape.size() == 6 && "another cache's contents");
  const int64_t pages = contents.shape[1];
  KF_ASSIGN_OR_RETURN(int64_t size, spec.bytes(pages));
  assert(contents.shape == shapeOf(spec, pages) &&
         contents.bytes.size() == static_cast<size_t>(size) &&
         "another cache's contents");
  std::vector<std::byte> bytes(size);
  forEachElement(spec, pages, [&](int64_t from, int64_t to, int64_t count) {
    std::memcpy(&bytes[to], &contents.bytes[from], count);
  });
  return bytes;
} catch (...) {
  return statusOfException();
}

Result<HostTensor> kf::readCache(const CacheSpec &spec, int64_t pages,
                                 std::span<const std::byte> bytes) try {
  KF_ASSIGN_OR_RETURN(int64_t size, spec.bytes(pages));
  assert(bytes.size() >= static_cast<size_t>(size) && "a part of a cache");
  KF_ASSIGN_OR_RETURN(HostTensor contents,
                      HostTensor::zeros(spec.type, shapeOf(spec, pages)));
  if (spec.isOfStates()) {
    const size_t layers = static_cast<size_t>(spec.layers),
                 own = contents.bytes.size() / layers;
    for (size_t layer = 0; layer < layers; ++layer)
      std::memcpy(&contents.bytes[layer * own],
                  &bytes[layer * (static_cast<size_t>(size) / layers)], own);
    return contents;
  }
  forEachElement(spec, pages, [&](int64_t to, int64_t from, int64_t count) {
    std::memcpy(&contents.bytes[to], &bytes[from], count);
  });
  return contents;
} catch (...) {
  return statusOfException();
}
