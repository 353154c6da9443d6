//===- Sharding.cpp - One rank's part of a model --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Sharding.h"

#include "runtime/core/Exceptions.h"
#include "runtime/io/ShardedWeights.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <string>
#include <string_view>

using namespace kf;

namespace {

using Range = TensorShard::Range;

/// Whether each of `ranks` has some of `rows` rows, ceil(rows / ranks) at most.
bool haveRows(int64_t ranks, int64_t rows) {
  return (ranks - 1) * ((rows + ranks - 1) / ranks) < rows;
}

/// What has a model run on one rank alone; empty where several share it.
std::string_view whyAlone(const ModelConfig &model) {
  if (model.streams.count > 1)
    return "models of several streams";
  if (model.tokenInputWidth > 0)
    return "models whose layers have inputs of tokens";
  if (!model.hasEqualLayers())
    return "models whose layers differ in heads or width, or attend to another "
           "one's keys,";
  return {};
}

bool isPossible(const ModelConfig &model, int64_t ranks) {
  if (ranks > 1 && !whyAlone(model).empty())
    return false;
  return model.heads % ranks == 0 &&
         (model.kvHeads % ranks == 0 || ranks % model.kvHeads == 0) &&
         haveRows(ranks, model.vocabSize) && haveRows(ranks, model.hiddenSize);
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

class Sharder {
public:
  Sharder(const ModelConfig &whole, const ModelConfig &local, int64_t rank)
      : whole(whole), local(local), names(tensorNames(whole)), rank(rank) {}

  /// What this rank keeps of `tensor`, which is the whole model's.
  Slice sliceOf(const ListedTensor &tensor) const {
    if (tensor.role == ListedTensor::Role::RopeFactors)
      return all(tensor);
    if (tensor.ofExpert)
      return ofExpert(tensor);
    if (whole.attentionSinks && nameIn(names, tensor.key) == names.sinks)
      return rowsOf({{rank * local.heads, local.heads}});
    const std::string_view part = partOf(names, tensor.key);
    if (part == names.query)
      return rowsOf({queries()});
    if (part == names.key || part == names.value)
      return rowsOf({keys()});
    if (part == names.fusedQkv && !names.fusedQkv.empty())
      return rowsOf({queries(), after(keys(), whole.heads),
                     after(keys(), whole.heads + whole.kvHeads)});
    if (whole.qkNorm == QkNorm::Width && part == names.queryNorm)
      return rowsOf({queries()});
    if (whole.qkNorm == QkNorm::Width && part == names.keyNorm)
      return rowsOf({keys()});
    if (part == names.output)
      return local.outputByRows ? share(whole.hiddenSize)
                                : columnsOf(tensor, rowsOf({queries()}));
    if (part == names.gate || part == names.up)
      return inner();
    if (part == names.down)
      return columnsOf(tensor, inner());
    if (whole.experts.sharedWidth > 0) {
      if (part == names.sharedGate || part == names.sharedUp)
        return sharedInner();
      if (part == names.sharedDown)
        return columnsOf(tensor, sharedInner());
    }
    if (part == names.head)
      return share(whole.vocabSize);
    return all(tensor);
  }

private:
  Slice ofExpert(const ListedTensor &tensor) const {
    const Slice inner = padded(whole.experts.width, local.experts.width);
    return isOfExpert(names, tensor, names.expertDown)
               ? columnsOf(tensor, inner)
               : inner;
  }

  static Slice all(const ListedTensor &tensor) {
    return {false, {{0, tensor.shape.front()}}, tensor.shape.front()};
  }

  static Slice rowsOf(std::vector<Range> ranges) {
    int64_t rows = 0;
    for (const Range &range : ranges)
      rows += range.count;
    return {false, std::move(ranges), rows};
  }

  /// What columns a rank has adds up to the result; so does the bias, once.
  Slice columnsOf(const ListedTensor &tensor, const Slice &columns) const {
    if (tensor.role != ListedTensor::Role::Bias)
      return {true, columns.ranges, columns.extent};
    return rank == 0 ? all(tensor) : Slice{false, {}, tensor.shape.front()};
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
    return padded(whole.intermediateSize, local.intermediateSize);
  }
  Slice sharedInner() const {
    return padded(whole.experts.sharedWidth, local.experts.sharedWidth);
  }

  Range heads(int64_t first, int64_t count) const {
    return {first * whole.headDim, count * whole.headDim};
  }
  Range queries() const { return heads(rank * local.heads, local.heads); }
  Range keys() const {
    return heads(rank * whole.kvHeads / local.ranks, local.kvHeads);
  }
  Range after(Range range, int64_t heads) const {
    return {range.first + heads * whole.headDim, range.count};
  }

  const ModelConfig &whole, &local;
  const TensorNames &names;
  int64_t rank;
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
  ModelConfig local = whole;
  local.ranks = ranks;
  local.heads = whole.heads / ranks;
  local.kvHeads = std::max<int64_t>(whole.kvHeads / ranks, 1);
  KF_ASSIGN_OR_RETURN(const int64_t inner,
                      blockOf(tensors, weights, called(names.down)));
  local.intermediateSize = shareOf(whole.intermediateSize, inner, ranks);
  if (whole.experts.count > 0) {
    KF_ASSIGN_OR_RETURN(const int64_t expert,
                        blockOf(tensors, weights, isExpertDown));
    local.experts.width = shareOf(whole.experts.width, expert, ranks);
    KF_ASSIGN_OR_RETURN(const int64_t shared,
                        blockOf(tensors, weights, called(names.sharedDown)));
    local.experts.sharedWidth =
        shareOf(whole.experts.sharedWidth, shared, ranks);
  }
  KF_ASSIGN_OR_RETURN(const int64_t output,
                      blockOf(tensors, weights, called(names.output)));
  local.outputByRows = local.heads * local.headDim % output != 0;
  local.tiedEmbeddings = false; // the table is whole, the output matrix is not
  return local;
}

} // namespace

std::vector<StepCollectives> kf::collectivesOf(const ModelConfig &shard) {
  using enum CollectiveSpec::Kind;
  std::vector<StepCollectives> all;
  const int64_t layers = shard.layers;
  int64_t sums = shard.outputByRows ? layers : 2 * layers;
  if (shard.experts.besideBlock)
    for (int64_t i = 0; i < layers; ++i)
      sums += shard.hasExperts(i);
  all.push_back({AllReduce, sums, shard.hiddenSize});
  if (shard.qkNorm == QkNorm::Width)
    all.push_back({AllReduce, 2 * layers, 1});
  if (shard.outputByRows) {
    all.push_back({AllGather, layers, shard.heads * shard.headDim});
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

Result<ModelShard> kf::shardModel(const ModelConfig &model,
                                  std::shared_ptr<const WeightSource> weights,
                                  int64_t rank, int64_t ranks) try {
  if (const std::string_view kind = whyAlone(model); !kind.empty())
    return Status::error(std::string(kind) +
                         " are not shared out among ranks; only 1 can run "
                         "them");
  if (ranks < 2 || rank < 0 || rank >= ranks)
    return Status::error("there is no rank " + std::to_string(rank) + " of " +
                         std::to_string(ranks) + " that share a model");
  const std::vector<int64_t> possible = possibleRanks(model);
  if (std::ranges::find(possible, ranks) == possible.end())
    return Status::error(std::to_string(ranks) +
                         " ranks cannot share the model's " +
                         std::to_string(model.heads) + " heads, " +
                         std::to_string(model.kvHeads) + " KV heads and " +
                         std::to_string(model.vocabSize) + " tokens; " +
                         listOf(possible) + " can");
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(model, *weights));
  ModelShard shard;
  KF_ASSIGN_OR_RETURN(shard.config,
                      localConfig(model, ranks, tensors, *weights));
  std::map<std::string_view, const ListedTensor *> byKey;
  for (const ListedTensor &tensor : tensors)
    byKey[tensor.key] = &tensor;

  const Sharder sharder(model, shard.config, rank);
  ShardedWeights::Shards shards;
  for (const ListedTensor &own : listTensors(shard.config)) {
    const auto found = byKey.find(own.key);
    // The output matrix that the embedding table is, too, is made of that one.
    assert((found != byKey.end() || model.tiedEmbeddings) &&
           "ranks have the tensors of the whole model");
    ListedTensor tensor =
        found != byKey.end() ? *found->second : tensors.front();
    tensor.key = own.key;
    const Slice slice = sharder.sliceOf(tensor);
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
