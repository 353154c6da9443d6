//===- CoopSchedules.h - Products on cooperative matrices -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_COMMON_COOPSCHEDULES_H
#define KF_LIB_TARGET_COMMON_COOPSCHEDULES_H

#include "kf/Target/Common/GpuSupport.h"

namespace mlir::kf {

/// The tile by which subgroups together should take the least time for the
/// product `op` of `kernel`, of up to `tokens` rows, where these are many; null
/// where cooperative matrices cannot do it, or would be idle for the most part.
MmaScheduleAttr selectCoopSchedule(KernelOp kernel, MatmulOp op,
                                   const MachineDescription &machine,
                                   int64_t tokens);

/// The most rows for which subgroups divide K.
inline constexpr int64_t mostRowsOfShares = 64;

/// The same of few rows, for which subgroups divide K: as many as have some
/// steps each, of as many lines as leave no multiprocessor without tiles, of
/// which those of the first rows alone are counted. Where subgroups cannot
/// divide K, one has all of it for kGpuFewRows; null for others, and where
/// there are more than mostRowsOfShares.
MmaScheduleAttr selectFewCoopSchedule(KernelOp kernel, MatmulOp op,
                                      const MachineDescription &machine,
                                      int64_t tokens);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_COMMON_COOPSCHEDULES_H
