//===- LinearFields.h - Layers with linear attention ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What fields say of layers that keep a state in the place of keys and values.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LINEARFIELDS_H
#define KF_RUNTIME_MODEL_LINEARFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

#include <vector>

namespace kf {

/// Which of `layers` layers have linear attention, by the layer_types or the
/// full_attention_interval of a family that may have such. Errors name the
/// field.
Result<std::vector<bool>> readLinearLayers(const ConfigReader &reader,
                                           const Family &family,
                                           int64_t layers);

/// Sets config.linear, where some of config.layerConfigs have linear attention.
/// Errors name the field.
Status readLinearAttention(const ConfigReader &reader, const Family &family,
                           ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_LINEARFIELDS_H
