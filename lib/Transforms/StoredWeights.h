//===- StoredWeights.h - Which weights are read as stored -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TRANSFORMS_STOREDWEIGHTS_H
#define KF_LIB_TRANSFORMS_STOREDWEIGHTS_H

#include "kf/Transforms/Passes.h"

namespace mlir::kf {

/// Whether products on `target`, which packs weights of this type, give the
/// same with one as it is stored: it need not be in memory twice where
/// gradients of rows read it from its other side. Products with packed weights
/// of f32 are by threads, and exact, which those with stored ones are not, and
/// cooperative matrices take packed weights alone.
bool canReadAsStored(TargetAttrInterface target, RankedTensorType weight);

} // namespace mlir::kf

#endif // KF_LIB_TRANSFORMS_STOREDWEIGHTS_H
