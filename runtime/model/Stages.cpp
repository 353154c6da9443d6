//===- Stages.cpp - Layers of a model on one rank -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Stages.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/NumbersText.h"
#include "runtime/io/ShardedWeights.h"
#include "runtime/model/ContextShares.h"
#include "runtime/model/WholeTensors.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <string>
#include <string_view>

using namespace kf;

namespace {

/// What has a model run in one stage alone; empty where there may be several.
std::string_view whyWhole(const ModelConfig &model) {
  // Each row of a token, or what layers read of it, would have to be sent.
  if (model.streams.count > 1)
    return "models with several streams of hidden rows";
  if (model.tokenInputWidth > 0)
    return "models whose layers read inputs of tokens";
  return {};
}

struct Layers {
  int64_t first = 0, count = 0;
  int64_t end() const { return first + count; }
};

Layers layersOf(int64_t stage, int64_t stages, int64_t layers) {
  const int64_t each = layers / stages, more = layers % stages;
  return {stage * each + std::min(stage, more), each + (stage < more)};
}

/// What `layers` lack to be a stage, as of stages "that ..."; empty where they
/// have what they read of other layers, and all kinds of caches that the model
/// has: rank 0 counts in its own what all have.
std::string_view whyNoStage(const ModelConfig &model, const Layers &layers) {
  bool hasStates = false, hasKeys = false;
  for (int64_t i = layers.first; i < layers.end(); ++i) {
    const LayerConfig layer = model.layer(i);
    (layer.isLinear ? hasStates : hasKeys) = true;
    if (layer.keysOf && *layer.keysOf < layers.first)
      return " that each have the keys their layers share";
  }
  if (model.hasStates() && !(hasStates && hasKeys))
    return " that have layers with states and with keys each";
  return {};
}

/// The same of the first of `stages` stages that is none.
std::string_view whyNotCut(const ModelConfig &model, int64_t stages) {
  std::string_view why;
  for (int64_t stage = 0; stage < stages && why.empty(); ++stage)
    why = whyNoStage(model, layersOf(stage, stages, model.layers));
  return why;
}

ModelConfig stageConfig(const ModelConfig &model, const StageConfig &stage,
                        const Layers &layers) {
  ModelConfig local = model;
  local.stage = stage;
  local.layers = layers.count;
  local.layerConfigs.clear();
  for (int64_t i = layers.first; i < layers.end(); ++i) {
    if (i >= static_cast<int64_t>(model.layerConfigs.size()))
      break;
    LayerConfig &layer = local.layerConfigs.emplace_back(model.layerConfigs[i]);
    if (layer.keysOf)
      *layer.keysOf -= layers.first;
  }
  local.guessingLayers = 0;
  local.tiedEmbeddings = false; // no rank but one of one stage has it as both
  return local;
}

/// What the whole model calls the tensor `key` of a stage.
std::string keyInModel(const ModelConfig &model, const Layers &layers,
                       const std::string &key) {
  const std::string layer = std::string(tensorNames(model).layer) + ".";
  if (!key.starts_with(layer))
    return key;
  const size_t end = key.find('.', layer.size());
  const int64_t number = std::stoll(key.substr(layer.size(), end));
  return layer + std::to_string(number + layers.first) + key.substr(end);
}

} // namespace

std::string kf::optionOf(Parallelism parallelism) {
  switch (parallelism) {
  case Parallelism::Tensor:
    return "--tensor-parallel";
  case Parallelism::Pipeline:
    return "--pipeline-parallel";
  case Parallelism::Context:
    return "--context-parallel";
  }
  return {};
}

std::vector<int64_t> kf::possibleStages(const ModelConfig &model) {
  std::vector<int64_t> possible = {1};
  for (int64_t stages = 2; stages <= std::min(model.layers, kMaxRanks);
       ++stages)
    if (whyWhole(model).empty() && whyNotCut(model, stages).empty())
      possible.push_back(stages);
  return possible;
}

Result<ModelShard> kf::cutModel(const ModelConfig &model,
                                std::shared_ptr<const WeightSource> weights,
                                int64_t rank, int64_t ranks) try {
  KF_RETURN_IF_ERROR(checkRank(rank, ranks));
  if (const std::string_view why = whyWhole(model); !why.empty())
    return Status::error(std::string(why) + " are not cut into stages; leave "
                                            "--pipeline-parallel out");
  const std::vector<int64_t> possible = possibleStages(model);
  if (std::ranges::find(possible, ranks) == possible.end())
    return Status::error(
        "the model's " + std::to_string(model.layers) +
        " layers cannot be cut into " + std::to_string(ranks) + " stages" +
        std::string(ranks <= model.layers ? whyNotCut(model, ranks) : "") +
        (possible.size() == 1
             ? "; leave --pipeline-parallel out"
             : "; " + numbersText(possible) + " are possible"));
  const int64_t stage = stageOfRank(rank, ranks);
  const Layers layers = layersOf(stage, ranks, model.layers);
  KF_ASSIGN_OR_RETURN(std::vector<ListedTensor> tensors,
                      findTensors(model, *weights));
  const WholeTensors whole(model, std::move(tensors));

  ModelShard part;
  part.config = stageConfig(model, {stage, ranks}, layers);
  ShardedWeights::Shards shards;
  for (const ListedTensor &own : listTensors(part.config)) {
    KF_ASSIGN_OR_RETURN(const ListedTensor *const found,
                        whole.find(keyInModel(model, layers, own.key)));
    const ListedTensor &tensor = *found;
    KF_ASSIGN_OR_RETURN(const TensorView view, weights->describe(tensor.name));
    const int64_t rows = view.shape.front();
    shards[own.name] = {tensor.name, 0, {{0, rows}}, rows};
    // Factors of rows, of those that are kept in 8 bits.
    if (view.type == DataType::F8E4M3 && isFactor(tensor))
      shards[scaleName(own.name)] = {
          scaleName(tensor.name), 0, {{0, rows}}, rows, /*isListed=*/false};
  }
  KF_ASSIGN_OR_RETURN(part.weights, ShardedWeights::create(std::move(weights),
                                                           std::move(shards)));
  return part;
} catch (...) {
  return statusOfException();
}

Result<ModelShard> kf::partOfRank(const ModelConfig &model,
                                  std::shared_ptr<const WeightSource> weights,
                                  int64_t rank, int64_t ranks,
                                  Parallelism kind) {
  switch (kind) {
  case Parallelism::Tensor:
    return shardModel(model, std::move(weights), rank, ranks);
  case Parallelism::Pipeline:
    return cutModel(model, std::move(weights), rank, ranks);
  case Parallelism::Context:
    return shareContext(model, std::move(weights), rank, ranks);
  }
  return Status::error("ranks share a model in no known way",
                       StatusCode::Internal);
}
