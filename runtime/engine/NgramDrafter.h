//===- NgramDrafter.h - Drafts from what a text has said --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_NGRAMDRAFTER_H
#define KF_RUNTIME_ENGINE_NGRAMDRAFTER_H

#include "runtime/engine/DraftPace.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace kf {

/// The most last tokens that are looked up.
inline constexpr int64_t kMostNgram = 64;

/// How a text's next tokens are drafted (prompt lookup decoding: Saxena, 2023).
struct NgramOptions {
  /// The most last tokens that are looked up, 1 or more, and the fewest.
  size_t longest = 3, shortest = 2;
  /// The most tokens that are drafted at a time, 1 or more.
  size_t most = kDefaultDraftTokens;
};

/// Drafts what follows a text's last tokens by what followed them where they
/// stood last: quotations, code and lists repeat what has been said. One
/// thread.
class NgramDrafter {
public:
  explicit NgramDrafter(const NgramOptions &options);

  /// The text goes on with `id`.
  void accept(int32_t id);
  /// At most `most` tokens that may come next, as many as it has been worth to
  /// draft lately; none where the last tokens are new. Valid until the next
  /// call.
  std::span<const int32_t> draft(size_t most);
  /// Whether draft() would draft some.
  bool hasDrafts() const { return resting == 0 && next() > 0; }
  /// Of the last drafts, of which there were some, `accepted` came true.
  void learn(size_t accepted);

private:
  size_t next() const;
  size_t followerOf(size_t length) const;
  uint64_t keyOf(size_t length) const;

  NgramOptions options;
  std::vector<int32_t> tokens;
  /// For each length from the shortest on: where the token behind those last
  /// ones is, by a hash of them.
  std::vector<std::unordered_map<uint64_t, size_t>> followers;
  std::vector<int32_t> drafts;
  size_t worth = 0;   ///< tokens to draft
  size_t misses = 0;  ///< drafts one after another of which none came true
  size_t resting = 0; ///< tokens that nothing is drafted behind
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_NGRAMDRAFTER_H
