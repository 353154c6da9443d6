//===- Decoder.h - The layers of a decoder ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_DECODER_H
#define KF_LIB_IMPORT_DECODER_H

#include "ExpertBlock.h"
#include "LatentAttention.h"
#include "ModelOps.h"

#include <optional>

namespace mlir::kf {

/// Writes the ops of a decoder in the order in which they run. T is the number
/// of rows, D the hidden size. What rows attend to, and where weights come
/// from, is for the program to say that the layers are part of.
class Decoder : public ModelOps {
protected:
  using ModelOps::ModelOps;

  /// ids and positions [T] of i32 -> hidden rows [T, D] of f32, before the
  /// final norm. Of a stage, the rank before may send what ids would be made
  /// into, and what layers give be sent to the next: null then.
  Value decode(Value ids, Value positions);
  /// Rows behind the final norm, [L, D] -> [L, V] of f32.
  Value logitsOf(Value rows);

  /// What attention of the layer may see from now on, too: keys and values [T,
  /// kv heads, head dim] of these rows.
  virtual void append(Value k, Value v, int64_t layer) = 0;
  /// What queries [T, heads, head dim] of a layer attend to, of their shape.
  /// `sinks` are [heads], or null.
  virtual Value attend(Value q, Value sinks, int64_t layer) = 0;
  /// Linear attention of the layer whose names begin with `at`: x [T, D] ->
  /// [T, D].
  virtual Value attendToState(Value x, const std::string &at,
                              int64_t layer) = 0;
  /// Is told x [T, D] that a layer gives.
  virtual void betweenLayers(Value) {}

  Value positions; ///< [T] of i32

private:
  /// ids [T] -> [T, D].
  Value embed(Value ids);

  /// What the stage before gives, [T, D].
  Value received();

  /// What the names of layer `i` begin with, which the next ops belong to.
  std::string enterLayer(int64_t i);

  /// [T, D] -> [T, D].
  Value layers(Value x);

  /// The same of a model of several streams. All but the first have the layers'
  /// inputs of the token.
  Value streamLayers(Value x);

  /// A layer's attention and feed-forward: [T, D] -> [T, D].
  Value blocks(Value x, const std::string &at, int64_t i);

  /// What a block computes, [T, D].
  struct BlockResult {
    Value value;
    bool isPart = false; ///< this rank's part of the sum of all ranks
  };

  Value whole(BlockResult block);

  /// Residual x [T, D] + the block's result, behind the norm called `name` if
  /// there is one: [T, D].
  Value withBlock(Value x, BlockResult block, const std::string &at,
                  std::string_view name);

  /// x [T, D] and what two products of few columns between add to it: a learned
  /// residual (Menghani et al., "LAuReL: Learned Augmented Residual Layer",
  /// 2024).
  Value narrowBlock(Value x, const std::string &at);

  /// The norm in front of a block, if there is one.
  Value inputNorm(Value x, const std::string &at, std::string_view name);

  /// The norm behind a block, if there is one.
  Value outputNorm(Value x, const std::string &at, std::string_view name);

  /// [T, D] -> [T, D]; `at` begins the layer's names.
  BlockResult attention(Value x, const std::string &at, int64_t layer);

  /// [T, D] -> [T, heads * value dim]. Of a cache that has what keys and values
  /// are made of in the place of both.
  Value latentAttention(Value x, const std::string &at, int64_t layer);

  struct QueriesKeysValues {
    /// [T, heads * head dim], [T, kv heads * head dim] twice. Null: keys and
    /// values of a layer that has none of its own.
    Value q, k, v;
    Value gate; ///< of what attention gives, as q; null: it has none
  };
  QueriesKeysValues queriesKeysValues(Value x, const std::string &at,
                                      const ::kf::LayerConfig &layer);

  /// Queries or keys [T, heads * head dim], normalized and turned, as
  /// [T, heads, head dim].
  Value headsOf(Value x, const std::string &norm, int64_t heads,
                const ::kf::LayerConfig &layer);

  /// What queries that grow are multiplied by, [T, 1] of f32; null where no
  /// layer has such.
  Value makeQueryFactor();

  /// x [T, D], normalized of `residual` -> [T, D].
  BlockResult feedForward(Value x, Value residual, const std::string &at,
                          int64_t layer);

  //===--- Inputs of tokens -----------------------------------------------===//

  /// ids [T] and what is made of them, x [T, D] -> [T, layers * P] of f32: what
  /// each layer reads of the tokens.
  Value tokenInputsOf(Value ids, Value x);

  /// `ids` [T], with 0 for those that are not below `count`.
  Value withoutOthers(Value ids, int64_t count);

  /// What layer `layer` adds of the tokens to x [T, D]: [T, D].
  Value tokenOutput(Value x, const std::string &at, int64_t layer);

  //===--- Blocks ---------------------------------------------------------===//

  /// What the names of a block's matrices end with.
  struct BlockNames {
    std::string_view gate, up, down;
  };

  /// [T, D] -> [T, D], a part of the sum that several ranks make.
  Value mlp(Value x, const std::string &at, const BlockNames &block);

  /// The same in products, which weights with scales need, and gates of which
  /// few count, those that `cutoff` says.
  Value blockInProducts(Value x, const std::string &at, const BlockNames &block,
                        const ::kf::LayerConfig *cutoff = nullptr);

  /// By how much x [T, F] is more than the mean and `layer.gateCutoff` standard
  /// deviations of all ranks' row; 0 where it is less.
  Value cutOff(Value x, const ::kf::LayerConfig &layer);

  /// x [T, D], normalized of `residual` -> [T, D]: results, of all ranks, are
  /// added up in f32, and rounded once.
  BlockResult experts(Value x, Value residual, const std::string &at);

  /// [T, E] of x, or of what x is normalized of.
  Value routerLogits(Value x, Value residual, const std::string &at);

  ExpertWeights expertWeights(const std::string &at);

  /// The kf.weight [parts, E, rows, columns] of matrices of all experts, or
  /// [parts, E, rows] of their biases.
  Value stacked(const std::string &at, ArrayRef<std::string_view> parts,
                std::string_view suffix);

  Value tokenInputs; ///< [T, layers * P] of f32
  Value queryFactor; ///< [T, 1] of f32
  std::optional<LatentAttention> latent;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_DECODER_H
