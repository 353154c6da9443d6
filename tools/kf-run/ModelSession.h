//===- ModelSession.h - A model opened to be run ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELSESSION_H
#define KF_TOOLS_KF_RUN_MODELSESSION_H

#include "Devices.h"
#include "DummyModel.h"
#include "Model.h"
#include "OptionParser.h"
#include "StepCompiler.h"

#include "runtime/core/ThreadPool.h"
#include "runtime/engine/Session.h"

#include <memory>
#include <string>

namespace kf {

/// Options of every command that runs a model.
struct ModelOptions {
  std::string model;                ///< empty: the embedded one
  std::optional<std::string> named; ///< the model, as an option says it
  DummyOptions dummy;
  DeviceOptions device;
  int64_t context = 0; ///< 0: chosen by the command's need
  bool noCache = false;
  std::string cacheType = "f32", targetCpu = "native";

  /// Adds MODEL and the options to `parser`.
  void addTo(OptionParser &parser);
};

/// A model, the device that it runs on, and the session. One thread.
class ModelSession {
public:
  /// Opens the device and the model.
  static Result<std::unique_ptr<ModelSession>> open(const ModelOptions &options,
                                                    bool withTokenizer);
  /// Makes the session, which an interrupt ends (Interrupt.h). Without
  /// `--context` it has room for `tokens`, for 4096 if that is more, and in no
  /// case for more than the model was made for.
  Status start(int64_t tokens);

  const Model &model() const { return opened; }
  const Tokenizer &tokenizer() const { return *opened.tokenizer; }
  Device &device() { return *target; }
  /// After start().
  Session &session() { return *running; }
  const StepCompiler &compiler() const { return *steps; }

  /// `error`, that logits are not finite, with the model's name and with the
  /// weight that is to blame, if there is one. Reads all weights.
  Status explainBadLogits(const Status &error) const;

  /// Seconds that open() took.
  double openSeconds() const { return seconds; }
  /// Seconds that it took to make programs ready for a prefill of `tokens`
  /// tokens and, if only what followed needed it, the decode step.
  struct Readying {
    double prefill = 0, decode = 0;
  };
  Readying readying(int64_t tokens) const;

private:
  ModelSession() = default;

  Result<Executable> provide(const StepShape &shape);
  double readySeconds() const;

  ModelOptions options;
  std::unique_ptr<Device> target;
  std::unique_ptr<ThreadPool> pool;
  Model opened;
  std::optional<StepCompiler> steps;
  std::unique_ptr<Session> running;
  double seconds = 0;
  /// When the decode step was asked for: tokens read by then, and
  /// readySeconds().
  int64_t decodePosition = -1;
  double decodeRequested = 0;
};

/// The tokens that generation continues: `text` behind the begin-of-text token
/// where the model has one and `text` does not begin with it. Errors: no token
/// to start from.
Result<std::vector<int32_t>> promptIds(const Model &model,
                                       std::string_view text);

/// The tokens that begin every text of `model`: maybe none.
std::vector<int32_t> beginIds(const Model &model);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELSESSION_H
