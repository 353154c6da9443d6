//===- TiedEmbeddings.h - Whether an output matrix is shared ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_TIEDEMBEDDINGS_H
#define KF_RUNTIME_MODEL_TIEDEMBEDDINGS_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

namespace kf {

/// Holds what config.json says about `tie_word_embeddings` against the
/// checkpoint, as transformers does: an output matrix that differs from the
/// embedding table is the model's own, whatever the configuration says, so
/// config.tiedEmbeddings becomes false and a warning is added. Reads both
/// tensors up to the first difference, and nothing where there are not both.
/// Errors: a tensor that cannot be read.
Status settleTiedEmbeddings(ModelConfig &config, const WeightSource &weights);

} // namespace kf

#endif // KF_RUNTIME_MODEL_TIEDEMBEDDINGS_H
