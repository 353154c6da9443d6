//===- Sharding.h - One rank's part of a model ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor parallelism as in Shoeybi et al., "Megatron-LM" (2019): a rank has
// some heads and some of the feed-forward's inner columns in every layer. Of n
// ranks, rank r keeps
//
//   q; k, v          rows of heads / n; of kvHeads / n heads, or, of fewer KV
//                    heads than ranks, head floor(r kvHeads / n): as many as
//                    the layer has
//   GPT-2's c_attn   these rows of each third
//   norms of q, k    their rows, where they are of all heads together
//   o                columns of its heads; where these split blocks, rows of
//                    ceil(D / n) (ModelConfig::outputByRows)
//   sinks            those of its heads
//   gate, up; down   rows; columns of P = ceil(F / (n B)) B, where blocks of
//                    down have B elements; so of each expert, and of the one
//                    that all rows go through
//   head             rows of ceil(V / n)
//   biases           as their rows; of o by columns and down, rank 0 has them
//   all else         all: embeddings, norms, routers, RoPE's factors, inputs of
//                    tokens, streams and their shares, narrow blocks
//
// Models with latent attention are of one rank. Zeros fill up what is past the
// end. Programs depend on how many ranks there
// are, and not on which one runs them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_SHARDING_H
#define KF_RUNTIME_MODEL_SHARDING_H

#include "runtime/model/ModelConfig.h"
#include "runtime/program/Executable.h"
#include "runtime/weights/WeightSource.h"

#include <memory>
#include <vector>

namespace kf {

/// What one rank has of a model.
struct ModelShard {
  ModelConfig config; ///< with local sizes
  /// As `config` implies them, under the names of a complete checkpoint.
  std::unique_ptr<WeightSource> weights;
};

/// Collectives of a step that are alike.
struct StepCollectives {
  CollectiveSpec::Kind kind = CollectiveSpec::Kind::AllReduce;
  int64_t count = 0;
  int64_t columns = 0; ///< of each rank's part, f32 but for narrow activations
  bool ofWanted = false; ///< the rows are those that are wanted, else all
};

/// What the ranks of a model put together in a step, or send; `shard` is what
/// one has.
std::vector<StepCollectives> collectivesOf(const ModelConfig &shard);

/// The numbers of ranks that can run a model, 1 among them, in order.
std::vector<int64_t> possibleRanks(const ModelConfig &model);

/// An error unless `rank` is one of two or more ranks that share a model.
Status checkRank(int64_t rank, int64_t ranks);

/// The part of rank `rank` of `ranks` of a whole model. `weights` is read as
/// parts are asked for. Errors: a number of ranks that is not possible, which
/// lists those that are; those of findTensors().
Result<ModelShard> shardModel(const ModelConfig &model,
                              std::shared_ptr<const WeightSource> weights,
                              int64_t rank, int64_t ranks);

} // namespace kf

#endif // KF_RUNTIME_MODEL_SHARDING_H
