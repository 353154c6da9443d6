//===- ScalarCode.cpp - Integers, comparisons and choices -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarCode.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

Value ScalarCode::number(Type type, int64_t value) {
  auto attribute = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vector, Attribute(attribute)));
  return arith::ConstantOp::create(b, loc, attribute);
}

Value ScalarCode::any(Value mask) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, mask);
}
