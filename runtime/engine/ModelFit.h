//===- ModelFit.h - Whether a device has room for a model -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_MODELFIT_H
#define KF_RUNTIME_ENGINE_MODELFIT_H

#include "runtime/core/Status.h"
#include "runtime/devices/Device.h"
#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <functional>

namespace kf {

/// Bytes of the caches of so many pages, 1 or more; more pages take as many or
/// more. UINT64_MAX: no memory is so large.
using CacheBytes = std::function<uint64_t(int64_t pages)>;

/// Positions that so many pages hold, of all sequences; more pages hold as many
/// or more, but not in proportion.
using CachePositions = std::function<int64_t(int64_t pages)>;
/// Those of `config`'s, for `sequences` sequences of `context` positions each,
/// or of as many as the pages have room for, if these are fewer.
CachePositions cachePositionsOf(const ModelConfig &config, int64_t context,
                                int64_t sequences);

/// The largest number, 1 to `most`, that `fits`, where all smaller ones do; 0:
/// none.
int64_t mostThatFits(int64_t most, const std::function<bool(int64_t)> &fits);

/// The most pages, of `most`, whose caches take `room` bytes or fewer; 0: none.
int64_t pagesWithin(uint64_t room, int64_t most, const CacheBytes &bytesOf);

/// The least that a model takes of a device's memory.
struct ModelNeeds {
  uint64_t weights = 0;       ///< bytes, as they are stored; 0: they are there
  uint64_t parameters = 0;    ///< of all tensors
  CacheBytes cache{};         ///< in all layers; null: there is none
  CachePositions positions{}; ///< there where `cache` is
  int64_t pages = 0;

  uint64_t cacheBytes() const { return cache && pages ? cache(pages) : 0; }
  int64_t cachePositions() const {
    return positions && pages ? positions(pages) : 0;
  }
};

/// An error if `needs` is more than what `memory` has free: by how much, and
/// what would fit, a smaller cache or weights of fewer bits. Programs take some
/// more, so that what passes may still not fit.
Status checkFits(const ModelNeeds &needs, const DeviceMemory &memory);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_MODELFIT_H
