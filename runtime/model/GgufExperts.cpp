//===- GgufExperts.cpp - What a GGUF file says of experts -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufExperts.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/ModelFamily.h"

using namespace kf;

bool kf::hasGgufExpertWidth(Architecture architecture) {
  return architecture == Architecture::Qwen2Moe ||
         architecture == Architecture::Qwen3Moe ||
         architecture == Architecture::GptOss;
}

bool kf::isNormalizedInGguf(Architecture architecture) {
  return architecture != Architecture::Qwen2Moe &&
         architecture != Architecture::Olmoe;
}

Status kf::readGgufExperts(const GgufNumbers &numbers, ModelConfig &config) {
  const ExpertFields &fields = familyOf(config.architecture).experts;
  if (!fields.count)
    return Status();
  ExpertsConfig &experts = config.experts;
  KF_ASSIGN_OR_RETURN(experts.count,
                      numbers.size(kGgufExpertCount, kMaxExperts));
  const std::string count =
      numbers.valueOf(kGgufExpertCount, std::to_string(experts.count));
  if (experts.count * config.layers > kMaxModelExperts)
    return Status::error(count + " in each of " +
                         std::to_string(config.layers) + " layers; at most " +
                         std::to_string(kMaxModelExperts) +
                         " experts are possible");
  KF_ASSIGN_OR_RETURN(
      experts.chosen,
      numbers.layerSize(kGgufExpertsChosen, config.layers, kMaxExperts));
  if (experts.chosen > experts.count)
    return Status::error(count + ", but " +
                         inQuotes(numbers.keyOf(kGgufExpertsChosen)) + " is " +
                         std::to_string(experts.chosen));
  experts.width = config.intermediateSize;
  if (hasGgufExpertWidth(config.architecture)) {
    // gpt-oss' files always have the key.
    std::optional<int64_t> share;
    if (config.architecture != Architecture::GptOss &&
        config.intermediateSize >= experts.chosen)
      share = config.intermediateSize / experts.chosen;
    KF_ASSIGN_OR_RETURN(
        experts.width,
        numbers.layerSize(kGgufExpertWidth, config.layers, kMaxSize, share));
  }
  if (fields.sharedWidth) {
    KF_ASSIGN_OR_RETURN(
        experts.sharedWidth,
        numbers.size(kGgufSharedWidth, kMaxSize, config.intermediateSize));
    experts.sharedGate = fields.sharedGate;
  }
  experts.normalized = isNormalizedInGguf(config.architecture);
  experts.bias = fields.bias;
  if (fields.clampLimit)
    experts.clamp =
        GateClamp{fields.defaultClampLimit, fields.defaultClampAlpha};
  for (LayerConfig &layer : config.layerConfigs)
    layer.hasExperts = true;
  return Status();
}
