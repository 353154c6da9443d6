//===- ConvertGPU.cpp - GPU modules to SPIR-V modules ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuMath.h"
#include "kf/Target/SPIRV/Passes.h"

#include "mlir/Conversion/ArithToSPIRV/ArithToSPIRV.h"
#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRV.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRV.h"
#include "mlir/Conversion/MemRefToSPIRV/MemRefToSPIRV.h"
#include "mlir/Conversion/SCFToSPIRV/SCFToSPIRV.h"
#include "mlir/Conversion/VectorToSPIRV/VectorToSPIRV.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/SPIRV/Transforms/SPIRVConversion.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_CONVERTGPUTOSPIRV
#include "kf/Target/SPIRV/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Buffers are storage buffers, workgroup memory is workgroup memory.
std::optional<spirv::StorageClass> storageClassOf(Attribute space) {
  if (!space)
    return spirv::StorageClass::StorageBuffer;
  auto address = dyn_cast<gpu::AddressSpaceAttr>(space);
  if (address &&
      address.getValue() == gpu::GPUDialect::getWorkgroupAddressSpace())
    return spirv::StorageClass::Workgroup;
  return std::nullopt;
}

/// trunc(x) = floor(|x|) with the sign of x.
struct ExpandTrunc : OpRewritePattern<math::TruncOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::TruncOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Value size = math::FloorOp::create(
        rewriter, op.getLoc(),
        math::AbsFOp::create(rewriter, op.getLoc(), x).getResult());
    rewriter.replaceOpWithNewOp<math::CopySignOp>(op, size, x);
    return success();
  }
};

/// Matrices are multiplied element by element; upstream does so with one that
/// holds a single number alone.
struct MultiplyMatrices : OpConversionPattern<gpu::SubgroupMmaElementwiseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(gpu::SubgroupMmaElementwiseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getOpType() != gpu::MMAElementwiseOp::MULF)
      return rewriter.notifyMatchFailure(op, "it multiplies no elements");
    rewriter.replaceOpWithNewOp<spirv::FMulOp>(op, adaptor.getArgs()[0],
                                               adaptor.getArgs()[1]);
    return success();
  }
};

struct ConvertGPUToSpirvPass
    : mlir::kf::impl::ConvertGPUToSpirvBase<ConvertGPUToSpirvPass> {
  using ConvertGPUToSpirvBase::ConvertGPUToSpirvBase;

  void runOnOperation() override {
    for (StringRef type : types)
      if (!llvm::is_contained({"f16", "i8", "i16", "i64"}, type)) {
        getOperation().emitError("kf-spirv-convert-gpu: types are f16, i8, i16 "
                                 "and i64, found ")
            << type;
        return signalPassFailure();
      }
    RewritePatternSet patterns(&getContext());
    populatePolynomialApproximateErfPattern(patterns);
    // GLSL lacks some, and its others are not as exact.
    populateGpuMathPatterns(patterns);
    patterns.add<ExpandTrunc>(&getContext());
    // Upstream's lowering of scf.for leaves the results of a loop without
    // iterations undefined; that of scf.while does not.
    OpPassManager loops(ModuleOp::getOperationName());
    loops.addPass(createForToWhileLoopPass());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))) ||
        failed(runPipeline(loops, getOperation())))
      return signalPassFailure();
    for (auto module :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (failed(convert(module)))
        return signalPassFailure();
  }

private:
  LogicalResult convert(gpu::GPUModuleOp module) {
    const Type matrices = typeOfMatrices(module);
    if (!module->hasAttr(spirv::getTargetEnvAttrName()))
      module->setAttr(spirv::getTargetEnvAttrName(),
                      defaultEnvironment(matrices));
    bool hasFloat16 = false, roundsHalves = false;
    for (auto function : module.getOps<gpu::GPUFuncOp>()) {
      prepare(function);
      moveTables(function);
      correctDivisions(function);
      correctPowers(function);
      expandWideMagnitudes(function);
      narrowComparisons(function);
      function.walk([&](arith::ExtFOp op) {
        hasFloat16 |= op.getIn().getType().isF16();
      });
      // Devices whose targets list matrices can.
      function.walk([&](arith::TruncFOp op) {
        roundsHalves |= matrices && getElementTypeOrSelf(op.getType()).isF16();
      });
    }
    for (auto table :
         llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
      table.erase();
    spirv::MemorySpaceToStorageClassConverter spaces(storageClassOf);
    spirv::convertMemRefTypesAndAttrs(module, spaces);

    spirv::TargetEnvAttr environment = spirv::lookupTargetEnv(module);
    SPIRVTypeConverter types(environment);
    addMatrixTypes(types, matrices);
    std::unique_ptr<ConversionTarget> target =
        SPIRVConversionTarget::get(environment);
    RewritePatternSet patterns(&getContext());
    ScfToSPIRVContext loops;
    populateGPUToSPIRVPatterns(types, patterns);
    populateGpuWMMAToSPIRVCoopMatrixKHRConversionPatterns(types, patterns);
    patterns.add<MultiplyMatrices>(types, &getContext(), /*benefit=*/2);
    populateSCFToSPIRVPatterns(types, loops, patterns);
    arith::populateArithToSPIRVPatterns(types, patterns);
    populateMathToSPIRVPatterns(types, patterns);
    populateMemRefToSPIRVPatterns(types, patterns);
    populateVectorToSPIRVPatterns(types, patterns);
    std::string name = module.getName().str();
    if (failed(applyFullConversion(module, *target, std::move(patterns))))
      return failure();
    // The conversion adds a prefix; dispatches know the kernel by its name.
    Operation *converted =
        SymbolTable::lookupSymbolIn(getOperation(), "__spv__" + name);
    SymbolTable::setSymbolName(converted, name);
    relaxAtomics(cast<spirv::ModuleOp>(converted));
    if (hasFloat16)
      keepSubnormals(cast<spirv::ModuleOp>(converted), name, 16);
    if (denormPreserve)
      keepSubnormals(cast<spirv::ModuleOp>(converted), name, 32);
    if (roundsHalves)
      setMode(cast<spirv::ModuleOp>(converted), name,
              spirv::ExecutionMode::RoundingModeRTE, 16);
    keepRounding(cast<spirv::ModuleOp>(converted));
    if (matrices)
      shareWorkgroupMemory(cast<spirv::ModuleOp>(converted));
    return success();
  }

  /// The type of elements of matrices that subgroups multiply; null: there are
  /// none. Types of matrices of bf16 are those of f16, which gpu.mma_matrix
  /// has.
  static Type typeOfMatrices(gpu::GPUModuleOp module) {
    Type type;
    module.walk([&](gpu::SubgroupMmaComputeOp op) {
      auto function = op->getParentOfType<gpu::GPUFuncOp>();
      auto own = function->getAttrOfType<TypeAttr>(kMatrixTypeAttrName);
      type = own ? own.getValue() : op.getOpA().getType().getElementType();
    });
    return type;
  }

  static void addMatrixTypes(SPIRVTypeConverter &types, Type matrices) {
    types.addConversion([=](gpu::MMAMatrixType type) -> Type {
      using spirv::CooperativeMatrixUseKHR;
      const StringRef operand = type.getOperand();
      const auto use = operand == "AOp"   ? CooperativeMatrixUseKHR::MatrixA
                       : operand == "BOp" ? CooperativeMatrixUseKHR::MatrixB
                                          : CooperativeMatrixUseKHR::MatrixAcc;
      Type element = type.getElementType();
      if (use != CooperativeMatrixUseKHR::MatrixAcc && matrices)
        element = matrices;
      return spirv::CooperativeMatrixType::get(element, type.getShape()[0],
                                               type.getShape()[1],
                                               spirv::Scope::Subgroup, use);
    });
  }

  /// Cooperative matrices are for Vulkan's memory model, in which what threads
  /// have in common is marked, and made available and visible by barriers.
  static void shareWorkgroupMemory(spirv::ModuleOp module) {
    module.setMemoryModelAttr(spirv::MemoryModelAttr::get(
        module.getContext(), spirv::MemoryModel::Vulkan));
    auto isShared = [](Value pointer) {
      return cast<spirv::PointerType>(pointer.getType()).getStorageClass() ==
             spirv::StorageClass::Workgroup;
    };
    auto marked = [](std::optional<spirv::MemoryAccess> access) {
      return access.value_or(spirv::MemoryAccess::None) |
             spirv::MemoryAccess::NonPrivatePointer;
    };
    module.walk([&](Operation *op) {
      if (auto load = dyn_cast<spirv::LoadOp>(op)) {
        if (isShared(load.getPtr()))
          load.setMemoryAccess(marked(load.getMemoryAccess()));
      } else if (auto store = dyn_cast<spirv::StoreOp>(op)) {
        if (isShared(store.getPtr()))
          store.setMemoryAccess(marked(store.getMemoryAccess()));
      } else if (auto load = dyn_cast<spirv::KHRCooperativeMatrixLoadOp>(op)) {
        load.setMemoryOperand(marked(load.getMemoryOperand()));
      } else if (auto store =
                     dyn_cast<spirv::KHRCooperativeMatrixStoreOp>(op)) {
        store.setMemoryOperand(marked(store.getMemoryOperand()));
      } else if (auto barrier = dyn_cast<spirv::ControlBarrierOp>(op)) {
        barrier.setMemorySemantics(barrier.getMemorySemantics() |
                                   spirv::MemorySemantics::MakeAvailable |
                                   spirv::MemorySemantics::MakeVisible);
      }
    });
  }

  spirv::TargetEnvAttr defaultEnvironment(Type matrices) {
    using spirv::Capability;
    llvm::SetVector<Capability> capabilities;
    capabilities.insert(Capability::Shader);
    if (denormPreserve || llvm::is_contained(types, "f16"))
      capabilities.insert(Capability::DenormPreserve);
    for (StringRef type : types) {
      if (type == "f16")
        capabilities.insert(Capability::Float16);
      if (type == "i16")
        capabilities.insert(Capability::Int16);
      if (type == "f16" || type == "i16")
        capabilities.insert(Capability::StorageBuffer16BitAccess);
      if (type == "i8") {
        capabilities.insert(Capability::Int8);
        capabilities.insert(Capability::StorageBuffer8BitAccess);
      }
      if (type == "i64")
        capabilities.insert(Capability::Int64);
    }
    SmallVector<spirv::Extension> extensions = {
        spirv::Extension::SPV_KHR_storage_buffer_storage_class,
        spirv::Extension::SPV_KHR_float_controls,
        spirv::Extension::SPV_KHR_16bit_storage,
        spirv::Extension::SPV_KHR_8bit_storage};
    if (matrices) {
      // Where kernels ask for them; updateVCE finds whether they do.
      capabilities.insert(Capability::RoundingModeRTE);
      capabilities.insert(Capability::GroupNonUniformShuffle);
      capabilities.insert(Capability::VulkanMemoryModel);
      if (matrices.isF16())
        capabilities.insert(Capability::Float16);
      capabilities.insert(Capability::CooperativeMatrixKHR);
      extensions.push_back(spirv::Extension::SPV_KHR_vulkan_memory_model);
      extensions.push_back(spirv::Extension::SPV_KHR_cooperative_matrix);
    }
    if (matrices && matrices.isBF16()) {
      capabilities.insert(Capability::BFloat16TypeKHR);
      capabilities.insert(Capability::BFloat16CooperativeMatrixKHR);
      extensions.push_back(spirv::Extension::SPV_KHR_bfloat16);
    }
    auto triple = spirv::VerCapExtAttr::get(
        matrices ? spirv::Version::V_1_6 : spirv::Version::V_1_3,
        capabilities.getArrayRef(), extensions, &getContext());
    return spirv::TargetEnvAttr::get(
        triple, spirv::getDefaultResourceLimits(&getContext()),
        spirv::ClientAPI::Vulkan, spirv::Vendor::Unknown,
        spirv::DeviceType::Unknown, spirv::TargetEnvAttr::kUnknownDeviceID);
  }

  /// Has subnormal floats of `width` bits taken for what they are.
  static void keepSubnormals(spirv::ModuleOp module, StringRef function,
                             int32_t width) {
    setMode(module, function, spirv::ExecutionMode::DenormPreserve, width);
  }

  /// States a mode of floats of `width` bits.
  static void setMode(spirv::ModuleOp module, StringRef function,
                      spirv::ExecutionMode mode, int32_t width) {
    OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
    spirv::ExecutionModeOp::create(b, module.getLoc(), function, mode,
                                   b.getI32ArrayAttr(width));
  }

  /// Arithmetic rounds as it is written: without this, drivers may make one
  /// operation of several, and even other ones of them.
  static void keepRounding(spirv::ModuleOp module) {
    module.walk([&](Operation *op) {
      if (isa<spirv::FAddOp, spirv::FSubOp, spirv::FMulOp, spirv::FDivOp,
              spirv::GLFmaOp>(op))
        op->setAttr("no_contraction", UnitAttr::get(op->getContext()));
    });
  }

  /// Atomic ops order no other memory: of parts of words, and of sums, each is
  /// all that its word has to be ordered with; barriers order the rest. Mesa
  /// 22.3 makes a barrier of the whole workgroup, for processors, of what
  /// orders more, even where not all of its threads come by.
  static void relaxAtomics(spirv::ModuleOp module) {
    auto relax = [](auto op) { op.setSemantics(spirv::MemorySemantics::None); };
    module.walk([&](spirv::AtomicAndOp op) { relax(op); });
    module.walk([&](spirv::AtomicOrOp op) { relax(op); });
    module.walk([&](spirv::AtomicIAddOp op) { relax(op); });
    module.walk([&](spirv::AtomicUMaxOp op) { relax(op); });
  }

  /// Rounds divisions to the nearest: Vulkan lets them be off by 2.5 units in
  /// the last place. Of normal numbers, those between 1 and 2 that have their
  /// digits are divided, and what the quotient leaves of the dividend is
  /// computed exactly, by Dekker's product ("A floating-point technique for
  /// extending the available precision", 1971), for an fma may round twice,
  /// too. Quotients of others stay as they are.
  static void correctDivisions(gpu::GPUFuncOp function) {
    SmallVector<arith::DivFOp> divisions;
    function.walk([&](arith::DivFOp op) {
      if (op.getType().isF32())
        divisions.push_back(op);
    });
    for (arith::DivFOp op : divisions) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      Value result = correctDivision(b, op.getLhs(), op.getRhs());
      op.getResult().replaceAllUsesWith(result);
      op.erase();
    }
  }

  static Value correctDivision(ImplicitLocOpBuilder &b, Value dividend,
                               Value divisor) {
    auto integer = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
    };
    auto bitsOf = [&](Value x) -> Value {
      return arith::BitcastOp::create(b, b.getI32Type(), x);
    };
    auto floatOf = [&](Value bits) -> Value {
      return arith::BitcastOp::create(b, b.getF32Type(), bits);
    };
    auto both = [&](Value x, Value y) -> Value {
      return arith::AndIOp::create(b, x, y);
    };
    auto select = [&](Value condition, Value x, Value y) -> Value {
      return arith::SelectOp::create(b, condition, x, y);
    };
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, x, y);
    };
    auto sub = [&](Value x, Value y) -> Value {
      return arith::SubFOp::create(b, x, y);
    };
    auto mul = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, x, y);
    };
    auto exponentOf = [&](Value x) {
      Value above = arith::ShRUIOp::create(b, bitsOf(x), integer(23));
      return both(above, integer(255));
    };
    auto isNormal = [&](Value exponent) -> Value {
      return arith::CmpIOp::create(
          b, arith::CmpIPredicate::ult,
          arith::SubIOp::create(b, exponent, integer(1)), integer(254));
    };
    auto digitsOf = [&](Value x) {
      Value rest = both(bitsOf(x), integer(static_cast<int32_t>(0x807fffff)));
      return floatOf(arith::OrIOp::create(b, rest, integer(0x3f800000)));
    };
    auto powerOfTwo = [&](Value exponent) {
      Value biased = arith::AddIOp::create(b, exponent, integer(127));
      return floatOf(arith::ShLIOp::create(b, biased, integer(23)));
    };
    Value splitter = arith::ConstantOp::create(b, b.getF32FloatAttr(4097.0));
    auto halves = [&](Value x) {
      Value scaled = mul(x, splitter);
      Value high = sub(scaled, sub(scaled, x));
      return std::pair(high, sub(x, high));
    };
    Value above = exponentOf(dividend), below = exponentOf(divisor);
    Value areNormal = both(isNormal(above), isNormal(below));
    Value x = select(areNormal, digitsOf(dividend), dividend);
    Value y = select(areNormal, digitsOf(divisor), divisor);
    Value q = arith::DivFOp::create(b, x, y);
    Value product = mul(q, y);
    auto [qHigh, qLow] = halves(q);
    auto [high, low] = halves(y);
    Value error = sub(mul(qHigh, high), product);
    error = add(add(error, mul(qHigh, low)), mul(qLow, high));
    error = add(error, mul(qLow, low));
    Value rest = sub(sub(x, product), error);
    Value step = arith::DivFOp::create(b, rest, y);
    Value nearest = select(areNormal, add(q, step), q);
    // 2^253 is no float: two factors.
    Value exponent =
        select(areNormal, arith::SubIOp::create(b, above, below), integer(0));
    Value half = arith::ShRSIOp::create(b, exponent, integer(1));
    Value other = arith::SubIOp::create(b, exponent, half);
    return mul(mul(nearest, powerOfTwo(half)), powerOfTwo(other));
  }

  /// Vulkan leaves powers of 0 and of NaNs undefined.
  static void correctPowers(gpu::GPUFuncOp function) {
    SmallVector<math::PowFOp> powers;
    function.walk([&](math::PowFOp op) { powers.push_back(op); });
    for (math::PowFOp op : powers) {
      ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
      b.setInsertionPointAfter(op);
      auto number = [&](double value) -> Value {
        return arith::ConstantOp::create(b,
                                         b.getFloatAttr(op.getType(), value));
      };
      auto is = [&](arith::CmpFPredicate predicate, Value x, Value y) -> Value {
        return arith::CmpFOp::create(b, predicate, x, y);
      };
      Value x = op.getLhs(), y = op.getRhs(), zero = number(0.0);
      Value half = arith::MulFOp::create(b, y, number(0.5));
      auto isWhole = [&](Value value) {
        return is(arith::CmpFPredicate::OEQ, math::FloorOp::create(b, value),
                  value);
      };
      // Odd powers of -0 are negative.
      Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                          isWhole(y), isWhole(half));
      Value none =
          arith::SelectOp::create(b, isOdd, x, math::AbsFOp::create(b, x));
      Value infinite = math::CopySignOp::create(
          b, number(std::numeric_limits<double>::infinity()), none);
      Value ofZero = arith::SelectOp::create(
          b, is(arith::CmpFPredicate::OLT, y, zero), infinite, none);
      auto power = arith::SelectOp::create(
          b, is(arith::CmpFPredicate::OEQ, x, zero), ofZero, op.getResult());
      Value result = arith::SelectOp::create(
          b, is(arith::CmpFPredicate::UNO, x, y),
          number(std::numeric_limits<double>::quiet_NaN()), power);
      // Even of a NaN.
      Value isOne =
          arith::OrIOp::create(b, is(arith::CmpFPredicate::OEQ, y, zero),
                               is(arith::CmpFPredicate::OEQ, x, number(1.0)));
      result = arith::SelectOp::create(b, isOne, number(1.0), result);
      op.getResult().replaceAllUsesExcept(result, power);
    }
  }

  /// Writes magnitudes of 64 bits as comparisons with 0, as Mesa does, but
  /// before these are narrowed.
  static void expandWideMagnitudes(gpu::GPUFuncOp function) {
    function.walk([](math::AbsIOp op) {
      Value x = op.getOperand();
      if (!x.getType().isInteger(64))
        return;
      ImplicitLocOpBuilder b(op.getLoc(), op);
      Value zero = arith::ConstantOp::create(b, b.getI64IntegerAttr(0));
      Value isNegative =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, zero);
      Value negated = arith::SubIOp::create(b, zero, x);
      op.getResult().replaceAllUsesWith(
          arith::SelectOp::create(b, isNegative, negated, x));
      op.erase();
    });
  }

  /// Compares what was widened to 64 bits with a constant as what it was before
  /// that. Mesa 22.3 takes each such comparison of widened words for true, or
  /// each for false.
  static void narrowComparisons(gpu::GPUFuncOp function) {
    function.walk([](arith::CmpIOp op) {
      Operation *widening = op.getLhs().getDefiningOp();
      APInt limit;
      if (!op.getLhs().getType().isInteger(64) ||
          !isa_and_nonnull<arith::ExtSIOp, arith::IndexCastOp>(widening) ||
          !isSigned(op.getPredicate()) ||
          !matchPattern(op.getRhs(), m_ConstantInt(&limit)))
        return;
      Value narrow = widening->getOperand(0);
      if (narrow.getType().isInteger(1)) // has no signed comparisons
        return;
      OpBuilder b(op);
      Value result;
      if (limit.isSignedIntN(bitsOf(narrow.getType()))) {
        Value constant = arith::ConstantOp::create(
            b, op.getLoc(),
            b.getIntegerAttr(narrow.getType(), limit.getSExtValue()));
        result = arith::CmpIOp::create(b, op.getLoc(), op.getPredicate(),
                                       narrow, constant);
      } else {
        // All numbers of so few bits are on the side of 0.
        bool holds =
            arith::applyCmpPredicate(op.getPredicate(), APInt(64, 0), limit);
        result =
            arith::ConstantOp::create(b, op.getLoc(), b.getBoolAttr(holds));
      }
      op.getResult().replaceAllUsesWith(result);
      op.erase();
    });
  }

  static bool isSigned(arith::CmpIPredicate predicate) {
    return llvm::is_contained(
        {arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
         arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge},
        predicate);
  }

  /// Of an integer, or of an index in SPIR-V.
  static unsigned bitsOf(Type type) {
    return type.isIndex() ? 32 : type.getIntOrFloatBitWidth();
  }

  /// Makes variables of the function of the module's constant tables, which the
  /// upstream conversion does not know.
  static void moveTables(gpu::GPUFuncOp function) {
    llvm::MapVector<Attribute, Value> tables; // by their name
    SmallVector<memref::GetGlobalOp> uses;
    function.walk([&](memref::GetGlobalOp op) { uses.push_back(op); });
    for (memref::GetGlobalOp use : uses) {
      Value &table = tables[use.getNameAttr()];
      if (!table) {
        auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
            use, use.getNameAttr());
        auto data = cast<ElementsAttr>(*global.getInitialValue());
        auto type =
            spirv::ArrayType::get(data.getElementType(), data.getNumElements());
        auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
        Value constant =
            spirv::ConstantOp::create(builder, use.getLoc(), type, data);
        table = spirv::VariableOp::create(
            builder, use.getLoc(),
            spirv::PointerType::get(type, spirv::StorageClass::Function),
            spirv::StorageClass::Function, constant);
      }
      for (Operation *user : llvm::make_early_inc_range(use->getUsers())) {
        auto load = cast<memref::LoadOp>(user);
        OpBuilder builder(load);
        Value index = arith::IndexCastOp::create(
            builder, load.getLoc(), builder.getI32Type(), load.getIndices()[0]);
        Value place =
            spirv::AccessChainOp::create(builder, load.getLoc(), table, index);
        load.replaceAllUsesWith(
            spirv::LoadOp::create(builder, load.getLoc(), place).getResult());
        load.erase();
      }
      use.erase();
    }
  }

  /// States the workgroup size, and turns workgroup attributions, which the
  /// upstream conversion does not know, into allocations, which it does.
  void prepare(gpu::GPUFuncOp function) {
    std::optional<ArrayRef<int32_t>> size = function.getKnownBlockSize();
    function->setAttr(
        spirv::getEntryPointABIAttrName(),
        spirv::getEntryPointABIAttr(&getContext(),
                                    size ? *size : ArrayRef<int32_t>{1, 1, 1}));
    auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
    ArrayRef<BlockArgument> attributions = function.getWorkgroupAttributions();
    for (BlockArgument attribution : attributions)
      attribution.replaceAllUsesWith(memref::AllocOp::create(
          builder, function.getLoc(), cast<MemRefType>(attribution.getType())));
    function.getBody().front().eraseArguments(
        function.getFirstWorkgroupAttributionIndex(), attributions.size());
    function->setAttr(function.getNumWorkgroupAttributionsAttrName(),
                      builder.getI64IntegerAttr(0));
  }
};

} // namespace
