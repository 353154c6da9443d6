//===- StoredTensors.h - How checkpoints hold a model's tensors -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STOREDTENSORS_H
#define KF_RUNTIME_MODEL_STOREDTENSORS_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <memory>

namespace kf {

/// Puts in front of `weights`, those of a checkpoint of config.naming, what
/// makes it hold the tensors that listTensors() lists, where it does not:
/// RenamedWeights, where it has the language model beside what reads images,
/// whose tensors are then hidden (Gemma 3), and SplitWeights, where it has
/// matrices in one tensor whose rows are theirs (Phi-3's queries, keys and
/// values, and its gate and up; experts of GraniteMoe and of GGUF files), or
/// ExpertStacks (gpt-oss). Errors name a tensor that is missing or has other
/// rows.
Status adaptStoredTensors(const ModelConfig &config,
                          std::unique_ptr<WeightSource> &weights);

} // namespace kf

#endif // KF_RUNTIME_MODEL_STOREDTENSORS_H
