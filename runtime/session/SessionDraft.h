//===- SessionDraft.h - The model that drafts for a session's ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_SESSIONDRAFT_H
#define KF_RUNTIME_SESSION_SESSIONDRAFT_H

#include "runtime/engine/DraftModel.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/ModelFit.h"
#include "runtime/session/Session.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kf {

/// An error that names a token that two models do not have in common, of those
/// that both have rows for: what one drafts would be another text for the
/// other. Without tokenizers their vocabularies have to be as large.
Status checkSameVocabulary(const ModelFiles &model, const ModelFiles &draft);

/// A model on a session's device that drafts tokens for the session's engine.
/// One thread.
class SessionDraft {
public:
  /// Opens the draft model of `options` for `model`, which is on `device`.
  /// Nothing is packed or compiled yet. Errors: openModel()'s,
  /// checkSameVocabulary()'s, and where there are several ranks.
  static Result<std::unique_ptr<SessionDraft>>
  open(const SessionOptions &options, const SessionSources &sources,
       const ModelFiles &model, Device &device);

  /// Its caches are for `sequences` sequences of up to `context` positions:
  /// before cacheBytes() and start().
  void setSize(int64_t context, int64_t sequences);
  /// Bytes of its caches beside `pages` pages of the model's that it drafts
  /// for, in all layers.
  Result<int64_t> cacheBytes(int64_t pages) const;
  /// What it needs of the device's memory beside a cache; nothing of weights
  /// that are there.
  Result<ModelNeeds> needs() const;
  /// Drafts for an engine of `settings`, with a cache that holds as many texts
  /// as setSize() was told of where the engine's pages hold them. `pool`, which
  /// may be null, packs weights, and `packed`, which may be null, keeps them.
  Status start(const EngineOptions &settings, ThreadPool *pool,
               const PackedCache *packed);
  /// After start().
  DraftModel &drafts() { return *drafting; }
  /// Gives the cache back.
  void stop();

private:
  int64_t ownPages(int64_t pages) const;
  SessionDraft(Device &device, Observer *observer)
      : device(device), observer(observer) {}

  Device &device;
  Observer *observer;
  size_t most = 0;         ///< tokens to draft
  ModelConfig drafted;     ///< of the model that it drafts for
  int64_t mostContext = 0; ///< positions that its configuration is right for
  int64_t context = 0;     ///< setSize()
  int64_t sequences = 0;   ///< setSize()
  ModelFiles files;
  SessionSteps steps;
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> engine;
  std::optional<DraftModel> drafting;
};

} // namespace kf

#endif // KF_RUNTIME_SESSION_SESSIONDRAFT_H
