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
         architecture == Architecture::Qwen3Next ||
         architecture == Architecture::Gemma4 ||
         architecture == Architecture::DeepseekV3 ||
         architecture == Architecture::Llama4 ||
         architecture == Architecture::GptOss;
}

bool kf::isNormalizedInGguf(Architecture architecture) {
  return architecture != Architecture::Qwen2Moe &&
         architecture != Architecture::Olmoe &&
         architecture != Architecture::Llama4;
}

/// Groups of experts, of which some are kept; one group is none.
static Status readGroups(const GgufNumbers &numbers, ExpertsConfig &experts) {
  KF_ASSIGN_OR_RETURN(const int64_t groups,
                      numbers.size(kGgufExpertGroups, kMaxExperts, 1));
  KF_ASSIGN_OR_RETURN(const int64_t kept,
                      numbers.size(kGgufKeptGroups, kMaxExperts, groups));
  if (groups == 1 && kept == 1)
    return Status();
  const std::string value =
      numbers.valueOf(kGgufExpertGroups, std::to_string(groups));
  if (experts.count % groups != 0 || experts.count / groups < 2)
    return Status::error(
        value + ", but " + inQuotes(numbers.keyOf(kGgufExpertCount)) + " " +
        std::to_string(experts.count) + " make no such groups of two or more");
  if (kept > groups || kept * (experts.count / groups) < experts.chosen)
    return Status::error(
        value + ", of which " + inQuotes(numbers.keyOf(kGgufKeptGroups)) + " " +
        std::to_string(kept) + " are too many, or have too few experts");
  experts.groups = groups;
  experts.keptGroups = kept;
  return Status();
}

/// What routers with sigmoids say, DeepSeek's, and have in tensors.
static Status readSigmoids(const Gguf &gguf, const GgufNumbers &numbers,
                           const ExpertFields &fields, ModelConfig &config) {
  ExpertsConfig &experts = config.experts;
  constexpr uint64_t sigmoid = 2;
  KF_ASSIGN_OR_RETURN(const uint64_t gating,
                      gguf.getUnsigned(numbers.keyOf(kGgufGating), 1));
  if (gating != sigmoid)
    return Status::error(numbers.valueOf(kGgufGating, std::to_string(gating)) +
                             ", which is not supported (supported: 2, sigmoid)",
                         StatusCode::Unsupported);
  KF_ASSIGN_OR_RETURN(
      experts.normalized,
      gguf.getBool(numbers.keyOf(kGgufExpertsNormalized), false));
  KF_ASSIGN_OR_RETURN(experts.scale, numbers.scale(kGgufExpertsScale, 1));
  KF_RETURN_IF_ERROR(readGroups(numbers, experts));
  KF_ASSIGN_OR_RETURN(const uint64_t shared,
                      gguf.getUnsigned(numbers.keyOf(kGgufSharedCount), 0));
  if (shared > static_cast<uint64_t>(kMaxSize / experts.width))
    return Status::error(
        numbers.valueOf(kGgufSharedCount, std::to_string(shared)) +
        ", which makes a block of more than " + std::to_string(kMaxSize) +
        " columns");
  experts.sharedWidth = static_cast<int64_t>(shared) * experts.width;
  KF_ASSIGN_OR_RETURN(const uint64_t plain,
                      gguf.getUnsigned(numbers.keyOf(kGgufPlainLayers), 0));
  for (int64_t i = 0; i < config.layers; ++i)
    config.layerConfigs[i].hasExperts = static_cast<uint64_t>(i) >= plain;
  experts.choiceBias =
      fields.choiceBias &&
      gguf.lookUpTensor("blk." + std::to_string(plain) + ".exp_probs_b.bias");
  return Status();
}

Status kf::readGgufExperts(const Gguf &gguf, const GgufNumbers &numbers,
                           ModelConfig &config) {
  const ExpertFields &fields = familyOf(config.architecture).experts;
  if (!fields.count)
    return Status();
  if (fields.enabled) {
    KF_ASSIGN_OR_RETURN(const uint64_t count,
                        gguf.getUnsigned(numbers.keyOf(kGgufExpertCount), 0));
    if (count == 0)
      return Status();
  }
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
  if (config.architecture == Architecture::Llama4) {
    experts.sharedWidth = experts.width;
  } else if (fields.sharedWidth) {
    KF_ASSIGN_OR_RETURN(
        experts.sharedWidth,
        numbers.size(kGgufSharedWidth, kMaxSize, config.intermediateSize));
    experts.sharedGate = fields.sharedGate;
  }
  experts.normalized = isNormalizedInGguf(config.architecture);
  experts.sigmoid = fields.sigmoid;
  experts.weighsInputs = fields.weighsInputs;
  experts.bias = fields.bias;
  experts.besideBlock = fields.besideBlock;
  experts.routerNorm = fields.routerNorm;
  experts.scales = fields.scales;
  if (fields.clampLimit)
    experts.clamp =
        GateClamp{fields.defaultClampLimit, fields.defaultClampAlpha};
  if (fields.groups)
    return readSigmoids(gguf, numbers, fields, config);
  int64_t step = 1;
  if (config.architecture == Architecture::Llama4) {
    KF_ASSIGN_OR_RETURN(step, numbers.size(kGgufExpertStep, kMaxLayers));
  }
  for (int64_t i = 0; i < config.layers; ++i)
    config.layerConfigs[i].hasExperts = (i + 1) % step == 0;
  return Status();
}
