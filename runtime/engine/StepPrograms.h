//===- StepPrograms.h - A step's programs and their buffers -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The programs of a step are bound to one another's buffers: bodies write their
// hidden rows to one buffer, of which all heads and embeddings read, and what
// chooses reads the logits of the head with as many rows. So any body goes with
// any head, and nothing is copied.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPPROGRAMS_H
#define KF_RUNTIME_ENGINE_STEPPROGRAMS_H

#include "runtime/engine/KVCache.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/ProgramRunner.h"

#include <cstdint>
#include <map>
#include <memory>

namespace kf {

/// Programs that are ready to run in one stream. Refers to `model` and `cache`,
/// which must outlive it. One thread.
class StepPrograms {
public:
  /// Allocates nothing yet. Bodies have at most `mostRows` rows.
  StepPrograms(Model &model, KVCache &cache, int64_t mostRows)
      : model(model), cache(cache), mostRows(mostRows) {}
  /// Waits for what is in the stream.
  ~StepPrograms();
  StepPrograms(const StepPrograms &) = delete;
  StepPrograms &operator=(const StepPrograms &) = delete;

  /// Binds the program of `shape`; a choice behind the head whose logits it
  /// reads. Errors: a choice without its head, those of Model::program() and
  /// ProgramRunner::create().
  Status bind(const StepShape &shape);
  /// The program of `shape`; null: it is not bound.
  ProgramRunner *find(const StepShape &shape) const;

  /// Where the programs run; made when it is first asked for.
  Result<Stream *> stream();

  /// As ProgramRunner::setProfile(), for all programs; before the first.
  void setProfile(Profile *wanted) { profile = wanted; }

  uint64_t arenaBytes() const;
  uint64_t ioBytes() const;
  /// Seconds in binding, packing apart.
  double bindSeconds() const { return binding; }

private:
  Result<OutsideBuffers> buffersOf(const StepShape &shape);

  Model &model;
  KVCache &cache;
  int64_t mostRows;
  Profile *profile = nullptr;
  std::unique_ptr<Buffer> hidden; ///< [mostRows, D] f32, the last body's
  std::map<StepShape, std::unique_ptr<ProgramRunner>> programs;
  /// Null until it is needed. It ends before what its work uses.
  std::unique_ptr<Stream> work;
  double binding = 0;
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_STEPPROGRAMS_H
