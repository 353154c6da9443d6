//===- GpuSchedules.h - Schedules for GPUs ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUSCHEDULES_H
#define KF_TARGET_COMMON_GPUSCHEDULES_H

#include "kf/Target/Common/GpuSupport.h"

namespace mlir::kf {

/// Rows up to which threads share the sums of a product, and it takes in a
/// norm.
inline constexpr int64_t kGpuFewRows = 16;
/// Rows up to which threads multiply them as they are where subgroups multiply
/// more on cooperative matrices.
inline constexpr int64_t kGpuThreadRows = 4;
/// Rows up to which those of several sequences are mostly of one each, which
/// has keys of its own: of the programs that an engine has for sequences that
/// generate (EnginePrograms.cpp), and fewer than those for prompts have.
inline constexpr int64_t kGpuGeneratingRows = 256;

/// Whether `rows` rows of queries share so few keys that each is better taken
/// by itself.
bool haveOwnKeys(CacheAttentionInterface op, int64_t rows);

/// Whether tiles of `#kf.mma` on NVIDIA's matrix units are for a product of
/// `rows` rows, where its types have them. Few rows stream, or are for
/// cooperative matrices (CoopSchedules.cpp).
bool areForMatrixUnits(MatmulOp op, int64_t rows);
/// The same of the product of each batch.
bool isForMatrixUnits(BatchMatmulOp op);
/// The same of dy^T x, where both lie as they are.
bool isForMatrixUnits(MatmulWgradOp op);

/// What GPUs fuse.
FusionRules getGpuFusionRules();

/// The element types that the kernel of `op`, a product of up to `rows` rows or
/// attention, may read these or its queries in: the best one first, and none
/// that is less exact.
SmallVector<Type>
getGpuRowTypes(Operation *op, const MachineDescription &machine, int64_t rows);

/// A schedule for `kernel`, which computes up to `rows` rows; null after the
/// diagnostic of checkGpuSupport().
ScheduleAttrInterface selectGpuSchedule(KernelOp kernel,
                                        const MachineDescription &machine,
                                        int64_t rows);

/// What `#kf.flash_mma` is for `op` with `rowWarps` warps that divide rows and
/// `keyWarps` that divide keys: many rows by several warps are rounded, keys
/// are shared by these, and by warpgroups where there are some.
FlashMmaScheduleAttr getFlashMmaSchedule(CacheAttentionInterface op,
                                         const MachineDescription &machine,
                                         ArrayRef<int64_t> workgroup,
                                         int64_t keys, int64_t rowWarps,
                                         int64_t keyWarps, int64_t parts);

/// The same for `op`, attention to keys that are tensors, or its gradients.
FlashMmaScheduleAttr getBatchAttentionSchedule(BatchAttentionInterface op);

/// Schedules that `machine` can run `kernel` by and that could be
/// the fastest with up to `rows` rows: selectGpuSchedule()'s first, none twice.
/// None, after a diagnostic, where that one cannot run.
SmallVector<ScheduleAttrInterface>
getGpuScheduleCandidates(KernelOp kernel, const MachineDescription &machine,
                         int64_t rows);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUSCHEDULES_H
