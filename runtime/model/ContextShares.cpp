//===- ContextShares.cpp - Positions of texts on several ranks ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ContextShares.h"

#include "runtime/core/Exceptions.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <string_view>
#include <utility>

using namespace kf;

namespace {

/// A model's weights, and a rank's number beside them. Safe to use as its
/// source is.
class NumberedWeights : public WeightSource {
public:
  NumberedWeights(std::shared_ptr<const WeightSource> source, int64_t rank)
      : source(std::move(source)), number(static_cast<float>(rank)) {}

  Result<TensorView> find(const std::string &name) const override {
    return name == kRankNumber ? view() : source->find(name);
  }
  Result<TensorView> describe(const std::string &name) const override {
    return name == kRankNumber ? view() : source->describe(name);
  }
  void release(const std::string &name) const override {
    if (name != kRankNumber)
      source->release(name);
  }
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override {
    if (name != kRankNumber)
      source->releasePart(name, first, bytes);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names = source->names();
    const std::string own(kRankNumber);
    const auto place = std::ranges::lower_bound(names, own);
    if (place == names.end() || *place != own)
      names.insert(place, own);
    return names;
  }

private:
  Result<TensorView> view() const {
    return TensorView{DataType::F32, {1}, &number, sizeof(number)};
  }

  std::shared_ptr<const WeightSource> source;
  float number;
};

/// What has ranks share no positions of the model's sequences; empty where they
/// may.
std::string_view whyNotShared(const ModelConfig &model) {
  if (model.hasStates())
    return "models with states of their sequences";
  // Positions of a window are not next to one another on a rank. One as long as
  // the longest text sees all of them.
  for (int64_t i = 0; i < model.layers; ++i)
    if (const int64_t window = model.layer(i).window;
        window > 0 && window < model.maxPositions)
      return "models whose layers attend to windows";
  return {};
}

} // namespace

Result<ModelShard> kf::shareContext(const ModelConfig &model,
                                    std::shared_ptr<const WeightSource> weights,
                                    int64_t rank, int64_t ranks) try {
  KF_RETURN_IF_ERROR(checkRank(rank, ranks));
  if (const std::string_view why = whyNotShared(model); !why.empty())
    return Status::error("the positions of " + std::string(why) +
                         " are not shared by ranks; leave --context-parallel "
                         "out");
  ModelShard part;
  part.config = model;
  part.config.contextRanks = ranks;
  part.weights = std::make_unique<NumberedWeights>(std::move(weights), rank);
  KF_RETURN_IF_ERROR(findTensors(part.config, *part.weights).status());
  return part;
} catch (...) {
  return statusOfException();
}
