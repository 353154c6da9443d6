//===- TensorNames.cpp - Hugging Face's tensors in GGUF -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorNames.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufRope.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

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

/// Adds the matrix `found` of one of a layer's `count` experts, which is called
/// `name`, "<part>.<expert>.weight", or its bias, ".bias", to the stack of
/// them, which the first expert's begins. An expert's three matrices follow one
/// another in the list, each with its bias if it has one, and experts do.
void stackExpert(int64_t count, const ListedTensor &found,
                 const std::string &name,
                 std::vector<ConvertedTensor> &tensors) {
  const size_t kind = name.rfind('.');
  const std::string_view numbered = std::string_view(name).substr(0, kind);
  const size_t dot = numbered.rfind('.');
  const std::string stack =
      TensorNames::ggufStack(numbered.substr(0, dot)) + name.substr(kind);
  const auto begun = std::find_if(
      tensors.end() - std::min<ptrdiff_t>(tensors.size(), 6), tensors.end(),
      [&](const ConvertedTensor &tensor) { return tensor.name == stack; });
  if (begun != tensors.end()) {
    begun->following.push_back(found.name);
    return;
  }
  std::vector<int64_t> shape = found.shape;
  shape.insert(shape.begin(), count);
  tensors.push_back({.name = stack,
                     .source = found.name,
                     .shape = std::move(shape),
                     .values = {}});
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
  assert(named.size() == found.size() && "both list one model's tensors");
  const std::string sharedRouter =
      "." + std::string(tensorNames(target).sharedRouter) + ".weight";
  std::vector<ConvertedTensor> tensors;
  for (size_t i = 0; i < found.size(); ++i) {
    KF_ASSIGN_OR_RETURN(const TensorView view, weights.describe(found[i].name));
    if (!isFloat(view.type) && !isBlock(view.type) &&
        view.type != DataType::F8E4M3)
      return Status::error("checkpoint tensor '" + found[i].name +
                           "' has elements of " +
                           std::string(nameOf(view.type)) +
                           ", where floats or blocks are expected");
    if (found[i].ofExpert) {
      stackExpert(config.experts.count, found[i], named[i].name, tensors);
      continue;
    }
    tensors.push_back(
        convertTensor(config, tensorNames(config), found[i], named[i].name));
    ConvertedTensor &last = tensors.back();
    if (last.name.ends_with(sharedRouter)) // [1, D]
      last.shape.erase(last.shape.begin());
    if (isBlock(view.type) && found[i].transposed)
      return Status::error("checkpoint tensor '" + found[i].name +
                           "' is quantized, so it cannot be transposed");
  }
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
  if (rope && rope->scaling == RopeConfig::Scaling::LongRope) {
    addTable(kGgufLongFactors, rope->longFactors);
    addTable(kGgufShortFactors, rope->shortFactors);
  }
  if (rope && rope->scaling == RopeConfig::Scaling::Llama3)
    addTable("rope_freqs.weight",
             llama3FrequencyFactors(*rope, config.headDim));
  return tensors;
}

std::vector<float> kf::llama3FrequencyFactors(const RopeConfig &rope,
                                              int64_t headDim) {
  // Waves that fit into the original context more than highFreqFactor times
  // keep their frequency, those that fit less than lowFreqFactor times are
  // slowed down by the factor; between, the frequency is interpolated.
  std::vector<float> factors;
  for (int64_t i = 0; i < headDim / 2; ++i) {
    const double exponent =
        2 * static_cast<double>(i) / static_cast<double>(headDim);
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
