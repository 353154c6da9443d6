//===- ModelConfig.h - What config.json says about a model ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of a decoder, read from a Hugging Face config.json. What the
// file leaves out takes the architecture's own default. A field that would
// change the arithmetic in a way that is not built is an error that names the
// field and its value; UnsupportedFields.cpp lists those fields. Other fields
// are about training or about code that does not run here, and are not looked
// at.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_MODELCONFIG_H
#define KF_RUNTIME_MODEL_MODELCONFIG_H

#include "runtime/core/KeyWindow.h"
#include "runtime/core/Status.h"
#include "runtime/core/Tensor.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Says what fields, tensors and metadata are called, and nothing of the
/// arithmetic, which ModelConfig's other members do.
enum class Architecture {
  Llama,
  Mistral,
  Qwen2,
  Qwen3,
  Gpt2,
  Granite,
  SmolLm3,
  Olmo2,
  Olmo3,
  Phi3,
  StableLm,
  Starcoder2,
  Cohere,
  Cohere2,
  Gemma2,
  Gemma3,
  Gemma3n,
  Gemma4,
  Mixtral,
  Qwen2Moe,
  Qwen3Moe,
  GraniteMoe,
  Olmoe,
  GptOss,
  Llama4,
  DeepseekV3,
  Qwen3Next,
  Qwen3_5
};
/// config.json's model_type: "llama", "mistral", "qwen2" ...
std::string_view nameOf(Architecture architecture);

/// What a checkpoint calls its tensors ("model.layers.0.mlp.up_proj.weight" or
/// "blk.0.ffn_up.weight").
enum class TensorNaming { HuggingFace, Gguf };

enum class Norm { Rms, Layer };
enum class Activation { Silu, Gelu, GeluTanh, Relu };
/// Where a layer's norms are: of what its blocks, attention and feed-forward,
/// read, of what they give before it is added, or of both.
enum class NormPlaces { Inputs, Outputs, Both };
/// RMS norms of queries and keys: before they are turned, of each head or of
/// all heads of a row together, or behind that, in layers that turn them, of
/// each head, without a weight.
enum class QkNorm { None, Heads, Width, Turned };

/// Rotary position embedding.
struct RopeConfig {
  enum class Scaling { None, Linear, Llama3, Yarn, LongRope, Proportional };
  double theta = 10000;
  int64_t dim = 0; ///< elements of a head that are turned, the first ones; even
  Scaling scaling = Scaling::None;
  double factor = 1; ///< Linear, Llama3, Yarn, Proportional
  double lowFreqFactor = 1, highFreqFactor = 4; ///< Llama3
  int64_t originalContext = 0;                  ///< Llama3, Yarn, LongRope
  double betaFast = 32, betaSlow = 1;           ///< Yarn
  bool truncate = true;                         ///< Yarn
  /// LongRope: what frequencies are divided by, [dim / 2], in contexts of up to
  /// originalContext positions and in longer ones; see settleContext().
  std::vector<float> shortFactors, longFactors;
  bool isLong = true; ///< LongRope: longFactors count
  /// Proportional: of the dim / 2 pairs, the first ones of this share are
  /// turned, by the frequencies that they have among all; others are not.
  double turnedShare = 1;
  /// Factor of cosines and sines: Yarn, LongRope.
  double magnitude = 1;
  /// Rotates elements 2i and 2i + 1 of a head rather than i and i + dim / 2.
  bool interleaved = false;
  /// Each frequency is divided by an element of the checkpoint's
  /// rope_freqs.weight [head dim / 2].
  bool frequencyFactors = false;

  bool operator==(const RopeConfig &) const = default;
};

/// How a model's makers would have its tokens chosen, in the ranges and with
/// the meaning of SamplerOptions; nothing where they say nothing.
struct SamplingDefaults {
  /// Above 0 where tokens are to be drawn. A model that says how to draw (this,
  /// topK, topP or minP) draws, with 1 if need be, unless its do_sample is
  /// false.
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP, minP;
  std::optional<double> repetitionPenalty;
  std::optional<int64_t> penaltyWindow = {};
  std::optional<int64_t> maxNewTokens = {}; ///< the most of an answer; positive

  bool operator==(const SamplingDefaults &) const = default;
};

/// What bounds the two sides of a gate: of a product g of the gate's matrix and
/// u of the other one, g' * sigmoid(alpha * g') * (u' + 1), where g' is at most
/// `limit`, and u' between it and -limit.
struct GateClamp {
  double limit = 0, alpha = 0;

  bool operator==(const GateClamp &) const = default;
};

/// Feed-forward blocks of which a router chooses some for each row: those that
/// a softmax over the products of the row with the router's rows makes the most
/// likely ones, whose results are added up by these probabilities.
struct ExpertsConfig {
  int64_t count = 0;       ///< 0: the model has none
  int64_t chosen = 0;      ///< for a row, from 1 to count
  int64_t width = 0;       ///< what intermediateSize is of other blocks
  bool normalized = false; ///< probabilities are divided by those chosen's sum
  /// Probabilities are sigmoids of the products, each by itself.
  bool sigmoid = false;
  /// They multiply what experts read, rather than what these give.
  bool weighsInputs = false;
  /// With sigmoids: a number of each expert is added where experts are chosen.
  bool choiceBias = false;
  /// With that: as many groups of neighbours, of which `keptGroups` have the
  /// experts that are chosen; 0: all experts are one group.
  int64_t groups = 0, keptGroups = 0;
  double scale = 1; ///< factor of what all that were chosen give
  /// Width of a block that every row goes through beside those chosen; 0: none.
  int64_t sharedWidth = 0;
  /// What that gives is multiplied by a sigmoid of a product with the row.
  bool sharedGate = false;
  bool bias = false; ///< router and experts' matrices have biases
  /// The layer's feed-forward block is there, too: each of both has a norm of
  /// its own before it and behind it, and what they give is added up.
  bool besideBlock = false;
  /// The router reads what the layer has, normalized with a weight of its own,
  /// divided by the square root of the hidden size.
  bool routerNorm = false;
  bool scales = false; ///< each expert's weight is multiplied by its number
  std::optional<GateClamp> clamp = {}; ///< with Activation::Silu

  bool operator==(const ExpertsConfig &) const = default;
};

/// What queries at position p are multiplied by: 1 + scale * ln(1 + floor((p +
/// 1) / period)), so that scores of many keys differ as those of few do.
struct QueryGrowth {
  double scale = 0;
  int64_t period = 1;

  bool operator==(const QueryGrowth &) const = default;
};

/// Keys and values of all heads that are products of one row, which the cache
/// holds in their place (multi-head latent attention; DeepSeek-AI,
/// "DeepSeek-V2", 2024). A position's key in the cache is that row, and before
/// it the part of a key that is turned and that all heads share.
struct LatentConfig {
  int64_t width = 0;      ///< of the row; 0: there is none
  int64_t queryWidth = 0; ///< of a row that queries are made of; 0: D
  /// Of a head's query and key: the part that is not turned, and the one that
  /// is; and of its value.
  int64_t plainDim = 0, turnedDim = 0, valueDim = 0;

  bool operator==(const LatentConfig &) const = default;
};

/// Several hidden rows of a token, of which layers compute one, and predict and
/// correct the others.
struct StreamsConfig {
  int64_t count = 1;   ///< 1: there is just one, and nothing to predict
  int64_t active = 0;  ///< the one that layers compute
  bool scaled = false; ///< that one is scaled for the gate of tokens' inputs

  bool operator==(const StreamsConfig &) const = default;
};

/// Layers that keep a state in the place of keys and values: linear attention
/// by the gated delta rule (kf.gated_delta).
struct LinearAttentionConfig {
  int64_t keyHeads = 0;             ///< 0: the model has no such layers
  int64_t valueHeads = 0;           ///< a multiple of keyHeads
  int64_t keyDim = 0, valueDim = 0; ///< of a head
  int64_t taps = 0;                 ///< rows that the convolution sums up
  /// What its products give is in order of the key heads, of which each has its
  /// q, k, v and z, or its b and a; else each of these is a matrix of its own,
  /// but q, k and v.
  bool byKeyHeads = false;

  /// Columns of all q, k and v.
  int64_t channels() const {
    return 2 * keyHeads * keyDim + valueHeads * valueDim;
  }
  /// Elements of the state of a value head.
  int64_t stateElements() const {
    return keyDim * valueDim + (taps - 1) * (2 * keyDim + valueDim);
  }
  /// Operations of a row and a value head: the convolution's, and those on the
  /// state, which takes a product with a number, two with a vector, and an
  /// outer product that is added to it.
  int64_t rowOperations() const {
    return 7 * keyDim * valueDim + 2 * taps * (2 * keyDim + valueDim);
  }
  bool operator==(const LinearAttentionConfig &) const = default;
};

/// What rows' adapters add to products: y = W x + B (A x), A and B being those
/// of the row's adapter, and B with its factor (LoraConfig.h).
struct AdaptersConfig {
  int64_t count = 0; ///< 0: rows have none; else they have one from 0 to count,
                     ///< of which 0 adds nothing
  /// Lines of A of the products that are added to, as many as the adapter with
  /// the most has: by ListedTensor::key without ".weight".
  std::map<std::string, int64_t, std::less<>> ranks = {};

  int64_t rankOf(std::string_view product) const {
    const auto it = ranks.find(product);
    return it == ranks.end() ? 0 : it->second;
  }
  bool operator==(const AdaptersConfig &) const = default;
};

/// Some neighbouring layers of a model, which one rank of several has.
struct StageConfig {
  int64_t number = 0, count = 1; ///< of 1, it is the whole model

  bool isFirst() const { return number == 0; } ///< has the embedding
  /// Has the final norm and the output matrix.
  bool isLast() const { return number + 1 == count; }
  bool operator==(const StageConfig &) const = default;
};

/// What a layer does that others of its model may do otherwise.
struct LayerConfig {
  int64_t window = 0;   ///< how many positions back it attends; 0: all
  bool chunked = false; ///< to those of its chunk of as many positions, instead
  /// How its queries and keys are turned; none: not at all.
  std::optional<RopeConfig> rope = {};
  bool hasExperts = false; ///< rather than one feed-forward block
  bool isLinear = false; ///< as ModelConfig::linear says, without heads of keys
  /// Sizes that are not the model's; 0: they are.
  int64_t headDim = 0, kvHeads = 0, intermediateSize = 0;
  /// An earlier layer of the same sizes, with keys of its own, whose keys and
  /// values it attends to; none: those that it makes itself.
  std::optional<int64_t> keysOf = {};
  /// Values are what keys are made of, before their norm and RoPE: there is no
  /// matrix for them.
  bool valuesAreKeys = false;
  /// How many standard deviations above the mean of its row the side of a gate
  /// has to be to count, by what it is more; none: all count as they are.
  std::optional<double> gateCutoff = {};
  /// Of several ranks, how many sides that row has on all of them, without the
  /// zeros that fill up intermediateSize; of one, 0.
  int64_t gateColumns = 0;
  std::optional<QueryGrowth> queryGrowth = {}; ///< none: queries do not grow

  KeyWindow keyWindow() const {
    return {static_cast<uint64_t>(window), chunked};
  }
  bool operator==(const LayerConfig &) const = default;
};

/// A decoder-only transformer. Sizes are positive and small enough that the
/// product of any two fits in 63 bits.
struct ModelConfig {
  Architecture architecture = Architecture::Llama;
  TensorNaming naming = TensorNaming::HuggingFace;
  int64_t layers = 0, hiddenSize = 0, intermediateSize = 0, vocabSize = 0;
  int64_t heads = 0, kvHeads = 0; ///< heads is a multiple of kvHeads
  int64_t headDim = 0;
  /// Positions that the model was made for; the length of the table of learned
  /// positions, where it has one.
  int64_t maxPositions = 0;

  Norm norm = Norm::Rms;
  bool normBias = false; ///< of Norm::Layer
  double normEps = 0;
  bool zeroCenteredNorms = false; ///< RMS norms multiply by 1 + weight
  NormPlaces normPlaces = NormPlaces::Inputs;
  /// Both blocks of a layer read the same row, by one norm, and what they give
  /// is added together: x + attention(norm(x)) + mlp(norm(x)).
  bool parallelBlocks = false;
  Activation activation = Activation::Silu;
  bool gatedMlp = true;
  ExpertsConfig experts; ///< of the layers that have them
  QkNorm qkNorm = QkNorm::None;
  /// Each head has a score beside those of its keys, which takes a part of the
  /// softmax and gives nothing.
  bool attentionSinks = false;
  bool valueNorm = false; ///< RMS norms of the heads of values, no weight
  /// What attention gives is multiplied by a sigmoid of what the query's matrix
  /// gives beside queries: for each head its query, then its gate.
  bool gatedAttention = false;
  LinearAttentionConfig linear; ///< of the layers that have it
  StreamsConfig streams;
  /// Where there is one, headDim and kvHeads are those of the cache.
  LatentConfig latent;
  /// Columns between two products beside attention, whose result is added to
  /// what they read and to attention's, all divided by sqrt(2); 0: no such.
  int64_t narrowWidth = 0;
  /// What a layer gives is multiplied by a number of its own.
  bool layerScales = false;
  /// Width of what each layer adds of the token itself, behind its blocks: an
  /// embedding of its own and a projection of the model's; 0: nothing.
  int64_t tokenInputWidth = 0;
  /// Rows of the table of those embeddings; ids past it are looked up as 0.
  int64_t tokenInputVocab = 0;
  double attentionScale = 0; ///< factor of q k^T
  double embeddingScale = 1; ///< factor of the embeddings
  double residualScale = 1;  ///< factor of what a block gives
  double logitScale = 1;     ///< factor of the logits
  double attentionCap = 0;   ///< c: scores are c * tanh(s / c); 0: as they are
  double logitCap = 0;       ///< the same of logits, behind their scale
  std::vector<LayerConfig> layerConfigs; ///< one a layer
  /// How many layers checkpoints have behind these, which guess further tokens,
  /// and which nothing reads.
  int64_t guessingLayers = 0;

  AdaptersConfig adapters; ///< that the model was opened with

  /// How many ranks run the model together. With more than one, heads, kvHeads,
  /// intermediateSize and widths of experts, also of layers, are what one of
  /// them has (Sharding.h); each has all of a row of hidden ones, and a share
  /// of the output matrix's rows.
  int64_t ranks = 1;
  /// A rank has some rows of attention's output matrix, instead of the columns
  /// of its heads.
  bool outputByRows = false;
  /// Of several, `layers` and what is said of each are those of this one
  /// (Stages.h), and ids are all that the first one, and hidden rows all that
  /// others, read of tokens.
  StageConfig stage = {};
  /// How many ranks share the positions of each sequence (ContextShares.h); all
  /// else is whole on each.
  int64_t contextRanks = 1;

  bool qkvBias = false, attentionOutputBias = false, mlpBias = false;
  bool tiedEmbeddings = false; ///< the output matrix is the embedding table
  /// The checkpoint may have scales of keys and values in a cache, which are
  /// not read.
  bool hasCacheScales = false;

  std::optional<int64_t> bosId;
  /// Ids that end a generation, those of generation_config.json included.
  std::vector<int64_t> eosIds;
  SamplingDefaults sampling; ///< of generation_config.json
  /// Element type that the checkpoint claims; its tensors have their own.
  std::optional<DataType> dtype;

  /// What people should know of the files that it was read from, a line each.
  std::vector<std::string> warnings;

  /// Ranks that run the model together, by parts, by stages or by positions.
  int64_t rankCount() const { return ranks * stage.count * contextRanks; }
  /// Rows of a rank's share of a matrix with `rows` rows, which zeros fill up.
  int64_t sharedRows(int64_t rows) const { return (rows + ranks - 1) / ranks; }
  /// The one RoPE of all layers; null where layers differ, or have none.
  const RopeConfig *commonRope() const;
  /// The window of each layer.
  std::vector<int64_t> windows() const;
  /// What `number` does, with all its sizes; one that layerConfigs lacks does
  /// nothing of its own.
  LayerConfig layer(int64_t number) const;
  /// Whether some layers keep a state of each sequence, which is only that of
  /// its last token.
  bool hasStates() const { return linear.keyHeads > 0; }
  /// Whether `layer` has experts; one that layerConfigs lacks has none.
  bool hasExperts(int64_t layer) const;
};

/// Reads config.json's text and, unless empty, generation_config.json's. Errors
/// name the field, its value, and where possible what would work.
Result<ModelConfig> parseModelConfig(std::string_view config,
                                     std::string_view generationConfig = {});

/// The same of a folder with the hf_quant_config.json that older ones of
/// ModelOpt have: it counts where neither config.json nor its `text_config` has
/// a `quantization_config` other than null, and is an error where it is empty.
Result<ModelConfig>
parseModelConfig(std::string_view config, std::string_view generationConfig,
                 std::optional<std::string_view> quantConfig);

/// Reads `folder`/config.json and, where there are such,
/// `folder`/generation_config.json and `folder`/hf_quant_config.json, as
/// parseModelConfig() does. Errors begin with the file's path.
Result<ModelConfig> loadModelConfig(const std::string &folder);

} // namespace kf

#endif // KF_RUNTIME_MODEL_MODELCONFIG_H
