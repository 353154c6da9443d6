//===- LoraConfig.cpp - Low-rank additions to a model's matrices ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LoraConfig.h"

#include "runtime/core/Quote.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace kf;

namespace {

/// Lists the modules of a model, layer by layer.
class ModuleLister {
public:
  explicit ModuleLister(const ModelConfig &config)
      : config(config), names(tensorNames(config)),
        theirs(tensorNames(huggingFace(config))) {
    for (ListedTensor &tensor : listTensors(config))
      if (tensor.role == ListedTensor::Role::Matrix)
        tensors.emplace(tensor.key, std::move(tensor));
  }

  std::vector<LoraModule> list() {
    for (layer = 0; layer < config.layers; ++layer)
      addLayer();
    return std::move(modules);
  }

private:
  using Member = std::string_view TensorNames::*;

  /// The same model as Hugging Face's checkpoints have it.
  static ModelConfig huggingFace(ModelConfig config) {
    config.naming = TensorNaming::HuggingFace;
    return config;
  }

  void addLayer() {
    const bool joined = config.architecture == Architecture::Phi3;
    add(theirs.fusedQkv, {&TensorNames::fusedQkv});
    if (joined) {
      add("self_attn.qkv_proj",
          {&TensorNames::query, &TensorNames::key, &TensorNames::value});
    } else {
      add(theirs.query, {&TensorNames::query});
      add(theirs.key, {&TensorNames::key});
      add(theirs.value, {&TensorNames::value});
    }
    add(theirs.output, {&TensorNames::output});
    if (joined) {
      add("mlp.gate_up_proj", {&TensorNames::gate, &TensorNames::up});
    } else {
      add(theirs.gate, {&TensorNames::gate});
      add(theirs.up, {&TensorNames::up});
    }
    add(theirs.down, {&TensorNames::down});
  }

  /// The module `name` of this layer, if the layer has its tensors.
  void add(std::string_view name, std::initializer_list<Member> members) {
    LoraModule module;
    const std::string number = "." + std::to_string(layer) + ".";
    for (const Member member : members) {
      const std::string_view part = names.*member;
      const auto it = tensors.find(std::string(names.layer) + number +
                                   std::string(part) + ".weight");
      if (part.empty() || it == tensors.end())
        return;
      const ListedTensor &tensor = it->second;
      module.in = tensor.shape[1];
      module.transposed = tensor.transposed;
      module.parts.push_back({.key = tensor.key,
                              .firstRow = module.out,
                              .rows = tensor.shape[0],
                              .pairedRows = pairedRows(member)});
      module.out += tensor.shape[0];
    }
    module.layer = layer;
    module.name = std::string(theirs.prefix) + std::string(theirs.layer) +
                  number + std::string(name);
    modules.push_back(std::move(module));
  }

  int64_t pairedRows(Member member) const {
    const bool turned =
        member == &TensorNames::query || member == &TensorNames::key;
    const bool paired = config.naming == TensorNaming::Gguf &&
                        isInterleavedInGguf(config.architecture) &&
                        !familyOf(config.architecture).interleavedRope;
    return turned && paired ? config.layer(layer).headDim : 0;
  }

  const ModelConfig &config;
  /// Of the model's tensors, and of Hugging Face's modules.
  const TensorNames &names, &theirs;
  std::map<std::string, ListedTensor> tensors; ///< matrices, by key
  std::vector<LoraModule> modules;
  int64_t layer = 0;
};

/// What targets may be: the modules' names in a layer, in quotes.
std::string targetNames(const std::vector<LoraModule> &modules) {
  std::string text;
  std::set<std::string_view> listed;
  for (const LoraModule &module : modules) {
    const std::string_view name =
        std::string_view(module.name).substr(module.name.rfind('.') + 1);
    if (!listed.insert(name).second)
      continue;
    text += (text.empty() ? "" : ", ") + inQuotes(name);
  }
  return text;
}

} // namespace

double LoraConfig::scale() const {
  const auto r = static_cast<double>(rank);
  return alpha / (rankStabilized ? std::sqrt(r) : r);
}

std::string LoraModule::nameOfA() const {
  return std::string(kPeftPrefix) + name + ".lora_A.weight";
}

std::string LoraModule::nameOfB() const {
  return std::string(kPeftPrefix) + name + ".lora_B.weight";
}

std::vector<LoraModule> kf::loraModules(const ModelConfig &config) {
  return ModuleLister(config).list();
}

bool kf::isLoraTarget(std::string_view target, std::string_view module) {
  if (target.empty() || !module.ends_with(target))
    return false;
  const size_t before = module.size() - target.size();
  return before == 0 || module[before - 1] == '.';
}

Result<std::vector<LoraModule>>
kf::findLoraModules(const ModelConfig &config,
                    const std::vector<std::string> &targets) {
  std::vector<LoraModule> all = loraModules(config);
  if (all.empty())
    return Status::error("the model has no modules that adapters may add to");
  if (targets.empty())
    return Status::error("an adapter needs at least one target of " +
                         targetNames(all));
  if (targets.size() == 1 && targets.front() == kAllLinear)
    return all;
  for (const std::string &target : targets)
    if (std::ranges::none_of(all, [&](const LoraModule &module) {
          return isLoraTarget(target, module.name);
        }))
      return Status::error(inQuotes(target) +
                           " names no module that adapters may add to; the "
                           "model has " +
                           targetNames(all));
  std::erase_if(all, [&](const LoraModule &module) {
    return std::ranges::none_of(targets, [&](const std::string &target) {
      return isLoraTarget(target, module.name);
    });
  });
  return all;
}
