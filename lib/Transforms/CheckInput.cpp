//===- CheckInput.cpp - What a source may hold ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace mlir::kf {
#define GEN_PASS_DEF_CHECKINPUT
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

// Far more than any model has: the steps of Llama 3.1 405B are about 2000 ops
// with tensors of up to 2^31 elements. With these, sums over a module of
// products of sizes fit into 64 bits.
constexpr int64_t maxSymbols = 4096, maxOps = 65536, maxValues = 8192,
                  maxRank = 8, maxExtent = std::numeric_limits<int32_t>::max(),
                  maxElements = int64_t(1) << 40, maxListElements = 256,
                  maxNameBytes = 1024;
constexpr unsigned maxBits = 64;

struct CheckInputPass : mlir::kf::impl::CheckInputBase<CheckInputPass> {
  void runOnOperation() override {
    count = 0;
    checked.clear();
    if (failed(check(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static InFlightDiagnostic fail(Operation *op) {
    return op->emitOpError("kf-check-input: ");
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  LogicalResult check(ModuleOp module) {
    for (auto [number, symbol] : llvm::enumerate(*module.getBody())) {
      if (number == maxSymbols)
        return fail(&symbol) << "a module has at most " << maxSymbols
                             << " functions, kernels and programs";
      if (failed(checkSymbol(&symbol)))
        return failure();
    }
    return success();
  }

  LogicalResult checkSymbol(Operation *symbol) {
    if (!isa<func::FuncOp, KernelOp, ProgramOp>(symbol))
      return symbol->emitOpError("cannot be compiled; a file holds func.func, "
                                 "kf.kernel and kf.program");
    if (auto kernel = dyn_cast<KernelOp>(symbol); kernel && kernel.getGrid())
      return symbol->emitOpError("is tiled already; give the text that "
                                 "--compile-to=program prints");
    const int64_t nameBytes = SymbolTable::getSymbolName(symbol).size();
    if (nameBytes > maxNameBytes)
      return fail(symbol) << "a name has at most " << maxNameBytes
                          << " bytes, found " << nameBytes;
    auto function = cast<FunctionOpInterface>(symbol);
    if (failed(checkTokens(symbol)) ||
        failed(checkTypes(symbol, function.getArgumentTypes(), "arguments")) ||
        failed(checkTypes(symbol, function.getResultTypes(), "results")))
      return failure();
    for (Block &block : function.getFunctionBody())
      for (Operation &op : block)
        if (failed(checkOp(&op)))
          return failure();
    return success();
  }

  LogicalResult checkTokens(Operation *symbol) {
    for (StringRef name : {"kf.max_tokens", "max_tokens"}) {
      Attribute attribute = symbol->getAttr(name);
      if (!attribute)
        continue;
      auto tokens = dyn_cast<IntegerAttr>(attribute);
      if (!tokens || !tokens.getType().isInteger(64) || tokens.getInt() < 1 ||
          tokens.getInt() > maxExtent)
        return fail(symbol) << name << " is an i64 from 1 to " << maxExtent
                            << ", found " << attribute;
    }
    return success();
  }

  LogicalResult checkOp(Operation *op) {
    if (++count > maxOps)
      return fail(op) << "a module has at most " << maxOps << " ops";
    if (!isView(op) && !isa<func::ReturnOp, tensor::CastOp>(op) &&
        !isa<KFDialect, arith::ArithDialect, math::MathDialect>(
            op->getDialect()))
      return fail(op) << "has no place in a kernel; use "
                      << describeTensorOps();
    if (op->getNumRegions() > 0)
      return fail(op) << "has no place inside of a body";
    if (failed(checkTypes(op, op->getOperandTypes(), "operands")) ||
        failed(checkTypes(op, op->getResultTypes(), "results")))
      return failure();
    auto constant = dyn_cast<arith::ConstantOp>(op);
    auto list = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                         : DenseElementsAttr();
    if (list && !list.isSplat() && list.getNumElements() > maxListElements)
      return fail(op) << "a constant has one value, or a list of at most "
                      << maxListElements << ", found " << list.getNumElements()
                      << "; pass data as an argument or a kf.weight";
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  LogicalResult checkTypes(Operation *op, TypeRange types, StringRef what) {
    if (static_cast<int64_t>(types.size()) > maxValues)
      return fail(op) << "has " << types.size() << " " << what << "; at most "
                      << maxValues;
    for (Type type : types)
      if (failed(checkType(op, type)))
        return failure();
    return success();
  }

  /// Remembers what it has passed: most values share a few types.
  LogicalResult checkType(Operation *op, Type type) {
    if (checked.contains(type))
      return success();
    LogicalResult result = success();
    if (auto cache = dyn_cast<KVCacheType>(type))
      result = checkElements(
          op, type,
          {cache.getLayers(), cache.getKvHeads(), 2, cache.getHeadDim()});
    else if (auto states = dyn_cast<StateCacheType>(type))
      result = checkElements(
          op, type,
          {states.getLayers(), states.getHeads(), states.getElements()});
    else if (auto tensor = dyn_cast<RankedTensorType>(type))
      result = checkTensor(op, tensor);
    else if (!isElement(type))
      return fail(op) << "has a value of type " << type
                      << "; values are caches, ranked tensors and numbers";
    if (succeeded(result))
      checked.insert(type);
    return result;
  }

  static bool isElement(Type type) {
    return isa<IndexType, QuantType>(type) ||
           (type.isIntOrFloat() && type.getIntOrFloatBitWidth() <= maxBits);
  }

  static LogicalResult checkTensor(Operation *op, RankedTensorType type) {
    if (!isElement(type.getElementType()) || type.getElementType().isIndex())
      return fail(op) << "elements are numbers of up to " << maxBits
                      << " bits or blocks, found " << type;
    if (type.getRank() > maxRank)
      return fail(op) << "a tensor has at most " << maxRank
                      << " dimensions, found " << type;
    for (int64_t extent : type.getShape())
      if (!ShapedType::isDynamic(extent) && extent > maxExtent)
        return fail(op) << "a dimension is at most " << maxExtent << ", found "
                        << type;
    return checkElements(op, type, type.getShape());
  }

  /// Counts `?` and 0 as 1.
  static LogicalResult checkElements(Operation *op, Type type,
                                     ArrayRef<int64_t> shape) {
    int64_t elements = 1;
    for (int64_t extent : shape) {
      auto product = llvm::checkedMul(elements, std::max<int64_t>(extent, 1));
      if (!product || *product > maxElements)
        return fail(op) << "a tensor, or a position of a cache, has at most "
                        << maxElements << " elements, found " << type;
      elements = *product;
    }
    return success();
  }

  int64_t count = 0; // of ops so far
  DenseSet<Type> checked;
};

} // namespace
