//===- WarpOps.cpp - What a warp of NVIDIA GPUs does together -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value WarpOps::exchange(Value value, int64_t mask) {
  return NVVM::ShflOp::create(b, loc, value.getType(), e.word(-1), value,
                              e.word(mask), e.word(31), NVVM::ShflKind::bfly,
                              /*return_value_and_is_valid=*/UnitAttr());
}

Value WarpOps::ofGroup(Value value, int64_t number) {
  // Bits of a lane's number that stay as they are, and the last lane.
  constexpr int64_t own = 0x1c, last = 31;
  return NVVM::ShflOp::create(b, loc, value.getType(), e.word(-1), value,
                              e.word(number), e.word(own << 8 | last),
                              NVVM::ShflKind::idx,
                              /*return_value_and_is_valid=*/UnitAttr());
}

void WarpOps::exchangeWords(Value &first, Value &second, int64_t mask) {
  Value bit = arith::AndIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i32, e.thread), e.word(mask));
  Value isUpper =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit, e.word(0));
  Value received = exchange(e.select(isUpper, first, second), mask);
  first = e.select(isUpper, received, first);
  second = e.select(isUpper, second, received);
}

Value WarpOps::combineLanes(Value value, int64_t first, int64_t end,
                            CombineFn combine) {
  for (int64_t bit = first; bit < end; ++bit)
    value = combine(value, exchange(value, int64_t(1) << bit));
  return value;
}

Value WarpOps::sameNumber(Value number) {
  Value word = arith::IndexCastOp::create(b, loc, i32, number);
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(), assembly("mov.b32 $0, $1;", "=r,r", i32, word));
}

void WarpOps::computeHere(Value value) {
  const Type type = value.getType();
  if (type.isF32()) {
    assembly("", "f", {}, value);
  } else if (type.isF16() || type.isBF16()) {
    Value bits = arith::BitcastOp::create(b, loc, b.getI16Type(), value);
    assembly("", "h", {}, bits);
  }
}

void WarpOps::synchronizeTile() {
  if (e.part)
    clusterBarrier();
  else
    e.barrier();
}

SmallVector<Value> WarpOps::inEachPart(Value pointer) {
  if (!e.part)
    return {pointer};
  SmallVector<Value> all;
  const int64_t parts = e.kernel.getScheduleAttr().getParts();
  for (int64_t part = 0; part < parts; ++part)
    all.push_back(pointerInCluster(pointer, e.index(part)));
  return all;
}

void WarpOps::syncLanes() { NVVM::SyncWarpOp::create(b, loc, e.word(-1)); }

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value WarpOps::exp2(Value x) {
  return LLVM::CallIntrinsicOp::create(b, loc, x.getType(),
                                       b.getStringAttr("llvm.nvvm.ex2.approx."
                                                       "ftz"),
                                       ValueRange{x})
      .getResult(0);
}

Value WarpOps::selectBytes(Value low, Value high, int64_t selector) {
  return selectBytes(low, high, e.word(selector));
}

Value WarpOps::selectBytes(Value low, Value high, Value selector) {
  return LLVM::CallIntrinsicOp::create(b, loc, i32,
                                       b.getStringAttr("llvm.nvvm.prmt"),
                                       ValueRange{low, high, selector})
      .getResult(0);
}

Value WarpOps::pack(Type element, Value first, Value second) {
  auto pair = VectorType::get({2}, b.getF32Type());
  Value both =
      vector::FromElementsOp::create(b, loc, pair, ValueRange{first, second});
  Value rounded =
      arith::TruncFOp::create(b, loc, VectorType::get({2}, element), both);
  return LLVM::BitcastOp::create(b, loc, i32, rounded);
}

std::pair<Value, Value> WarpOps::unpack(Type element, Value packed) {
  auto pair = VectorType::get({2}, b.getF32Type());
  Value rounded =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), packed);
  Value both = arith::ExtFOp::create(b, loc, pair, rounded);
  return {vector::ExtractOp::create(b, loc, both, 0),
          vector::ExtractOp::create(b, loc, both, 1)};
}

std::pair<Value, Value> WarpOps::split(Type element, Value first,
                                       Value second) {
  Value high = pack(element, first, second);
  auto [rounded, other] = unpack(element, high);
  return {high, pack(element, e.sub(first, rounded), e.sub(second, other))};
}

std::pair<Value, Value> WarpOps::splitAll(Type element, Value first,
                                          Value second) {
  const llvm::APFloat largest =
      llvm::APFloat::getLargest(cast<FloatType>(element).getFloatSemantics());
  const double most = largest.convertToDouble();
  auto cut = [&](Value x) -> Value {
    Value below = arith::MinNumFOp::create(b, loc, x, e.f32(most));
    return arith::MaxNumFOp::create(b, loc, below, e.f32(-most));
  };
  Value high = pack(element, cut(first), cut(second));
  auto [rounded, other] = unpack(element, high);
  return {high, pack(element, e.sub(first, rounded), e.sub(second, other))};
}

Value WarpOps::ballot(Value condition) {
  return NVVM::VoteSyncOp::create(b, loc, i32, e.word(-1), condition,
                                  NVVM::VoteSyncKind::ballot);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

SmallVector<Value> WarpOps::loadRegisters(Value pointer, int64_t bytes,
                                          bool isVolatile) {
  auto read = [&](Type type) -> Value {
    return LLVM::LoadOp::create(b, loc, type, pointer,
                                static_cast<unsigned>(bytes), isVolatile);
  };
  if (bytes == 2)
    return {arith::ExtUIOp::create(b, loc, i32, read(b.getI16Type()))};
  if (bytes == 4)
    return {read(i32)};
  auto type = VectorType::get({bytes / 4}, i32);
  Value all = read(type);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < bytes / 4; ++i)
    registers.push_back(vector::ExtractOp::create(b, loc, all, i));
  return registers;
}

void WarpOps::storeRegisters(ValueRange registers, Value pointer) {
  auto type = VectorType::get({4}, i32);
  Value all = vector::FromElementsOp::create(b, loc, type, registers);
  LLVM::StoreOp::create(b, loc, all, pointer, /*alignment=*/16);
}

void WarpOps::copyTile(Value to, Value from, int64_t bytes, Value lane,
                       Value each) {
  constexpr int64_t vectorBytes = 16, warpBytes = 32 * vectorBytes;
  for (int64_t at = 0; at < bytes; at += warpBytes) {
    auto copy = [&] { copyAsync(advance(to, at), advance(from, at), each); };
    if (bytes - at >= warpBytes)
      copy();
    else
      e.ifThen(e.isLess(lane, e.index((bytes - at) / vectorBytes)), copy);
  }
}
