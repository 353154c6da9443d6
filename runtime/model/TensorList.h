//===- TensorList.h - The tensors that a model implies ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_TENSORLIST_H
#define KF_RUNTIME_MODEL_TENSORLIST_H

#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What checkpoints of an architecture call their tensors, without the suffixes
/// ".weight" and ".bias". Empty where there is no such tensor.
struct TensorNames {
  std::string_view prefix;               ///< of everything but `head`
  std::string_view layer;                ///< "<layer>.<i>." begins a layer's
  std::string_view embedding, positions; ///< [V, D], [maxPositions, D]
  std::string_view finalNorm, head;      ///< [D], [V, D]
  // What layers add of the token itself, P columns for each of N layers.
  std::string_view tokenInputs;          ///< their table, [its V, N * P]
  std::string_view tokenInputProjection; ///< of embeddings, [N * P, D]
  std::string_view tokenInputNorm;       ///< of a layer's columns of that, [P]
  std::string_view ropeFactors;          ///< [RoPE's dim / 2]
  /// Of each stream but the first, see ofStream(): what it begins as, and what
  /// it ends as, [D, D].
  std::string_view streamProjections, streamEnds;
  // In a layer.
  std::string_view attentionNorm, mlpNorm;             ///< of inputs, [D]
  std::string_view attentionOutputNorm, mlpOutputNorm; ///< [D]
  std::string_view fusedQkv, query, key, value;        ///< fused or apart:
                                                       ///< [heads * dim, D]
  std::string_view queryNorm, keyNorm; ///< [head dim] or [heads * dim]
  std::string_view sinks;              ///< [heads]; the whole name
  // Of latent attention: R and C being the widths of the rows that queries, and
  // keys and values, are made of.
  std::string_view queryLatent, queryLatentNorm; ///< [R, D], [R]
  std::string_view queryOfLatent;                ///< [heads * query dim, R]
  std::string_view keyLatent;                    ///< [C + turned dim, D]
  std::string_view keyLatentNorm;                ///< [C]
  /// In checkpoints all heads' keys and values, [heads * (plain dim + value
  /// dim), C]; of a head, see ofHead().
  std::string_view keysValues;
  /// Where those are apart: a stack of all heads' matrices for keys, each
  /// transposed, [heads, C, plain dim], and one for values, [heads, value dim,
  /// C]. Empty: they are not.
  std::string_view stackedKeys, stackedValues;
  std::string_view output; ///< [D, heads * dim]
  // In one with linear attention: K key heads, r value heads for each.
  std::string_view linearQkv;        ///< all q, k and v, [channels, D]
  std::string_view linearZ;          ///< [V * dv, D]
  std::string_view linearA, linearB; ///< [V, D]
  /// Those in order of the key heads: [K * (2 * dk + 2 * r * dv), D], or empty,
  /// and b before a, [K * 2 * r, D].
  std::string_view linearQkvz, linearBa;
  std::string_view convolution;             ///< [channels, 1, taps]
  std::string_view linearDecay, linearBias; ///< [V]; the whole names
  std::string_view linearNorm;              ///< [dv]
  std::string_view linearOutput;            ///< [D, V * dv]
  /// The key head of value head h is h % K, rather than h / r; the convolution
  /// has channels of q and k for each value head, [V * (2 * dk + dv), 1, taps].
  bool tiledHeads = false;
  std::string_view gate, up, down;         ///< [F, D], [F, D], [D, F]
  std::string_view tokenGate, tokenOutput; ///< [P, D], [D, P]
  std::string_view tokenOutputNorm;        ///< [D]
  std::string_view layerScale;             ///< [1]; the whole name
  /// What whole names of layers that guess further tokens begin with, where
  /// those are not behind the last layer.
  std::string_view guesses;
  // Of streams, S of them: their router, and shares of one in another.
  std::string_view streamNorm, streamRouter; ///< [D], [S, D]
  std::string_view streamPredictions;        ///< [S * S, S]
  std::string_view streamCorrections;        ///< [S, S]
  std::string_view streamScale;              ///< [D]; the whole name
  /// Two products of few columns between, R, and the norm of what they give.
  std::string_view narrowIn, narrowOut, narrowNorm; ///< [R, D], [D, R], [D]
  // In one with experts: E of them, each of width I.
  std::string_view router;                           ///< [E, D]
  std::string_view experts;                          ///< see ofExpert()
  std::string_view expertGate, expertUp;             ///< of one, [I, D]
  std::string_view expertDown;                       ///< of one, [D, I]
  std::string_view sharedGate, sharedUp, sharedDown; ///< as those of a block
  std::string_view sharedRouter;                     ///< of its sigmoid, [1, D]
  /// Norms of experts beside a block, and of what that gives, [D].
  std::string_view expertNorm, expertOutputNorm, blockOutputNorm;
  std::string_view routerNorm;   ///< [D]; the whole name
  std::string_view choiceBias;   ///< [E]; the whole name
  std::string_view expertScales; ///< [E]; the whole name
  /// Whole names of what checkpoints have all experts in: gates and ups,
  /// [E, 2 * I, D], and [E, D, I]. Empty: they are apart.
  std::string_view stackedInputs, stackedOutputs;
  bool transposed = false; ///< a layer's matrices are stored [in, out]

  /// The name in a layer of the matrix `part` (expertGate, ...) of an expert:
  /// "<experts>.<expert>.<part>", or "<part>.<expert>" without `experts`.
  std::string ofExpert(std::string_view part, int64_t expert) const;
  /// The name of what makes a head's "keys", [plain dim, C], or "values",
  /// [value dim, C], of the row that the cache has.
  std::string ofHead(std::string_view part, int64_t head) const {
    return std::string(keysValues) + "." + std::to_string(head) + "." +
           std::string(part);
  }
  /// Whether all q, k, v and z of `linear` are one matrix.
  bool joinsQkvz(const LinearAttentionConfig &linear) const {
    return linear.byKeyHeads && !linearQkvz.empty();
  }
  /// The name of stream `stream`'s matrix `part` (streamProjections, ...).
  static std::string ofStream(std::string_view part, int64_t stream) {
    return std::string(part) + "." + std::to_string(stream - 1);
  }
  /// What a GGUF file calls the tensor that has the matrix `part` of all of a
  /// layer's experts, [E, rows, columns].
  static std::string ggufStack(std::string_view part);
};

/// Products of a layer that read one row. What adapters make of it first is one
/// matrix for all of them, with the lines of each in this order.
struct AdapterGroup {
  std::string_view name; ///< of the first product
  std::vector<std::string_view> products;
};
std::vector<AdapterGroup> adapterGroups(const TensorNames &names);
/// The keys of the matrices of adapter `number`, from 0 on, which a model has
/// for config.adapters: A [sum of ranks, in] of the group that is called
/// "<layer><group>", and B [out, rank] of the product "<layer><product>".
std::string adapterKeyOfA(std::string_view group, int64_t number);
std::string adapterKeyOfB(std::string_view product, int64_t number);

/// The names in checkpoints of config.naming.
const TensorNames &tensorNames(const ModelConfig &config);

/// The tensor [1] of f32 with the number of the rank, where ranks share the
/// positions of sequences (ContextShares.h).
inline constexpr std::string_view kRankNumber = "kf.rank_number";

/// A tensor that a model implies.
struct ListedTensor {
  /// Router: a matrix of few rows whose products choose, or weigh, experts.
  /// Convolution: weights of each channel's rows. Adapter: what is added to
  /// products.
  enum class Role {
    Matrix,
    Router,
    NormWeight,
    Bias,
    RopeFactors,
    RankNumber,
    Convolution,
    Adapter
  };
  std::string
      key; ///< its name without the prefix: "layers.0.mlp.up_proj.weight"
  std::string name; ///< in a complete checkpoint: "model.layers.0..."
  Role role = Role::Matrix;
  std::vector<int64_t> shape; ///< logical: [out, in] for matrices
  bool transposed = false;    ///< the checkpoint has [in, out]
  bool ofExpert = false; ///< rows that did not choose the expert do without it
  bool ofHead = false;   ///< each head's rows have a matrix of their own
  bool isTable = false;  ///< ids or positions are looked up in it

  /// As the checkpoint has it.
  std::vector<int64_t> storedShape() const;
};

/// Every tensor that `config` implies, under the names of config.naming and in
/// the order of the computation; the embedding table comes first where the
/// model is no later stage of one.
std::vector<ListedTensor> listTensors(const ModelConfig &config);

/// Whether products that take factors of rows alone read `tensor`, as it is
/// stored: a matrix that is [out, in] in the checkpoint, no table, and of no
/// expert or head.
bool isFactor(const ListedTensor &tensor);

/// Has `source` keep the factors that are stored in F8E4M3 so, and returns how
/// many. Errors are those of findTensors().
Result<int64_t> keepFloat8(const ModelConfig &config, WeightSource &source);

/// An error unless the tensor `name` has the shape that is implied.
Status checkShape(const std::string &name, const std::vector<int64_t> &shape,
                  const std::vector<int64_t> &implied);

/// listTensors, each found in `source` with the shape that it should have, and
/// `name` as it is there: checkpoints of the bare model lack the prefix, and a
/// matrix that is both embedding table and output may have either name. A
/// tensor that is missing, has another shape or is left over is an error.
Result<std::vector<ListedTensor>> findTensors(const ModelConfig &config,
                                              const WeightSource &source);

} // namespace kf

#endif // KF_RUNTIME_MODEL_TENSORLIST_H
