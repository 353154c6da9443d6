//===- LatentAttention.h - Attention to rows that make keys -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A head's key and value are products of one row c of each position, by
// matrices Wk and Wv of its own. q . (Wk c) is (Wk^T q) . c, and a sum of Wv c
// is Wv times that sum of c: so all heads attend to the rows c themselves,
// which are one key and value head of the cache, and what is the head's own is
// multiplied before and behind.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_LATENTATTENTION_H
#define KF_LIB_IMPORT_LATENTATTENTION_H

#include "ModelOps.h"

namespace mlir::kf {

/// Writes the ops around such attention. C is the width of the rows, K that of
/// the cache's keys, which begin with the part that is turned.
class LatentAttention {
public:
  /// Positions are [T] of i32.
  LatentAttention(ModelOps &ops, Value positions);

  /// Of the layer whose names begin with `at`, of x [T, D]: queries [T, heads,
  /// K].
  Value queries(Value x, const std::string &at, const ::kf::RopeConfig &rope);
  /// What the cache is to hold, as key and as value: [T, 1, K].
  Value keys(Value x, const std::string &at, const ::kf::RopeConfig &rope);
  /// What heads give, of what they have attended to [T, heads, K]: [T, heads *
  /// value dim].
  Value values(Value attended, const std::string &at);

private:
  Value norm(Value x, const std::string &name);
  Value perHead(Value x, const std::string &at, StringRef part);
  Value part(Value x, int64_t first, int64_t count);
  Value join(Value turned, Value others);

  ModelOps &ops;
  OpBuilder &b;
  const ::kf::LatentConfig &latent;
  Value positions; ///< [T] of i32
  Value heads;     ///< the number of each head, [T, heads] of i32
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_LATENTATTENTION_H
