//===- LatentFields.h - Fields of latent attention --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LATENTFIELDS_H
#define KF_RUNTIME_MODEL_LATENTFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

namespace kf {

/// Sets config.latent, and headDim and kvHeads to those of its cache, by
/// q_lora_rank, kv_lora_rank and the sizes of heads; config.heads is read
/// before. Errors name the field.
Status readLatent(const ConfigReader &reader, const Family &family,
                  ModelConfig &config);

/// What scores of latent attention are multiplied by: of the sizes of its
/// heads, and of how YaRN stretches `rope`, which the file has as rope_scaling
/// or rope_parameters. Errors name the field.
Result<double> latentScale(const ConfigReader &reader,
                           const ModelConfig &config, const RopeConfig &rope);

} // namespace kf

#endif // KF_RUNTIME_MODEL_LATENTFIELDS_H
