//===- ImportStep.cpp - One step of a decoder as a kf module --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint.h"
#include "ExpertBlock.h"
#include "LatentAttention.h"
#include "LinearAttention.h"
#include "ModelOps.h"
#include "StreamOps.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Import/Import.h"

#include "runtime/model/LayerCaches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

#include <cmath>
#include <numbers>
#include <optional>

using namespace mlir;
using namespace mlir::kf;
using ::kf::ModelConfig;

namespace {

/// Writes the ops of a part of a step in the order in which they run. T is the
/// number of rows, L of those that are wanted, D the hidden size.
class StepBuilder : ModelOps {
public:
  StepBuilder(MLIRContext *context, const ModelConfig &config,
              const Checkpoint &checkpoint, const ImportOptions &options,
              Type cacheElement, FloatType activation)
      : ModelOps(context, config, checkpoint, activation,
                 options.shape.rows == 1 ? 1 : ShapedType::kDynamic,
                 ::kf::nameOf(options.shape)),
        options(options), signature(::kf::stepSignature(options.shape, config)),
        cachePlaces(config), cacheElement(cacheElement) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    if (config.ranks > 1)
      (*module)->setAttr(kRanksAttrName, b.getI64IntegerAttr(config.ranks));
    b.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs = typesOf(signature.inputs);
    if (options.shape.part == ::kf::StepPart::Body)
      for (const ::kf::CacheSpec &cache : cachePlaces.specs())
        inputs.push_back(typeOf(cache));
    auto func = func::FuncOp::create(
        b, loc, ::kf::nameOf(options.shape),
        b.getFunctionType(inputs, typesOf(signature.outputs)));
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
    if (config.hasStates())
      states = arguments[::kf::kStepStates];
    caches = arguments.take_back(cachePlaces.specs().size());
    queryFactor = makeQueryFactor();
    if (config.latent.width)
      latent.emplace(static_cast<ModelOps &>(*this), positions);
    Value x = embed(arguments[::kf::kStepIds]);
    x = config.streams.count > 1 ? streamLayers(x) : layers(x);
    if (activation.isF32())
      return x;
    setPlace("output");
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
    setPlace("output");
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
    x = rounded(scaled(x, config.embeddingScale));
    if (config.tokenInputWidth)
      tokenInputs = tokenInputsOf(ids, x);
    return x;
  }

  /// What the names of layer `i` begin with, which the next ops belong to.
  std::string enterLayer(int64_t i) {
    const std::string layer = (Twine(names.layer) + "." + Twine(i)).str();
    setPlace(layer);
    return layer + ".";
  }

  /// [T, D] -> [T, D].
  Value layers(Value x) {
    for (int64_t i = 0; i < config.layers; ++i) {
      const std::string at = enterLayer(i);
      x = blocks(x, at, i);
      if (config.tokenInputWidth)
        x = arith::AddFOp::create(b, loc, x, tokenOutput(x, at, i));
      if (config.layerScales)
        x = scaledBy(x, weightOf(at + std::string(names.layerScale)));
    }
    return x;
  }

  /// The same of a model of several streams. All but the first have the layers'
  /// inputs of the token.
  Value streamLayers(Value x) {
    StreamOps ops(*this);
    SmallVector<Value> streams = ops.begin(x);
    for (int64_t i = 0; i < config.layers; ++i) {
      const std::string at = enterLayer(i);
      streams = ops.predict(streams, at);
      Value computed =
          blocks(streams[static_cast<size_t>(config.streams.active)], at, i);
      streams = ops.correct(streams, computed, at);
      if (!config.tokenInputWidth)
        continue;
      Value input = tokenOutput(ops.gateInput(streams, at), at, i);
      for (Value &stream : MutableArrayRef(streams).drop_front())
        stream = arith::AddFOp::create(b, loc, stream, input);
    }
    setPlace("output");
    return ops.end(streams);
  }

  /// A layer's attention and feed-forward: [T, D] -> [T, D].
  Value blocks(Value x, const std::string &at, int64_t i) {
    Value input = inputNorm(x, at, names.attentionNorm);
    x = withBlock(x, attention(input, at, i), at, names.attentionOutputNorm);
    if (config.narrowWidth)
      x = scaled(arith::AddFOp::create(b, loc, x, narrowBlock(input, at)),
                 1 / std::numbers::sqrt2);
    if (!config.parallelBlocks)
      input = inputNorm(x, at, names.mlpNorm);
    return withBlock(x, feedForward(input, x, at, i), at, names.mlpOutputNorm);
  }

  /// What a block computes, [T, D].
  struct BlockResult {
    Value value;
    bool isPart = false; ///< this rank's part of the sum of all ranks
  };

  Value whole(BlockResult block) {
    return block.isPart ? summed(block.value) : block.value;
  }

  /// Residual x [T, D] + the block's result, behind the norm called `name` if
  /// there is one: [T, D].
  Value withBlock(Value x, BlockResult block, const std::string &at,
                  std::string_view name) {
    const bool hasNorm = config.normPlaces != ::kf::NormPlaces::Inputs;
    if (config.ranks == 1 || !block.isPart || hasNorm || !activation.isF32())
      return arith::AddFOp::create(
          b, loc, x,
          scaled(outputNorm(whole(block), at, name), config.residualScale));
    // Each rank adds its share of x to its part, in the product's kernel, so
    // that the sum of all is what the next layer reads.
    return summed(arith::AddFOp::create(
        b, loc, scaled(x, 1.0 / static_cast<double>(config.ranks)),
        scaled(block.value, config.residualScale)));
  }

  /// x [T, D] and what two products of few columns between add to it: a learned
  /// residual (Menghani et al., "LAuReL: Learned Augmented Residual Layer",
  /// 2024).
  Value narrowBlock(Value x, const std::string &at) {
    Value narrow = linear(linear(x, at + std::string(names.narrowIn)),
                          at + std::string(names.narrowOut));
    return arith::AddFOp::create(
        b, loc, x, norm(narrow, at + std::string(names.narrowNorm)));
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
  BlockResult attention(Value x, const std::string &at, int64_t layer) {
    const ::kf::LayerConfig own = config.layer(layer);
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    if (own.isLinear)
      return {linearAttention(
          *this, x, at,
          {caches[place.cache], place.layer, positions, sequences, states})};
    const std::string output = at + std::string(names.output);
    if (latent)
      return {linear(latentAttention(x, at, layer), output)};
    auto [q, k, v, gate] = queriesKeysValues(x, at, own);
    if (own.queryGrowth)
      q = scaledBy(q, queryFactor);
    q = headsOf(q, at + std::string(names.queryNorm), config.heads, own);
    if (k) {
      v = toHeads(v, own.kvHeads, own.headDim); // [T, kv heads, head dim]
      if (config.valueNorm)
        v = plainNorm(v);
      k = headsOf(k, at + std::string(names.keyNorm), own.kvHeads, own);
      append(k, v, layer);
    }
    Value sinks;
    if (config.attentionSinks)
      sinks = weightOf(at + std::string(names.sinks));
    Value row = fromHeads(attend(q, sinks, layer));
    if (gate)
      row = gatedBy(row, gate);
    if (!config.outputByRows)
      return {linear(row, output), /*isPart=*/true};
    row = gathered(row, config.ranks * config.heads * own.headDim);
    return {gathered(linear(row, output), config.hiddenSize)};
  }

  /// [T, D] -> [T, heads * value dim]. Of a cache that has what keys and values
  /// are made of in the place of both.
  Value latentAttention(Value x, const std::string &at, int64_t layer) {
    const ::kf::RopeConfig &rope = *config.layerConfigs[layer].rope;
    Value q = latent->queries(x, at, rope);
    Value k = latent->keys(x, at, rope);
    append(k, k, layer);
    return latent->values(attend(q, /*sinks=*/Value(), layer), at);
  }

  /// Stores the keys and values of a layer, [T, kv heads, head dim].
  void append(Value k, Value v, int64_t layer) {
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    KVAppendOp::create(b, loc, caches[place.cache], k, v, positions, sequences,
                       pageTable, /*kv_head=*/Value(),
                       b.getI64IntegerAttr(place.layer));
  }

  /// What queries [T, heads, head dim] of a layer attend to, of their shape.
  Value attend(Value q, Value sinks, int64_t layer) {
    const ::kf::LayerConfig own = config.layer(layer);
    const ::kf::LayerCaches::Place place = cachePlaces.of(layer);
    return AttentionOp::create(
        b, loc, q, caches[place.cache], positions, sequences, pageTable, sinks,
        /*kv_head=*/Value(), b.getI64IntegerAttr(place.layer),
        attentionScale(own, own.headDim),
        own.window ? b.getI64IntegerAttr(own.window) : IntegerAttr(),
        own.chunked ? b.getUnitAttr() : UnitAttr(),
        config.attentionCap
            ? b.getF32FloatAttr(static_cast<float>(config.attentionCap))
            : FloatAttr());
  }

  struct QueriesKeysValues {
    /// [T, heads * head dim], [T, kv heads * head dim] twice. Null: keys and
    /// values of a layer that has none of its own.
    Value q, k, v;
    Value gate; ///< of what attention gives, as q; null: it has none
  };
  QueriesKeysValues queriesKeysValues(Value x, const std::string &at,
                                      const ::kf::LayerConfig &layer) {
    if (!names.fusedQkv.empty()) {
      const int64_t queries = config.heads * layer.headDim;
      const int64_t keys = layer.kvHeads * layer.headDim;
      Value fused = linear(x, at + std::string(names.fusedQkv));
      return {columns(fused, 0, queries), columns(fused, queries, keys),
              columns(fused, queries + keys, keys), Value()};
    }
    Value q = linear(x, at + std::string(names.query)), gate;
    if (config.gatedAttention) {
      const int64_t dim = layer.headDim;
      Value both = toHeads(q, config.heads, 2 * dim);
      q = fromHeads(columns(both, 0, dim));
      gate = fromHeads(columns(both, dim, dim));
    }
    if (layer.keysOf)
      return {q, Value(), Value(), gate};
    Value k = linear(x, at + std::string(names.key));
    Value v =
        layer.valuesAreKeys ? k : linear(x, at + std::string(names.value));
    return {q, k, v, gate};
  }

  /// Queries or keys [T, heads * head dim], normalized and turned, as
  /// [T, heads, head dim].
  Value headsOf(Value x, const std::string &norm, int64_t heads,
                const ::kf::LayerConfig &layer) {
    if (config.qkNorm == ::kf::QkNorm::Width)
      x = widthNorm(x, norm);
    x = toHeads(x, heads, layer.headDim);
    if (config.qkNorm == ::kf::QkNorm::Heads)
      x = rmsNorm(x, norm);
    if (!layer.rope)
      return x;
    // Turning changes no length: the norm behind it may as well be before it,
    // where kernels have one.
    if (config.qkNorm == ::kf::QkNorm::Turned)
      x = plainNorm(x);
    return rope(x, positions, *layer.rope);
  }

  /// What queries that grow are multiplied by, [T, 1] of f32; null where no
  /// layer has such.
  Value makeQueryFactor() {
    const auto layer =
        llvm::find_if(config.layerConfigs, [](const ::kf::LayerConfig &layer) {
          return layer.queryGrowth.has_value();
        });
    if (layer == config.layerConfigs.end())
      return {};
    Type i32 = b.getI32Type();
    auto type = RankedTensorType::get({rowCount, 1}, i32);
    auto number = [&](TypedAttr value) -> Value {
      auto one = RankedTensorType::get({1}, value.getType());
      return BroadcastOp::create(
          b, loc, type.clone(value.getType()),
          arith::ConstantOp::create(
              b, loc, DenseElementsAttr::get(one, Attribute(value))));
    };
    auto integer = [&](int64_t value) {
      return number(b.getIntegerAttr(i32, value));
    };
    Value periods = arith::DivSIOp::create(
        b, loc, arith::AddIOp::create(b, loc, asColumn(positions), integer(1)),
        integer(layer->queryGrowth->period));
    Value growth =
        scaled(math::LogOp::create(
                   b, loc,
                   arith::SIToFPOp::create(
                       b, loc, type.clone(b.getF32Type()),
                       arith::AddIOp::create(b, loc, periods, integer(1)))),
               layer->queryGrowth->scale);
    return inMemory(
        arith::AddFOp::create(b, loc, growth, number(b.getF32FloatAttr(1))));
  }

  /// x [T, D], normalized of `residual` -> [T, D].
  BlockResult feedForward(Value x, Value residual, const std::string &at,
                          int64_t layer) {
    const bool hasExperts = config.hasExperts(layer);
    if (hasExperts && !config.experts.besideBlock)
      return experts(x, residual, at);
    const BlockNames parts = {names.gate, names.up, names.down};
    const ::kf::LayerConfig own = config.layer(layer);
    const BlockResult dense = {own.gateCutoff
                                   ? blockInProducts(x, at, parts, &own)
                                   : mlp(x, at, parts),
                               /*isPart=*/true};
    if (!hasExperts)
      return dense;
    Value block = norm(whole(dense), at + std::string(names.blockOutputNorm));
    Value chosen = whole(experts(
        norm(residual, at + std::string(names.expertNorm)), residual, at));
    return {arith::AddFOp::create(
        b, loc, block, norm(chosen, at + std::string(names.expertOutputNorm)))};
  }

  //===--- Inputs of tokens -----------------------------------------------===//

  /// ids [T] and what is made of them, x [T, D] -> [T, layers * P] of f32: what
  /// each layer reads of the tokens.
  Value tokenInputsOf(Value ids, Value x) {
    const int64_t width = config.tokenInputWidth;
    Value own = scaled(
        EmbeddingOp::create(b, loc, withoutOthers(ids, config.tokenInputVocab),
                            weight(names.tokenInputs)),
        std::sqrt(static_cast<double>(width)));
    Value made = scaled(linear(x, names.tokenInputProjection),
                        1 / std::sqrt(static_cast<double>(config.hiddenSize)));
    made = fromHeads(
        rmsNorm(toHeads(made, config.layers, width), names.tokenInputNorm));
    return scaled(arith::AddFOp::create(b, loc, own, widened(made)),
                  1 / std::numbers::sqrt2);
  }

  /// `ids` [T], with 0 for those that are not below `count`.
  Value withoutOthers(Value ids, int64_t count) {
    if (count >= config.vocabSize)
      return ids;
    auto type = cast<RankedTensorType>(ids.getType());
    auto filled = [&](int64_t value) -> Value {
      auto one = RankedTensorType::get({1}, type.getElementType());
      return BroadcastOp::create(
          b, loc, type,
          arith::ConstantOp::create(
              b, loc,
              DenseElementsAttr::get(one, static_cast<int32_t>(value))));
    };
    Value isKnown = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                          ids, filled(count));
    return arith::SelectOp::create(b, loc, isKnown, ids, filled(0));
  }

  /// What layer `layer` adds of the tokens to x [T, D]: [T, D].
  Value tokenOutput(Value x, const std::string &at, int64_t layer) {
    Value gate = ActivationOp::create(
        b, loc, linear(x, at + std::string(names.tokenGate)), activationAttr());
    Value own = inMemory(columns(tokenInputs, layer * config.tokenInputWidth,
                                 config.tokenInputWidth));
    Value gated = rounded(arith::MulFOp::create(b, loc, own, widened(gate)));
    return norm(linear(gated, at + std::string(names.tokenOutput)),
                at + std::string(names.tokenOutputNorm));
  }

  //===--- Blocks ---------------------------------------------------------===//

  /// What the names of a block's matrices end with.
  struct BlockNames {
    std::string_view gate, up, down;
  };

  /// [T, D] -> [T, D], a part of the sum that several ranks make.
  Value mlp(Value x, const std::string &at, const BlockNames &block) {
    if (llvm::any_of(ArrayRef{block.gate, block.up, block.down},
                     [&](std::string_view part) {
                       return hasScales(at + std::string(part));
                     }))
      return blockInProducts(x, at, block);
    Value gate, gateBias;
    if (config.gatedMlp) {
      gate = weight(at + std::string(block.gate));
      gateBias = bias(at + std::string(block.gate));
    }
    Value up = weight(at + std::string(block.up)),
          upBias = bias(at + std::string(block.up));
    Value down = weight(at + std::string(block.down)),
          downBias = bias(at + std::string(block.down));
    return MlpOp::create(b, loc, x, gate, up, down, gateBias, upBias, downBias,
                         activationAttr());
  }

  /// The same in products, which weights with scales need, and gates of which
  /// few count, those that `cutoff` says.
  Value blockInProducts(Value x, const std::string &at, const BlockNames &block,
                        const ::kf::LayerConfig *cutoff = nullptr) {
    Value inner = linear(x, at + std::string(block.up));
    if (config.gatedMlp) {
      Value gate = linear(x, at + std::string(block.gate));
      if (cutoff)
        gate = cutOff(gate, *cutoff);
      inner = arith::MulFOp::create(
          b, loc, ActivationOp::create(b, loc, gate, activationAttr()), inner);
    } else {
      inner = ActivationOp::create(b, loc, inner, activationAttr());
    }
    return linear(inner, at + std::string(block.down));
  }

  /// By how much x [T, F] is more than the mean and `layer.gateCutoff` standard
  /// deviations of all ranks' row; 0 where it is less.
  Value cutOff(Value x, const ::kf::LayerConfig &layer) {
    x = widened(x);
    const int64_t own = cast<RankedTensorType>(x.getType()).getDimSize(1);
    const int64_t all = config.ranks > 1 ? layer.gateColumns : own;
    auto mean = [&](Value of) -> Value {
      Value local =
          ReduceOp::create(b, loc, of, ReduceKind::Mean, ArrayRef<int64_t>{1},
                           /*keep_dims=*/true);
      return scaled(summed(local),
                    static_cast<double>(own) / static_cast<double>(all));
    };
    auto aboveZero = [&](Value of) -> Value {
      return ActivationOp::create(
          b, loc, of,
          ActivationKindAttr::get(b.getContext(), ActivationKind::Relu));
    };
    auto alongRow = [&](Value one) -> Value {
      return BroadcastOp::create(b, loc, x.getType(), one);
    };
    Value center = mean(x);
    Value difference = arith::SubFOp::create(b, loc, x, alongRow(center));
    Value variance =
        mean(arith::MulFOp::create(b, loc, difference, difference));
    // Zeros that fill up rows are as far from the mean as that is from 0. What
    // is left of a row whose numbers are alike may be rounded to less than 0.
    if (const int64_t zeros = config.ranks * own - all; zeros > 0)
      variance = aboveZero(arith::SubFOp::create(
          b, loc, variance,
          scaled(arith::MulFOp::create(b, loc, center, center),
                 static_cast<double>(zeros) / static_cast<double>(all))));
    Value deviation = math::SqrtOp::create(b, loc, variance);
    Value rest = arith::SubFOp::create(
        b, loc, difference, alongRow(scaled(deviation, *layer.gateCutoff)));
    return rounded(aboveZero(rest));
  }

  /// x [T, D], normalized of `residual` -> [T, D]: results, of all ranks, are
  /// added up in f32, and rounded once.
  BlockResult experts(Value x, Value residual, const std::string &at) {
    ExpertBlock block(b, loc, config.experts, activationAttr());
    const ExpertWeights weights = expertWeights(at);
    Value sum = block.route(x, routerLogits(x, residual, at), weights);
    if (config.experts.sharedWidth) {
      Value shared =
          mlp(x, at, {names.sharedGate, names.sharedUp, names.sharedDown});
      shared = config.experts.sharedGate
                   ? block.gate(shared,
                                linear(x, at + std::string(names.sharedRouter)))
                   : block.widen(shared);
      sum = arith::AddFOp::create(b, loc, sum, shared);
    }
    if (activation.isF32())
      return {sum, /*isPart=*/true};
    return {rounded(summed(sum))};
  }

  /// [T, E] of x, or of what x is normalized of.
  Value routerLogits(Value x, Value residual, const std::string &at) {
    const std::string router = at + std::string(names.router);
    if (!config.experts.routerNorm)
      return linear(x, router);
    Value row = rmsNorm(residual, weightOf(at + std::string(names.routerNorm)));
    return scaled(linear(row, router),
                  1 / std::sqrt(static_cast<double>(config.hiddenSize)));
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
    if (config.experts.choiceBias)
      weights.choiceBias = weightOf(at + std::string(names.choiceBias));
    if (config.experts.scales)
      weights.scales = weightOf(at + std::string(names.expertScales));
    return weights;
  }

  /// The kf.weight [parts, E, rows, columns] of matrices of all experts, or
  /// [parts, E, rows] of their biases.
  Value stacked(const std::string &at, ArrayRef<std::string_view> parts,
                std::string_view suffix) {
    SmallVector<SmallVector<std::string>> all;
    for (std::string_view part : parts) {
      SmallVector<std::string> &own = all.emplace_back();
      for (int64_t i = 0; i < config.experts.count; ++i)
        own.push_back(at + names.ofExpert(part, i) + std::string(suffix));
    }
    return stack(all);
  }

  //===--- Shapes ---------------------------------------------------------===//

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

  Type typeOf(const ::kf::CacheSpec &cache) {
    if (cache.isOfStates())
      return StateCacheType::get(b.getContext(), cache.layers, cache.kvHeads,
                                 cache.headDim, cache.slotPages);
    return KVCacheType::get(b.getContext(), cache.layers, cache.kvHeads,
                            cache.headDim, cacheElement, options.keyBlock,
                            cache.page);
  }

  const ImportOptions &options;
  ::kf::StepSignature signature;
  ::kf::LayerCaches cachePlaces;
  Type cacheElement;
  Value positions, sequences; ///< [T] of i32
  Value pageTable;            ///< [S, P] of i32
  Value states;               ///< [S] of i32; null where no layer has any
  Value tokenInputs;          ///< [T, layers * P] of f32
  Value queryFactor;          ///< [T, 1] of f32
  std::optional<LatentAttention> latent;
  ValueRange caches; ///< in the order of cachePlaces
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
  const ::kf::LayerCaches caches(config);
  for (const ::kf::CacheSpec &cache : caches.specs())
    if (!cache.isOfStates() && cache.headDim % block != 0)
      return llvm::createStringError(
          "a cache of " + cacheName + " needs heads of a multiple of " +
          std::to_string(block) + " elements, and the model's have " +
          std::to_string(cache.headDim) + "; use f32, f16 or bf16");
  llvm::Expected<Checkpoint> checkpoint =
      Checkpoint::read(context, config, source);
  if (!checkpoint)
    return checkpoint.takeError();
  return StepBuilder(&context, config, *checkpoint, options, cacheElement,
                     activation)
      .build();
}
