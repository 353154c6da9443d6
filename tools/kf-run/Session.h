//===- Session.h - A model and its programs, to be run ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_SESSION_H
#define KF_TOOLS_KF_RUN_SESSION_H

#include "DeviceFlags.h"
#include "DummyModel.h"
#include "Model.h"
#include "OptionParser.h"
#include "ProfileFlags.h"
#include "Progress.h"

#include "runtime/core/ThreadPool.h"
#include "runtime/engine/Engine.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Options of every command that runs a model, whoever compiles it.
struct SessionFlags {
  std::string model;                ///< empty: the embedded one
  std::optional<std::string> named; ///< the model, as an option says it
  DummyOptions dummy;
  DeviceFlags device;
  int64_t context = 0;       ///< 0: chosen by the command's need
  bool wholeContext = false; ///< as many positions as the model has
  Float8Flag float8;
  uint64_t cacheMemory = 0; ///< bytes of the KV cache at most; 0: any
  ProfileFlags profile;

  /// Adds MODEL, which stands for the embedded one where it is left out, or has
  /// to be given, and the options to `parser`; `-t` only with `withThreads`.
  void addTo(OptionParser &parser, bool withEmbedded, bool withThreads = true);

private:
  std::optional<int64_t> contextGiven; ///< 0: all of the model
};

/// A model, the device that it runs on, and the engine that runs it. One
/// thread.
class Session {
public:
  virtual ~Session() = default;
  /// Opens the device and the model, whose programs are those of the files
  /// `programs` (ProgramFiles).
  static Result<std::unique_ptr<Session>>
  open(const SessionFlags &flags, bool withTokenizer,
       std::span<const std::string> programs);

  /// Makes the engine, which an interrupt ends (Interrupt.h), for `parallel`
  /// sequences at once. Without `--context` one has room for `tokens`, for 4096
  /// if that is more, and in no case for more than the model was made for.
  /// Another call makes another engine of the same programs and weights;
  /// sequences of the one before must be gone.
  Status start(int64_t tokens, int64_t parallel = 1,
               bool reusesPrefixes = true);

  /// After start(): an error if the context has no room for a prompt.
  Status checkFits(std::span<const int32_t> prompt) const;

  /// Does what `--profile` asks for, if it was given, with all steps so far.
  Status showProfile();

  const ModelFiles &files() const { return opened; }
  const Tokenizer &tokenizer() const { return *opened.tokenizer; }
  Device &device() { return *target; }
  /// After start().
  Engine &engine() { return *running; }
  const Engine &engine() const { return *running; }
  /// Where the programs came from, in a word or two: "compiled", "cached".
  std::string origin() const { return programs.origin(); }

  /// Seconds that opening took.
  double openSeconds() const { return seconds; }

protected:
  /// Where programs come from. What it calls must live as long as the session.
  struct Programs {
    StepProvider provide;
    std::vector<StepShape> shapes = {}; ///< the only ones; none: any
    std::string cacheType;              ///< of their KV caches
    std::function<std::string()> origin;
  };

  Session() = default;
  /// Opens model and device.
  Status openFiles(const SessionFlags &flags, bool withTokenizer);

  Programs programs;
  double seconds = 0;

private:
  void makeModel();
  Status loadPrograms();
  Result<int64_t> pageBytes() const;
  Result<int64_t> pagesFor(uint64_t bytes) const;
  Status checkMemory(int64_t pages) const;

  SessionFlags options;
  std::unique_ptr<Device> target;
  std::unique_ptr<ThreadPool> pool;
  std::optional<Progress> packing; ///< while weights are packed
  ModelFiles opened;
  std::unique_ptr<Profile> profile; ///< null without --profile
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> running;
};

/// encodePrompt(), which an interrupt ends, with progress.
Result<std::vector<int32_t>> promptIds(const ModelFiles &model,
                                       std::string_view text);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SESSION_H
