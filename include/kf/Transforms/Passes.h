//===- Passes.h - Transform passes of the kf dialect ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_PASSES_H
#define KF_TRANSFORMS_PASSES_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace kf {
class TuningDatabase;
} // namespace kf

namespace mlir::kf {

/// Schedules that were measured, and where.
struct MeasuredSchedules {
  std::shared_ptr<const ::kf::TuningDatabase> database; ///< null: none
  std::string file;   ///< the database's, for messages
  std::string device; ///< Device::description() of who will run the kernels
};

/// What kf-differentiate does where the backward pass reads values that the
/// forward pass has made.
enum class GradientPolicy {
  Recompute, ///< makes cheap ones again, where that leaves less in memory
  Layers,    ///< makes all again but those of ops with kf.kept
  Store      ///< keeps all of them, the weights of attention as well
};

#define GEN_PASS_DECL
#include "kf/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "kf/Transforms/Passes.h.inc"

/// kf-select-rows with a database that is loaded, for functions without
/// `kf.max_tokens` of up to `maxTokens`.
std::unique_ptr<Pass> createSelectRows(int64_t maxTokens,
                                       MeasuredSchedules measured);
/// kf-select-schedules with a database that is loaded.
std::unique_ptr<Pass> createSelectSchedules(MeasuredSchedules measured);

} // namespace mlir::kf

#endif // KF_TRANSFORMS_PASSES_H
