//===- LowerByteOps.cpp - Instructions on bytes ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::kf {
#define GEN_PASS_DEF_LOWERCPUBYTEOPS
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Emits what stands for one op, in front of it.
class ByteCode {
public:
  ByteCode(ByteDot dot, Operation *op) : dot(dot), b(op), loc(op->getLoc()) {}

  /// `sum` and the products of `ops`, which are alike.
  Value products(Value sum, ArrayRef<Dp4aOp> ops) {
    switch (dot) {
    case ByteDot::Vpdpbusd:
    case ByteDot::Sdot:
    case ByteDot::Usdot:
      for (Dp4aOp op : ops)
        sum = oneInstruction(sum, op);
      return sum;
    case ByteDot::Pmaddubsw:
      return pairsOfBytes(sum, ops);
    case ByteDot::Pmaddwd:
      for (Dp4aOp op : ops)
        sum = pairsOfWords(sum, op);
      return sum;
    }
    llvm_unreachable("every instruction is handled above");
  }

  Value lookUp(LookUpOp op) {
    if (dot == ByteDot::Pmaddwd)
      return choose(op);
    VectorType type = op.getCodes().getType();
    int64_t bytes = type.getNumElements();
    bool isNeon = dot == ByteDot::Sdot || dot == ByteDot::Usdot;
    StringRef name = isNeon        ? "llvm.aarch64.neon.tbl1"
                     : bytes == 64 ? "llvm.x86.avx512.pshuf.b.512"
                     : bytes == 32 ? "llvm.x86.avx2.pshuf.b"
                                   : "llvm.x86.ssse3.pshuf.b.128";
    // The table is the same for each 16 bytes.
    SmallVector<int8_t> entries;
    for (int64_t i = 0; i < bytes; i += 16)
      llvm::append_range(entries, op.getTable());
    Value table = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(entries)));
    return call(name, type, {table, op.getCodes()});
  }

private:
  Value call(const Twine &name, Type result, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }
  template <typename OpTy> Value make(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  /// `value` on every lane of `type`.
  Value splat(Type type, int64_t value) {
    auto vector = cast<VectorType>(type);
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            vector, b.getIntegerAttr(vector.getElementType(), value)));
  }
  /// `vector` as 16-bit lanes.
  Value asWords(Value vector) {
    auto type = cast<VectorType>(vector.getType());
    return vector::BitCastOp::create(
        b, loc, VectorType::get(type.getNumElements() / 2, b.getI16Type()),
        vector);
  }
  /// For a register of 128, 256 or 512 bits.
  static StringRef forWidth(int64_t lanes, StringRef of128, StringRef of256,
                            StringRef of512) {
    return lanes == 16 ? of512 : lanes == 8 ? of256 : of128;
  }

  Value oneInstruction(Value sum, Dp4aOp op) {
    int64_t lanes = op.getSum().getType().getNumElements();
    std::string name = ("llvm.x86.avx512.vpdpbusd." + Twine(32 * lanes)).str();
    if (dot != ByteDot::Vpdpbusd)
      name = dot == ByteDot::Sdot || op.getIsSigned()
                 ? "llvm.aarch64.neon.sdot"
                 : "llvm.aarch64.neon.usdot";
    return call(name, sum.getType(), {sum, op.getA(), op.getB()});
  }

  /// Products of 16-bit lanes, two of them added up.
  Value multiplyWords(Value sum, Value a, Value b) {
    StringRef name =
        forWidth(cast<VectorType>(sum.getType()).getNumElements(),
                 "llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                 "llvm.x86.avx512.pmaddw.d.512");
    return make<arith::AddIOp>(sum, call(name, sum.getType(), {a, b}));
  }

  /// Two neighbouring products at a time in 16 bits, as many of which are added
  /// up as cannot overflow. Each product stays in the place of its op: behind
  /// the last one, the operands of all would take registers until there.
  Value pairsOfBytes(Value sum, ArrayRef<Dp4aOp> ops) {
    constexpr int64_t mostSum = 32767;
    Dp4aOp first = ops.front();
    int64_t most = first.getIsSigned() ? 128 : first.getMost();
    int64_t count = mostSum / (2 * 127 * most);
    while (!ops.empty()) {
      Value words;
      for (Dp4aOp op : ops.take_front(count)) {
        b.setInsertionPoint(op);
        Value pairs = multiplyBytes(op);
        words = words ? pinned(make<arith::AddIOp>(words, pairs)) : pairs;
      }
      ops = ops.drop_front(std::min<int64_t>(count, ops.size()));
      sum = pinned(multiplyWords(sum, words, splat(words.getType(), 1)));
    }
    return sum;
  }

  /// `sum`, computed here: LLVM would take the sums of several products apart
  /// to shorten them, and order products by their row, and spill the codes that
  /// rows share. The assembly has no instruction, and stays in its order.
  Value pinned(Value sum) {
    return LLVM::InlineAsmOp::create(
               b, loc, sum.getType(), sum, /*asm_string=*/"",
               /*constraints=*/"=v,0", /*has_side_effects=*/true,
               /*is_align_stack=*/false, LLVM::TailCallKind::None,
               /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr)
        .getResult(0);
  }

  /// pmaddubsw, whose first operand has no sign: that goes to the second.
  Value multiplyBytes(Dp4aOp op) {
    Value first = op.getA(), second = op.getB();
    int64_t lanes = op.getSum().getType().getNumElements();
    Type words = VectorType::get(2 * lanes, b.getI16Type());
    if (op.getIsSigned()) {
      if (lanes == 16) {
        Value zero = splat(first.getType(), 0);
        Value isNegative = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::slt, first, zero);
        second = arith::SelectOp::create(
            b, loc, isNegative, make<arith::SubIOp>(zero, second), second);
      } else {
        second = call(forWidth(lanes, "llvm.x86.ssse3.psign.b.128",
                               "llvm.x86.avx2.psign.b", ""),
                      second.getType(), {second, first});
      }
      first = math::AbsIOp::create(b, loc, first);
    }
    return call(forWidth(lanes, "llvm.x86.ssse3.pmadd.ub.sw.128",
                         "llvm.x86.avx2.pmadd.ub.sw",
                         "llvm.x86.avx512.pmaddubs.w.512"),
                words, {first, second});
  }

  /// Even bytes, and odd ones, in 16 bits.
  Value pairsOfWords(Value sum, Dp4aOp op) {
    auto split = [&](Value bytes, bool isSigned) -> std::pair<Value, Value> {
      Value words = asWords(bytes);
      Value by = splat(words.getType(), 8);
      if (!isSigned)
        return {make<arith::AndIOp>(words, splat(words.getType(), 255)),
                make<arith::ShRUIOp>(words, by)};
      return {make<arith::ShRSIOp>(make<arith::ShLIOp>(words, by), by),
              make<arith::ShRSIOp>(words, by)};
    };
    auto [evenA, oddA] = split(op.getA(), op.getIsSigned());
    auto [evenB, oddB] = split(op.getB(), true);
    return multiplyWords(multiplyWords(sum, evenA, evenB), oddA, oddB);
  }

  /// Without an instruction for tables: one entry after the other.
  Value choose(LookUpOp op) {
    Value codes = op.getCodes();
    ArrayRef<int8_t> table = op.getTable();
    Value found = splat(codes.getType(), table[0]);
    for (int64_t i = 1; i < 16; ++i) {
      Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         codes, splat(codes.getType(), i));
      found = arith::SelectOp::create(b, loc, here,
                                      splat(codes.getType(), table[i]), found);
    }
    return found;
  }

  ByteDot dot;
  OpBuilder b;
  Location loc;
};

struct LowerCpuByteOpsPass
    : mlir::kf::impl::LowerCpuByteOpsBase<LowerCpuByteOpsPass> {
  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    auto cpu = dyn_cast_if_present<CpuTargetAttr>(target);
    if (target && !cpu)
      getOperation().emitError("the module is for ")
          << target << ", and this pass is for a #kf.cpu_target";
    if (!cpu)
      return signalPassFailure();
    bool isNeon =
        cpu.getByteDot() == ByteDot::Sdot || cpu.getByteDot() == ByteDot::Usdot;
    // Ends of chains of products come before what they end.
    SmallVector<Dp4aOp> ends;
    SmallVector<LookUpOp> tables;
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (auto dot = dyn_cast<Dp4aOp>(op)) {
        if (failed(check(dot, cpu, isNeon)))
          return WalkResult::interrupt();
        if (!nextOf(dot))
          ends.push_back(dot);
      } else if (auto table = dyn_cast<LookUpOp>(op)) {
        if (failed(check(table, isNeon)))
          return WalkResult::interrupt();
        tables.push_back(table);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (Dp4aOp end : ends)
      lowerChain(cpu.getByteDot(), end);
    for (LookUpOp table : tables) {
      Value found = ByteCode(cpu.getByteDot(), table).lookUp(table);
      table.replaceAllUsesWith(found);
      table.erase();
    }
  }

private:
  static LogicalResult check(Dp4aOp op, CpuTargetAttr cpu, bool isNeon) {
    int64_t lanes = op.getSum().getType().getNumElements();
    if (lanes != 4 && (isNeon || (lanes != 8 && lanes != 16)))
      return op.emitOpError("kf-cpu-lower-byte-ops: needs ")
             << (isNeon ? "4" : "4, 8 or 16") << " lanes, found " << lanes;
    StringRef name = stringifyByteDot(cpu.getByteDot());
    if (op.getIsSigned() && cpu.getByteDot() == ByteDot::Vpdpbusd)
      return op.emitOpError("kf-cpu-lower-byte-ops: ")
             << name << " multiplies no bytes of a with a sign";
    if (!op.getIsSigned() && op.getMost() > 127 && !cpu.takesUnsignedBytes())
      return op.emitOpError("kf-cpu-lower-byte-ops: ")
             << name << " multiplies bytes of a without a sign up to 127, not "
             << op.getMost();
    return success();
  }

  static LogicalResult check(LookUpOp op, bool isNeon) {
    int64_t bytes = op.getCodes().getType().getNumElements();
    if (bytes == 16 || (!isNeon && (bytes == 32 || bytes == 64)))
      return success();
    return op.emitOpError("kf-cpu-lower-byte-ops: needs ")
           << (isNeon ? "16" : "16, 32 or 64") << " codes, found " << bytes;
  }

  /// The only op that uses the sum of `op`, if that adds like products to it.
  static Dp4aOp nextOf(Dp4aOp op) {
    if (!op->hasOneUse())
      return nullptr;
    auto next = dyn_cast<Dp4aOp>(*op->user_begin());
    bool isNext = next && next.getSum() == op.getResult() &&
                  next->getBlock() == op->getBlock() &&
                  next.getMost() == op.getMost() &&
                  next.getIsSigned() == op.getIsSigned();
    return isNext ? next : nullptr;
  }

  static void lowerChain(ByteDot dot, Dp4aOp end) {
    SmallVector<Dp4aOp> chain = {end};
    for (;;) {
      auto before = chain.back().getSum().getDefiningOp<Dp4aOp>();
      if (!before || nextOf(before) != chain.back())
        break;
      chain.push_back(before);
    }
    std::reverse(chain.begin(), chain.end());
    Value sum = ByteCode(dot, end).products(chain.front().getSum(), chain);
    end.replaceAllUsesWith(sum);
    for (Dp4aOp op : llvm::reverse(chain))
      op.erase();
  }
};

} // namespace
