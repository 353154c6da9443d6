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

#include <cstdint>
#include <string>

namespace kf {

/// The least that a model takes of a device's memory.
struct ModelNeeds {
  uint64_t weights = 0;    ///< bytes, as they are stored; 0: they are there
  uint64_t parameters = 0; ///< of all tensors
  uint64_t page = 0;       ///< bytes of a page of the KV cache, in all layers
  int64_t pages = 0;
  int64_t pagePositions = 0; ///< of one sequence

  uint64_t bytes() const {
    return weights + page * static_cast<uint64_t>(pages);
  }
};

/// An error if `needs` is more than what `memory` has free: by how much, and
/// what would fit, a smaller cache or weights of fewer bits. Programs take some
/// more, so that what passes may still not fit.
Status checkFits(const ModelNeeds &needs, const DeviceMemory &memory);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_MODELFIT_H
