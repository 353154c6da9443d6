//===- ExpertFields.h - What config.json says of experts --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_EXPERTFIELDS_H
#define KF_RUNTIME_MODEL_EXPERTFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

namespace kf {

/// Sets config.experts, and which of config.layerConfigs have them, by the
/// fields that family.experts names. `config` has its sizes and layers; nothing
/// changes where the family has no experts. Errors name the field.
Status readExperts(const ConfigReader &reader, const Family &family,
                   ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_EXPERTFIELDS_H
