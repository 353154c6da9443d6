//===- CodeBudget.h - Bounds of what emitters make --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What follows the emitters takes time and memory that grow faster than a
// kernel's code, so that a few lines of text could keep a compiler busy for
// hours. The bounds are more than what models need: of products of blocks by
// CUDA's units of a warp some 20,000 ops a kernel, of all others 4,000.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_CODEBUDGET_H
#define KF_CONVERSION_COMMON_CODEBUDGET_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/PatternMatch.h"

namespace mlir::kf {

/// Counts the ops that a rewriter makes for the kernels of a module.
class CodeBudget : public RewriterBase::Listener {
public:
  static constexpr int64_t perKernel = 40'000, perModule = 160'000;

  void beginKernel() { ofKernel = 0; }
  /// Whether the current kernel or the module has more ops than it may.
  bool isSpent() const { return ofKernel > perKernel || ofModule > perModule; }
  /// A diagnostic that begins with `pass` if isSpent().
  LogicalResult check(KernelOp kernel, StringRef pass) const;

  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override;

private:
  int64_t ofKernel = 0, ofModule = 0;
};

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_CODEBUDGET_H
