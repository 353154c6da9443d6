//===- InputRoles.h - What a program's inputs mean --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_INPUTROLES_H
#define KF_PIPELINES_INPUTROLES_H

#include "runtime/tuning/KernelInputs.h"

#include <vector>

namespace mlir::kf {

class ProgramOp;

/// What the tensors that `program` takes, caches apart, are to the ops of the
/// kernels that it dispatches, and from where to where their numbers go: what
/// to run it with. Kernels are as of Phase::Program.
std::vector<::kf::KernelInput> getInputRoles(ProgramOp program);

} // namespace mlir::kf

#endif // KF_PIPELINES_INPUTROLES_H
