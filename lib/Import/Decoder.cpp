//===- Decoder.cpp - The layers of a decoder ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "StreamOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::kf;

Value Decoder::decode(Value ids, Value rowPositions) {
  setRows(ids);
  positions = rowPositions;
  queryFactor = makeQueryFactor();
  if (config.latent.width)
    latent.emplace(static_cast<ModelOps &>(*this), positions);
  Value x = config.stage.isFirst() ? embed(ids) : received();
  x = config.streams.count > 1 ? streamLayers(x) : layers(x);
  if (!config.stage.isLast()) {
    setPlace("output");
    SendOp::create(b, loc, x, /*offsets=*/nullptr);
    return {};
  }
  if (activation.isF32())
    return x;
  setPlace("output");
  return widened(x);
}

Value Decoder::logitsOf(Value rows) {
  Value logits = linear(rows, names.head);
  return gathered(capped(scaled(logits, config.logitScale), config.logitCap),
                  config.vocabSize);
}

Value Decoder::embed(Value ids) {
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

Value Decoder::received() {
  const int64_t shape[] = {rowCount, config.hiddenSize};
  return ReceiveOp::create(b, loc, RankedTensorType::get(shape, activation),
                           /*offsets=*/nullptr);
}

std::string Decoder::enterLayer(int64_t i) {
  const std::string layer = (Twine(names.layer) + "." + Twine(i)).str();
  setPlace(layer);
  return layer + ".";
}

Value Decoder::layers(Value x) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string at = enterLayer(i);
    x = blocks(x, at, i);
    if (config.tokenInputWidth)
      x = arith::AddFOp::create(b, loc, x, tokenOutput(x, at, i));
    if (config.layerScales)
      x = scaledBy(x, weightOf(at + std::string(names.layerScale)));
    betweenLayers(x);
  }
  return x;
}

Value Decoder::streamLayers(Value x) {
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

Value Decoder::blocks(Value x, const std::string &at, int64_t i) {
  Value input = inputNorm(x, at, names.attentionNorm);
  x = withBlock(x, attention(input, at, i), at, names.attentionOutputNorm);
  if (config.narrowWidth)
    x = scaled(arith::AddFOp::create(b, loc, x, narrowBlock(input, at)),
               1 / std::numbers::sqrt2);
  if (!config.parallelBlocks)
    input = inputNorm(x, at, names.mlpNorm);
  return withBlock(x, feedForward(input, x, at, i), at, names.mlpOutputNorm);
}

Value Decoder::whole(BlockResult block) {
  return block.isPart ? summed(block.value) : block.value;
}

Value Decoder::withBlock(Value x, BlockResult block, const std::string &at,
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

Value Decoder::narrowBlock(Value x, const std::string &at) {
  Value narrow = linear(linear(x, at + std::string(names.narrowIn)),
                        at + std::string(names.narrowOut));
  return arith::AddFOp::create(
      b, loc, x, norm(narrow, at + std::string(names.narrowNorm)));
}

Value Decoder::inputNorm(Value x, const std::string &at,
                         std::string_view name) {
  if (config.normPlaces == ::kf::NormPlaces::Outputs)
    return x;
  return norm(x, at + std::string(name));
}

Value Decoder::outputNorm(Value x, const std::string &at,
                          std::string_view name) {
  if (config.normPlaces == ::kf::NormPlaces::Inputs)
    return x;
  return norm(x, at + std::string(name));
}

Decoder::BlockResult Decoder::attention(Value x, const std::string &at,
                                        int64_t layer) {
  const ::kf::LayerConfig own = config.layer(layer);
  if (own.isLinear)
    return {attendToState(x, at, layer)};
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

Value Decoder::latentAttention(Value x, const std::string &at, int64_t layer) {
  const ::kf::RopeConfig &rope = *config.layerConfigs[layer].rope;
  Value q = latent->queries(x, at, rope);
  Value k = latent->keys(x, at, rope);
  append(k, k, layer);
  return latent->values(attend(q, /*sinks=*/Value(), layer), at);
}

Decoder::QueriesKeysValues
Decoder::queriesKeysValues(Value x, const std::string &at,
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
  Value v = layer.valuesAreKeys ? k : linear(x, at + std::string(names.value));
  return {q, k, v, gate};
}

Value Decoder::headsOf(Value x, const std::string &norm, int64_t heads,
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

Value Decoder::makeQueryFactor() {
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

Decoder::BlockResult Decoder::feedForward(Value x, Value residual,
                                          const std::string &at,
                                          int64_t layer) {
  const bool hasExperts = config.hasExperts(layer);
  if (hasExperts && !config.experts.besideBlock)
    return experts(x, residual, at);
  const BlockNames parts = {names.gate, names.up, names.down};
  const ::kf::LayerConfig own = config.layer(layer);
  const BlockResult dense = {
      own.gateCutoff ? blockInProducts(x, at, parts, &own) : mlp(x, at, parts),
      /*isPart=*/true};
  if (!hasExperts)
    return dense;
  Value block = norm(whole(dense), at + std::string(names.blockOutputNorm));
  Value chosen = whole(experts(
      norm(residual, at + std::string(names.expertNorm)), residual, at));
  return {arith::AddFOp::create(
      b, loc, block, norm(chosen, at + std::string(names.expertOutputNorm)))};
}

//===----------------------------------------------------------------------===//
// Inputs of tokens
//===----------------------------------------------------------------------===//

Value Decoder::tokenInputsOf(Value ids, Value x) {
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

Value Decoder::withoutOthers(Value ids, int64_t count) {
  if (count >= config.vocabSize)
    return ids;
  auto type = cast<RankedTensorType>(ids.getType());
  auto filled = [&](int64_t value) -> Value {
    auto one = RankedTensorType::get({1}, type.getElementType());
    return BroadcastOp::create(
        b, loc, type,
        arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(one, static_cast<int32_t>(value))));
  };
  Value isKnown = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, ids,
                                        filled(count));
  return arith::SelectOp::create(b, loc, isKnown, ids, filled(0));
}

Value Decoder::tokenOutput(Value x, const std::string &at, int64_t layer) {
  Value gate = ActivationOp::create(
      b, loc, linear(x, at + std::string(names.tokenGate)), activationAttr());
  Value own = inMemory(columns(tokenInputs, layer * config.tokenInputWidth,
                               config.tokenInputWidth));
  Value gated = rounded(arith::MulFOp::create(b, loc, own, widened(gate)));
  return norm(linear(gated, at + std::string(names.tokenOutput)),
              at + std::string(names.tokenOutputNorm));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

Value Decoder::mlp(Value x, const std::string &at, const BlockNames &block) {
  if (llvm::any_of(ArrayRef{block.gate, block.up, block.down},
                   [&](std::string_view part) {
                     return isProductAlone(at + std::string(part));
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

Value Decoder::blockInProducts(Value x, const std::string &at,
                               const BlockNames &block,
                               const ::kf::LayerConfig *cutoff) {
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

Value Decoder::cutOff(Value x, const ::kf::LayerConfig &layer) {
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
  Value variance = mean(arith::MulFOp::create(b, loc, difference, difference));
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

Decoder::BlockResult Decoder::experts(Value x, Value residual,
                                      const std::string &at) {
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

Value Decoder::routerLogits(Value x, Value residual, const std::string &at) {
  const std::string router = at + std::string(names.router);
  if (!config.experts.routerNorm)
    return linear(x, router);
  Value row = rmsNorm(residual, weightOf(at + std::string(names.routerNorm)));
  return scaled(linear(row, router),
                1 / std::sqrt(static_cast<double>(config.hiddenSize)));
}

ExpertWeights Decoder::expertWeights(const std::string &at) {
  auto typeOf = [&](std::string_view part, StringRef suffix) {
    return checkpoint.find(at + names.ofExpert(part, 0) + suffix.str())->type;
  };
  auto areAlike = [&](StringRef suffix) {
    return typeOf(names.expertGate, suffix) == typeOf(names.expertUp, suffix);
  };
  ExpertWeights weights;
  // A weight and its bias.
  auto add = [&](ArrayRef<std::string_view> parts, Value &weight, Value &bias) {
    weight = stacked(at, parts, ".weight");
    if (config.experts.bias)
      bias = stacked(at, parts, ".bias");
  };
  if (areAlike(".weight") && (!config.experts.bias || areAlike(".bias"))) {
    add({names.expertGate, names.expertUp}, weights.gateUp, weights.gateUpBias);
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

Value Decoder::stacked(const std::string &at, ArrayRef<std::string_view> parts,
                       std::string_view suffix) {
  SmallVector<SmallVector<std::string>> all;
  for (std::string_view part : parts) {
    SmallVector<std::string> &own = all.emplace_back();
    for (int64_t i = 0; i < config.experts.count; ++i)
      own.push_back(at + names.ofExpert(part, i) + std::string(suffix));
  }
  return stack(all);
}
