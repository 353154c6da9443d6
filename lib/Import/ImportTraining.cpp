//===- ImportTraining.cpp - The loss of a decoder as a kf module ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "OptimizerUpdate.h"

#include "kf/Dialect/KF/IR/Gradients.h"
#include "kf/Dialect/KF/IR/TensorBuilder.h"
#include "kf/Import/Import.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <map>

using namespace mlir;
using namespace mlir::kf;
using ::kf::LoraModule;
using ::kf::ModelConfig;
using ::kf::TrainedTensor;
using ::kf::TrainingPart;
using ::kf::TrainingShape;

namespace {

/// Writes the loss of a batch of B rows of T tokens. What is trained is an
/// argument, the rest a kf.weight.
class LossBuilder : Decoder {
public:
  LossBuilder(MLIRContext *context, const ModelConfig &config,
              const Checkpoint &checkpoint, const TrainingShape &shape,
              ArrayRef<TrainedTensor> trained, FloatType activation)
      : Decoder(context, config, checkpoint, activation, shape.tokens(),
                ::kf::nameOf(shape)),
        shape(shape), trained(trained) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    b.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs(
        ::kf::kTrainInputCount,
        RankedTensorType::get({shape.tokens()}, b.getI32Type()));
    if (shape.dropsOut())
      inputs.push_back(drawType());
    for (const TrainedTensor &tensor : trained)
      inputs.push_back(RankedTensorType::get(tensor.shape, b.getF32Type()));
    auto loss = RankedTensorType::get({}, b.getF32Type());
    auto func = func::FuncOp::create(b, loc, ::kf::nameOf(shape),
                                     b.getFunctionType(inputs, loss));
    func->setAttr("kf.max_tokens", b.getI64IntegerAttr(1));
    if (shape.part == TrainingPart::Gradient)
      for (size_t i = 0; i < trained.size(); ++i)
        func.setArgAttr(static_cast<unsigned>(shape.batchInputs() + i),
                        kGradientAttrName, b.getUnitAttr());
    b.setInsertionPointToStart(func.addEntryBlock());
    if (shape.dropsOut())
      draw = func.getArgument(::kf::kTrainDraw);
    setTrained(func.getArguments().drop_front(shape.batchInputs()));
    func::ReturnOp::create(b, loc, buildLoss(func.getArguments()));
    return module;
  }

private:
  /// An adapter's module, whose matrices are arguments.
  struct Adapter {
    LoraModule module;
    Value a, b; ///< [rank, in], [out, rank]
    Value draw; ///< [4] of i32, of its dropout; null: it has none
  };
  /// What an adapter adds to one of the model's matrices.
  struct AdaptedMatrix {
    size_t adapter = 0; ///< of `adapters`
    LoraModule::Part part;
  };

  void setTrained(ValueRange arguments) {
    if (!shape.lora) {
      for (auto [tensor, argument] : llvm::zip_equal(trained, arguments))
        weights[tensor.key] = argument;
      if (config.tiedEmbeddings)
        weights[std::string(names.head) + ".weight"] =
            weights.lookup(std::string(names.embedding) + ".weight");
      return;
    }
    auto modules = ::kf::findLoraModules(config, shape.lora->targets);
    assert(modules.ok() && "listTrained() has found them");
    for (LoraModule &module : *modules) {
      const size_t number = adapters.size();
      for (const LoraModule::Part &part : module.parts)
        adapted[part.key] = {number, part};
      adapters.push_back({std::move(module), arguments[2 * number],
                          arguments[2 * number + 1], draw});
      nextDraw();
    }
  }

  RankedTensorType drawType() {
    return RankedTensorType::get({static_cast<int64_t>(::kf::kDrawWords)},
                                 b.getI32Type());
  }

  /// Has what `value`'s op makes stay in memory for gradients, whatever is
  /// computed again for them.
  void keep(Value value) {
    if (Operation *op = value.getDefiningOp();
        op && shape.part == TrainingPart::Gradient)
      op->setAttr(kKeptAttrName, b.getUnitAttr());
  }

  void betweenLayers(Value x) override { keep(x); }

  /// Of the next module. It is a tensor in memory, so that modules do not
  /// differ in constants, and their kernels are the same.
  void nextDraw() {
    if (!draw)
      return;
    TensorBuilder build = tensors();
    Value step = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(drawType(), ArrayRef<int32_t>{0, 1, 0, 0}));
    draw = build.make<CopyOp>(build.make<arith::AddIOp>(draw, step));
    keep(draw); // what it is made of is that of all modules before
  }

  /// The sum of all labels' losses.
  Value buildLoss(ValueRange arguments) {
    examples = arguments[::kf::kTrainExamples];
    Value x =
        decode(arguments[::kf::kTrainIds], arguments[::kf::kTrainPositions]);
    setPlace("output");
    Value logits = logitsOf(norm(x, names.finalNorm));
    Value losses =
        CrossEntropyOp::create(b, loc, logits, arguments[::kf::kTrainLabels]);
    return tensors().reduce(ReduceKind::Sum, losses, {0}, /*keepDims=*/false);
  }

  TensorBuilder tensors() { return {b, loc}; }

  //===--- Weights --------------------------------------------------------===//

  Value weightOf(StringRef name) override {
    Value own = weights.lookup(name);
    return own ? own : Decoder::weightOf(name);
  }

  bool isProductAlone(const Twine &name) override {
    return !weights.empty() || adapted.contains((name + ".weight").str()) ||
           Decoder::isProductAlone(name);
  }

  /// Rows of less than f32 are multiplied by weights that are rounded to as
  /// much; adapters are of f32, and so are the rows that they read.
  Value linear(Value x, const Twine &name) override {
    const std::string key = (name + ".weight").str();
    TensorBuilder build = tensors();
    if (Value own = weights.lookup(key)) {
      Type element = TensorBuilder::typeOf(x).getElementType();
      return MatmulOp::create(b, loc, x, build.narrow(own, element), bias(name),
                              ActivationKindAttr(), Value());
    }
    Value product = Decoder::linear(x, name);
    const auto found = adapted.find(key);
    if (found == adapted.end())
      return product;
    const Adapter &adapter = adapters[found->second.adapter];
    Value rows = widened(x);
    if (adapter.draw)
      rows = build.make<DropoutOp>(
          rows, adapter.draw,
          b.getF32FloatAttr(static_cast<float>(shape.lora->dropout)));
    Value narrow = MatmulOp::create(b, loc, rows, adapter.a, Value(),
                                    ActivationKindAttr(), Value());
    Value added =
        MatmulOp::create(b, loc, narrow, rowsFor(adapter, found->second.part),
                         Value(), ActivationKindAttr(), Value());
    Value sum = build.add(widened(product), scaled(added, shape.lora->scale()));
    return build.narrow(sum, TensorBuilder::typeOf(product).getElementType());
  }

  /// The rows of B that are a part's, in its order.
  Value rowsFor(const Adapter &adapter, const LoraModule::Part &part) {
    TensorBuilder build = tensors();
    const int64_t rank = shape.lora->rank;
    Value rows = adapter.b;
    if (part.rows != adapter.module.out)
      rows = build.slice(rows, 0, part.firstRow, part.rows);
    if (part.pairedRows == 0)
      return rows;
    const int64_t heads = part.rows / part.pairedRows,
                  half = part.pairedRows / 2;
    SmallVector<ReassociationIndices> groups = {{0, 1, 2}, {3}};
    rows = build.reshape(rows, {heads, 2, half, rank}, groups);
    rows = build.make<TransposeOp>(rows, ArrayRef<int64_t>{0, 2, 1, 3});
    return build.reshape(rows, {part.rows, rank}, groups);
  }

  //===--- Attention within a row of the batch ----------------------------===//

  void append(Value k, Value v, int64_t layer) override {
    keysValues[layer] = {perHead(k), perHead(v)};
  }

  Value attend(Value q, Value, int64_t layer) override {
    const ::kf::LayerConfig own = config.layer(layer);
    const auto &[k, v] = keysValues[own.keysOf.value_or(layer)];
    const bool hasWindow = own.window && !own.chunked;
    Value attended = ScaledDotProductAttentionOp::create(
        b, loc, perHead(q), k, v, visible(own),
        attentionScale(own, own.headDim),
        config.attentionCap
            ? b.getF32FloatAttr(static_cast<float>(config.attentionCap))
            : FloatAttr(),
        b.getUnitAttr(), b.getI64IntegerAttr(0),
        hasWindow ? b.getI64IntegerAttr(own.window) : IntegerAttr());
    TensorBuilder build = tensors();
    attended = build.make<TransposeOp>(attended, ArrayRef<int64_t>{0, 2, 1, 3});
    return build.reshape(attended, {shape.tokens(), config.heads, own.headDim},
                         rowGroups());
  }

  Value attendToState(Value, const std::string &, int64_t) override {
    llvm_unreachable("checkTrains() refuses layers with states");
  }

  static SmallVector<ReassociationIndices> rowGroups() {
    return {{0, 1}, {2}, {3}};
  }

  /// [B * T, heads, dim] -> [B, heads, T, dim].
  Value perHead(Value x) {
    TensorBuilder build = tensors();
    RankedTensorType type = TensorBuilder::typeOf(x);
    Value apart = build.reshape(
        x, {shape.rows, shape.length, type.getDimSize(1), type.getDimSize(2)},
        rowGroups());
    return build.make<TransposeOp>(apart, ArrayRef<int64_t>{0, 2, 1, 3});
  }

  /// Whether a token may see another, but for what comes behind it and what is
  /// not in its window: i1 [B, 1, T, T]. Examples in one row do not see one
  /// another, and chunks do not.
  Value visible(const ::kf::LayerConfig &layer) {
    const int64_t chunk = layer.chunked ? layer.window : 0;
    Value &known = masks[chunk];
    if (known)
      return known;
    TensorBuilder build = tensors();
    const auto pairs = RankedTensorType::get(
        {shape.rows, 1, shape.length, shape.length}, b.getI32Type());
    auto areEqual = [&](Value of) -> Value {
      auto spread = [&](ArrayRef<int64_t> shape,
                        ArrayRef<ReassociationIndices> groups) {
        return build.broadcast(build.reshape(of, shape, groups), pairs);
      };
      const int64_t rows = shape.rows, length = shape.length;
      SmallVector<ReassociationIndices> groups = {{0, 1, 2, 3}};
      return build.make<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                       spread({rows, 1, length, 1}, groups),
                                       spread({rows, 1, 1, length}, groups));
    };
    known = areEqual(examples);
    if (chunk)
      known = build.make<arith::AndIOp>(
          known, areEqual(build.make<arith::DivSIOp>(
                     positions, build.constant(TensorBuilder::typeOf(positions),
                                               static_cast<double>(chunk)))));
    return known;
  }

  const TrainingShape &shape;
  ArrayRef<TrainedTensor> trained;
  llvm::StringMap<Value> weights; ///< by key, where all are trained
  std::vector<Adapter> adapters;
  std::map<std::string, AdaptedMatrix> adapted;          ///< by key
  std::map<int64_t, std::pair<Value, Value>> keysValues; ///< by layer
  std::map<int64_t, Value> masks;                        ///< by chunk
  Value examples;                                        ///< [B * T] of i32
  Value draw; ///< [4] of i32, of the next module; null without dropout
};

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::kf::importTraining(MLIRContext &context, const ModelConfig &config,
                         const ::kf::WeightSource &source,
                         const TrainingShape &shape,
                         ::kf::DataType activationType) {
  context.loadDialect<KFDialect, arith::ArithDialect, func::FuncDialect,
                      math::MathDialect, tensor::TensorDialect>();
  auto fail = [](const ::kf::Status &status) {
    return llvm::createStringError(status.message());
  };
  if (::kf::Status status = ::kf::checkTrains(config); !status.ok())
    return fail(status);
  auto trained = ::kf::listTrained(config, shape);
  if (!trained.ok())
    return fail(trained.status());
  if (shape.part == TrainingPart::Update)
    return buildUpdate(context, shape, *trained);
  if (shape.rows < 1 || shape.length < 1 || shape.length > config.maxPositions)
    return llvm::createStringError(
        "a batch of " + std::to_string(shape.rows) + " rows of " +
        std::to_string(shape.length) +
        " tokens is not possible; a row or more, of 1 to " +
        std::to_string(config.maxPositions) + ", the model's positions, are");
  auto activation =
      dyn_cast_if_present<FloatType>(getElementType(&context, activationType));
  if (!activation)
    return llvm::createStringError("activations of " +
                                   std::string(::kf::nameOf(activationType)) +
                                   " are not supported; f32, f16 and bf16 are");
  llvm::Expected<Checkpoint> checkpoint =
      Checkpoint::read(context, config, source);
  if (!checkpoint)
    return checkpoint.takeError();
  return LossBuilder(&context, config, *checkpoint, shape, *trained, activation)
      .build();
}
