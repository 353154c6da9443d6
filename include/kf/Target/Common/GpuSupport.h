//===- GpuSupport.h - What GPUs can run -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUSUPPORT_H
#define KF_TARGET_COMMON_GPUSUPPORT_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// What a GPU has, as far as kernels depend on it.
struct GpuLimits {
  StringRef name;         ///< of the target, for messages: "Vulkan"
  int64_t threads = 256;  ///< of a workgroup
  int64_t memory = 16384; ///< bytes of workgroup memory
  int64_t indexBits = 64; ///< of an index into a buffer
  bool mma = false;       ///< #kf.mma: matrix units of 16-bit floats
  bool clusters = false;  ///< of workgroups
  bool wgmma = false;     ///< matrix units of four warps
  /// A usual GPU's where it does not say.
  int64_t multiprocessors = 64;
  /// Bits of the integers in registers beside 1 and 32; all where it is empty.
  std::optional<SmallVector<int64_t>> integers = std::nullopt;
};

/// Fails, with a diagnostic that names an op or a type, where there is no code
/// for `kernel` with up to `rows` rows, whatever its schedule.
LogicalResult checkGpuSupport(KernelOp kernel, const GpuLimits &limits,
                              int64_t rows);

/// Checks that a GPU with these limits can run `kernel`, which
/// checkGpuSupport() found good, by `schedule`. `emitError` begins the
/// diagnostic; null: there is none.
LogicalResult verifyGpuSchedule(KernelOp kernel, ScheduleAttrInterface schedule,
                                const GpuLimits &limits,
                                function_ref<InFlightDiagnostic()> emitError);

/// Checks that a GPU with these limits can run `kernel` by its schedule. The
/// error is on the kernel, or on the op that has no GPU code.
LogicalResult verifyGpuSchedule(KernelOp kernel, const GpuLimits &limits,
                                int64_t rows);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUSUPPORT_H
