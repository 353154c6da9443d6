//===- ImportStep.cpp - One step of a decoder as a kf module --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"
#include "ExpertBlock.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Import/Import.h"

#include "runtime/model/RopeFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::ModelConfig;

namespace {

ActivationKind activationKind(::kf::Activation activation) {
  switch (activation) {
  case ::kf::Activation::Silu:
    return ActivationKind::Silu;
  case ::kf::Activation::Gelu:
    return ActivationKind::Gelu;
  case ::kf::Activation::GeluTanh:
    return ActivationKind::GeluTanh;
  case ::kf::Activation::Relu:
    return ActivationKind::Relu;
  }
  llvm_unreachable("unknown activation");
}

RopeScalingAttr scalingAttr(MLIRContext *context,
                            const ::kf::RopeConfig &rope) {
  using Scaling = ::kf::RopeConfig::Scaling;
  if (rope.scaling == Scaling::Linear)
    return RopeScalingAttr::get(context, RopeScalingKind::Linear,
                                APFloat(rope.factor), APFloat(0.0),
                                APFloat(0.0), 0);
  if (rope.scaling == Scaling::Llama3)
    return RopeScalingAttr::get(
        context, RopeScalingKind::Llama3, APFloat(rope.factor),
        APFloat(rope.lowFreqFactor), APFloat(rope.highFreqFactor),
        rope.originalContext);
  return {}; // the others are factors
}

/// Writes the ops of a part of a step in the order in which they run. T is the
/// number of rows, L of those that are wanted, D the hidden size.
class StepBuilder {
public:
  StepBuilder(MLIRContext *context, const ModelConfig &config,
              const Checkpoint &checkpoint, const ImportOptions &options,
              Type cacheElement, FloatType activation)
      : config(config), names(::kf::tensorNames(config)),
        checkpoint(checkpoint), options(options), b(context),
        name(::kf::nameOf(options.shape)),
        signature(::kf::stepSignature(options.shape, config)),
        loc(NameLoc::get(b.getStringAttr(name))), activation(activation),
        cacheType(KVCacheType::get(context, config.layers, config.kvHeads,
                                   config.headDim, cacheElement,
                                   options.keyBlock, ::kf::kCachePage)) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    if (config.ranks > 1)
      (*module)->setAttr(kRanksAttrName, b.getI64IntegerAttr(config.ranks));
    b.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs = typesOf(signature.inputs);
    if (options.shape.part == ::kf::StepPart::Body)
      inputs.push_back(cacheType);
    auto func = func::FuncOp::create(
        b, loc, name, b.getFunctionType(inputs, typesOf(signature.outputs)));
    func->setAttr("kf.max_tokens", b.getI64IntegerAttr(options.shape.rows));
    SmallVector<Attribute> ranges;
    for (const ::kf::SizeRange &range : signature.sizes)
      ranges.push_back(SizeRangeAttr::get(b.getContext(),
                                          b.getStringAttr(range.name),
                                          range.least, range.most));
    if (!ranges.empty())
      func->setAttr(kSizeRangesAttrName, b.getArrayAttr(ranges));
    b.setInsertionPointToStart(func.addEntryBlock());
    func::ReturnOp::create(b, loc, buildPart(func.getArguments()));
    return module;
  }

private:
  Value buildPart(ValueRange arguments) {
    switch (options.shape.part) {
    case ::kf::StepPart::Body:
      return buildBody(arguments);
    case ::kf::StepPart::Head:
      return buildHead(arguments);
    case ::kf::StepPart::Choose:
      return buildChoice(arguments);
    case ::kf::StepPart::Embed:
      return buildEmbedding(arguments);
    }
    llvm_unreachable("unknown part");
  }

  /// Ids -> hidden rows [T, D] of f32.
  Value buildBody(ValueRange arguments) {
    setRows(arguments[::kf::kStepIds]);
    positions = arguments[::kf::kStepPositions];
    sequences = arguments[::kf::kStepSequences];
    pageTable = arguments[::kf::kStepPageTable];
    cache = arguments.back();
    Value x = embed(arguments[::kf::kStepIds]);
    for (int64_t i = 0; i < config.layers; ++i)
      x = decoderLayer(x, i);
    if (activation.isF32())
      return x;
    loc = NameLoc::get(b.getStringAttr("output"));
    return arith::ExtFOp::create(b, loc, typesOf(signature.outputs).front(), x);
  }

  /// Hidden rows [T, D] -> logits [L, V].
  Value buildHead(ValueRange arguments) {
    Value logits = linear(buildEmbedding(arguments), names.head);
    return gathered(capped(scaled(logits, config.logitScale), config.logitCap),
                    config.vocabSize);
  }

  /// Hidden rows [T, D] -> [L, D], of those that are wanted.
  Value buildEmbedding(ValueRange arguments) {
    loc = NameLoc::get(b.getStringAttr("output"));
    Value x = EmbeddingOp::create(b, loc,
                                  arguments[::kf::numberOf(::kf::kStepWanted)],
                                  arguments[::kf::numberOf(::kf::kStepHidden)]);
    return norm(x, names.finalNorm);
  }

  /// Logits [L, V] -> [L]. The inputs are the op's operands, in their order.
  Value buildChoice(ValueRange arguments) {
    SampleOp::Properties properties;
    properties.operandSegmentSizes.fill(1);
    return SampleOp::create(b, loc, typesOf(signature.outputs), arguments,
                            properties)
        .getResult();
  }

  //===--- The model ------------------------------------------------------===//

  /// ids [T] -> [T, D].
  Value embed(Value ids) {
    Value x = EmbeddingOp::create(b, loc, ids, weight(names.embedding));
    if (!names.positions.empty()) {
      Value learned =
          EmbeddingOp::create(b, loc, positions, weight(names.positions));
      x = arith::AddFOp::create(b, loc, x, learned);
    }
    x = scaled(x, config.embeddingScale);
    if (activation.isF32())
      return x;
    return arith::TruncFOp::create(b, loc, rowsOf(config.hiddenSize), x);
  }

  /// [T, D] -> [T, D].
  Value decoderLayer(Value x, int64_t i) {
    const std::string layer = (Twine(names.layer) + "." + Twine(i)).str();
    loc = NameLoc::get(b.getStringAttr(layer));
    const std::string at = layer + ".";
    Value input = inputNorm(x, at, names.attentionNorm);
    Value attended =
        outputNorm(attention(input, at, i), at, names.attentionOutputNorm);
    x = arith::AddFOp::create(b, loc, x,
                              scaled(attended, config.residualScale));
    if (!config.parallelBlocks)
      input = inputNorm(x, at, names.mlpNorm);
    Value fed = outputNorm(feedForward(input, at, i), at, names.mlpOutputNorm);
    return arith::AddFOp::create(b, loc, x, scaled(fed, config.residualScale));
  }

  /// The norm in front of a block, if there is one.
  Value inputNorm(Value x, const std::string &at, std::string_view name) {
    if (config.normPlaces == ::kf::NormPlaces::Outputs)
      return x;
    return norm(x, at + std::string(name));
  }

  /// The norm behind a block, if there is one.
  Value outputNorm(Value x, const std::string &at, std::string_view name) {
    if (config.normPlaces == ::kf::NormPlaces::Inputs)
      return x;
    return norm(x, at + std::string(name));
  }

  /// [T, D] -> [T, D]; `at` begins the layer's names.
  Value attention(Value x, const std::string &at, int64_t layer) {
    auto [q, k, v] = queriesKeysValues(x, at);
    if (config.qkNorm == ::kf::QkNorm::Width) {
      q = widthNorm(q, at + std::string(names.queryNorm));
      k = widthNorm(k, at + std::string(names.keyNorm));
    }
    q = toHeads(q, config.heads);   // [T, heads, head dim]
    k = toHeads(k, config.kvHeads); // [T, kv heads, head dim]
    v = toHeads(v, config.kvHeads);
    if (config.qkNorm == ::kf::QkNorm::Heads) {
      q = rmsNorm(q, at + std::string(names.queryNorm));
      k = rmsNorm(k, at + std::string(names.keyNorm));
    }
    const ::kf::LayerConfig &own = config.layerConfigs[layer];
    if (own.rope) {
      q = rope(q, *own.rope);
      k = rope(k, *own.rope);
    }
    KVAppendOp::create(b, loc, cache, k, v, positions, sequences, pageTable,
                       /*kv_head=*/Value(), b.getI64IntegerAttr(layer));
    Value sinks;
    if (config.attentionSinks)
      sinks = weightOf(at + std::string(names.sinks));
    Value attended = AttentionOp::create(
        b, loc, q, cache, positions, sequences, pageTable, sinks,
        /*kv_head=*/Value(), b.getI64IntegerAttr(layer), attentionScale(own),
        own.window ? b.getI64IntegerAttr(own.window) : IntegerAttr(),
        config.attentionCap
            ? b.getF32FloatAttr(static_cast<float>(config.attentionCap))
            : FloatAttr());
    Value row = fromHeads(attended);
    const std::string output = at + std::string(names.output);
    if (!config.outputByRows)
      return summed(linear(row, output));
    row = gathered(row, config.ranks * config.heads * config.headDim);
    return gathered(linear(row, output), config.hiddenSize);
  }

  struct QueriesKeysValues {
    Value q, k, v; // [T, heads * head dim], [T, kv heads * head dim] twice
  };
  QueriesKeysValues queriesKeysValues(Value x, const std::string &at) {
    if (names.fusedQkv.empty())
      return {linear(x, at + std::string(names.query)),
              linear(x, at + std::string(names.key)),
              linear(x, at + std::string(names.value))};
    const int64_t queries = config.heads * config.headDim;
    const int64_t keys = config.kvHeads * config.headDim;
    Value fused = linear(x, at + std::string(names.fusedQkv));
    return {columns(fused, 0, queries), columns(fused, queries, keys),
            columns(fused, queries + keys, keys)};
  }

  /// [T, D] -> [T, D].
  Value feedForward(Value x, const std::string &at, int64_t layer) {
    return config.hasExperts(layer)
               ? experts(x, at)
               : mlp(x, at, {names.gate, names.up, names.down});
  }

  /// What the names of a block's matrices end with.
  struct BlockNames {
    std::string_view gate, up, down;
  };

  /// [T, D] -> [T, D].
  Value mlp(Value x, const std::string &at, const BlockNames &block) {
    if (llvm::any_of(ArrayRef{block.gate, block.up, block.down},
                     [&](std::string_view part) {
                       return hasScales(at + std::string(part));
                     }))
      return scaledMlp(x, at, block);
    Value gate, gateBias;
    if (config.gatedMlp) {
      gate = weight(at + std::string(block.gate));
      gateBias = bias(at + std::string(block.gate));
    }
    Value up = weight(at + std::string(block.up)),
          upBias = bias(at + std::string(block.up));
    Value down = weight(at + std::string(block.down)),
          downBias = bias(at + std::string(block.down));
    return summed(MlpOp::create(b, loc, x, gate, up, down, gateBias, upBias,
                                downBias, activationAttr()));
  }

  /// The same in products, which weights with scales need.
  Value scaledMlp(Value x, const std::string &at, const BlockNames &block) {
    Value inner = linear(x, at + std::string(block.up));
    if (config.gatedMlp) {
      Value gate = linear(x, at + std::string(block.gate));
      inner = arith::MulFOp::create(
          b, loc, ActivationOp::create(b, loc, gate, activationAttr()), inner);
    } else {
      inner = ActivationOp::create(b, loc, inner, activationAttr());
    }
    return summed(linear(inner, at + std::string(block.down)));
  }

  ActivationKindAttr activationAttr() {
    return ActivationKindAttr::get(b.getContext(),
                                   activationKind(config.activation));
  }

  /// [T, D] -> [T, D]: results are added up in f32, and rounded once.
  Value experts(Value x, const std::string &at) {
    ExpertBlock block(b, loc, config.experts, activationAttr());
    const ExpertWeights weights = expertWeights(at);
    Value sum =
        block.route(x, linear(x, at + std::string(names.router)), weights);
    if (config.experts.sharedWidth) {
      Value shared =
          mlp(x, at, {names.sharedGate, names.sharedUp, names.sharedDown});
      shared = config.experts.sharedGate
                   ? block.gate(shared,
                                linear(x, at + std::string(names.sharedRouter)))
                   : block.widen(shared);
      sum = arith::AddFOp::create(b, loc, sum, shared);
    }
    return activation.isF32() ? sum
                              : arith::TruncFOp::create(
                                    b, loc, rowsOf(config.hiddenSize), sum);
  }

  ExpertWeights expertWeights(const std::string &at) {
    auto typeOf = [&](std::string_view part) {
      return checkpoint.find(at + names.ofExpert(part, 0) + ".weight")->type;
    };
    ExpertWeights weights;
    // A weight and its bias.
    auto add = [&](ArrayRef<std::string_view> parts, Value &weight,
                   Value &bias) {
      weight = stacked(at, parts, ".weight");
      if (config.experts.bias)
        bias = stacked(at, parts, ".bias");
    };
    if (typeOf(names.expertGate) == typeOf(names.expertUp)) {
      add({names.expertGate, names.expertUp}, weights.gateUp,
          weights.gateUpBias);
    } else {
      add({names.expertGate}, weights.gate, weights.gateBias);
      add({names.expertUp}, weights.up, weights.upBias);
    }
    add({names.expertDown}, weights.down, weights.downBias);
    return weights;
  }

  /// The kf.weight [parts, E, rows, columns] of matrices of all experts, or
  /// [parts, E, rows] of their biases.
  Value stacked(const std::string &at, ArrayRef<std::string_view> parts,
                std::string_view suffix) {
    SmallVector<Attribute> all;
    RankedTensorType one;
    for (std::string_view part : parts)
      for (int64_t i = 0; i < config.experts.count; ++i) {
        const Checkpoint::Tensor *tensor =
            checkpoint.find(at + names.ofExpert(part, i) + std::string(suffix));
        assert(tensor && "the checkpoint's check covers every weight");
        all.push_back(b.getStringAttr(tensor->name));
        one = tensor->type;
      }
    SmallVector<int64_t> shape = {static_cast<int64_t>(parts.size()),
                                  config.experts.count};
    llvm::append_range(shape, one.getShape());
    auto type = RankedTensorType::get(shape, one.getElementType());
    return WeightOp::create(b, loc, type, b.getArrayAttr(all), b.getUnitAttr(),
                            /*transposed=*/UnitAttr());
  }

  //===--- Ranks ----------------------------------------------------------===//

  /// The sum of what all ranks have.
  Value summed(Value x) {
    if (config.ranks == 1)
      return x;
    return AllReduceOp::create(b, loc, x, DenseI64ArrayAttr());
  }

  /// The columns of all ranks, `columns` in all.
  Value gathered(Value x, int64_t columns) {
    if (config.ranks == 1)
      return x;
    auto rows = cast<RankedTensorType>(x.getType());
    return AllGatherOp::create(
        b, loc, getRowsOf(rows, {columns}, rows.getElementType()), x,
        DenseI64ArrayAttr());
  }

  /// The norm of rows of which each rank has some elements, as many as others,
  /// and has those of the weight: x / sqrt(mean(x * x) + eps) * weight, whose
  /// mean is that of the ranks' means. Squares are summed in f32.
  Value widthNorm(Value x, const Twine &name) {
    if (config.ranks == 1)
      return rmsNorm(x, name);
    assert(!config.zeroCenteredNorms && "no model has both");
    auto type = cast<RankedTensorType>(x.getType());
    RankedTensorType wide = type.clone(b.getF32Type());
    auto widened = [&](Value value) -> Value {
      auto narrow = cast<RankedTensorType>(value.getType());
      if (narrow.getElementType().isF32())
        return value;
      return arith::ExtFOp::create(b, loc, narrow.clone(b.getF32Type()), value);
    };
    x = widened(x);
    Value squares = arith::MulFOp::create(b, loc, x, x);
    Value mean = ReduceOp::create(b, loc, squares, ReduceKind::Mean,
                                  ArrayRef<int64_t>{1}, /*keep_dims=*/true);
    mean = scaled(summed(mean), 1.0 / static_cast<double>(config.ranks));
    auto meanType = cast<RankedTensorType>(mean.getType());
    Value epsilon = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get({1, 1}, b.getF32Type()),
                               static_cast<float>(config.normEps)));
    Value factor = math::RsqrtOp::create(
        b, loc,
        arith::AddFOp::create(b, loc, mean,
                              BroadcastOp::create(b, loc, meanType, epsilon)));
    x = arith::MulFOp::create(b, loc, x,
                              BroadcastOp::create(b, loc, wide, factor));
    x = arith::MulFOp::create(
        b, loc, x, BroadcastOp::create(b, loc, wide, widened(weight(name))));
    return type == wide ? x : arith::TruncFOp::create(b, loc, type, x);
  }

  //===--- Single ops -----------------------------------------------------===//

  Value norm(Value x, const Twine &name) {
    if (config.norm == ::kf::Norm::Rms)
      return rmsNorm(x, name);
    Value scale = weight(name), shift = bias(name);
    return LayerNormOp::create(b, loc, x, scale, shift, eps());
  }

  Value rmsNorm(Value x, const Twine &name) {
    return RmsNormOp::create(b, loc, x, weight(name), eps(),
                             config.zeroCenteredNorms ? b.getUnitAttr()
                                                      : UnitAttr());
  }

  FloatAttr eps() {
    return b.getF32FloatAttr(static_cast<float>(config.normEps));
  }

  Value linear(Value x, const Twine &name) {
    Value w = weight(name), shift = bias(name);
    return MatmulOp::create(b, loc, x, w, shift, ActivationKindAttr(),
                            scales(name));
  }

  Value rope(Value x, const ::kf::RopeConfig &rope) {
    RopeStyle style =
        rope.interleaved ? RopeStyle::Interleaved : RopeStyle::Half;
    Value factors;
    if (rope.frequencyFactors)
      factors = weight(names.ropeFactors);
    else if (auto table = ::kf::ropeFactors(rope); !table.empty())
      factors = constant(table);
    FloatAttr magnitude;
    if (rope.magnitude != 1 && !isWhole(rope))
      magnitude = b.getF64FloatAttr(rope.magnitude);
    return RopeOp::create(b, loc, x, positions, factors,
                          b.getF64FloatAttr(rope.theta),
                          b.getI64IntegerAttr(rope.dim),
                          RopeStyleAttr::get(b.getContext(), style),
                          scalingAttr(b.getContext(), rope), magnitude);
  }

  /// Whether all elements of heads are turned.
  bool isWhole(const ::kf::RopeConfig &rope) const {
    return rope.dim == config.headDim;
  }

  /// The factor of q k^T. Queries and keys that are turned as a whole, by
  /// cosines and sines of some magnitude, are those of 1 times that.
  FloatAttr attentionScale(const ::kf::LayerConfig &layer) {
    const double magnitude =
        layer.rope && isWhole(*layer.rope) ? layer.rope->magnitude : 1;
    return b.getF32FloatAttr(
        static_cast<float>(config.attentionScale * magnitude * magnitude));
  }

  /// `factor` times x [rows, columns]: f32 multiplies, and the product alone is
  /// rounded to what x has.
  Value scaled(Value x, double factor) {
    if (factor == 1)
      return x;
    auto type = cast<RankedTensorType>(x.getType());
    RankedTensorType wide = type.clone(b.getF32Type());
    auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
    Value one = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(scalar, static_cast<float>(factor)));
    if (type != wide)
      x = arith::ExtFOp::create(b, loc, wide, x);
    Value product = arith::MulFOp::create(
        b, loc, x, BroadcastOp::create(b, loc, wide, one));
    return type == wide ? product
                        : arith::TruncFOp::create(b, loc, type, product);
  }

  /// cap * tanh(x / cap) of x [rows, columns]; x where cap is 0.
  Value capped(Value x, double cap) {
    if (cap == 0)
      return x;
    return scaled(math::TanhOp::create(b, loc, scaled(x, 1 / cap)), cap);
  }

  /// [values] of f32.
  Value constant(ArrayRef<float> values) {
    auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                      b.getF32Type());
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, values));
  }

  /// The kf.weight of "<name>.weight".
  Value weight(const Twine &name) {
    Value value = weightOf((name + ".weight").str());
    assert(value && "the checkpoint's check covers every weight");
    return value;
  }

  /// The kf.weight of "<name>.bias"; null where the model has none.
  Value bias(const Twine &name) { return weightOf((name + ".bias").str()); }

  /// Whether "<name>.weight" is in 8 bits.
  bool hasScales(const Twine &name) {
    const Checkpoint::Tensor *tensor =
        checkpoint.find((name + ".weight").str());
    return tensor && !tensor->scales.empty();
  }

  /// The factors of the rows of "<name>.weight"; null where it has none.
  Value scales(const Twine &name) {
    if (!hasScales(name))
      return {};
    const Checkpoint::Tensor *tensor =
        checkpoint.find((name + ".weight").str());
    auto type =
        RankedTensorType::get({tensor->type.getDimSize(0)}, b.getF32Type());
    return WeightOp::create(b, loc, type,
                            b.getStrArrayAttr({StringRef(tensor->scales)}),
                            /*stacked=*/UnitAttr(), /*transposed=*/UnitAttr());
  }

  Value weightOf(StringRef name) {
    const Checkpoint::Tensor *tensor = checkpoint.find(name);
    if (!tensor)
      return {};
    UnitAttr transposed = tensor->transposed ? b.getUnitAttr() : UnitAttr();
    return WeightOp::create(b, loc, tensor->type,
                            b.getStrArrayAttr({StringRef(tensor->name)}),
                            /*stacked=*/UnitAttr(), transposed);
  }

  //===--- Shapes ---------------------------------------------------------===//

  int64_t rowCount() const {
    return options.shape.rows == 1 ? 1 : ShapedType::kDynamic;
  }

  /// The types of tensors that the step takes or gives.
  SmallVector<Type> typesOf(ArrayRef<::kf::TensorSpec> specs) {
    SmallVector<Type> types;
    for (const ::kf::TensorSpec &spec : specs)
      types.push_back(typeOf(spec));
    return types;
  }

  /// The first dimension alone may be a size of the step.
  Type typeOf(const ::kf::TensorSpec &spec) {
    SmallVector<int64_t> shape(spec.shape.begin(), spec.shape.end());
    Attribute size;
    if (::kf::isSizeExtent(shape.front())) {
      const int64_t named =
          ::kf::slotOfExtent(shape.front()) - KF_SCALAR_NAMED_SIZES;
      if (named >= 0)
        size = SizeAttr::get(b.getContext(),
                             b.getStringAttr(signature.sizes[named].name));
      shape.front() = ShapedType::kDynamic;
    }
    Type element = getElementType(b.getContext(), spec.type);
    if (!element) // i32 and i64
      element = b.getIntegerType(8 * ::kf::sizeOf(spec.type));
    return RankedTensorType::get(shape, element, size);
  }

  RankedTensorType rowsOf(int64_t size) {
    return RankedTensorType::get({rowCount(), size}, activation);
  }

  /// Makes T available as `rows`, from an argument that has T rows.
  void setRows(Value argument) {
    rows = tensor::getMixedSize(b, loc, argument, 0);
  }

  /// [T, heads * head dim] -> [T, heads, head dim].
  Value toHeads(Value x, int64_t heads) {
    auto type =
        RankedTensorType::get({rowCount(), heads, config.headDim}, activation);
    SmallVector<OpFoldResult> shape = {rows, b.getIndexAttr(heads),
                                       b.getIndexAttr(config.headDim)};
    return tensor::ExpandShapeOp::create(b, loc, type, x, headGroups(), shape);
  }

  /// [T, heads, head dim] -> [T, heads * head dim].
  Value fromHeads(Value x) {
    return tensor::CollapseShapeOp::create(
        b, loc, rowsOf(config.heads * config.headDim), x, headGroups());
  }

  static SmallVector<ReassociationIndices> headGroups() {
    return {{0}, {1, 2}};
  }

  /// Columns [first, first + count) of x.
  Value columns(Value x, int64_t first, int64_t count) {
    SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0),
                                         b.getIndexAttr(first)};
    SmallVector<OpFoldResult> sizes = {rows, b.getIndexAttr(count)};
    SmallVector<OpFoldResult> strides(2, b.getIndexAttr(1));
    return tensor::ExtractSliceOp::create(b, loc, rowsOf(count), x, offsets,
                                          sizes, strides);
  }

  const ModelConfig &config;
  const ::kf::TensorNames &names;
  const Checkpoint &checkpoint;
  const ImportOptions &options;
  OpBuilder b;
  std::string name; ///< of the step
  ::kf::StepSignature signature;
  Location loc;         ///< says which part of the model an op belongs to
  FloatType activation; ///< elements of what the layers hand on
  KVCacheType cacheType;
  OpFoldResult rows;          ///< T
  Value positions, sequences; ///< [T] of i32
  Value pageTable;            ///< [S, P] of i32
  Value cache;
};

llvm::Error checkOptions(const ImportOptions &options,
                         const ModelConfig &config) {
  const int64_t rows = options.shape.rows, most = ::kf::mostStepRows(config);
  if (rows < 1 || rows > most)
    return llvm::createStringError("a step of " + std::to_string(rows) +
                                   " rows is not possible; 1 to " +
                                   std::to_string(most) + " are");
  if (options.keyBlock < 1 || ::kf::kCachePage % options.keyBlock != 0)
    return llvm::createStringError(
        "a key block of " + std::to_string(options.keyBlock) +
        " positions is not possible; one that divides a page of " +
        std::to_string(::kf::kCachePage) + " is");
  return llvm::Error::success();
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::kf::importStep(MLIRContext &context, const ModelConfig &config,
                     const ::kf::WeightSource &source,
                     const ImportOptions &options) {
  context.loadDialect<KFDialect, arith::ArithDialect, func::FuncDialect,
                      math::MathDialect, tensor::TensorDialect>();
  if (llvm::Error error = checkOptions(options, config))
    return std::move(error);
  Type cacheElement = getElementType(&context, options.cacheType);
  const std::string cacheName(::kf::nameOf(options.cacheType));
  if (!isa_and_present<FloatType>(cacheElement) &&
      options.cacheType != ::kf::DataType::Q8_0)
    return llvm::createStringError(
        "a cache of " + cacheName +
        " is not supported; f32, f16, bf16 and q8_0 are");
  auto activation = dyn_cast_if_present<FloatType>(
      getElementType(&context, options.activationType));
  if (!activation)
    return llvm::createStringError(
        "activations of " + std::string(::kf::nameOf(options.activationType)) +
        " are not supported; f32, f16 and bf16 are");
  const int64_t block = ::kf::elementsPerBlock(options.cacheType);
  if (config.headDim % block != 0)
    return llvm::createStringError(
        "a cache of " + cacheName + " needs heads of a multiple of " +
        std::to_string(block) + " elements, and the model's have " +
        std::to_string(config.headDim) + "; use f32, f16 or bf16");
  llvm::Expected<Checkpoint> checkpoint =
      Checkpoint::read(context, config, source);
  if (!checkpoint)
    return checkpoint.takeError();
  return StepBuilder(&context, config, *checkpoint, options, cacheElement,
                     activation)
      .build();
}
