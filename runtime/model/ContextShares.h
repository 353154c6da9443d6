//===- ContextShares.h - Positions of texts on several ranks ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Context parallelism, for caches that one rank has no room for: each of n
// ranks has all weights, and of each sequence the keys and values of every n-th
// 64 positions: position p is of rank p / 64 mod n. What a row attends to on
// each rank is gathered from all and combined, as the parts of flash decoding
// are (Dao et al., "Flash-Decoding for long-context inference", 2023). All else
// is computed by each.
//
// The rank's number is a tensor of its weights, so that all have one program.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_CONTEXTSHARES_H
#define KF_RUNTIME_MODEL_CONTEXTSHARES_H

#include "runtime/model/Sharding.h"

#include <memory>

namespace kf {

/// What rank `rank` of `ranks` has of a model whose positions they share: all
/// of it, and its number. `weights` is read as tensors are asked for. Errors: a
/// number of ranks that is not possible, and a model with layers that attend to
/// windows, or keep states, which none of its ranks would have whole.
Result<ModelShard> shareContext(const ModelConfig &model,
                                std::shared_ptr<const WeightSource> weights,
                                int64_t rank, int64_t ranks);

} // namespace kf

#endif // KF_RUNTIME_MODEL_CONTEXTSHARES_H
