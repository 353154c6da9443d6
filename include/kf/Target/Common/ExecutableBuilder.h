//===- ExecutableBuilder.h - Programs to runtime executables ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_EXECUTABLEBUILDER_H
#define KF_TARGET_COMMON_EXECUTABLEBUILDER_H

#include "kf/Dialect/KF/IR/KF.h"
#include "runtime/program/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::kf {

/// The runtime's name of an element type; fails for a type that has none.
FailureOr<::kf::DataType> toDataType(Type type);

/// What kernels do, by their names; one that is not known is left out.
using KernelWorks = llvm::DenseMap<StringAttr, ::kf::KernelWork>;
/// Counts it for the kernels of `module`, which must not be tiled yet.
KernelWorks countWorks(ModuleOp module);

/// Describes the only kf.program of `module`, whose memory is planned, for
/// `target`, and its kernels: everything of an Executable but the binary and
/// what code generation finds out (scratch bytes, workgroup sizes). Kernels are
/// numbered in module order. Emits a diagnostic on failure.
FailureOr<::kf::Executable> buildExecutable(ModuleOp module,
                                            TargetAttrInterface target,
                                            const KernelWorks &works);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_EXECUTABLEBUILDER_H
