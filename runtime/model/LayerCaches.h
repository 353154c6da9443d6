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
// Where keys have one size, and as many layers attend to a window as to all
// positions, or more of them, the layers are in groups of as many each: one of
// those that attend to all, and some of those with a window. A page holds the
// positions of one group, and each group has a page table, so that pages of
// windows are given back when no row can see them. Where all layers have
// windows they are one such group, whose page table is that of all layers
// (docs/decisions/windowed-pages.md).
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
/// of `config`, those of windows included: with states, it has a slot as well.
int64_t pagesOfSequence(const ModelConfig &config, int64_t positions);
/// Pages with which `sequences` sequences of `positions` positions each have
/// room, and a step's as well that reads `rows` rows of their prompts.
int64_t pagesOfSequences(const ModelConfig &config, int64_t positions,
                         int64_t sequences, int64_t rows);
/// The most positions of a sequence that `pages` pages have room for; where all
/// layers have windows, those of the whole context at most.
int64_t positionsWithin(const ModelConfig &config, int64_t pages);
/// Pages with which `config` has room for all sequences, of up to `context`
/// positions each, that `pages` pages of `other` have room for.
int64_t pagesBeside(const ModelConfig &config, const ModelConfig &other,
                    int64_t pages, int64_t context);
/// The positions that `pages` pages hold, of sequences of `context` each; at
/// most 2^63 - 1. Where windows have pages of their own, some may be for a step
/// alone, so that these are no more than those of `sequences` sequences.
int64_t positionsOf(const ModelConfig &config, int64_t pages, int64_t context,
                    int64_t sequences = INT64_MAX);

/// Page tables of windows at most: each is one more input of a step.
inline constexpr int64_t kMostWindowTables = 8;

/// Layers that attend to a window, in groups with pages of their own.
struct CacheWindows {
  /// Groups, each with a page table; 0: all layers have the same pages, and
  /// keep all positions.
  int64_t tables = 0;
  /// Positions that a row of them sees at most, its own included.
  int64_t positions = 0;
  /// No layer attends to all positions. Else those that do are a group before
  /// these.
  bool areAll = false;

  /// Pages of all groups of layers, for each of a sequence's pages.
  int64_t groups() const { return areAll ? tables : tables + 1; }
  /// Page tables of a step behind the first one.
  int64_t moreTables() const { return groups() - 1; }

  /// Pages of a group that a sequence has at most, whatever its length, beside
  /// those that one step writes: rows see `positions` positions, and a page
  /// behind these is kept for who goes back by as many.
  int64_t pagesKept() const;
  /// The first of a sequence's pages, by their order in it, that the row at
  /// `position` sees.
  int64_t firstSeen(int64_t position) const;
  /// The same of those that are kept behind `length` positions.
  int64_t firstKept(int64_t length) const;

  bool operator==(const CacheWindows &) const = default;
};
/// Those of `config`'s caches; a stage's layers have none.
CacheWindows cacheWindowsOf(const ModelConfig &config);

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
    /// Whose pages it has: 0 for those of a step's first page table, else the
    /// number of a window's, from 1 on.
    int64_t table = 0;
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
  void placeInGroups(const ModelConfig &config);

  std::vector<CacheSpec> caches;
  std::vector<Place> places; ///< [layers]
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_LAYERCACHES_H
