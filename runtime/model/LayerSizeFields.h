//===- LayerSizeFields.h - Layers of sizes of their own ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LAYERSIZEFIELDS_H
#define KF_RUNTIME_MODEL_LAYERSIZEFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

#include <string>
#include <vector>

namespace kf {

/// Has the last `sharing` of config.layers attend to the keys of the last layer
/// before them all that has a window, or none, as they have; `slides` says
/// which have one. What is wrong begins with `says`.
Status shareKeys(const std::string &says, int64_t sharing,
                 const std::vector<bool> &slides, ModelConfig &config);

/// Sets the sizes of config.layerConfigs, and which of them attend to another
/// one's keys, by the fields of `family`.sizes. `config` has its own sizes and
/// a LayerConfig for each layer; `slides` says which layers have a window. All
/// layers with a window have one size of heads then, and so do all others.
/// Errors name the field.
Status readLayerSizes(const ConfigReader &reader, const Family &family,
                      const std::vector<bool> &slides, ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_LAYERSIZEFIELDS_H
