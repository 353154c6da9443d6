//===- FusedTensors.h - Matrices that checkpoints hold in one ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_FUSEDTENSORS_H
#define KF_RUNTIME_MODEL_FUSEDTENSORS_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <memory>

namespace kf {

/// Where checkpoints of the architecture hold matrices in one tensor whose rows
/// are theirs (Phi-3's queries, keys and values, and its gate and up), puts a
/// SplitWeights in front of `weights`, by which each has the name that
/// listTensors() gives it. Errors name a tensor that is missing or has other
/// rows.
Status splitFusedTensors(const ModelConfig &config,
                         std::unique_ptr<WeightSource> &weights);

} // namespace kf

#endif // KF_RUNTIME_MODEL_FUSEDTENSORS_H
