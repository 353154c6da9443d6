//===- Registration.h - Everything that a kf tool registers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_REGISTRATION_H
#define KF_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::kf {

/// The kf dialect, the upstream dialects that its lowerings use, and the
/// interfaces and translations of all of them.
void registerDialects(DialectRegistry &registry);

/// Every kf pass, and the upstream passes that the pipelines run.
void registerPasses();

} // namespace mlir::kf

#endif // KF_PIPELINES_REGISTRATION_H
