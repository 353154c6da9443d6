//===- OptimizerUpdate.h - What an optimizer makes of gradients -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_OPTIMIZERUPDATE_H
#define KF_LIB_IMPORT_OPTIMIZERUPDATE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/model/Training.h"

namespace mlir::kf {

/// The program that updates `trained`, as runtime/model/Training.h says, with
/// results that have `kf.updates`. The dialects are loaded.
OwningOpRef<ModuleOp> buildUpdate(MLIRContext &context,
                                  const ::kf::TrainingShape &shape,
                                  ArrayRef<::kf::TrainedTensor> trained);

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_OPTIMIZERUPDATE_H
