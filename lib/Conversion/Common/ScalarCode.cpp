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

Value ScalarCode::ifElse(Value condition, function_ref<Value()> yes,
                         function_ref<Value()> no) {
  // The branches are built first: their values say what the type is.
  OpBuilder::InsertionGuard guard(b);
  auto build = [&](Region &region, function_ref<Value()> branch) {
    b.createBlock(&region);
    Value value = branch();
    scf::YieldOp::create(b, loc, value);
    return value.getType();
  };
  Region yesRegion, noRegion;
  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  Type type = build(yesRegion, yes);
  [[maybe_unused]] Type other = build(noRegion, no);
  assert(type == other && "both branches give the same");
  b.restoreInsertionPoint(here);
  auto op = scf::IfOp::create(b, loc, TypeRange{type}, condition, false, false);
  op.getThenRegion().takeBody(yesRegion);
  op.getElseRegion().takeBody(noRegion);
  return op.getResult(0);
}
