//===- DraftModel.h - Drafts by a smaller model -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Speculative decoding (Leviathan et al., 2023): a small model drafts tokens,
// one after another, and a large one reads them together.
// docs/decisions/draft-model.md
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_DRAFTMODEL_H
#define KF_RUNTIME_ENGINE_DRAFTMODEL_H

#include "runtime/core/Status.h"
#include "runtime/engine/DraftPace.h"
#include "runtime/engine/Sampler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kf {

class DraftModel;
class Engine;
class Sequence;

/// What a draft model has of a text. One thread.
class DraftText {
public:
  /// Refers to `model`, whose engine must outlive it.
  explicit DraftText(DraftModel &model);
  ~DraftText();
  DraftText(const DraftText &) = delete;
  DraftText &operator=(const DraftText &) = delete;

  /// The text is `tokens` and `last`, and `sampler` chooses what follows them.
  /// Drafts at most `most` tokens, as many as it is worth for each of `texts`
  /// texts, when DraftModel::run() is called; none while it reads a text that
  /// it does not know yet.
  void begin(std::span<const int32_t> tokens, int32_t last,
             const Sampler &sampler, size_t most, size_t texts);
  /// After run(): the tokens that may come next, or why there can be none:
  /// errors of the device and of whoever compiles for it. What the model makes
  /// of this text is none, nor is a cache with too few pages: nothing is
  /// drafted.
  Result<std::span<const int32_t>> take();
  /// Of `drafted` tokens that were read, at least 1, `accepted` came true.
  void learn(size_t drafted, size_t accepted) { pace.learn(drafted, accepted); }
  /// Whether nothing is drafted behind a text of `length` tokens.
  bool isResting(size_t length) const { return pace.isResting(length); }

private:
  Status tryBegin(std::span<const int32_t> tokens, int32_t last);
  Status read(std::vector<int32_t> ids);
  Status catchUp(std::span<const int32_t> ids);
  Status follow(int32_t id);
  bool isKnown(int32_t id) const;
  void setDrafting(bool drafts);

  DraftModel &model;
  DraftPace pace;
  std::unique_ptr<Sequence> sequence; ///< null: it has read nothing yet
  std::optional<Sampler> sampler;     ///< has accepted what is drafted
  std::vector<int32_t> drafted;
  size_t wanted = 0; ///< tokens to draft
  size_t length = 0; ///< of the text, in tokens
  bool isDrafting = false;
  Status ended; ///< why there are no more
};

/// A model that drafts for the sequences of another one's engine. One thread.
class DraftModel {
public:
  /// Refers to `engine`, which runs it. It drafts `most` tokens at most at a
  /// time, 1 to kMostDraftTokens, of a vocabulary of `vocabulary` tokens. Steps
  /// take what `known` says, or what they are measured to.
  DraftModel(Engine &engine, size_t most, int64_t vocabulary,
             std::optional<DraftTimes> known = std::nullopt)
      : engine(engine), most(most), vocabulary(vocabulary), measures(!known),
        times(std::move(known).value_or(DraftTimes())) {}

  Engine &owner() const { return engine; }
  size_t mostTokens() const { return most; }
  /// Drafts for all texts that have begun, and reads on in those that it does
  /// not know, a step at least.
  void run();
  /// A step of the other engine took `seconds` for `rows` rows of sequences
  /// that generate.
  void addStep(int64_t rows, double seconds) {
    if (measures)
      times.reading.add(rows, seconds);
  }

private:
  friend class DraftText;

  Engine &engine;
  size_t most;
  int64_t vocabulary;
  bool measures;
  DraftTimes times;
  int64_t drafting = 0;   ///< texts whose drafts are not there yet
  bool isMeasured = true; ///< nothing but drafts is made
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_DRAFTMODEL_H
