//===- NvvmCode.cpp - What NVIDIA GPUs alone have -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NvvmCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

static constexpr unsigned globalSpace = 1, sharedSpace = 3;

Value NvvmCode::workgroupBytes(int64_t bytes) {
  return pointerTo(e.workgroupBytes(bytes));
}

/// What MLIR lowers the buffer to has the pointer.
Value NvvmCode::pointerTo(Value buffer) {
  MLIRContext *context = b.getContext();
  bool isShared = gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
      cast<MemRefType>(buffer.getType()));
  auto type = LLVM::LLVMPointerType::get(context, isShared ? sharedSpace : 0);
  auto sizes = LLVM::LLVMArrayType::get(b.getI64Type(), 1);
  auto descriptor = LLVM::LLVMStructType::getLiteral(
      context, {type, type, b.getI64Type(), sizes, sizes});
  Value lowered = UnrealizedConversionCastOp::create(b, loc, descriptor, buffer)
                      .getResult(0);
  Value pointer = LLVM::ExtractValueOp::create(b, loc, lowered, 1);
  if (isShared)
    return pointer;
  return LLVM::AddrSpaceCastOp::create(
      b, loc, LLVM::LLVMPointerType::get(context, globalSpace), pointer);
}

Value NvvmCode::advance(Value pointer, Value bytes) {
  if (getConstantIntValue(bytes) == 0)
    return pointer;
  Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes);
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{offset});
}

void NvvmCode::copyAsync(Value to, Value from, Value bytes) {
  NVVM::CpAsyncOp::create(b, loc, to, from, /*size=*/16,
                          NVVM::LoadCacheModifierKind::CG, bytes);
}

void NvvmCode::commitCopies() { NVVM::CpAsyncCommitGroupOp::create(b, loc); }

void NvvmCode::waitForCopies(int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, b.getI32IntegerAttr(groups));
}

SmallVector<Value> NvvmCode::loadMatrices(Value pointer, int64_t count,
                                          bool isTransposed) {
  MLIRContext *context = b.getContext();
  Type word = b.getI32Type();
  Type type = word;
  if (count > 1)
    type = LLVM::LLVMStructType::getLiteral(context,
                                            SmallVector<Type>(count, word));
  Value loaded = NVVM::LdMatrixOp::create(
      b, loc, type, pointer, static_cast<uint32_t>(count),
      isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {loaded};
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loc, loaded, i));
  return words;
}

SmallVector<Value> NvvmCode::multiplyAdd(Type element, ValueRange left,
                                         ValueRange right, ValueRange sums) {
  const bool isHalf = element.isF16();
  auto operands = [&](ValueRange words) {
    SmallVector<Value> typed(words);
    if (isHalf)
      for (Value &word : typed)
        word = LLVM::BitcastOp::create(
            b, loc, VectorType::get({2}, b.getF16Type()), word);
    return typed;
  };
  const NVVM::MMATypes type =
      isHalf ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value added = NVVM::MmaOp::create(
      b, loc, result, operands(left), operands(right), sums,
      ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, added, i));
  return values;
}
