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
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

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
  const bool isSingle = element.isF32();
  const NVVM::MMATypes type = isSingle ? NVVM::MMATypes::tf32
                              : isHalf ? NVVM::MMATypes::f16
                                       : NVVM::MMATypes::bf16;
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value added = NVVM::MmaOp::create(
      b, loc, result, operands(left), operands(right), sums,
      ArrayRef<int64_t>{16, 8, isSingle ? 8 : 16}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{type, type},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, added, i));
  return values;
}

NvvmCode::Split NvvmCode::splitSingle(Value bits) {
  constexpr int64_t tf32Bits = 0xffffe000;
  auto cut = [&](Value bits) -> Value {
    return arith::AndIOp::create(b, loc, bits, e.word(tf32Bits));
  };
  auto single = [&](Value bits) -> Value {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  };
  Value value = single(bits);
  Split split;
  split.large = cut(bits);
  split.isInfinite = arith::CmpFOp::create(
      b, loc, arith::CmpFPredicate::OEQ, math::AbsFOp::create(b, loc, value),
      e.f32(std::numeric_limits<double>::infinity()));
  Value rest =
      e.select(split.isInfinite, e.f32(0.0), e.sub(value, single(split.large)));
  split.rest = cut(arith::BitcastOp::create(b, loc, b.getI32Type(), rest));
  return split;
}

std::pair<Value, Value> NvvmCode::widenFloat8(Value codes) {
  Type word = b.getI32Type();
  if (e.machine.convertsFloat8) {
    auto convert = [&](Value pair) -> Value {
      Value low = arith::TruncIOp::create(b, loc, b.getI16Type(), pair);
      return LLVM::InlineAsmOp::create(
                 b, loc, TypeRange(word), ValueRange(low),
                 "cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h",
                 /*has_side_effects=*/false, /*is_align_stack=*/false,
                 LLVM::tailcallkind::TailCallKind::None,
                 LLVM::AsmDialectAttr::get(b.getContext(),
                                           LLVM::AsmDialect::AD_ATT),
                 ArrayAttr())
          .getResult(0);
    };
    Value high = arith::ShRUIOp::create(b, loc, codes, e.word(16));
    return {convert(codes), convert(high)};
  }
  auto masked = [&](Value x, int64_t mask) -> Value {
    return arith::AndIOp::create(b, loc, x, e.word(mask));
  };
  auto pairType = VectorType::get({2}, b.getF16Type());
  Value bias = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(pairType, b.getF16FloatAttr(256.0)));
  auto convert = [&](int64_t selector) -> Value {
    // Codes in the high bytes of both halves.
    Value high = LLVM::CallIntrinsicOp::create(
                     b, loc, word, b.getStringAttr("llvm.nvvm.prmt"),
                     ValueRange{codes, e.word(0), e.word(selector)})
                     .getResult(0);
    Value magnitude =
        masked(arith::ShRUIOp::create(b, loc, high, e.word(1)), 0x3f803f80);
    // 7 ones, which overflow alone, are the NaN.
    Value overflow =
        masked(arith::AddIOp::create(b, loc, magnitude, e.word(0x00800080)),
               0x40004000);
    Value bits = arith::OrIOp::create(b, loc, magnitude,
                                      masked(high, int64_t(0x80008000)));
    bits = arith::OrIOp::create(b, loc, bits, overflow);
    // Half precision has a bias of 15, not of 7.
    Value values = arith::MulFOp::create(
        b, loc, LLVM::BitcastOp::create(b, loc, pairType, bits), bias);
    return LLVM::BitcastOp::create(b, loc, word, values);
  };
  return {convert(0x1404), convert(0x3424)};
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

Value NvvmCode::pointerInCluster(Value pointer, Value rank) {
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  return NVVM::MapaOp::create(
      b, loc, type, pointer,
      arith::IndexCastOp::create(b, loc, b.getI32Type(), rank));
}

void NvvmCode::clusterBarrier() {
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

Value NvvmCode::align(Value pointer, int64_t bytes) {
  Type word = b.getI32Type();
  Value address = LLVM::PtrToIntOp::create(b, loc, word, pointer);
  Value below = arith::SubIOp::create(b, loc, e.word(0), address);
  Value rest = arith::AndIOp::create(b, loc, below, e.word(bytes - 1));
  return advance(pointer, Value(arith::IndexCastUIOp::create(
                              b, loc, b.getIndexType(), rest)));
}

/// NVVM's ops read both operands from shared memory.
Value NvvmCode::assembly(StringRef text, StringRef constraints, Type result,
                         ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(
      b, loc, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  return result ? op.getResult(0) : Value();
}

void NvvmCode::fenceShared() {
  assembly("fence.proxy.async.shared::cta;", "~{memory}", {}, {});
}

/// In units of 16 bytes: the address, `offset` bytes behind; what `rest` says
/// from bit 16 on; from bit 32 on, the distance of 8 rows. Bit 62 says how
/// chunks change places.
Value NvvmCode::describe(Value pointer, int64_t offset, uint64_t rest) {
  rest |= uint64_t(1) << 62 | uint64_t(64) << 32;
  Type type = b.getI64Type();
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
  Value chunk = arith::ShRUIOp::create(
      b, loc, address,
      arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(4)));
  Value wide = arith::ExtUIOp::create(b, loc, type, chunk);
  return arith::AddIOp::create(
      b, loc, wide,
      arith::ConstantOp::create(b, loc,
                                b.getI64IntegerAttr(static_cast<int64_t>(
                                    rest + uint64_t(offset) / 16))));
}

Value NvvmCode::describeRows(Value pointer, int64_t sixteen) {
  // A distance within rows, which those of 128 bytes do not use.
  return describe(pointer, 32 * sixteen, 1 << 16);
}

Value NvvmCode::describeColumns(Value pointer, int64_t sixteen, int64_t bytes) {
  return describe(pointer, 2048 * sixteen,
                  static_cast<uint64_t>(bytes) / 16 << 16);
}

void NvvmCode::waitForProducts(int64_t groups) {
  assembly("wgmma.wait_group.sync.aligned " + std::to_string(groups) + ";",
           "~{memory}", {}, {});
}

/// Of `count` floats that are results and operands, these behind `others`.
static std::string constraintsOf(int64_t count, StringRef others) {
  std::string text, tied;
  for (int64_t i = 0; i < count; ++i) {
    text += "=f,";
    tied += "," + std::to_string(i);
  }
  return others.empty() ? text + tied.substr(1) : text + others.str() + tied;
}

static LLVM::LLVMStructType structOf(OpBuilder &b, int64_t count) {
  return LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, b.getF32Type()));
}

SmallVector<Value> NvvmCode::beginProducts(Type element, ValueRange left,
                                           ValueRange rows, ValueRange sums,
                                           bool isTransposed) {
  const int64_t count = sums.size();
  auto operand = [](int64_t number) { return "$" + std::to_string(number); };
  const std::string type = element.isF16() ? "f16" : "bf16";
  std::string all, words;
  for (int64_t i = 0; i < count; ++i)
    all += (i ? ", " : "") + operand(i);
  std::string text = "wgmma.fence.sync.aligned;", constraints;
  for (size_t step = 0; step < rows.size(); ++step) {
    text += "\n\twgmma.mma_async.sync.aligned.m64n" +
            std::to_string(2 * count) + "k16.f32." + type + "." + type + " {" +
            all + "}, {";
    const auto first = count + static_cast<int64_t>(5 * step);
    for (int64_t i = 0; i < 4; ++i)
      text += (i ? ", " : "") + operand(first + i);
    // Added to the sums; nothing negated.
    text += "}, " + operand(first + 4) + ", 1, 1, 1, " +
            (isTransposed ? "1;" : "0;");
    constraints += step ? ",r,r,r,r,l" : "r,r,r,r,l";
  }
  text += "\n\twgmma.commit_group.sync.aligned;";
  SmallVector<Value> operands;
  for (auto [step, from] : llvm::enumerate(rows)) {
    llvm::append_range(operands, left.slice(4 * step, 4));
    operands.push_back(from);
  }
  llvm::append_range(operands, sums);
  Value added = assembly(text, constraintsOf(count, constraints) + ",~{memory}",
                         structOf(b, count), operands);
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, added, i));
  return values;
}

SmallVector<Value> NvvmCode::waitForSums(ValueRange sums) {
  const int64_t count = sums.size();
  Value waited = assembly("wgmma.wait_group.sync.aligned 0;",
                          constraintsOf(count, ""), structOf(b, count), sums);
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, waited, i));
  return values;
}
