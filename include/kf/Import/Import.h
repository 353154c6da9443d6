//===- Import.h - Checkpoints to kf modules ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a part of a decoder's step, or a program that trains it, as a person
// would: unfused, one function, the weights by name. Names, shapes and types of
// the checkpoint are read and checked; its data is not.
//
//===----------------------------------------------------------------------===//

#ifndef KF_IMPORT_IMPORT_H
#define KF_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Step.h"
#include "runtime/model/Training.h"
#include "runtime/weights/WeightSource.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

struct ImportOptions {
  ::kf::StepShape shape;
  /// Positions per block of the cache's keys (see !kf.kv_cache); divides
  /// kCachePage.
  int64_t keyBlock = 1;
  /// Element type of the cache: F32, F16, BF16, or Q8_0 where heads have a
  /// multiple of 32 elements.
  ::kf::DataType cacheType = ::kf::DataType::F32;
  /// Element type of what kernels hand on: F32, F16 or BF16. Sums, norms and
  /// logits are f32 in any case.
  ::kf::DataType activationType = ::kf::DataType::F32;
};

/// A module with one func.func, named nameOf(options.shape), that takes and
/// returns what runtime/model/Step.h says and carries `kf.max_tokens` and
/// `kf.size_ranges`. Weights keep their stored element type. Loads the dialects
/// that it uses into `context`. Errors: a tensor that the model needs and the
/// checkpoint lacks, one with another shape or a type that is not float, and
/// one that the checkpoint has and the model does not use.
llvm::Expected<OwningOpRef<ModuleOp>>
importStep(MLIRContext &context, const ::kf::ModelConfig &config,
           const ::kf::WeightSource &source, const ImportOptions &options);

/// The same of a program that trains the model, as runtime/model/Training.h
/// says, with layers that hand on `activationType`. That of `Gradient` is the
/// loss with the gradients wanted of it (`kf.gradient`), without the arguments
/// G1 .. GP: kf-differentiate{accumulate} adds these. Errors: those of
/// checkTrains() and listTrained(), too.
llvm::Expected<OwningOpRef<ModuleOp>>
importTraining(MLIRContext &context, const ::kf::ModelConfig &config,
               const ::kf::WeightSource &source,
               const ::kf::TrainingShape &shape, ::kf::DataType activationType);

} // namespace mlir::kf

#endif // KF_IMPORT_IMPORT_H
