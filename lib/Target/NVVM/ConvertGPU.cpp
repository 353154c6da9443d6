//===- ConvertGPU.cpp - GPU modules to the NVVM dialect -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/Codegen.h"
#include "kf/Target/NVVM/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/DialectConversion.h"

#include <numeric>

namespace mlir::kf {
#define GEN_PASS_DEF_CONVERTGPUTONVVM
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// What memory instructions take at a time, at most. Buffers are aligned to
/// more (KF_BUFFER_ALIGNMENT), but for layers of KV caches.
constexpr uint64_t vectorBytes = 16;

/// How layers of a cache are aligned, up to that: they follow one another, with
/// any number of pages each.
uint64_t alignmentOf(KVCacheType cache) {
  // Of a product of more than 64 bits, the low ones are enough.
  uint64_t page = 2 * static_cast<uint64_t>(cache.getKvHeads()) *
                  static_cast<uint64_t>(cache.getPage()) *
                  static_cast<uint64_t>(cache.getHeadDim());
  if (auto quant = dyn_cast<QuantType>(cache.getType())) {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    page = page / format.elements * format.bytes;
  } else {
    page *= cache.getType().getIntOrFloatBitWidth() / 8;
  }
  return std::gcd(page, vectorBytes);
}

/// What all dispatches of a kernel agree on, by the kernel's argument.
struct BufferFacts {
  SmallVector<uint64_t> alignment; ///< of where it begins
  llvm::BitVector weight;          ///< no kernel of the program writes there
  llvm::BitVector constant;        ///< no kernel of the dispatch writes there
  llvm::BitVector alone;           ///< no other argument reaches it

  BufferFacts(unsigned operands, unsigned results)
      : alignment(operands + results, vectorBytes), weight(operands + results),
        constant(operands + results), alone(operands + results) {
    weight.set(0, operands);
    constant.set(0, operands);
    alone.set();
  }
  unsigned size() const { return alone.size(); }

  /// Of a kernel that begins while those before it are at work: what they write
  /// is not constant while it runs.
  void beginEarly() {
    alone.reset(constant); // what is only read would be taken for constant
    alone |= weight;
    constant = weight;
  }
};

bool isWait(Operation *op) {
  auto control = dyn_cast<NVVM::GriddepcontrolOp>(op);
  return control && control.getKind() == NVVM::GridDepActionKind::wait;
}

bool waits(gpu::GPUFuncOp function) {
  return function
      .walk([](Operation *op) {
        return isWait(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A result of a dispatch that the plan puts into the arena; what a caller
/// provides instead may be the buffer of an input, too.
bool isInArena(Value value) {
  auto dispatch = value.getDefiningOp<DispatchOp>();
  return dispatch && dispatch.getOffsets() &&
         (*dispatch.getOffsets())[cast<OpResult>(value).getResultNumber()] >= 0;
}

/// Weights are never written, and the plan keeps what a dispatch reads in the
/// arena apart from what it writes.
FailureOr<llvm::StringMap<BufferFacts>> collectFacts(ModuleOp module) {
  llvm::StringMap<BufferFacts> facts;
  WalkResult walk = module.walk([&](DispatchOp dispatch) -> WalkResult {
    auto operands = dispatch.getOperands_();
    auto results = dispatch.getResults();
    BufferFacts &known =
        facts.try_emplace(dispatch.getKernel(), operands.size(), results.size())
            .first->second;
    if (known.size() != operands.size() + results.size())
      return dispatch.emitOpError("kf-nvvm-convert-gpu: has ")
             << operands.size() + results.size()
             << " buffers, another one of the kernel has " << known.size();
    for (auto [number, operand] : llvm::enumerate(operands)) {
      if (operand.getDefiningOp<WeightOp>())
        continue;
      known.weight.reset(number);
      if (auto cache = dyn_cast<KVCacheType>(operand.getType()))
        known.alignment[number] = alignmentOf(cache);
      if (!isInArena(operand)) {
        known.constant.reset(number);
        known.alone.reset(number);
      }
    }
    for (auto [number, result] : llvm::enumerate(results))
      if (!isInArena(result))
        known.alone.reset(operands.size() + number);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return facts;
}

/// Whether MLIR and LLVM lower it without a library of functions.
bool isSupported(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return !isa<arith::RemFOp>(op);
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::RoundEvenOp, math::RoundOp,
             math::RsqrtOp, math::SqrtOp, math::TruncOp>(op);
}

struct ConvertGPUToNvvmPass
    : mlir::kf::impl::ConvertGPUToNvvmBase<ConvertGPUToNvvmPass> {
  void runOnOperation() override {
    FailureOr<llvm::StringMap<BufferFacts>> facts =
        collectFacts(getOperation());
    if (failed(facts))
      return signalPassFailure();
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (failed(check(module)))
        return signalPassFailure();
      for (auto function : module.getOps<gpu::GPUFuncOp>()) {
        auto known = facts->find(function.getName());
        if (failed(prepare(function,
                           known == facts->end() ? nullptr : &known->second)))
          return signalPassFailure();
      }
      if (failed(convert(module)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult check(gpu::GPUModuleOp module) {
    for (auto function : module.getOps<gpu::GPUFuncOp>())
      for (Type type : function.getArgumentTypes())
        if (auto memref = dyn_cast<MemRefType>(type);
            memref &&
            (memref.getRank() != 1 || !memref.getLayout().isIdentity()))
          return function.emitError(
                     "kf-nvvm-convert-gpu: a kernel's buffer has "
                     "one dimension, found ")
                 << type;
    WalkResult walk = module.walk([](Operation *op) {
      if (!isSupported(op)) {
        op->emitError("kf-nvvm-convert-gpu: no CUDA code for '")
            << op->getName() << "' on " << op->getResult(0).getType();
        return WalkResult::interrupt();
      }
      if (auto dim = dyn_cast<memref::DimOp>(op);
          dim && isa<BlockArgument>(dim.getSource())) {
        op->emitError("kf-nvvm-convert-gpu: a kernel's arguments are pointers; "
                      "their sizes are not known");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  /// Makes memref arguments pointers, from which descriptors are put together
  /// in the function; LLVM removes them.
  LogicalResult prepare(gpu::GPUFuncOp function, const BufferFacts *known) {
    if (known && function.getNumArguments() != known->size() + 1)
      return function.emitError("kf-nvvm-convert-gpu: a kernel takes the ")
             << known->size()
             << " buffers of its dispatches and the scalars, found "
             << function.getNumArguments() << " arguments";
    std::optional<BufferFacts> early;
    if (waits(function)) {
      function->setAttr(kCudaWaitsAttrName, UnitAttr::get(&getContext()));
      if (known) {
        early = *known;
        early->beginEarly();
        known = &*early;
      }
    }
    Block &entry = function.getBody().front();
    auto builder = OpBuilder::atBlockBegin(&entry);
    LLVMTypeConverter types(&getContext());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    SmallVector<Type> inputs;
    for (unsigned number = 0; number < function.getNumArguments(); ++number) {
      BlockArgument argument = function.getArgument(number);
      auto type = dyn_cast<MemRefType>(argument.getType());
      inputs.push_back(type ? pointer : argument.getType());
      if (!type)
        continue;
      if (known && number < known->size())
        markBuffer(function, number, *known);
      else if (known) // the scalars
        markConstant(function, number);
      argument.setType(pointer);
      replaceUses(builder, argument, type, types);
    }
    function.setFunctionType(builder.getFunctionType(inputs, {}));
    return success();
  }

  void replaceUses(OpBuilder &builder, BlockArgument argument, MemRefType type,
                   LLVMTypeConverter &types) {
    Location loc = argument.getLoc();
    auto descriptor =
        MemRefDescriptor::poison(builder, loc, types.convertType(type));
    descriptor.setAllocatedPtr(builder, loc, argument);
    descriptor.setAlignedPtr(builder, loc, argument);
    descriptor.setConstantOffset(builder, loc, 0);
    descriptor.setConstantStride(builder, loc, 0, 1);
    Value memref = UnrealizedConversionCastOp::create(builder, loc, type,
                                                      Value(descriptor))
                       .getResult(0);
    argument.replaceUsesWithIf(memref, [](OpOperand &use) {
      return !isa<LLVM::InsertValueOp>(use.getOwner());
    });
  }

  void markConstant(gpu::GPUFuncOp function, unsigned number) {
    auto unit = UnitAttr::get(&getContext());
    function.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(), unit);
    function.setArgAttr(number, LLVM::LLVMDialect::getReadonlyAttrName(), unit);
  }

  void markBuffer(gpu::GPUFuncOp function, unsigned number,
                  const BufferFacts &known) {
    function.setArgAttr(
        number, LLVM::LLVMDialect::getAlignAttrName(),
        Builder(&getContext()).getI64IntegerAttr(known.alignment[number]));
    if (known.constant[number])
      markConstant(function, number);
    else if (known.alone[number])
      function.setArgAttr(number, LLVM::LLVMDialect::getNoAliasAttrName(),
                          UnitAttr::get(&getContext()));
  }

  /// LLVM takes a wait for what touches no memory.
  void fenceWaits(gpu::GPUModuleOp module) {
    module.walk([](NVVM::GriddepcontrolOp op) {
      if (!isWait(op))
        return;
      OpBuilder builder(op);
      LLVM::InlineAsmOp::create(
          builder, op.getLoc(), /*res=*/TypeRange(), /*operands=*/ValueRange(),
          /*asm_string=*/"griddepcontrol.wait;", /*constraints=*/"~{memory}",
          /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::TailCallKind::None, /*asm_dialect=*/nullptr,
          /*operand_attrs=*/nullptr);
      op.erase();
    });
  }

  LogicalResult convert(gpu::GPUModuleOp module) {
    MLIRContext *context = &getContext();
    LLVMTypeConverter types(context);
    configureGpuToNVVMTypeConverter(types);
    RewritePatternSet patterns(context);
    populateGpuToNVVMConversionPatterns(types, patterns);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    index::populateIndexToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    // The GPU's patterns know calls of a device library, too.
    populateMathToLLVMConversionPatterns(types, patterns,
                                         /*approximateLog1p=*/false,
                                         /*benefit=*/2);
    populateVectorToLLVMConversionPatterns(types, patterns);
    ub::populateUBToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return failure();
    fenceWaits(module);
    // A block has this size, not at most this.
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      if (Attribute size =
              function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
        function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
    return success();
  }
};

} // namespace
