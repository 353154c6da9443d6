//===- WeightPacking.h - Weights as their kernels want them -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Brings checkpoint tensors into the form that a WeightSpec describes: joined,
// transposed, converted, and laid out in panels or tiles. Runs once, at load,
// straight from the mapped file into memory that the device reads or copies.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_WEIGHTPACKING_H
#define KF_RUNTIME_WEIGHTS_WEIGHTPACKING_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Cancellation.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/program/Executable.h"
#include "runtime/weights/WeightSource.h"

#include <span>

namespace kf {

/// How weights are packed.
struct PackOptions {
  ThreadPool *pool = nullptr;     ///< null: the caller's thread does all
  CancelFlag cancelled = nullptr; ///< ends it within a weight
  /// Bytes of tensors that a WeightStore has packed, about, when it releases
  /// them, by all threads: to give pages back takes one thread half as long as
  /// all need to pack them. So much more than the weights is in memory at most;
  /// tensors that are packed as a whole, or made by their source, are released
  /// as a whole.
  uint64_t releasedBytes = uint64_t(64) << 20;
};

/// Writes the weight that `spec` describes to `dst`, which is
/// spec.packedBytes() long and aligned to KF_BUFFER_ALIGNMENT. Element types
/// that differ are converted through f32. Errors: a checkpoint tensor that is
/// missing or has an unexpected shape or type; no memory; the line names the
/// tensor or the weight.
Status packWeightInto(const WeightSpec &spec, const WeightSource &source,
                      std::span<std::byte> dst,
                      const PackOptions &options = {});

/// A part of the same: what is in the packed weight from byte `first` on. It
/// begins and ends at a multiple of packedUnit(spec), or where the weight does.
Status packWeightPart(const WeightSpec &spec, const WeightSource &source,
                      int64_t first, std::span<std::byte> dst,
                      const PackOptions &options = {});

/// Bytes of the smallest parts that a sound weight is packed in: a panel, or as
/// much as packs in one go. Of one that is packed as a whole, all of its bytes.
int64_t packedUnit(const WeightSpec &spec);

/// The same into memory of its own.
Result<AlignedBuffer> packWeight(const WeightSpec &spec,
                                 const WeightSource &source,
                                 const PackOptions &options = {});

/// Whether the packed weight would be `view`'s bytes unchanged, so that
/// Device::wrap(view.data, view.bytes) does without packing.
bool canBindDirectly(const WeightSpec &spec, const TensorView &view);

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_WEIGHTPACKING_H
