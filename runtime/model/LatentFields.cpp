//===- LatentFields.cpp - Fields of latent attention ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LatentFields.h"

#include "runtime/model/ConfigLimits.h"
#include "runtime/model/RopeFactors.h"

#include <algorithm>
#include <cmath>

using namespace kf;
using nlohmann::json;

Status kf::readLatent(const ConfigReader &reader, const Family &family,
                      ModelConfig &config) {
  const LatentFields &fields = family.latent;
  LatentConfig &latent = config.latent;
  if (!reader.isNull("q_lora_rank")) {
    KF_ASSIGN_OR_RETURN(
        latent.queryWidth,
        reader.integer("q_lora_rank", 1, kMaxSize, fields.defaultQueryWidth));
  }
  KF_ASSIGN_OR_RETURN(
      latent.width,
      reader.integer("kv_lora_rank", 1, kMaxHeadDim, fields.defaultWidth));
  KF_ASSIGN_OR_RETURN(latent.plainDim,
                      reader.integer("qk_nope_head_dim", 1, kMaxHeadDim,
                                     fields.defaultPlainDim));
  KF_ASSIGN_OR_RETURN(latent.turnedDim,
                      reader.integer("qk_rope_head_dim", 2, kMaxHeadDim,
                                     fields.defaultTurnedDim));
  KF_ASSIGN_OR_RETURN(
      latent.valueDim,
      reader.integer("v_head_dim", 1, kMaxHeadDim, fields.defaultValueDim));
  if (latent.turnedDim % 2 != 0)
    return reader.unexpected("qk_rope_head_dim", "an even number");
  KF_ASSIGN_OR_RETURN(
      const int64_t kvHeads,
      reader.integer("num_key_value_heads", 1, kMaxSize, config.heads));
  if (kvHeads != config.heads)
    return reader.unexpected("num_key_value_heads",
                             std::to_string(config.heads) + ", as '" +
                                 family.heads + "' says,");
  // Each has matrices of its own.
  if (config.heads * config.layers > kMaxModelExperts)
    return Status::error(
        "'" + std::string(family.heads) + "' " + std::to_string(config.heads) +
        " times '" + family.layers + "' " + std::to_string(config.layers) +
        " is " + std::to_string(config.heads * config.layers) + "; at most " +
        std::to_string(kMaxModelExperts) + " heads are possible");
  config.kvHeads = 1;
  config.headDim = latent.turnedDim + latent.width;
  if (config.headDim > kMaxHeadDim)
    return Status::error(
        "'kv_lora_rank' " + std::to_string(latent.width) +
        " and 'qk_rope_head_dim' " + std::to_string(latent.turnedDim) +
        " make keys of " + std::to_string(config.headDim) +
        " elements; at most " + std::to_string(kMaxHeadDim) + " are possible");
  const int64_t widest =
      std::max({config.headDim, latent.plainDim + latent.turnedDim,
                latent.plainDim + latent.valueDim});
  if (config.heads * widest > kMaxSize)
    return Status::error("'" + std::string(family.heads) + "' " +
                         std::to_string(config.heads) + " times heads of " +
                         std::to_string(widest) + " elements is " +
                         std::to_string(config.heads * widest) + "; at most " +
                         std::to_string(kMaxSize) + " is possible");
  return Status();
}

Result<double> kf::latentScale(const ConfigReader &reader,
                               const ModelConfig &config,
                               const RopeConfig &rope) {
  const LatentConfig &latent = config.latent;
  const double scale =
      1 / std::sqrt(static_cast<double>(latent.plainDim + latent.turnedDim));
  const json *object = reader.find("rope_parameters");
  if (!object)
    object = reader.find("rope_scaling");
  if (rope.scaling != RopeConfig::Scaling::Yarn || !object)
    return scale;
  const ConfigReader scaling(*object, "rope_scaling.");
  if (!scaling.contains("mscale_all_dim"))
    return scale;
  KF_ASSIGN_OR_RETURN(const double ofAll,
                      scaling.number("mscale_all_dim", 0, kMaxYarn));
  if (ofAll == 0) // counts as absent
    return scale;
  const double magnitude = yarnMagnitude(rope.factor, ofAll);
  const double scaled = scale * magnitude * magnitude;
  if (!std::isnormal(static_cast<float>(scaled)))
    return scaling.unexpected("mscale_all_dim",
                              "one that keeps attention's scale in f32");
  return scaled;
}
