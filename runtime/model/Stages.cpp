//===- Stages.cpp - Layers of a model on one rank -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Stages.h"

#include "runtime/core/Exceptions.h"
#include "runtime/io/ShardedWeights.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <cassert>
#include <map>
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

/// Whether a stage has what its layers read of others, and all kinds of caches
/// that the model has: rank 0 counts in its own what all have.
bool isStage(const ModelConfig &model, const Layers &layers) {
  bool hasStates = false, hasKeys = false;
  for (int64_t i = layers.first; i < layers.end(); ++i) {
    const LayerConfig layer = model.layer(i);
    (layer.isLinear ? hasStates : hasKeys) = true;
    if (layer.keysOf && *layer.keysOf < layers.first)
      return false;
  }
  return !model.hasStates() || (hasStates && hasKeys);
}

bool isPossible(const ModelConfig &model, int64_t stages) {
  for (int64_t stage = 0; stage < stages; ++stage)
    if (!isStage(model, layersOf(stage, stages, model.layers)))
      return false;
  return true;
}

/// "1, 2 and 4".
std::string listOf(const std::vector<int64_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0                    ? ""
             : i + 1 == numbers.size() ? " and "
                                       : ", ") +
            std::to_string(numbers[i]);
  return text;
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
  return parallelism == Parallelism::Pipeline ? "--pipeline-parallel"
                                              : "--tensor-parallel";
}

std::vector<int64_t> kf::possibleStages(const ModelConfig &model) {
  std::vector<int64_t> possible = {1};
  for (int64_t stages = 2; stages <= std::min(model.layers, kMaxRanks);
       ++stages)
    if (whyWhole(model).empty() && isPossible(model, stages))
      possible.push_back(stages);
  return possible;
}

Result<ModelShard> kf::cutModel(const ModelConfig &model,
                                std::shared_ptr<const WeightSource> weights,
                                int64_t rank, int64_t ranks) try {
  if (ranks < 2 || rank < 0 || rank >= ranks)
    return Status::error("there is no rank " + std::to_string(rank) + " of " +
                         std::to_string(ranks) +
                         " that have the stages of a model");
  if (const std::string_view why = whyWhole(model); !why.empty())
    return Status::error(std::string(why) + " are not cut into stages; leave "
                                            "--pipeline-parallel out");
  const std::vector<int64_t> possible = possibleStages(model);
  if (std::ranges::find(possible, ranks) == possible.end())
    return Status::error(
        "the model's " + std::to_string(model.layers) +
        " layers cannot be cut into " + std::to_string(ranks) + " stages" +
        (model.hasStates() ? " that have layers with states and with keys each"
                           : "") +
        (possible.size() == 1 ? "; leave --pipeline-parallel out"
                              : "; " + listOf(possible) + " are possible"));
  const int64_t stage = stageOfRank(rank, ranks);
  const Layers layers = layersOf(stage, ranks, model.layers);
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(model, *weights));
  std::map<std::string_view, const ListedTensor *> byKey;
  for (const ListedTensor &tensor : tensors)
    byKey[tensor.key] = &tensor;

  ModelShard part;
  part.config = stageConfig(model, {stage, ranks}, layers);
  ShardedWeights::Shards shards;
  for (const ListedTensor &own : listTensors(part.config)) {
    const auto found = byKey.find(keyInModel(model, layers, own.key));
    // The output matrix that the embedding table is, too, is made of that one.
    assert((found != byKey.end() || model.tiedEmbeddings) &&
           "stages have tensors of the whole model");
    const ListedTensor &tensor =
        found != byKey.end() ? *found->second : tensors.front();
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
  return kind == Parallelism::Pipeline
             ? cutModel(model, std::move(weights), rank, ranks)
             : shardModel(model, std::move(weights), rank, ranks);
}
