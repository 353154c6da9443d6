//===- ExpertStacks.cpp - Experts whose matrices lie in stacks ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ExpertStacks.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"

#include <algorithm>
#include <cassert>
#include <cstring>

using namespace kf;

namespace {

/// Of mxfp4: elements and bytes of a block, and those of its codes.
constexpr int64_t kBlockElements = 32, kBlockBytes = 17, kCodeBytes = 16;

/// A block of which two codes that lie in a byte are those of neighbours, as
/// one in which they are 16 elements apart.
void repackBlock(const uint8_t *codes, uint8_t scale, uint8_t *block) {
  block[0] = scale;
  for (int64_t i = 0; i < kCodeBytes / 2; ++i) {
    const uint8_t low = codes[i], high = codes[i + kCodeBytes / 2];
    block[1 + 2 * i] = static_cast<uint8_t>((low & 15) | high << 4);
    block[2 + 2 * i] = static_cast<uint8_t>(low >> 4 | (high & 0xf0));
  }
}

/// dst[r][c] = src[c][first + r * step], where a row of src has `stride`
/// elements.
template <typename Word>
void transpose(const std::byte *src, int64_t stride, int64_t first,
               int64_t step, int64_t rows, int64_t columns, std::byte *dst) {
  // Squares that stay in the nearest cache.
  constexpr int64_t side = 32;
  for (int64_t row = 0; row < rows; row += side)
    for (int64_t column = 0; column < columns; column += side)
      for (int64_t r = row; r < std::min(row + side, rows); ++r)
        for (int64_t c = column; c < std::min(column + side, columns); ++c)
          std::memcpy(dst + (r * columns + c) * sizeof(Word),
                      src + (c * stride + first + r * step) * sizeof(Word),
                      sizeof(Word));
}

/// The type of the tensor `name`, which has to have this shape, and be of ui8
/// or of floats.
Result<DataType> checkTensor(const WeightSource &source,
                             const std::string &name,
                             const std::vector<int64_t> &shape, bool isBytes) {
  KF_ASSIGN_OR_RETURN(const TensorView view, source.describe(name));
  if (view.shape != shape)
    return Status::error("checkpoint tensor " + inQuotes(name) + " has shape " +
                         shapeText(view.shape) +
                         ", but the configuration implies " + shapeText(shape));
  if (isBytes ? view.type != DataType::U8 : !isFloat(view.type))
    return Status::error("checkpoint tensor " + inQuotes(name) + " has type " +
                         std::string(nameOf(view.type)) + " where " +
                         (isBytes ? "ui8 is" : "f32, f16 or bf16 are") +
                         " expected");
  return view.type;
}

} // namespace

/// Its shape is [rows, columns], of a bias [rows].
struct ExpertStacks::Entry : Tensor {
  std::string stack, scales; ///< in the source; without scales, of floats
  int64_t expert = 0;
  int64_t stackRows = 0;       ///< of the stack's matrix
  int64_t first = 0, step = 1; ///< those of them that are its own
  bool isLast = true;          ///< of those in the stack's matrix

  int64_t rows() const { return shape.front(); }
  int64_t columns() const { return shape.size() > 1 ? shape.back() : 1; }

  /// The last of those in the stack's matrix is read last.
  void released(const WeightSource &source) const override {
    if (!isLast)
      return;
    const auto elements = static_cast<uint64_t>(stackRows * columns());
    auto releaseOf = [&](const std::string &whole, uint64_t size) {
      source.releasePart(whole, static_cast<uint64_t>(expert) * size, size);
    };
    if (scales.empty())
      return releaseOf(stack, elements * sizeOf(type));
    releaseOf(stack, elements / kBlockElements * kCodeBytes);
    releaseOf(scales, elements / kBlockElements);
  }

  Status make(const WeightSource &source, const std::string &,
              std::byte *dst) const override {
    KF_ASSIGN_OR_RETURN(const TensorView whole, source.find(stack));
    const auto *from = static_cast<const std::byte *>(whole.data);
    if (scales.empty()) {
      const auto size = static_cast<int64_t>(sizeOf(type));
      from += expert * stackRows * columns() * size;
      auto *fn = size == 4 ? transpose<uint32_t> : transpose<uint16_t>;
      fn(from, stackRows, first, step, rows(), columns(), dst);
      return Status();
    }
    KF_ASSIGN_OR_RETURN(const TensorView factors, source.find(scales));
    const auto *codes = reinterpret_cast<const uint8_t *>(from);
    const auto *exponents = static_cast<const uint8_t *>(factors.data);
    auto *to = reinterpret_cast<uint8_t *>(dst);
    const int64_t blocks = columns() / kBlockElements;
    for (int64_t row = 0; row < rows(); ++row) {
      const int64_t begin = (expert * stackRows + first + row * step) * blocks;
      for (int64_t i = begin; i < begin + blocks; ++i, to += kBlockBytes)
        repackBlock(codes + i * kCodeBytes, exponents[i], to);
    }
    return Status();
  }
};

ExpertStacks::ExpertStacks(std::unique_ptr<WeightSource> source,
                           const Form &form)
    : MadeWeights(std::move(source)), form(form) {}
ExpertStacks::~ExpertStacks() = default;

Status ExpertStacks::add(const std::string &name, int64_t rows, int64_t columns,
                         const std::vector<Parts> &experts) try {
  assert(!experts.empty() && "a stack is of some experts");
  const auto count = static_cast<int64_t>(experts.size());
  const auto parts = static_cast<int64_t>(experts.front().size());
  const int64_t stackRows = rows * parts;
  const std::string codes = name + "_blocks", scales = name + "_scales";
  const std::string bias = name + "_bias";
  const bool hasBlocks = source->describe(codes).ok();

  DataType type = DataType::MXFP4;
  if (hasBlocks) {
    KF_RETURN_IF_ERROR(
        checkedByteCount(type, {{rows, columns}}).status().in(inQuotes(name)));
    const int64_t blocks = columns / kBlockElements;
    KF_RETURN_IF_ERROR(checkTensor(*source, codes,
                                   {count, stackRows, blocks, kCodeBytes},
                                   /*isBytes=*/true)
                           .status());
    KF_RETURN_IF_ERROR(checkTensor(*source, scales, {count, stackRows, blocks},
                                   /*isBytes=*/true)
                           .status());
  } else {
    KF_ASSIGN_OR_RETURN(type,
                        checkTensor(*source, name, {count, columns, stackRows},
                                    /*isBytes=*/false));
  }
  DataType biasType = DataType::F32;
  if (form.hasBiases) {
    KF_ASSIGN_OR_RETURN(biasType, checkTensor(*source, bias, {count, stackRows},
                                              /*isBytes=*/false));
  }

  std::map<std::string, std::unique_ptr<Tensor>> added;
  auto addPart = [&](const std::string &part, int64_t expert, int64_t number,
                     DataType ofPart, std::vector<int64_t> shape,
                     const std::string &stack) {
    auto entry = std::make_unique<Entry>();
    KF_ASSIGN_OR_RETURN(const int64_t bytes, checkedByteCount(ofPart, shape));
    entry->bytes = static_cast<uint64_t>(bytes);
    entry->stack = stack;
    entry->scales = isBlock(ofPart) ? scales : "";
    entry->type = ofPart;
    entry->shape = std::move(shape);
    entry->expert = expert;
    entry->stackRows = stackRows;
    entry->first = form.inTurns ? number : number * rows;
    entry->step = form.inTurns ? parts : 1;
    entry->isLast = number + 1 == parts;
    if (describe(part).ok() || !added.emplace(part, std::move(entry)).second)
      return Status::error("checkpoint tensors " + inQuotes(stack) + " and " +
                           inQuotes(part) + " hold the same");
    return Status();
  };
  for (int64_t expert = 0; expert < count; ++expert)
    for (int64_t i = 0; i < parts; ++i) {
      const std::string &part = experts[expert][i];
      KF_RETURN_IF_ERROR(addPart(part + ".weight", expert, i, type,
                                 {rows, columns}, hasBlocks ? codes : name));
      if (form.hasBiases)
        KF_RETURN_IF_ERROR(
            addPart(part + ".bias", expert, i, biasType, {rows}, bias));
    }
  made.merge(added);
  if (form.hasBiases)
    hidden.insert(bias);
  if (hasBlocks)
    hidden.insert({codes, scales});
  else
    hidden.insert(name);
  return Status();
} catch (...) {
  return statusOfException();
}

std::vector<std::string> ExpertStacks::names() const {
  std::vector<std::string> names;
  for (const std::string &name : source->names())
    if (!hidden.contains(name))
      names.push_back(name);
  for (const auto &[name, tensor] : made)
    names.push_back(name);
  std::ranges::sort(names);
  return names;
}
