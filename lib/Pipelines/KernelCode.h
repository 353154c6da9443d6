//===- KernelCode.h - The code of each kernel by itself ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_PIPELINES_KERNELCODE_H
#define KF_LIB_PIPELINES_KERNELCODE_H

#include "kf/Pipelines/Compiler.h"

namespace mlir::kf {

/// Lowers the kernels of the tiled `module` and makes the code of `executable`,
/// which has them in any order. Each is made by itself, on as many threads as
/// this process may keep busy: the code is the same for any number of them.
/// Error: that of the first kernel that fails.
llvm::Error makeKernelCode(ModuleOp module, TargetAttrInterface target,
                           const CompileOptions &options,
                           ::kf::Executable &executable);

} // namespace mlir::kf

#endif // KF_LIB_PIPELINES_KERNELCODE_H
