//===- TileCode.cpp - Tiles of AMX ----------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileCode.h"

#include "kf/Conversion/VectorSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

static constexpr int64_t lineBytes = 64;
static constexpr int64_t tileBytes = amxTile * lineBytes;

Type TileCode::type() { return LLVM::LLVMX86AMXType::get(b.getContext()); }

Value TileCode::zero() {
  return call("llvm.x86.tilezero.internal",
              {constant(amxTile, 16), constant(lineBytes, 16)});
}

Value TileCode::load(Value memref, ValueRange indices) {
  return load("llvm.x86.tileloadd64.internal", memref, indices);
}

Value TileCode::loadOnce(Value memref, ValueRange indices) {
  return load("llvm.x86.tileloaddt164.internal", memref, indices);
}

Value TileCode::load(StringRef instruction, Value memref, ValueRange indices) {
  return call(instruction, {constant(amxTile, 16), constant(lineBytes, 16),
                            pointer(memref, indices), constant(lineBytes, 64)});
}

void TileCode::store(Value tile, Value memref, ValueRange indices) {
  LLVM::CallIntrinsicOp::create(
      b, loc, b.getStringAttr("llvm.x86.tilestored64.internal"),
      ValueRange{constant(amxTile, 16), constant(lineBytes, 16),
                 pointer(memref, indices), constant(lineBytes, 64), tile});
}

Value TileCode::multiply(Value sum, Value rows, Value columns) {
  return call("llvm.x86.tdpbf16ps.internal",
              {constant(amxTile, 16), constant(lineBytes, 16),
               constant(lineBytes, 16), sum, rows, columns});
}

Value TileCode::call(StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, type(), b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

Value TileCode::constant(int64_t value, unsigned bits) {
  return arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(b.getIntegerType(bits), value));
}

Value TileCode::pointer(Value memref, ValueRange indices) {
  ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
  Value tile = e.index(0);
  for (auto [extent, index] : llvm::zip(shape, indices))
    tile = e.add(e.mul(tile, e.index(extent)), index);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value address = e.add(base, e.mul(tile, e.index(tileBytes)));
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), ValueRange(number));
}
