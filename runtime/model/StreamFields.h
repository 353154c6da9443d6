//===- StreamFields.h - What config.json says of streams --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STREAMFIELDS_H
#define KF_RUNTIME_MODEL_STREAMFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

namespace kf {

/// Sets config.streams, its narrowWidth and the gates of config.layerConfigs,
/// by the fields of `family`.streams. Errors name the field.
Status readStreams(const ConfigReader &reader, const Family &family,
                   ModelConfig &config);

/// What a normally distributed number, of mean 0 and variance 1, is below with
/// `probability`, above 0 and below 1.
double normalQuantile(double probability);

} // namespace kf

#endif // KF_RUNTIME_MODEL_STREAMFIELDS_H
