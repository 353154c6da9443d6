//===- LayerFields.h - What config.json says of single layers ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LAYERFIELDS_H
#define KF_RUNTIME_MODEL_LAYERFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

namespace kf {

/// Sets config.layerConfigs: the windows and the RoPE of each layer, by
/// sliding_window, layer_types and fields like these, and by rope_theta,
/// rope_scaling (of transformers 4) and rope_parameters (5). `config` has its
/// sizes and heads. Errors name the field.
Status readLayers(const ConfigReader &reader, const Family &family,
                  ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_LAYERFIELDS_H
