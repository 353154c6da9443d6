//===- Stages.h - Layers of a model on one rank -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pipeline parallelism as in Huang et al., "GPipe" (2019): a rank has some
// layers, a stage, and hands hidden rows on to the rank of the next stage. The
// first stage has the embedding table, too, the last one the final norm and the
// output matrix; a table that is both is on both ranks. Of n stages, number s
// is rank s + 1's, and the last is rank 0's, which so has the logits and leads.
// Layers are shared out evenly: where they do not divide, the first stages have
// one more.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STAGES_H
#define KF_RUNTIME_MODEL_STAGES_H

#include "runtime/model/Sharding.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kf {

/// What ranks have of a model.
enum class Parallelism {
  Tensor,   ///< each a part of every layer: shardModel()
  Pipeline, ///< each some layers: cutModel()
  Context   ///< all, and some positions of each sequence: shareContext()
};

/// What users call it: "--tensor-parallel", "--pipeline-parallel" and
/// "--context-parallel".
std::string optionOf(Parallelism parallelism);

/// The stage that rank `rank` of `ranks` has.
inline int64_t stageOfRank(int64_t rank, int64_t ranks) {
  return (rank + ranks - 1) % ranks;
}

/// The numbers of stages that a model can be cut into, 1 among them, in order.
std::vector<int64_t> possibleStages(const ModelConfig &model);

/// The stage of rank `rank` of `ranks`, whose layers are counted from 0, with
/// its tensors under the names that they have then. `weights` is read as they
/// are asked for. Errors: a model that is of one stage, and a number of stages
/// that is not possible, with those that are; those of findTensors().
Result<ModelShard> cutModel(const ModelConfig &model,
                            std::shared_ptr<const WeightSource> weights,
                            int64_t rank, int64_t ranks);

/// What rank `rank` of `ranks`, two or more, has of a model by `kind`.
Result<ModelShard> partOfRank(const ModelConfig &model,
                              std::shared_ptr<const WeightSource> weights,
                              int64_t rank, int64_t ranks, Parallelism kind);

} // namespace kf

#endif // KF_RUNTIME_MODEL_STAGES_H
