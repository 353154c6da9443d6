//===- LayerPattern.h - What a model's layers do otherwise ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_LAYERPATTERN_H
#define KF_TOOLS_KF_RUN_LAYERPATTERN_H

#include "runtime/model/ModelConfig.h"

#include <string>
#include <vector>

namespace kf {

/// What sets a model's layers apart, in sentences, the first in the order of
/// the layers: "5 with a window of 1024, 1 without, in turn". Empty where there
/// is nothing to say.
std::vector<std::string> layerPattern(const ModelConfig &config);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_LAYERPATTERN_H
