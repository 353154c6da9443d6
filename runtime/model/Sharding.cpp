//===- Sharding.cpp - One rank's part of a model --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Sharding.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/NumbersText.h"
#include "runtime/io/ShardedWeights.h"
#include "runtime/model/WholeTensors.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

using namespace kf;

namespace {

using Range = TensorShard::Range;

/// Whether each of `ranks` has some of `rows` rows, ceil(rows / ranks) at most.
bool haveRows(int64_t ranks, int64_t rows) {
  return (ranks - 1) * ((rows + ranks - 1) / ranks) < rows;
}

/// The numbers of KV heads that layers have, in order.
std::vector<int64_t> kvHeadsOf(const ModelConfig &model) {
  std::set<int64_t> numbers;
  for (int64_t i = 0; i < model.layers; ++i)
    numbers.insert(model.layer(i).kvHeads);
  return {numbers.begin(), numbers.end()};
}

/// What has a model run on one rank alone; empty where several share it.
std::string_view whyAlone(const ModelConfig &model) {
  // All heads attend to the rows that keys and values are made of; what makes a
  // head's part of them is not shared out.
  if (model.latent.width > 0)
    return "models with latent attention";
  if (model.hasStates())
    return "models whose layers keep states";
  if (model.gatedAttention)
    return "models whose attention has gates";
  return {};
}

bool isPossible(const ModelConfig &model, int64_t ranks) {
  if (!whyAlone(model).empty())
    return ranks == 1;
  return model.heads % ranks == 0 &&
         std::ranges::all_of(kvHeadsOf(model),
                             [ranks](int64_t kvHeads) {
                               return kvHeads % ranks == 0 ||
                                      ranks % kvHeads == 0;
                             }) &&
         haveRows(ranks, model.vocabSize) && haveRows(ranks, model.hiddenSize);
}

/// What a layer's, or the model's, tensor `key` is called: "mlp.up_proj.weight"
/// of "layers.3.mlp.up_proj.weight".
std::string_view nameIn(const TensorNames &names, std::string_view key) {
  const std::string layer = std::string(names.layer) + ".";
  if (!key.starts_with(layer))
    return key;
  key.remove_prefix(layer.size());
  return key.substr(key.find('.') + 1);
}

/// The same without the last word: "mlp.up_proj".
std::string_view partOf(const TensorNames &names, std::string_view key) {
  const std::string_view name = nameIn(names, key);
  return name.substr(0, name.rfind('.'));
}

/// The number of the layer that `key` is of; that behind the last where it is
/// of none.
int64_t layerOf(const ModelConfig &model, std::string_view key) {
  const std::string layer = std::string(tensorNames(model).layer) + ".";
  int64_t number = model.layers;
  if (key.starts_with(layer))
    std::from_chars(key.data() + layer.size(), key.data() + key.size(), number);
  return number;
}

/// Whether `tensor` is the matrix `part` of some expert, or its bias.
bool isOfExpert(const TensorNames &names, const ListedTensor &tensor,
                std::string_view part) {
  if (!tensor.ofExpert)
    return false;
  const std::string_view own = partOf(names, tensor.key);
  if (names.experts.empty()) // "<part>.<expert>"
    return own.substr(0, own.rfind('.')) == part;
  return own.ends_with("." + std::string(part));
}

/// Which rows or columns of a matrix, as products see it, a rank keeps.
struct Slice {
  bool ofColumns = false;
  std::vector<Range> ranges;
  int64_t extent = 0;
};

/// Says what a rank keeps of a tensor of the whole model.
class Sharder {
public:
  Sharder(const ModelConfig &whole, const ModelConfig &local, int64_t rank,
          const ListedTensor &tensor)
      : whole(whole), local(local), names(tensorNames(whole)), rank(rank),
        tensor(tensor), wholeLayer(whole.layer(layerOf(whole, tensor.key))),
        localLayer(local.layer(layerOf(whole, tensor.key))) {}

  Slice slice() const {
    if (tensor.role == ListedTensor::Role::RopeFactors)
      return all();
    if (tensor.ofExpert)
      return ofExpert();
    if (whole.attentionSinks && nameIn(names, tensor.key) == names.sinks)
      return rowsOf({{rank * local.heads, local.heads}});
    const std::string_view part = partOf(names, tensor.key);
    if (part == names.query)
      return rowsOf({queries()});
    if (part == names.key || part == names.value)
      return rowsOf({keys()});
    if (part == names.fusedQkv && !names.fusedQkv.empty())
      return rowsOf({queries(), after(keys(), whole.heads),
                     after(keys(), whole.heads + wholeLayer.kvHeads)});
    if (whole.qkNorm == QkNorm::Width && part == names.queryNorm)
      return rowsOf({queries()});
    if (whole.qkNorm == QkNorm::Width && part == names.keyNorm)
      return rowsOf({keys()});
    if (part == names.output)
      return local.outputByRows ? share(whole.hiddenSize)
                                : columnsOf(rowsOf({queries()}));
    if (part == names.gate || part == names.up)
      return inner();
    if (part == names.down)
      return columnsOf(inner());
    if (whole.experts.sharedWidth > 0) {
      if (part == names.sharedGate || part == names.sharedUp)
        return sharedInner();
      if (part == names.sharedDown)
        return columnsOf(sharedInner());
    }
    if (part == names.head)
      return share(whole.vocabSize);
    return all();
  }

private:
  Slice ofExpert() const {
    const Slice inner = padded(whole.experts.width, local.experts.width);
    return isOfExpert(names, tensor, names.expertDown) ? columnsOf(inner)
                                                       : inner;
  }

  Slice all() const {
    return {false, {{0, tensor.shape.front()}}, tensor.shape.front()};
  }

  static Slice rowsOf(std::vector<Range> ranges) {
    int64_t rows = 0;
    for (const Range &range : ranges)
      rows += range.count;
    return {false, std::move(ranges), rows};
  }

  /// What columns a rank has adds up to the result; so does the bias, once.
  Slice columnsOf(const Slice &columns) const {
    if (tensor.role != ListedTensor::Role::Bias)
      return {true, columns.ranges, columns.extent};
    return rank == 0 ? all() : Slice{false, {}, tensor.shape.front()};
  }

  /// `each` of `rows` for each rank, as far as they reach.
  Slice padded(int64_t rows, int64_t each) const {
    const int64_t first = std::min(rank * each, rows);
    return {false, {{first, std::min(each, rows - first)}}, each};
  }
  Slice share(int64_t rows) const {
    return padded(rows, local.sharedRows(rows));
  }
  Slice inner() const {
    return padded(wholeLayer.intermediateSize, localLayer.intermediateSize);
  }
  Slice sharedInner() const {
    return padded(whole.experts.sharedWidth, local.experts.sharedWidth);
  }

  Range heads(int64_t first, int64_t count) const {
    return {first * wholeLayer.headDim, count * wholeLayer.headDim};
  }
  Range queries() const { return heads(rank * local.heads, local.heads); }
  Range keys() const {
    return heads(rank * wholeLayer.kvHeads / local.ranks, localLayer.kvHeads);
  }
  Range after(Range range, int64_t heads) const {
    return {range.first + heads * wholeLayer.headDim, range.count};
  }

  const ModelConfig &whole, &local;
  const TensorNames &names;
  int64_t rank;
  const ListedTensor &tensor;
  LayerConfig wholeLayer, localLayer; ///< that the tensor is of
};

/// Which tensors a matrix is one of.
using IsOne = std::function<bool(const ListedTensor &tensor)>;

/// Elements of the largest blocks along the columns of the matrices of `isOne`.
Result<int64_t> blockOf(const std::vector<ListedTensor> &tensors,
                        const WeightSource &weights, const IsOne &isOne) {
  int64_t most = 1;
  for (const ListedTensor &tensor : tensors)
    if (tensor.role == ListedTensor::Role::Matrix && !tensor.transposed &&
        isOne(tensor)) {
      KF_ASSIGN_OR_RETURN(const TensorView view, weights.describe(tensor.name));
      most = std::max(most, elementsPerBlock(view.type));
    }
  return most;
}

/// What a rank has of `columns` columns in blocks of `block`.
int64_t shareOf(int64_t columns, int64_t block, int64_t ranks) {
  return (columns + ranks * block - 1) / (ranks * block) * block;
}

/// The sizes of one rank.
Result<ModelConfig> localConfig(const ModelConfig &whole, int64_t ranks,
                                const std::vector<ListedTensor> &tensors,
                                const WeightSource &weights) {
  const TensorNames &names = tensorNames(whole);
  auto called = [&](std::string_view part) -> IsOne {
    return [&names, part](const ListedTensor &tensor) {
      return !tensor.ofExpert && partOf(names, tensor.key) == part;
    };
  };
  auto isExpertDown = [&](const ListedTensor &tensor) {
    return isOfExpert(names, tensor, names.expertDown);
  };
  KF_ASSIGN_OR_RETURN(const int64_t inner,
                      blockOf(tensors, weights, called(names.down)));
  KF_ASSIGN_OR_RETURN(const int64_t output,
                      blockOf(tensors, weights, called(names.output)));
  ModelConfig local = whole;
  local.ranks = ranks;
  local.heads = whole.heads / ranks;
  local.kvHeads = std::max<int64_t>(whole.kvHeads / ranks, 1);
  local.intermediateSize = shareOf(whole.intermediateSize, inner, ranks);
  for (LayerConfig &layer : local.layerConfigs) {
    if (layer.gateCutoff)
      layer.gateColumns = layer.intermediateSize ? layer.intermediateSize
                                                 : whole.intermediateSize;
    if (layer.kvHeads)
      layer.kvHeads = std::max<int64_t>(layer.kvHeads / ranks, 1);
    if (layer.intermediateSize)
      layer.intermediateSize = shareOf(layer.intermediateSize, inner, ranks);
  }
  for (int64_t i = 0; i < local.layers; ++i)
    local.outputByRows |= local.heads * local.layer(i).headDim % output != 0;
  if (whole.experts.count > 0) {
    KF_ASSIGN_OR_RETURN(const int64_t expert,
                        blockOf(tensors, weights, isExpertDown));
    local.experts.width = shareOf(whole.experts.width, expert, ranks);
    KF_ASSIGN_OR_RETURN(const int64_t shared,
                        blockOf(tensors, weights, called(names.sharedDown)));
    local.experts.sharedWidth =
        shareOf(whole.experts.sharedWidth, shared, ranks);
  }
  local.tiedEmbeddings = false; // the table is whole, the output matrix is not
  return local;
}

} // namespace

std::vector<StepCollectives> kf::collectivesOf(const ModelConfig &shard) {
  using enum CollectiveSpec::Kind;
  std::vector<StepCollectives> all;
  if (shard.stage.count > 1) {
    if (!shard.stage.isFirst())
      all.push_back({Receive, 1, shard.hiddenSize});
    if (!shard.stage.isLast())
      all.push_back({Send, 1, shard.hiddenSize});
    return all;
  }
  const int64_t layers = shard.layers;
  if (shard.contextRanks > 1) {
    std::map<int64_t, int64_t> parts; // layers, by the columns of their parts
    for (int64_t i = 0; i < layers; ++i)
      ++parts[shard.heads * (shard.layer(i).headDim + 2)];
    for (const auto &[columns, count] : parts)
      all.push_back({AllGather, count, columns});
    return all;
  }
  int64_t sums = shard.outputByRows ? layers : 2 * layers;
  if (shard.experts.besideBlock)
    for (int64_t i = 0; i < layers; ++i)
      sums += shard.hasExperts(i);
  all.push_back({AllReduce, sums, shard.hiddenSize});
  int64_t means = shard.qkNorm == QkNorm::Width ? 2 * layers : 0;
  for (const LayerConfig &layer : shard.layerConfigs)
    means += layer.gateCutoff ? 2 : 0;
  if (means > 0)
    all.push_back({AllReduce, means, 1});
  if (shard.outputByRows) {
    std::map<int64_t, int64_t> rows; // layers, by what they gather
    for (int64_t i = 0; i < layers; ++i)
      ++rows[shard.heads * shard.layer(i).headDim];
    for (const auto &[columns, count] : rows)
      all.push_back({AllGather, count, columns});
    all.push_back({AllGather, layers, shard.sharedRows(shard.hiddenSize)});
  }
  all.push_back(
      {AllGather, 1, shard.sharedRows(shard.vocabSize), /*ofWanted=*/true});
  return all;
}

std::vector<int64_t> kf::possibleRanks(const ModelConfig &model) {
  std::vector<int64_t> possible;
  for (int64_t ranks = 1; ranks <= std::min(model.heads, kMaxRanks); ++ranks)
    if (isPossible(model, ranks))
      possible.push_back(ranks);
  return possible;
}

Status kf::checkRank(int64_t rank, int64_t ranks) {
  if (ranks >= 2 && rank >= 0 && rank < ranks)
    return Status();
  return Status::error("there is no rank " + std::to_string(rank) + " of " +
                       std::to_string(ranks) + " that share a model");
}

Result<ModelShard> kf::shardModel(const ModelConfig &model,
                                  std::shared_ptr<const WeightSource> weights,
                                  int64_t rank, int64_t ranks) try {
  KF_RETURN_IF_ERROR(checkRank(rank, ranks));
  if (const std::string_view why = whyAlone(model); !why.empty())
    return Status::error(std::to_string(ranks) + " ranks cannot share " +
                         std::string(why) + "; 1 can");
  const std::vector<int64_t> possible = possibleRanks(model);
  if (std::ranges::find(possible, ranks) == possible.end())
    return Status::error(std::to_string(ranks) +
                         " ranks cannot share the model's " +
                         std::to_string(model.heads) + " heads, " +
                         numbersText(kvHeadsOf(model)) + " KV heads and " +
                         std::to_string(model.vocabSize) + " tokens; " +
                         numbersText(possible) + " can");
  KF_ASSIGN_OR_RETURN(std::vector<ListedTensor> tensors,
                      findTensors(model, *weights));
  const WholeTensors whole(model, std::move(tensors));
  ModelShard shard;
  KF_ASSIGN_OR_RETURN(shard.config,
                      localConfig(model, ranks, whole.all(), *weights));

  ShardedWeights::Shards shards;
  for (const ListedTensor &own : listTensors(shard.config)) {
    KF_ASSIGN_OR_RETURN(const ListedTensor *const found, whole.find(own.key));
    ListedTensor tensor = *found;
    tensor.key = own.key;
    const Slice slice = Sharder(model, shard.config, rank, tensor).slice();
    shards[own.name] = {tensor.name,
                        slice.ofColumns != tensor.transposed ? size_t(1)
                                                             : size_t(0),
                        slice.ranges, slice.extent};
    KF_ASSIGN_OR_RETURN(const TensorView view, weights->describe(tensor.name));
    // Factors of rows, of those that are kept in 8 bits.
    if (view.type == DataType::F8E4M3 && isFactor(tensor)) {
      TensorShard scales = {scaleName(tensor.name), 0, slice.ranges,
                            slice.extent, /*isListed=*/false};
      if (slice.ofColumns) {
        scales.ranges = {{0, tensor.shape.front()}};
        scales.extent = tensor.shape.front();
      }
      shards[scaleName(own.name)] = std::move(scales);
    }
  }
  KF_ASSIGN_OR_RETURN(shard.weights, ShardedWeights::create(std::move(weights),
                                                            std::move(shards)));
  return shard;
} catch (...) {
  return statusOfException();
}
