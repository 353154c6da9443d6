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

/// Of an element.
static int64_t bytesOf(MemRefType type) {
  return type.getElementTypeBitWidth() / 8;
}

/// From a row of `memref` to the next.
static int64_t rowBytes(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  return type.getShape().back() * bytesOf(type);
}

Type TileCode::type() { return LLVM::LLVMX86AMXType::get(b.getContext()); }

Value TileCode::zero() {
  return call("llvm.x86.tilezero.internal",
              {constant(amxTile, 16), constant(lineBytes, 16)});
}

Value TileCode::load(Value memref, ValueRange indices) {
  return load("llvm.x86.tileloadd64.internal", pointer(memref, indices),
              lineBytes);
}

Value TileCode::loadOnce(Value memref, ValueRange indices) {
  return load("llvm.x86.tileloaddt164.internal", pointer(memref, indices),
              lineBytes);
}

void TileCode::store(Value tile, Value memref, ValueRange indices) {
  store(tile, pointer(memref, indices), lineBytes);
}

Value TileCode::loadLines(Value memref, ValueRange indices) {
  return load("llvm.x86.tileloadd64.internal",
              pointerToElement(memref, indices), rowBytes(memref));
}

void TileCode::storeLines(Value tile, Value memref, ValueRange indices) {
  store(tile, pointerToElement(memref, indices), rowBytes(memref));
}

Value TileCode::load(StringRef instruction, Value pointer, int64_t stride) {
  return call(instruction, {constant(amxTile, 16), constant(lineBytes, 16),
                            pointer, constant(stride, 64)});
}

void TileCode::store(Value tile, Value pointer, int64_t stride) {
  LLVM::CallIntrinsicOp::create(
      b, loc, b.getStringAttr("llvm.x86.tilestored64.internal"),
      ValueRange{constant(amxTile, 16), constant(lineBytes, 16), pointer,
                 constant(stride, 64), tile});
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
  return pointer(memref, e.mul(tile, e.index(tileBytes)));
}

Value TileCode::pointerToElement(Value memref, ValueRange indices) {
  auto type = cast<MemRefType>(memref.getType());
  Value element = e.index(0);
  for (auto [extent, index] : llvm::zip_equal(type.getShape(), indices))
    element = e.add(e.mul(element, e.index(extent)), index);
  return pointer(memref, e.mul(element, e.index(bytesOf(type))));
}

Value TileCode::pointer(Value memref, Value bytes) {
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value number =
      arith::IndexCastOp::create(b, loc, b.getI64Type(), e.add(base, bytes));
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), ValueRange(number));
}
