//===- RouteShape.h - Workgroup memory of kf.route --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_ROUTESHAPE_H
#define KF_CONVERSION_ROUTESHAPE_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Words of 32 bits that a GPU's kernel of kf.route has in workgroup memory, in
/// each of two arrays: of a row's experts, a multiple of how many a thread
/// compares with its own at a time, and of the places that are chosen.
struct RouteWords {
  static constexpr int64_t comparedAtOnce = 8;

  explicit RouteWords(RouteOp op)
      : experts(llvm::alignTo(
            cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1),
            comparedAtOnce)),
        places(llvm::alignTo(static_cast<int64_t>(op.getTop()), 4)) {}

  int64_t experts, places;
  int64_t all() const { return 2 * (experts + places); }
};

} // namespace mlir::kf

#endif // KF_CONVERSION_ROUTESHAPE_H
