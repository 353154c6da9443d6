//===- Pooler.h - The embedding of a text -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_POOLER_H
#define KF_RUNTIME_ENGINE_POOLER_H

#include "runtime/core/Status.h"
#include "runtime/model/PoolingConfig.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kf {

/// What is made of the rows of a text's tokens.
struct EmbeddingOptions {
  Pooling pooling = Pooling::Last;
  /// Whether an embedding, or each row of Pooling::None, is divided by its
  /// Euclidean length.
  bool normalizes = true;
  /// The first numbers of it that are wanted, which are what is normalized; 0:
  /// all, the model's hidden size, which is the most.
  int64_t dimensions = 0;

  bool operator==(const EmbeddingOptions &) const = default;
};

/// What a user says of it, before what the model's files do.
struct EmbeddingChoice {
  std::optional<Pooling> pooling = {};
  std::optional<bool> normalizes = {};
};

/// What is said, else what the model's files say, else the last token's row,
/// normalized. Error: no pooling is said, and there is no code for theirs.
Result<EmbeddingOptions> chooseEmbedding(const EmbeddingChoice &said,
                                         const PoolingConfig &model);

/// Takes the rows of a text's tokens that its embedding is made of, one after
/// the other. One thread.
class Pooler {
public:
  /// Of a text of `tokens` tokens, at least one, whose rows have `width`
  /// numbers, at least EmbeddingOptions::dimensions.
  Pooler(const EmbeddingOptions &options, size_t tokens, size_t width);

  /// The tokens whose rows are needed: from this one up to the end, which what
  /// follows does not change.
  size_t first() const { return firstToken; }
  size_t end() const { return endToken; }

  /// The row of the next token, finite numbers; first()'s is the first.
  void add(std::span<const float> row);
  /// The embedding, once all rows are there: dimensions numbers, or those of
  /// each token in order. Error: a length of 0, which nothing can be divided
  /// by.
  Result<std::vector<float>> take();

private:
  const EmbeddingOptions options;
  const size_t width; ///< of an embedding
  size_t firstToken, endToken;
  std::vector<double> sums; ///< of the mean; else empty
  std::vector<float> rows;  ///< of the others
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_POOLER_H
