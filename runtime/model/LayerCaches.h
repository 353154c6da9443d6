//===- LayerCaches.h - Where layers keep keys and values --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model has a KV cache for each size of keys that its layers have: layers of
// heads of 256 elements in one, those of 512 in another. All caches have the
// same pages, so that one page table says for all of them where positions are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_LAYERCACHES_H
#define KF_RUNTIME_MODEL_LAYERCACHES_H

#include "runtime/model/ModelConfig.h"
#include "runtime/program/Executable.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kf {

/// Pages of keys and values for which there is a slot for states, or those of a
/// whole sequence of models whose sequences have fewer: 4096 positions, whose
/// keys and values take 1.2 times what a state does (Qwen3-Next, f16) to 2.5
/// times (Qwen3.5-9B).
inline constexpr int64_t kStatePages = 64;
/// Those of `config`.
int64_t statePagesOf(const ModelConfig &config);

/// Slots for states that caches of `pages` pages have.
int64_t cachedStates(const ModelConfig &config, int64_t pages);
/// Pages with which a sequence of `positions` positions has room in all caches
/// of `config`: with states, it has a slot as well.
int64_t pagesOfSequence(const ModelConfig &config, int64_t positions);

/// Immutable: any thread.
class LayerCaches {
public:
  /// Those of `config`, with keys and values of `type`, and keys in blocks of
  /// one.
  explicit LayerCaches(const ModelConfig &config,
                       DataType type = DataType::F32);

  struct Place {
    size_t cache = 0;  ///< among specs()
    int64_t layer = 0; ///< of that cache
  };
  /// Where `layer` finds its states, or its keys and values: where another one
  /// has put them, if it attends to those.
  const Place &of(int64_t layer) const {
    return places[static_cast<size_t>(layer)];
  }
  /// The caches of a step's body, in the order of its arguments.
  const std::vector<CacheSpec> &specs() const & { return caches; }
  std::vector<CacheSpec> specs() && { return std::move(caches); }
  /// Bytes of `pages` pages of all caches. Errors: those of CacheSpec::bytes().
  Result<int64_t> bytes(int64_t pages) const;

private:
  std::vector<CacheSpec> caches;
  std::vector<Place> places; ///< [layers]
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_LAYERCACHES_H
