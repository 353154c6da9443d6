//===- ModelFamily.h - What sets architectures apart ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of a table for each model_type: what its config.json calls things, what
// absent fields stand for (the defaults of Hugging Face's configuration
// classes), and which arithmetic goes without saying. Readers ask the row, and
// what they fill in (ModelConfig) is all that the rest of the project knows.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_MODELFAMILY_H
#define KF_RUNTIME_MODEL_MODELFAMILY_H

#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace kf {

/// Whether some products have biases: a field says it, or, without its name,
/// `otherwise` does.
struct BiasField {
  const char *name = nullptr;
  bool otherwise = false;
};

/// Where sliding_window counts.
enum class WindowRule {
  Never,
  Always, ///< where it is not null
  IfUsed, ///< with use_sliding_window, in the layers from max_window_layers on
  AllIfUsed,    ///< with use_sliding_window, in all layers
  ListedIfUsed, ///< with use_sliding_window, where layer_types says it
};

/// Which layers turn queries and keys.
enum class TurnedLayers {
  None,
  All,
  Listed,  ///< by no_rope_layers or no_rope_layer_interval
  Sliding, ///< those with a window
};

/// A field that says what the architecture does anyway.
struct StatedField {
  const char *name;
  const char *value; ///< the only one that is right, as JSON
};

/// What fields say of experts (ExpertFields.h).
struct ExpertFields {
  // Names; null where there is none.
  const char *count = nullptr;      ///< null: the family has no experts
  const char *enabled = nullptr;    ///< says whether there are; null: there are
  const char *otherCount = nullptr; ///< another name of it
  const char *chosen = "num_experts_per_tok";
  const char *width = "intermediate_size", *sharedWidth = nullptr;
  /// Instead of the width of the shared block: of how many experts it is.
  const char *sharedCount = nullptr;
  const char *normalized = nullptr; ///< null: probabilities are
  // Which layers have them, rather than all: every so many-th one, by a number;
  // those of a list, whatever that says; none of a list; and none of the first
  // ones, as many as a number says.
  const char *step = nullptr, *layers = nullptr;
  const char *plainLayers = nullptr, *firstPlain = nullptr;
  // ExpertsConfig's.
  bool sharedGate = false, bias = false, sigmoid = false, weighsInputs = false;
  bool choiceBias = false;
  const char *groups = nullptr, *keptGroups = nullptr, *scale = nullptr;
  bool besideBlock = false, routerNorm = false, scales = false;
  /// Those of ExpertsConfig's clamp; null where there is none.
  const char *clampLimit = nullptr, *clampAlpha = nullptr;

  // What absent fields stand for; 0: the field has to be there.
  int64_t defaultCount = 0, defaultChosen = 0, defaultWidth = 0;
  int64_t defaultSharedWidth = 0, defaultSharedCount = 0;
  int64_t defaultFirstPlain = 0;
  int64_t defaultGroups = 0, defaultKeptGroups = 0;
  bool defaultNormalized = false;
  double defaultScale = 1, defaultClampLimit = 0, defaultClampAlpha = 0;
};

/// What fields say of layers whose sizes differ, and of layers that attend to
/// another one's keys (LayerSizeFields.h). Names are null where there is none.
struct LayerSizeFields {
  /// Of layers without a window: the size of their heads, and how many KV heads
  /// they have where `valuesAreKeys` says so.
  const char *fullHeadDim = nullptr, *fullKvHeads = nullptr;
  /// Layers without a window take keys for values.
  const char *valuesAreKeys = nullptr;
  /// An object of layers by number, each with the sizes that are its own; then
  /// fullHeadDim and fullKvHeads do not count.
  const char *byLayer = nullptr;
  /// How many of the last layers attend to the keys of the last one before
  /// them that has a window as they have, or none.
  const char *sharing = nullptr;
  /// Those have feed-forward blocks of twice the width.
  const char *doubleWidth = nullptr;
  /// intermediate_size may be a list, a width for each layer.
  bool listsWidths = false;
  int64_t defaultFullHeadDim = 0;
  int64_t defaultSharing = 0; ///< of models that have more layers; else none
};

/// What fields say of streams and of gates (StreamFields.h). Names are null
/// where there is none.
struct StreamFields {
  const char *count = nullptr; ///< null: the family has one
  const char *active = nullptr, *scaled = nullptr;
  const char *narrowWidth = nullptr; ///< ModelConfig's
  /// The share of the sides of gates that do not count, if they are normally
  /// distributed: a number, or a list of one for each layer.
  const char *sparsity = nullptr;
  int64_t defaultCount = 1, defaultNarrowWidth = 0;
  /// Of the first layers, as many as `sparseLayers`, if there are more.
  double defaultSparsity = 0;
  int64_t sparseLayers = 0;
};

/// What fields say of queries that grow with their position, in layers that do
/// not turn them. Names are null where there is none.
struct QueryGrowthFields {
  const char *used = nullptr; ///< null: the family's do not grow
  const char *scale = nullptr, *period = nullptr;
  double defaultScale = 0;
  int64_t defaultPeriod = 0;
};

/// What absent fields of latent attention stand for (LatentFields.h).
struct LatentFields {
  int64_t defaultWidth = 0; ///< 0: the family has none
  int64_t defaultQueryWidth = 0;
  int64_t defaultPlainDim = 0, defaultTurnedDim = 0, defaultValueDim = 0;
};

/// What fields say of layers with linear attention (LinearFields.h).
struct LinearFields {
  bool areRead = false;    ///< the family may have such layers
  bool byKeyHeads = false; ///< LinearAttentionConfig's
};

struct Family {
  Architecture architecture;
  const char *modelType, *className;
  /// The same of a model that reads images, too, with this one in its
  /// text_config; null where there is none.
  const char *wrapperType = nullptr, *wrapperClass = nullptr;

  // Names of fields; null where there is none.
  const char *hiddenSize = "hidden_size", *layers = "num_hidden_layers";
  const char *heads = "num_attention_heads";
  const char *intermediateSize = "intermediate_size";
  const char *maxPositions = "max_position_embeddings";
  const char *activation = "hidden_act", *eps = "rms_norm_eps";
  const char *embeddingScale = nullptr, *residualScale = nullptr;
  const char *attentionScale = nullptr;
  /// A number whose square root attention's scores are divided by.
  const char *scoreDivisor = nullptr;
  const char *attentionCap = nullptr, *logitCap = nullptr;
  const char *logitScale = nullptr, *logitDivisor = nullptr;
  BiasField qkvBias = {}, outputBias = {}, mlpBias = {};
  ExpertFields experts = {};
  LayerSizeFields sizes = {};
  StreamFields streams = {};
  QueryGrowthFields queryGrowth = {};
  LatentFields latent = {};
  LinearFields linear = {};
  /// The width and the vocabulary of tokens' inputs of layers.
  const char *tokenInputWidth = nullptr, *tokenInputVocab = nullptr;
  const char *guessingLayers = nullptr; ///< the number of those
  /// Fields that others must not have (UnsupportedFields.cpp), and this reads,
  /// or is right to ignore.
  std::span<const char *const> reads = {};
  /// Fields that have no other value than this, if they are there.
  std::span<const StatedField> states = {};

  // What absent fields stand for.
  const char *defaultActivation = "silu";
  int64_t defaultMaxPositions = 2048;
  /// 0: the field has to be there.
  int64_t defaultHiddenSize = 0, defaultIntermediateSize = 0;
  int64_t defaultLayers = 0, defaultVocabSize = 0;
  int64_t defaultHeads = 0, defaultKvHeads = 0;
  int64_t defaultHeadDim = 0; ///< 0: hidden size / heads
  double defaultEps = 1e-6, defaultTheta = 10000, defaultRotaryPart = 1;
  double defaultLogitScale = 1, defaultScoreDivisor = 0;
  double defaultAttentionCap = 0, defaultLogitCap = 0; ///< 0: none
  int64_t defaultTokenInputWidth = 0, defaultTokenInputVocab = 0;
  bool defaultTied = false;
  /// num_key_value_heads has to be there; else it is the number of heads.
  bool needsKvHeads = true;

  // Arithmetic.
  Norm norm = Norm::Rms;
  bool normBias = false;
  bool zeroCenteredNorms = false;
  /// Embeddings are multiplied by the square root of the hidden size.
  bool rootEmbeddingScale = false;
  NormPlaces normPlaces = NormPlaces::Inputs;
  QkNorm qkNorm = QkNorm::None;
  const char *qkNormField = nullptr; ///< may say that there is none
  bool attentionSinks = false;
  bool valueNorm = false, layerScales = false;
  bool gatedAttention = false;
  bool unscaledAttention = false; ///< rather than by the size of heads
  bool gatedMlp = true;
  /// Always, unless the field of that name says it.
  bool parallelBlocks = false;
  const char *parallelField = nullptr;

  // Layers.
  WindowRule windows = WindowRule::Never;
  const char *windowField = "sliding_window";
  int64_t defaultWindow = 0; ///< where the field is absent
  /// Windows are chunks, by default of the layers that turn queries and keys.
  bool chunked = false;
  /// Every so many-th layer has no window, where layer_types says nothing. 0:
  /// layers are alike.
  int64_t fullLayers = 0;
  /// The field that says another number; null: none does.
  const char *fullLayersField = nullptr;
  /// A field that has to say the same as the layers' windows; null: none.
  const char *agreeingField = nullptr;
  bool lastIsFull = false; ///< the last layer has no window in any case
  TurnedLayers turned = TurnedLayers::All;
  bool interleavedRope = false;
  const char *interleavedField = nullptr; ///< may say that it is not
  bool partialRotary = false;             ///< reads partial_rotary_factor
  /// rope_parameters may say how positions of images are mixed, which those of
  /// texts do not depend on.
  bool mixesPositions = false;
  /// Has RopeConfig::Scaling::Proportional.
  bool proportionalRope = false;
  /// rope_parameters where a file says nothing of RoPE, as JSON; null: plain.
  const char *defaultRope = nullptr;
  /// Layers with a window have a RoPE of their own: rope_scaling is not for
  /// them, and rope_parameters has an object for each of both kinds.
  bool ropeByType = false;
  /// Then, the field with their theta, if it is not rope_theta.
  const char *slidingTheta = nullptr;
  double defaultSlidingTheta = 10000;
};

/// All of them.
std::span<const Family> modelFamilies();
const Family &familyOf(Architecture architecture);

} // namespace kf

#endif // KF_RUNTIME_MODEL_MODELFAMILY_H
