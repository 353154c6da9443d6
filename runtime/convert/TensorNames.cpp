//===- TensorNames.cpp - Hugging Face's tensors in GGUF -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorNames.h"

#include "runtime/convert/LinearRows.h"
#include "runtime/convert/ModelMetadata.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufRope.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <span>

using namespace kf;

namespace {

/// `found` in the file where it is called `name`.
ConvertedTensor convertTensor(const ModelConfig &config,
                              const TensorNames &names,
                              const ListedTensor &found, std::string name) {
  ConvertedTensor result;
  result.name = std::move(name);
  result.source = found.name;
  result.shape = found.shape;
  result.headDim = config.headDim;
  auto isPart = [&](std::string_view part) {
    return !part.empty() &&
           found.key.find("." + std::string(part) + ".") != std::string::npos;
  };
  const bool halves = isInterleavedInGguf(ggufArchitecture(config)) &&
                      !familyOf(config.architecture).interleavedRope;
  if (halves && (isPart(names.query) || isPart(names.key)))
    result.order = TensorOrder::HalvesOfHeads;
  if (found.transposed)
    result.order = TensorOrder::Transposed;
  // Norms multiply by what a file has.
  if (config.zeroCenteredNorms && found.role == ListedTensor::Role::NormWeight)
    result.added = 1;
  return result;
}

/// Makes two tensors of one for q, k, v and z, which are called as `named` and
/// the one behind it.
void convertQkvz(const ModelConfig &config, const ListedTensor &found,
                 const ListedTensor *named,
                 std::vector<ConvertedTensor> &tensors) {
  const QkvzRows rows = splitQkvz(config.linear);
  for (const auto &part : {rows.qkv, rows.z})
    tensors.push_back({.name = (named++)->name,
                       .source = found.name,
                       .shape = {0, found.shape.back()},
                       .rows = part,
                       .values = {}});
  for (ConvertedTensor &tensor : std::span(tensors).last(2))
    for (const RowRange &range : tensor.rows)
      tensor.shape.front() += range.count;
}

/// Makes one tensor, `<prefix><joined>.weight`, of those that follow one
/// another as `<prefix><part>.weight`, for each `prefix`.
void join(const std::vector<std::string_view> &parts, std::string_view joined,
          std::vector<ConvertedTensor> &tensors) {
  const std::string first = "." + std::string(parts.front()) + ".weight";
  std::vector<ConvertedTensor> result;
  for (auto next = tensors.begin(); next != tensors.end();) {
    result.push_back(std::move(*next++));
    ConvertedTensor &whole = result.back();
    if (!whole.name.ends_with(first))
      continue;
    whole.name.resize(whole.name.size() - first.size());
    for (size_t i = 1; i < parts.size(); ++i) {
      assert(next->name ==
                 whole.name + "." + std::string(parts[i]) + ".weight" &&
             "a layer's tensors are listed in this order");
      whole.following.push_back(std::move(next->source));
      whole.shape.front() += next->shape.front();
      ++next;
    }
    whole.name += "." + std::string(joined) + ".weight";
  }
  tensors = std::move(result);
}

/// Adds the tensor `found`, one of `count`, to the one that has all of them,
/// `stack`, which the first of them begins. Several stacks may grow in turns:
/// at most six.
void addToStack(int64_t count, const ListedTensor &found,
                const std::string &stack,
                std::vector<ConvertedTensor> &tensors) {
  const auto begun = std::find_if(
      tensors.end() - std::min<ptrdiff_t>(tensors.size(), 6), tensors.end(),
      [&](const ConvertedTensor &tensor) { return tensor.name == stack; });
  if (begun != tensors.end()) {
    begun->following.push_back(found.name);
    return;
  }
  std::vector<int64_t> shape = found.shape;
  shape.insert(shape.begin(), count);
  tensors.push_back(
      {.name = stack,
       .source = found.name,
       .shape = std::move(shape),
       .order = found.transposed ? TensorOrder::Transposed : TensorOrder::Same,
       .values = {}});
}

/// Adds the matrix `found` of one of a layer's `count` experts, which is called
/// `name`, "<part>.<expert>.weight", or its bias, ".bias", to the stack of
/// them. An expert's three matrices follow one another in the list, each with
/// its bias if it has one, and experts do.
void stackExpert(int64_t count, const ListedTensor &found,
                 const std::string &name,
                 std::vector<ConvertedTensor> &tensors) {
  const size_t kind = name.rfind('.');
  const std::string_view numbered = std::string_view(name).substr(0, kind);
  const size_t dot = numbered.rfind('.');
  addToStack(count, found,
             TensorNames::ggufStack(numbered.substr(0, dot)) +
                 name.substr(kind),
             tensors);
}

/// The same of a head of latent attention, whose matrix is called `name`,
/// "<layer><keysValues>.<head>.<part>.weight".
void stackHead(const ModelConfig &target, const ListedTensor &found,
               const std::string &name, std::vector<ConvertedTensor> &tensors) {
  const TensorNames &names = tensorNames(target);
  const bool isKeys = name.ends_with(".keys.weight");
  const size_t layer = name.find(names.keysValues);
  addToStack(target.heads, found,
             name.substr(0, layer) +
                 std::string(isKeys ? names.stackedKeys : names.stackedValues) +
                 ".weight",
             tensors);
}

/// Whether `name`, "<part>.<stream>.weight", is one of the matrices of streams;
/// adds it to the stack of them if it is.
bool stackStream(const ModelConfig &target, const ListedTensor &found,
                 const std::string &name,
                 std::vector<ConvertedTensor> &tensors) {
  const TensorNames &names = tensorNames(target);
  for (std::string_view part : {names.streamProjections, names.streamEnds})
    if (target.streams.count > 1 && name.starts_with(std::string(part) + ".")) {
      addToStack(target.streams.count - 1, found, std::string(part) + ".weight",
                 tensors);
      return true;
    }
  return false;
}

/// Gives a table of tokens' inputs as many rows as there are tokens. Others
/// look up row 0.
void fitTokenInputs(const ModelConfig &config, ConvertedTensor &table) {
  const int64_t rows = table.shape.front();
  if (rows == config.vocabSize)
    return;
  table.rows.push_back({0, std::min(rows, config.vocabSize)});
  for (int64_t i = rows; i < config.vocabSize; ++i)
    table.rows.push_back({0, 1});
  table.shape.front() = config.vocabSize;
}

/// Adds what `weights` have of keys and values of layers that attend to another
/// one's: nothing reads them, but llama.cpp expects Gemma 3n's.
void addUnusedKeys(const ModelConfig &config, const ModelConfig &target,
                   std::string_view prefix, const WeightSource &weights,
                   std::vector<ConvertedTensor> &tensors) {
  const TensorNames &names = tensorNames(config), &named = tensorNames(target);
  for (int64_t i = 0; i < config.layers; ++i) {
    if (!config.layerConfigs[i].keysOf)
      continue;
    const std::string end = "." + std::to_string(i) + ".";
    for (auto [from, to] :
         {std::pair(names.key, named.key), std::pair(names.value, named.value),
          std::pair(names.keyNorm, named.keyNorm)}) {
      const std::string source = std::string(prefix) +
                                 std::string(names.layer) + end +
                                 std::string(from) + ".weight";
      const Result<TensorView> view = weights.describe(source);
      if (view.ok() && isFloat(view->type))
        tensors.push_back({.name = std::string(named.layer) + end +
                                   std::string(to) + ".weight",
                           .source = source,
                           .shape = view->shape,
                           .values = {}});
    }
  }
}

} // namespace

Result<std::vector<ConvertedTensor>>
kf::listConvertedTensors(const ModelConfig &config,
                         const WeightSource &weights) {
  KF_ASSIGN_OR_RETURN(std::vector<ListedTensor> found,
                      findTensors(config, weights));
  // The same tensors in the same order, under their names in GGUF.
  ModelConfig target = config;
  target.naming = TensorNaming::Gguf;
  target.architecture = ggufArchitecture(config);
  const std::vector<ListedTensor> named = listTensors(target);
  const TensorNames &names = tensorNames(config);
  const std::string qkvz = "." + std::string(names.linearQkvz) + ".weight";
  const auto *next = named.data(); // what the one in `found` is called
  const std::string sharedRouter =
      "." + std::string(tensorNames(target).sharedRouter) + ".weight";
  std::vector<ConvertedTensor> tensors;
  for (size_t i = 0; i < found.size(); ++i, ++next) {
    KF_ASSIGN_OR_RETURN(const TensorView view, weights.describe(found[i].name));
    if (!isFloat(view.type) && !isBlock(view.type) &&
        view.type != DataType::F8E4M3)
      return Status::error("checkpoint tensor '" + found[i].name +
                           "' has elements of " +
                           std::string(nameOf(view.type)) +
                           ", where floats or blocks are expected");
    if (isBlock(view.type) && found[i].transposed)
      return Status::error("checkpoint tensor '" + found[i].name +
                           "' is quantized, so it cannot be transposed");
    if (found[i].ofExpert) {
      stackExpert(config.experts.count, found[i], next->name, tensors);
      continue;
    }
    if (found[i].ofHead) {
      stackHead(target, found[i], next->name, tensors);
      continue;
    }
    if (stackStream(target, found[i], next->name, tensors))
      continue;
    if (names.joinsQkvz(config.linear) && found[i].key.ends_with(qkvz)) {
      convertQkvz(config, found[i], next++, tensors);
      continue;
    }
    tensors.push_back(convertTensor(config, names, found[i], next->name));
    ConvertedTensor &last = tensors.back();
    if (config.tokenInputWidth > 0 &&
        found[i].key == std::string(names.tokenInputs) + ".weight")
      fitTokenInputs(config, last);
    if (config.hasStates())
      convertLinear(config, found[i], tensorNames(target).tiledHeads, last);
    if (last.name.ends_with(sharedRouter)) // [1, D]
      last.shape.erase(last.shape.begin());
  }
  assert(next == named.data() + named.size() && "both list one model");
  const bool prefixed = found.front().name != found.front().key;
  addUnusedKeys(config, target, prefixed ? names.prefix : std::string_view(),
                weights, tensors);
  if (config.architecture == Architecture::Phi3) {
    const TensorNames &parts = tensorNames(target);
    join({parts.query, parts.key, parts.value}, "attn_qkv", tensors);
    join({parts.gate, parts.up}, parts.up, tensors);
  }
  const RopeConfig *rope = ggufRopes(config).full;
  auto addTable = [&](std::string_view name, std::vector<float> values) {
    const auto count = static_cast<int64_t>(values.size());
    tensors.push_back({.name = std::string(name),
                       .source = "",
                       .shape = {count},
                       .values = std::move(values)});
  };
  if (rope && familyOf(config.architecture).proportionalRope) {
    std::vector<float> factors = ropeFactors(*rope);
    if (factors.empty()) // readers expect the table
      factors.assign(static_cast<size_t>(rope->dim / 2), 1);
    addTable("rope_freqs.weight", std::move(factors));
  }
  if (rope && rope->scaling == RopeConfig::Scaling::LongRope) {
    addTable(kGgufLongFactors, rope->longFactors);
    addTable(kGgufShortFactors, rope->shortFactors);
  }
  if (rope && rope->scaling == RopeConfig::Scaling::Llama3)
    addTable("rope_freqs.weight", llama3FrequencyFactors(*rope));
  return tensors;
}

std::vector<float> kf::llama3FrequencyFactors(const RopeConfig &rope) {
  // Waves that fit into the original context more than highFreqFactor times
  // keep their frequency, those that fit less than lowFreqFactor times are
  // slowed down by the factor; between, the frequency is interpolated.
  std::vector<float> factors;
  for (int64_t i = 0; i < rope.dim / 2; ++i) {
    const double exponent =
        2 * static_cast<double>(i) / static_cast<double>(rope.dim);
    const double wave = 2 * std::numbers::pi * std::pow(rope.theta, exponent);
    const double fits = static_cast<double>(rope.originalContext) / wave;
    const double range = rope.highFreqFactor - rope.lowFreqFactor;
    const double above = fits - rope.lowFreqFactor;
    const double kept = range > 0    ? std::clamp(above / range, 0.0, 1.0)
                        : above >= 0 ? 1.0
                                     : 0.0;
    factors.push_back(
        static_cast<float>(1 / (kept + (1 - kept) / rope.factor)));
  }
  return factors;
}
