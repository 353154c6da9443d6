//===- Serialize.h - Kernels as lists of reference ops ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_REFERENCE_SERIALIZE_H
#define KF_TARGET_REFERENCE_SERIALIZE_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mlir::kf {

/// The kernels of `module` as JSON, in module order: the binary of executables
/// for the reference device. runtime/devices/Reference/KernelInterpreter.h
/// documents the form. Emits a diagnostic on failure.
FailureOr<std::string> serializeForReference(ModuleOp module);

} // namespace mlir::kf

#endif // KF_TARGET_REFERENCE_SERIALIZE_H
