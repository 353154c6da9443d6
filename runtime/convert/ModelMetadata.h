//===- ModelMetadata.h - A configuration as GGUF metadata -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_MODELMETADATA_H
#define KF_RUNTIME_CONVERT_MODELMETADATA_H

#include "runtime/io/GgufWriter.h"
#include "runtime/model/ModelConfig.h"

#include <string>

namespace kf {

/// Adds general.architecture, general.name and the architecture's own keys.
/// What GGUF cannot say about a model (a sliding window of some layers only, an
/// activation other than the architecture's) is an error that names it.
Status addModelMetadata(const ModelConfig &config, const std::string &name,
                        GgufMetadata &metadata);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_MODELMETADATA_H
