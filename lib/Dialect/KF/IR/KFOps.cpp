//===- KFOps.cpp - Tensor ops: verifiers, inference, folding --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Assembly of `(silu)`
//===----------------------------------------------------------------------===//

/// One of the `count` words of an enumeration, `what` being what they name.
template <typename KindAttr>
static ParseResult parseKind(OpAsmParser &parser, StringRef what,
                             unsigned count, KindAttr &kind) {
  using Kind = decltype(kind.getValue());
  StringRef word;
  if (parser.parseLParen())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  std::optional<Kind> value = symbolizeEnum<Kind>(word);
  if (!value) {
    InFlightDiagnostic error = parser.emitError(loc)
                               << "unknown " << what << " '" << word
                               << "'; known: ";
    llvm::interleaveComma(llvm::seq(count), error, [&](unsigned number) {
      error << stringifyEnum(static_cast<Kind>(number));
    });
    return error;
  }
  kind = KindAttr::get(parser.getContext(), *value);
  return parser.parseRParen();
}

template <typename KindAttr>
static void printKind(OpAsmPrinter &printer, KindAttr kind) {
  printer << "(" << stringifyEnum(kind.getValue()) << ")";
}

static ParseResult parseActivation(OpAsmParser &parser,
                                   ActivationKindAttr &kind) {
  return parseKind(parser, "activation", getMaxEnumValForActivationKind() + 1,
                   kind);
}
static void printActivation(OpAsmPrinter &printer, Operation *,
                            ActivationKindAttr kind) {
  printKind(printer, kind);
}

static ParseResult parseReduceKind(OpAsmParser &parser, ReduceKindAttr &kind) {
  return parseKind(parser, "reduction", getMaxEnumValForReduceKind() + 1, kind);
}
static void printReduceKind(OpAsmPrinter &printer, Operation *,
                            ReduceKindAttr kind) {
  printKind(printer, kind);
}

#define GET_OP_CLASSES
#include "kf/Dialect/KF/IR/KFOps.cpp.inc"

//===----------------------------------------------------------------------===//
// embedding
//===----------------------------------------------------------------------===//

RankedTensorType EmbeddingOp::getPartRead(OpOperand &operand) {
  const RankedTensorType type = tensorType(operand.get());
  if (operand.get() != getTable())
    return type;
  const RankedTensorType rows = tensorType(getResult());
  return getRowsOf(rows, rows.getShape().drop_front(), type.getElementType());
}

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto ids = cast<RankedTensorType>(adaptor.getIds().getType());
  auto table = cast<RankedTensorType>(adaptor.getTable().getType());
  if (ids.getRank() != 1)
    return cannotInfer<EmbeddingOp>(loc,
                                    "C1: ids must be a rank 1 tensor of "
                                    "i32",
                                    ids);
  if (table.getRank() != 2)
    return cannotInfer<EmbeddingOp>(loc, "C2: table must have rank 2", table);
  types.push_back(
      getRowsOf(ids, table.getDimSize(1), Float32Type::get(context)));
  return success();
}

LogicalResult EmbeddingOp::verify() {
  RankedTensorType ids = tensorType(getIds()), table = tensorType(getTable());
  if (ids.getRank() != 1 || !ids.getElementType().isInteger(32))
    return emitOpError("C1: ids must be a rank 1 tensor of i32, found ") << ids;
  if (table.getRank() != 2 || !isWeightTensor(table) || table.isDynamicDim(1))
    return emitOpError("C2: table must be a rank 2 tensor with static columns "
                       "of f32, f16, bf16 or whole blocks of a quantized type, "
                       "found ")
           << table;
  return success();
}

SmallVector<utils::IteratorType> EmbeddingOp::getLoopTypes() {
  return {parallel(), reduction()};
}

SmallVector<AffineMap> EmbeddingOp::getLoopMaps() {
  MLIRContext *c = getContext();
  return {loopMap(c, 2, {0}), loopMap(c, 2, {-1, 1}), loopMap(c, 2, {0, 1})};
}

//===----------------------------------------------------------------------===//
// mlp
//===----------------------------------------------------------------------===//

LogicalResult MlpOp::inferReturnTypes(MLIRContext *,
                                      std::optional<Location> loc,
                                      Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto down = cast<RankedTensorType>(adaptor.getDown().getType());
  if (x.getRank() != 2)
    return cannotInfer<MlpOp>(loc, "C1: x must have rank 2", x);
  if (down.getRank() != 2)
    return cannotInfer<MlpOp>(loc, "C3: down must have rank 2", down);
  types.push_back(getRowsOf(x, down.getDimSize(0), x.getElementType()));
  return success();
}

LogicalResult MlpOp::verify() {
  RankedTensorType x = tensorType(getX()), up = tensorType(getUp()),
                   down = tensorType(getDown());
  if (x.getRank() != 2 || !isFloatTensor(x))
    return emitOpError("C1: x must be a rank 2 tensor of f32, f16 or bf16, "
                       "found ")
           << x;
  if (up.getRank() != 2 || !isWeightTensor(up) || !up.hasStaticShape() ||
      up.getDimSize(1) != x.getDimSize(1))
    return emitOpError("C2: up must be [F, K] for x ") << x << ", found " << up;
  if (getGate() && (!isWeightTensor(getGate().getType()) ||
                    tensorType(getGate()).getShape() != up.getShape()))
    return emitOpError("C2: gate must have the shape of up, found ")
           << getGate().getType() << " and " << up;
  int64_t f = up.getDimSize(0);
  if (down.getRank() != 2 || !isWeightTensor(down) || !down.hasStaticShape() ||
      down.getDimSize(1) != f)
    return emitOpError("C3: down must be [N, F] with F = ")
           << f << ", found " << down;
  auto biasFits = [](Value bias, int64_t size) {
    return !bias || isFloatOfShape(bias.getType(), {size});
  };
  if ((getGateBias() && !getGate()) || !biasFits(getGateBias(), f) ||
      !biasFits(getUpBias(), f) || !biasFits(getDownBias(), down.getDimSize(0)))
    return emitOpError("C4: biases must be [F], [F] and [N] of a float type, "
                       "and gate_bias needs gate");
  return success();
}

//===----------------------------------------------------------------------===//
// rms_norm, layer_norm, softmax, activation
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult RmsNormOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!hasStaticFloatRows(x))
    return emitOpError("C1: x must have float elements and a static last "
                       "dimension, found ")
           << x;
  if (!isFloatOfShape(getWeight().getType(), {x.getShape().back()}))
    return emitOpError("C2: weight must be [")
           << x.getShape().back() << "] of a float type, found "
           << getWeight().getType();
  if (!isFiniteAndNotNegative(getEps()))
    return emitOpError("C3: eps must be finite and not negative");
  return success();
}

SmallVector<utils::IteratorType> RmsNormOp::getLoopTypes() {
  return rowLoopTypes(tensorType(getX()));
}

SmallVector<AffineMap> RmsNormOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  return {rowMap(x), lastDimMap(x), rowMap(x)};
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult LayerNormOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!hasStaticFloatRows(x))
    return emitOpError("C1: x must have float elements and a static last "
                       "dimension, found ")
           << x;
  int64_t d = x.getShape().back();
  if (!isFloatOfShape(getWeight().getType(), {d}) ||
      (getBias() && !isFloatOfShape(getBias().getType(), {d})))
    return emitOpError("C2: weight and bias must be [")
           << d << "] of a float type";
  if (!isFiniteAndNotNegative(getEps()))
    return emitOpError("C3: eps must be finite and not negative");
  return success();
}

SmallVector<utils::IteratorType> LayerNormOp::getLoopTypes() {
  return rowLoopTypes(tensorType(getX()));
}

SmallVector<AffineMap> LayerNormOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  SmallVector<AffineMap> maps = {rowMap(x), lastDimMap(x)};
  if (getBias())
    maps.push_back(lastDimMap(x));
  maps.push_back(rowMap(x));
  return maps;
}

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult SoftmaxOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!hasStaticFloatRows(x))
    return emitOpError("C1: x must have float elements and a static last "
                       "dimension, found ")
           << x;
  return success();
}

SmallVector<utils::IteratorType> SoftmaxOp::getLoopTypes() {
  return rowLoopTypes(tensorType(getX()));
}

SmallVector<AffineMap> SoftmaxOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  return {rowMap(x), rowMap(x)};
}

LogicalResult ActivationOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult ActivationOp::verify() {
  if (!isFloatTensor(getX().getType()))
    return emitOpError("C1: x must have float elements, found ")
           << getX().getType();
  return success();
}

SmallVector<utils::IteratorType> ActivationOp::getLoopTypes() {
  return SmallVector<utils::IteratorType>(tensorType(getX()).getRank(),
                                          parallel());
}

SmallVector<AffineMap> ActivationOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  return {rowMap(x), rowMap(x)};
}

OpFoldResult ActivationOp::fold(FoldAdaptor) {
  if (getKind() == ActivationKind::Identity)
    return getX();
  // relu is idempotent.
  if (auto producer = getX().getDefiningOp<ActivationOp>();
      producer && getKind() == ActivationKind::Relu &&
      producer.getKind() == ActivationKind::Relu)
    return producer.getResult();
  return {};
}

//===----------------------------------------------------------------------===//
// argmax, sample
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult inferTokens(std::optional<Location> loc, Value logits,
                                 SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(logits.getType());
  if (type.getRank() != 2)
    return cannotInfer<OpTy>(loc, "C1: logits must be [T, V]", type);
  types.push_back(getRowsOf(type, {}, IntegerType::get(type.getContext(), 32)));
  return success();
}

static LogicalResult verifyLogits(Operation *op, RankedTensorType type) {
  if (!hasStaticFloatRows(type))
    return op->emitOpError("C1: logits must be [T, V] of float elements, V "
                           "static, found ")
           << type;
  return success();
}

LogicalResult ArgmaxOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  return inferTokens<ArgmaxOp>(loc, adaptor.getLogits(), types);
}

LogicalResult ArgmaxOp::verify() {
  return verifyLogits(*this, tensorType(getLogits()));
}

SmallVector<utils::IteratorType> ArgmaxOp::getLoopTypes() {
  return {parallel()};
}

SmallVector<AffineMap> ArgmaxOp::getLoopMaps() {
  return {loopMap(getContext(), 1, {0, -1}), loopMap(getContext(), 1, {0})};
}

LogicalResult SampleOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  return inferTokens<SampleOp>(loc, adaptor.getLogits(), types);
}

LogicalResult SampleOp::verify() {
  RankedTensorType logits = tensorType(getLogits());
  if (failed(verifyLogits(*this, logits)))
    return failure();
  if (logits.getDimSize(1) > std::numeric_limits<int32_t>::max())
    return emitOpError("C1: logits must have fewer than 2^31 columns, found ")
           << logits;
  auto isVector = [](Value value, RankedTensorType rows, Type element) {
    RankedTensorType type = tensorType(value);
    return type.getRank() == 1 && haveSameRows(type, rows) &&
           type.getElementType() == element;
  };
  Builder b(getContext());
  Type f32 = b.getF32Type(), i32 = b.getI32Type(), i64 = b.getI64Type();
  using Named = std::tuple<StringRef, Value, Type>;
  auto verifyAll = [&](StringRef constraint, StringRef what,
                       RankedTensorType rows,
                       ArrayRef<Named> operands) -> LogicalResult {
    for (auto [name, value, element] : operands)
      if (!isVector(value, rows, element))
        return emitOpError(constraint)
               << ": " << name << " must be " << element << ", one for each "
               << what << ", found " << value.getType();
    return success();
  };
  if (failed(verifyAll("C2", "row of logits", logits,
                       {{"temperature", getTemperature(), f32},
                        {"top_k", getTopK(), i32},
                        {"top_p", getTopP(), f32},
                        {"min_p", getMinP(), f32},
                        {"seed", getSeed(), i64},
                        {"counter", getCounter(), i32}})))
    return failure();

  if (bool(getMasked()) != hasMask())
    return emitOpError("C6: masked and mask come together, none of them alone");
  if (hasMask()) {
    if (failed(verifyAll("C6", "row of logits", logits,
                         {{"masked", getMasked(), i32}})))
      return failure();
    RankedTensorType mask = tensorType(getMask());
    const int64_t words = llvm::divideCeil(logits.getDimSize(1), 32);
    if (mask.getRank() != 2 || mask.getDimSize(1) != words ||
        mask.getElementType() != i32)
      return emitOpError("C6: mask must be rows of ")
             << words << " i32, a bit for each column of logits, found "
             << mask;
  }

  Value adjusting[] = {getFirst(),    getCount(),    getIds(),
                       getSeen(),     getBias(),     getRepetition(),
                       getPresence(), getFrequency()};
  if (llvm::none_of(adjusting, [](Value value) { return value; }))
    return success();
  if (!llvm::all_of(adjusting, [](Value value) { return value; }))
    return emitOpError("C3: adjustments and penalties come together, none of "
                       "them alone");
  if (failed(verifyAll("C3", "row of logits", logits,
                       {{"first", getFirst(), i32},
                        {"count", getCount(), i32},
                        {"repetition", getRepetition(), f32},
                        {"presence", getPresence(), f32},
                        {"frequency", getFrequency(), f32}})))
    return failure();
  RankedTensorType ids = tensorType(getIds());
  if (ids.getRank() != 1)
    return emitOpError("C4: ids must be a rank 1 tensor of i32, found ") << ids;
  return verifyAll("C4", "id", ids,
                   {{"ids", getIds(), i32},
                    {"seen", getSeen(), i32},
                    {"bias", getBias(), f32}});
}

SmallVector<utils::IteratorType> SampleOp::getLoopTypes() {
  return {parallel()};
}

/// Rows are independent; each may read all of the lists of adjustments, and any
/// row of the mask.
SmallVector<AffineMap> SampleOp::getLoopMaps() {
  MLIRContext *c = getContext();
  AffineMap perRow = loopMap(c, 1, {0}), whole = loopMap(c, 1, {-1});
  SmallVector<AffineMap> maps = {loopMap(c, 1, {0, -1})};
  maps.append(6, perRow);
  if (hasAdjustments()) {
    maps.append({perRow, perRow, whole, whole, whole});
    maps.append(3, perRow);
  }
  if (hasMask())
    maps.append({perRow, loopMap(c, 1, {-1, -1})});
  maps.push_back(perRow); // the result
  return maps;
}

//===----------------------------------------------------------------------===//
// quantize, dequantize
//===----------------------------------------------------------------------===//

static LogicalResult verifyBlocks(Operation *op, RankedTensorType type,
                                  BlockFormat format) {
  int64_t block = getStorage(format).elements;
  if (type.getRank() < 1 || ShapedType::isDynamic(type.getShape().back()) ||
      type.getShape().back() % block != 0)
    return op->emitOpError("C2: last dimension of ")
           << type << " must be static and a multiple of " << block;
  return success();
}

LogicalResult QuantizeOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location>,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(RankedTensorType::get(
      x.getShape(), QuantType::get(context, adaptor.getFormat()), getSize(x)));
  return success();
}

LogicalResult QuantizeOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!x.getElementType().isF32())
    return emitOpError("C1: x must have f32 elements, found ") << x;
  return verifyBlocks(*this, x, getFormat());
}

SmallVector<utils::IteratorType> QuantizeOp::getLoopTypes() {
  return rowLoopTypes(tensorType(getX()));
}

SmallVector<AffineMap> QuantizeOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  return {rowMap(x), rowMap(x)};
}

LogicalResult QuantizeRowsOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  if (x.getRank() != 2 || x.isDynamicDim(1))
    return cannotInfer<QuantizeRowsOp>(loc, "C1: x must be [M, K], K static",
                                       x);
  int64_t group = adaptor.getGroup();
  if (group != 16 && group != 32)
    return emitOptionalError(loc, "'", getOperationName(),
                             "' op C2: group must be 16 or 32, found ", group);
  Builder b(context);
  int64_t k = x.getDimSize(1);
  types.push_back(getRowsOf(x, k, b.getI8Type()));
  types.push_back(getRowsOf(x, k / ::kf::PackedBlock::unit, b.getF32Type()));
  types.push_back(getRowsOf(x, k / group, b.getI32Type()));
  return success();
}

LogicalResult QuantizeRowsOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!isFloatTensor(x) || x.getDimSize(1) % ::kf::PackedBlock::unit != 0)
    return emitOpError("C1: x must be [M, K] of float elements, K a multiple "
                       "of 32, found ")
           << x;
  return success();
}

SmallVector<utils::IteratorType> QuantizeRowsOp::getLoopTypes() {
  return {parallel(), reduction()};
}

SmallVector<AffineMap> QuantizeRowsOp::getLoopMaps() {
  MLIRContext *c = getContext();
  return {loopMap(c, 2, {0, 1}), loopMap(c, 2, {0, 1}), loopMap(c, 2, {0, -1}),
          loopMap(c, 2, {0, -1})};
}

LogicalResult RoundHalfOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(x.clone(Float16Type::get(context)));
  types.push_back(x.clone(Float32Type::get(context)));
  return success();
}

LogicalResult RoundHalfOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!x.getElementType().isF32() || x.getRank() < 1)
    return emitOpError(
               "C1: x must have f32 elements and rank 1 or more, found ")
           << x;
  return success();
}

SmallVector<utils::IteratorType> RoundHalfOp::getLoopTypes() {
  return SmallVector<utils::IteratorType>(tensorType(getX()).getRank(),
                                          parallel());
}

SmallVector<AffineMap> RoundHalfOp::getLoopMaps() {
  return SmallVector<AffineMap>(3, rowMap(tensorType(getX())));
}

LogicalResult DequantizeOp::inferReturnTypes(MLIRContext *context,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  types.push_back(RankedTensorType::get(x.getShape(), Float32Type::get(context),
                                        getSize(x)));
  return success();
}

LogicalResult DequantizeOp::verify() {
  RankedTensorType x = tensorType(getX());
  auto quant = dyn_cast<QuantType>(x.getElementType());
  if (!quant)
    return emitOpError("C1: x must have !kf.quant elements, found ") << x;
  return verifyBlocks(*this, x, quant.getFormat());
}

SmallVector<utils::IteratorType> DequantizeOp::getLoopTypes() {
  return rowLoopTypes(tensorType(getX()));
}

SmallVector<AffineMap> DequantizeOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  return {rowMap(x), rowMap(x)};
}

//===----------------------------------------------------------------------===//
// dp4a, look_up
//===----------------------------------------------------------------------===//

LogicalResult Dp4aOp::verify() {
  int64_t lanes = getSum().getType().getNumElements();
  if (getA().getType().getNumElements() != 4 * lanes)
    return emitOpError("C1: a and b must have four times the lanes of sum, "
                       "found ")
           << getA().getType() << " for " << getSum().getType();
  uint32_t most = getMost();
  if (most < 1 || most > 255 || (getIsSigned() && most != 255))
    return emitOpError("C2: most must be from 1 to 255, and stay out with "
                       "signed, found ")
           << static_cast<int32_t>(most);
  return success();
}

LogicalResult LookUpOp::verify() {
  if (getTable().size() == 16)
    return success();
  return emitOpError("C1: table must have 16 entries, found ")
         << getTable().size();
}
