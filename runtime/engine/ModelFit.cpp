//===- ModelFit.cpp - Whether a device has room for a model ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ModelFit.h"

#include "runtime/model/LayerCaches.h"

#include <algorithm>
#include <cstdio>

using namespace kf;

namespace {

/// Bits of a weight in a file of each type, the mixes' by large models.
struct FileType {
  const char *name;
  double bits;
};
constexpr FileType kFileTypes[] = {{"q8_0", 8.5}, {"q6_k", 6.6}, {"q5_k", 5.7},
                                   {"q4_k", 4.9}, {"q3_k", 4.0}, {"q2_k", 3.2}};

/// Of the memory that is free, the share that weights may take beside a cache
/// and what programs need.
constexpr double kShare = 0.9;

std::string gibibytes(double bytes) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.2f GiB", bytes / 0x1p30);
  return buffer;
}

std::string gibibytes(uint64_t bytes) {
  return gibibytes(static_cast<double>(bytes));
}

/// What to do about weights that are too large for `free` bytes.
std::string smallerWeights(const ModelNeeds &needs, uint64_t free) {
  const double parameters = static_cast<double>(needs.parameters);
  for (const FileType &type : kFileTypes) {
    const double bytes = parameters * type.bits / 8;
    if (bytes < static_cast<double>(needs.weights) &&
        bytes <= kShare * static_cast<double>(free))
      return std::string("in ") + type.name + " they would take " +
             gibibytes(bytes) + " ('kf-run quantize')";
  }
  return "no type of weights makes them fit; take a smaller model, or --device "
         "cpu";
}

} // namespace

CachePositions kf::cachePositionsOf(const ModelConfig &config, int64_t context,
                                    int64_t sequences) {
  return [config, context, sequences](int64_t pages) -> int64_t {
    const int64_t each = std::min(context, positionsWithin(config, pages));
    return each > 0 ? positionsOf(config, pages, each, sequences) : 0;
  };
}

int64_t kf::mostThatFits(int64_t most,
                         const std::function<bool(int64_t)> &fits) {
  int64_t least = 0;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (fits(middle))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

int64_t kf::pagesWithin(uint64_t room, int64_t most,
                        const CacheBytes &bytesOf) {
  return mostThatFits(most,
                      [&](int64_t pages) { return bytesOf(pages) <= room; });
}

Status kf::checkFits(const ModelNeeds &needs, const DeviceMemory &memory) {
  const uint64_t cache = needs.cacheBytes();
  const uint64_t room =
      memory.free > needs.weights ? memory.free - needs.weights : 0;
  if (needs.weights <= memory.free && cache <= room)
    return Status();
  const uint64_t missing = cache > UINT64_MAX - needs.weights
                               ? UINT64_MAX
                               : needs.weights + cache - memory.free;
  const int64_t fitting =
      needs.cache && needs.pages
          ? needs.positions(pagesWithin(room, needs.pages, needs.cache))
          : 0;
  const std::string weights =
      needs.weights ? "weights of " + gibibytes(needs.weights) + " and " : "";
  return Status::error(
      weights + "a KV cache of " + gibibytes(cache) + " (" +
          std::to_string(needs.cachePositions()) + " positions) " +
          (weights.empty() ? "is " : "are ") + gibibytes(missing) +
          " more than the " + gibibytes(memory.free) + " of " +
          gibibytes(memory.total) + " that the device has free; " +
          (fitting > 0 ? "there is room for " + std::to_string(fitting) +
                             " positions in all (-c N, or --cache-memory)"
                       : smallerWeights(needs, memory.free)),
      StatusCode::OutOfMemory);
}
