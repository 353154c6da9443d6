//===- KFStructureOps.cpp - Weights, kernels, programs --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"

#include "runtime/program/Executable.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// weight, pack
//===----------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  if (getNames().empty() ||
      llvm::any_of(getNames().getAsValueRange<StringAttr>(),
                   [](StringRef name) { return name.empty(); }))
    return emitOpError("C1: needs at least one name, and none may be empty");
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape())
    return emitOpError("C2: the result must have a static shape, found ")
           << type;
  const int64_t names = static_cast<int64_t>(getNames().size());
  const std::span<const int64_t> shape(type.getShape().data(),
                                       type.getShape().size());
  const size_t stacked =
      getStacked() ? ::kf::countStackedDims(shape, names) : 0;
  if (getStacked() && stacked == 0)
    return emitOpError("C3: stacked needs leading dimensions that make ")
           << names << ", and one behind them, found " << type;
  const int64_t rank = static_cast<int64_t>(stacked) + 2;
  if (getTransposed() && type.getRank() != rank)
    return emitOpError("C4: transposed needs rank ")
           << rank << ", found " << type;
  return success();
}

LogicalResult PackOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType())
    return emitOpError("C1: source and result may differ in their encodings "
                       "alone, found ")
           << source << " and " << result;
  if (source.getEncoding() || !getLayout(result))
    return emitOpError("C2: the result needs a #kf.layout encoding and the "
                       "source none");
  return success();
}

/// Rows of a weight, [N, K], [G, N, K] or [G, E, N, K], are packed in parallel.
SmallVector<utils::IteratorType> PackOp::getLoopTypes() {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  SmallVector<utils::IteratorType> types(rank, utils::IteratorType::reduction);
  types[rank - 2] = utils::IteratorType::parallel;
  return types;
}

SmallVector<AffineMap> PackOp::getLoopMaps() {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  return {2, AffineMap::getMultiDimIdentityMap(rank, getContext())};
}

namespace {
/// pack(weight) -> weight in the packed layout: packing runs at load.
struct FoldPackOfWeight : OpRewritePattern<PackOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PackOp op,
                                PatternRewriter &rewriter) const override {
    auto weight = op.getSource().getDefiningOp<WeightOp>();
    if (!weight)
      return failure();
    rewriter.replaceOpWithNewOp<WeightOp>(
        op, op.getType(), weight.getNamesAttr(), weight.getStackedAttr(),
        weight.getTransposedAttr());
    return success();
  }
};
} // namespace

void PackOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<FoldPackOfWeight>(context);
}

//===----------------------------------------------------------------------===//
// cache_layer
//===----------------------------------------------------------------------===//

LogicalResult CacheLayerOp::verify() {
  Type cache = getCache().getType();
  const int64_t layers = getLayers(cache);
  if (static_cast<int64_t>(getLayer()) < 0 ||
      static_cast<int64_t>(getLayer()) >= layers)
    return emitOpError("C1: layer ")
           << getLayer() << " is outside the cache's " << layers;
  if (getType() != withLayers(cache, 1))
    return emitOpError("C2: the result must be ")
           << withLayers(cache, 1) << ", found " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// yield
//===----------------------------------------------------------------------===//

LogicalResult YieldOp::verify() {
  auto function = cast<FunctionOpInterface>((*this)->getParentOp());
  if (!llvm::equal(getOperandTypes(), function.getResultTypes()))
    return emitOpError("C1: types differ from the results of ")
           << (*this)->getParentOp()->getName() << " @" << function.getName();
  return success();
}

//===----------------------------------------------------------------------===//
// kernel, program
//===----------------------------------------------------------------------===//

template <typename OpTy>
static ParseResult parseFunctionLike(OpAsmParser &parser,
                                     OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(arguments, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      OpTy::getFunctionTypeAttrName(result.name), buildType,
      OpTy::getArgAttrsAttrName(result.name),
      OpTy::getResAttrsAttrName(result.name));
}

template <typename OpTy>
static void printFunctionLike(OpAsmPrinter &printer, OpTy op) {
  function_interface_impl::printFunctionOp(
      printer, op, /*isVariadic=*/false, op.getFunctionTypeAttrName(),
      op.getArgAttrsAttrName(), op.getResAttrsAttrName());
}

/// Checks that a kernel or program has a body with its terminator.
template <typename OpTy>
static LogicalResult verifyTerminator(OpTy op, StringRef constraint) {
  Region &body = op.getBody();
  if (body.empty() || body.front().empty() ||
      !isa<YieldOp>(body.front().back()))
    return op.emitOpError(constraint) << ": needs a body that ends in kf.yield";
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunctionLike<KernelOp>(parser, result);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printFunctionLike(printer, *this);
}

LogicalResult KernelOp::verify() {
  for (Type type : getArgumentTypes())
    if (!isRowsTensor(type) && !isCache(type))
      return emitOpError("C1: argument ")
             << type
             << " must be a cache or a tensor whose dimensions are static "
                "but for the first, and not 0";
  for (Type type : getResultTypes())
    if (!isRowsTensor(type))
      return emitOpError("C1: result ")
             << type
             << " must be a tensor whose dimensions are static but for the "
                "first, and not 0";
  auto verifySize = [&](StringAttr name) -> LogicalResult {
    if (succeeded(getSizeSlot(*this, name)))
      return success();
    return emitOpError("C5: the module's kf.sizes lacks '")
           << name.getValue() << "'";
  };
  if (GridAttr grid = getGridAttr(); grid && failed(verifySize(grid.getSize())))
    return failure();
  for (Type type :
       llvm::concat<const Type>(getArgumentTypes(), getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.getEncoding())
      continue;
    bool isKnown =
        tensor.hasStaticShape() ? isPacked(tensor) : getSize(tensor) != nullptr;
    if (!isKnown)
      return emitOpError("C3: ")
             << type << " has an encoding that is neither the #kf.layout or "
             << "#kf.fragments of a static tensor nor the #kf.size of a "
             << "dynamic one";
    if (failed(verifySize(getSizeName(type))))
      return failure();
  }
  return verifyTerminator(*this, "C2");
}

/// Checks who makes and reads packed tensors.
LogicalResult KernelOp::verifyRegions() {
  if (getGrid()) // slices of them, too
    return success();
  auto isEncoded = [](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.getEncoding() && !getSize(tensor);
  };
  auto fail = [](Operation &op, Value value) {
    return op.emitOpError("kf.kernel C4: has no meaning for the layout of ")
           << value.getType()
           << "; kf.pack makes packed tensors, and products read them as their "
              "weight";
  };
  for (Operation &op : getBody().front().without_terminator()) {
    auto product = dyn_cast<ProductOpInterface>(op);
    for (OpOperand &operand : op.getOpOperands())
      if (isEncoded(operand.get()) &&
          !(product && operand == product.getWMutable()))
        return fail(op, operand.get());
    for (Value result : op.getResults())
      if (isEncoded(result) && !isa<PackOp>(op))
        return fail(op, result);
  }
  return success();
}

YieldOp KernelOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

/// Checks that every named size of the program has one range and a slot.
static LogicalResult verifySizes(ProgramOp program) {
  DenseSet<StringAttr> ranges;
  if (ArrayAttr sizes = program.getSizesAttr())
    for (auto range : sizes.getAsRange<SizeRangeAttr>()) {
      StringAttr name = range.getName();
      if (!ranges.insert(name).second)
        return program.emitOpError("C6: sizes has '")
               << name.getValue() << "' twice";
      if (failed(getSizeSlot(program, name)))
        return program.emitOpError("C6: the module's kf.sizes lacks '")
               << name.getValue() << "'";
    }
  auto verifyNamed = [&](Operation *op, TypeRange types) -> LogicalResult {
    for (Type type : types)
      if (StringAttr name = getSizeName(type); name && !ranges.contains(name))
        return op->emitOpError("C6: sizes of kf.program lacks '")
               << name.getValue() << "'";
    return success();
  };
  if (failed(verifyNamed(program, program.getArgumentTypes())))
    return failure();
  for (Operation &op : program.getBody().front())
    if (failed(verifyNamed(&op, op.getResultTypes())))
      return failure();
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunctionLike<ProgramOp>(parser, result);
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printFunctionLike(printer, *this);
}

LogicalResult ProgramOp::verify() {
  if (static_cast<int64_t>(getMaxTokens()) <= 0)
    return emitOpError("C2: max_tokens must be positive");
  int64_t least = static_cast<int64_t>(getMinTokens().value_or(1));
  if (least < 1 || least > static_cast<int64_t>(getMaxTokens()))
    return emitOpError("C2: min_tokens must be between 1 and max_tokens, "
                       "found ")
           << least;
  if (failed(verifyTerminator(*this, "C3")))
    return failure();
  for (Operation &op : getBody().front())
    if (!isa<WeightOp, CacheLayerOp, DispatchInterface, YieldOp>(op))
      return op.emitOpError("C1: a kf.program holds kf.weight, kf.cache_layer, "
                            "kf.dispatch, collectives and kf.yield only");
  auto isPlain = [](Type type) {
    if (!isRowsTensor(type))
      return false;
    auto tensor = cast<RankedTensorType>(type);
    return !tensor.getEncoding() ||
           (getSize(tensor) && !tensor.hasStaticShape());
  };
  for (Type type : getArgumentTypes())
    if (!isPlain(type) && !isCache(type))
      return emitOpError("C4: argument ")
             << type
             << " must be a cache or a tensor, without an encoding but "
                "#kf.size, whose dimensions are static but for the first, and "
                "not 0";
  for (Type type : getResultTypes())
    if (!isPlain(type))
      return emitOpError("C4: result ")
             << type
             << " must be a tensor, without an encoding but "
                "#kf.size, whose dimensions are static but for the first, and "
                "not 0";
  return verifySizes(*this);
}

LogicalResult ProgramOp::verifyRegions() {
  DenseSet<Value> yielded;
  for (Value value : getYield().getValues())
    if (!value.getDefiningOp<DispatchInterface>() ||
        !yielded.insert(value).second)
      return emitOpError("C5: each result must be made by a kf.dispatch or a "
                         "collective, and yielded once");
  return success();
}

std::optional<std::pair<int64_t, int64_t>>
ProgramOp::getRange(StringAttr name) {
  if (!name)
    return std::pair(static_cast<int64_t>(getMinTokens().value_or(1)),
                     static_cast<int64_t>(getMaxTokens()));
  if (ArrayAttr sizes = getSizesAttr())
    for (auto range : sizes.getAsRange<SizeRangeAttr>())
      if (range.getName() == name)
        return std::pair(range.getLeast(), range.getMost());
  return std::nullopt;
}

int64_t ProgramOp::getMostRows(RankedTensorType tensor) {
  if (tensor.getRank() == 0)
    return 1;
  if (!tensor.isDynamicDim(0))
    return tensor.getDimSize(0);
  auto range = getRange(getSizeName(tensor));
  assert(range && "C6: every size has a range");
  return range->second;
}

YieldOp ProgramOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

//===----------------------------------------------------------------------===//
// dispatch
//===----------------------------------------------------------------------===//

LogicalResult DispatchOp::verify() {
  if (std::optional<ArrayRef<int64_t>> offsets = getOffsets();
      offsets && offsets->size() != getNumResults())
    return emitOpError("C3: offsets has ") << offsets->size() << " entries for "
                                           << getNumResults() << " results";
  if (std::optional<ArrayRef<int64_t>> offsets = getOffsets();
      offsets && llvm::any_of(*offsets, [](int64_t o) { return o < -1; }))
    return emitOpError("C3: an offset must not be negative, or be -1 for a "
                       "result of the program");
  return success();
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  Operation *symbol =
      symbolTable.lookupNearestSymbolFrom(*this, getKernelAttr());
  if (!symbol || isa<ProgramOp>(symbol))
    return emitOpError("C1: @")
           << getKernel() << " is not a kf.kernel of this module";
  auto kernel = dyn_cast<KernelOp>(symbol);
  if (!kernel) // lowered: its buffers are described elsewhere
    return success();
  if (!llvm::equal(getOperandTypes(), kernel.getArgumentTypes()) ||
      !llvm::equal(getResultTypes(), kernel.getResultTypes()))
    return emitOpError("C2: types differ from those of kf.kernel @")
           << getKernel() << ", " << kernel.getFunctionType();
  return success();
}
