//===- LLVMBackend.h - Optimized code of an LLVM module ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_LLVMBACKEND_H
#define KF_TARGET_COMMON_LLVMBACKEND_H

#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir::kf {

/// Inlining, scalar clean-up and loop-invariant code motion. The kernels come
/// vectorized and unrolled, so LLVM's vectorizers have nothing to add.
void optimizeKernels(llvm::Module &module, llvm::TargetMachine &machine);

/// The bytes of an object or assembly file; an error where the machine has no
/// such form.
llvm::Expected<std::string> emitKernels(llvm::Module &module,
                                        llvm::TargetMachine &machine,
                                        llvm::CodeGenFileType form);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_LLVMBACKEND_H
