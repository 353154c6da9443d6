//===- SessionFlags.h - Options of commands that run a model ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_SESSIONFLAGS_H
#define KF_TOOLS_KF_RUN_SESSIONFLAGS_H

#include "AdapterFlags.h"
#include "DeviceFlags.h"
#include "ModelArgument.h"
#include "OptionParser.h"
#include "ProfileFlags.h"

#include "runtime/session/Session.h"

#include <cstdint>
#include <optional>
#include <string>

namespace kf {

/// Options of every command that runs a model, whoever compiles it.
struct SessionFlags {
  std::string model;                ///< empty: the embedded one
  std::optional<std::string> named; ///< the model, as an option says it
  DummyFlags dummy;
  DeviceFlags device;
  int64_t context = 0;       ///< 0: chosen by the command's need
  bool wholeContext = false; ///< as many positions as the model has
  Float8Flag float8;
  uint64_t cacheMemory = 0; ///< bytes of the KV cache at most; 0: any
  uint64_t packedCache = 0; ///< bytes of kept packed weights; 0: none are kept
  ProfileFlags profile;
  int64_t ranks = 1; ///< that run the model together: those of a launcher, or
                     ///< threads
  Parallelism parallelism = Parallelism::Tensor;
  AdapterFlags lora;
  std::optional<int64_t> ngram; ///< last tokens that drafts are made from
  std::optional<std::string> draftModel;      ///< what drafts
  std::optional<std::string> draftWeightType; ///< of its random weights
  std::optional<int64_t> draftTokens;         ///< the most at a time

  /// Adds MODEL, which stands for the embedded one where it is left out, or has
  /// to be given, and the options to `parser`; `-t` only with `withThreads`.
  void addTo(OptionParser &parser, bool withEmbedded, bool withThreads = true);

  /// Adds `--ngram`, `--draft-model` and `--draft-tokens`, of commands that
  /// generate.
  void addDraftsTo(OptionParser &parser);

  /// What they say of the model.
  ModelChoice modelChoice() const {
    return {.path = model,
            .dummy = dummy,
            .float8 = float8.choice(),
            .adapters = lora.choices};
  }
  /// The session that they ask for, which an interrupt ends (Interrupt.h) and
  /// the terminal is told of.
  SessionOptions options(bool withTokenizer) const;

private:
  std::string packedFolder;            ///< where they are kept
  std::optional<int64_t> contextGiven; ///< 0: all of the model
};

/// Does what `--profile` asks for, if it was given, with all steps so far.
Status showProfile(const SessionFlags &flags, Session &session);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SESSIONFLAGS_H
