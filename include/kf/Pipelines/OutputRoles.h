//===- OutputRoles.h - What a program's outputs mean ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_OUTPUTROLES_H
#define KF_PIPELINES_OUTPUTROLES_H

#include "runtime/tuning/KernelInputs.h"

#include <vector>

namespace mlir::kf {

class ProgramOp;

/// What the tensors that `program` gives are to the ops of the kernels that
/// make them: which of their numbers anybody reads. Kernels are as of
/// Phase::Program.
std::vector<::kf::KernelOutput> getOutputRoles(ProgramOp program);

} // namespace mlir::kf

#endif // KF_PIPELINES_OUTPUTROLES_H
