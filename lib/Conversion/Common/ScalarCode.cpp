//===- ScalarCode.cpp - Integers, comparisons and choices -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarCode.h"

#include "runtime/core/SamplingMath.h"

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

SmallVector<Value> ScalarCode::philox(ValueRange counter, ValueRange key) {
  Type type = counter.front().getType();
  auto word = [&](uint32_t bits) {
    return number(type, static_cast<int32_t>(bits));
  };
  auto exclusive = [&](Value a, Value c, Value d) -> Value {
    return make<arith::XOrIOp>(make<arith::XOrIOp>(a, c), d);
  };
  SmallVector<Value> state(counter);
  llvm::append_range(state, key);
  auto rounds = tile.loop(
      tile.index(0), tile.index(::kf::kPhiloxRounds), tile.index(1), state,
      [&](Value, ValueRange s) {
        auto multiply = [&](Value factor, int number) {
          return arith::MulUIExtendedOp::create(
              b, loc, factor, word(::kf::kPhiloxMultipliers[number]));
        };
        auto grow = [&](Value key, int number) {
          return make<arith::AddIOp>(key, word(::kf::kPhiloxKeySteps[number]));
        };
        auto x = multiply(s[0], 0), y = multiply(s[2], 1);
        return SmallVector<Value>{exclusive(y.getHigh(), s[1], s[4]),
                                  y.getLow(),
                                  exclusive(x.getHigh(), s[3], s[5]),
                                  x.getLow(),
                                  grow(s[4], 0),
                                  grow(s[5], 1)};
      });
  return llvm::to_vector(ValueRange(rounds.getResults()).take_front(4));
}

Value ScalarCode::any(Value mask) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, mask);
}
