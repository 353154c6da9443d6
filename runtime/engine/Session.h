//===- Session.h - A model that is being run --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_SESSION_H
#define KF_RUNTIME_ENGINE_SESSION_H

#include "runtime/core/Cancellation.h"
#include "runtime/devices/Device.h"
#include "runtime/engine/KVCache.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Step.h"
#include "runtime/weights/WeightSource.h"
#include "runtime/weights/WeightStore.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kf {

/// Compiles one step, with inputs and outputs as runtime/model/Step.h says, for
/// the session's device.
using StepProvider = std::function<Result<Executable>(const StepShape &shape)>;

struct SessionOptions {
  /// Positions that the session has room for; 0 for as many as the model was
  /// made for, which is also the most.
  int64_t contextLength = 0;
  /// Threads that help to pack weights; null for none. Not owned; nobody else
  /// may use it while the session does.
  ThreadPool *pool = nullptr;
  /// Ends what the session is at when it is set: a chunk between two
  /// dispatches, where the device can; packing between parts of a weight. Not
  /// owned.
  CancelFlag cancelled = nullptr;
};

/// Bytes that a session holds on its device.
struct SessionMemory {
  uint64_t weights = 0; ///< those that lie in the mapped file included
  uint64_t cache = 0;   ///< keys and values
  uint64_t arenas = 0;  ///< intermediate tensors of the programs
  uint64_t io = 0;      ///< inputs and outputs of the programs

  uint64_t total() const { return weights + cache + arenas + io; }
};

/// Seconds spent in making programs ready, so far.
struct SessionTimings {
  double compile = 0; ///< in the StepProvider
  double load = 0;    ///< in loading and binding
  double pack = 0;    ///< in packing weights
};

/// A decoder and one sequence of tokens that it has read. Programs come from
/// the StepProvider when they are first needed: one for single tokens, and
/// prefill in chunks of two sizes, so that a short prompt does not wait for the
/// kernels of a long one. Results do not depend on the chunks but for rounding.
/// Refers to `device` and `source`, which must outlive it. One thread.
///
/// A call that fails, or that SessionOptions::cancelled ends with
/// Status::cancelled(), leaves position() as it was.
class Session {
public:
  /// Allocates nothing yet. Errors: a context length that the model cannot
  /// have.
  static Result<std::unique_ptr<Session>>
  create(ModelConfig config, Device &device, const WeightSource &source,
         StepProvider provider, const SessionOptions &options = {});

  /// Reads `ids` and returns the logits [vocabulary] that follow the last one,
  /// valid until the next call. Errors, before anything runs: no ids, an id
  /// outside the vocabulary, more ids than the context has room for.
  Result<std::span<const float>> prefill(std::span<const int32_t> ids);
  /// The same for one id.
  Result<std::span<const float>> decode(int32_t id);

  /// Called with each position and the logits [vocabulary] that follow it,
  /// which are valid during the call; an error ends the run.
  using LogitsCallback =
      std::function<Status(int64_t position, std::span<const float> logits)>;
  /// Reads `ids` and hands out the logits of every one of them, in order.
  Status allLogits(std::span<const int32_t> ids,
                   const LogitsCallback &callback);

  /// Forgets all tokens.
  void reset() { nextPosition = 0; }
  /// Forgets the tokens from `position` on, so that others can follow those
  /// before it. Error: a position that was not reached.
  Status rewind(int64_t position);
  /// Whether SessionOptions::cancelled is set.
  bool isCancelled() const { return kf::isCancelled(cancelled); }
  /// How many tokens were read.
  int64_t position() const { return nextPosition; }
  int64_t contextLength() const { return context; }
  const ModelConfig &config() const { return model; }
  /// Which of the model's weights is not finite, if one is: "tensor 'x' has a
  /// NaN in row 3". Reads all weights: for errors about logits.
  std::optional<std::string> findNonFiniteWeight() const;
  SessionMemory memory() const;
  SessionTimings timings() const;

private:
  Session(ModelConfig config, Device &device, const WeightSource &source,
          StepProvider provider, int64_t context,
          const SessionOptions &options);

  Status checkIds(std::span<const int32_t> ids) const;
  int64_t prefillSizeFor(int64_t remaining) const;
  int64_t allLogitsSizeFor(int64_t remaining) const;
  /// One that can be run, for StepOutput::Logits.
  struct Step {
    StepShape shape;
    ProgramRunner *runner = nullptr;
  };
  Result<Step> program(int64_t tokens, int64_t wanted);
  Status writeSequence(ProgramRunner &runner) const;
  Result<std::span<const float>>
  runStep(const Step &step, std::span<const int32_t> ids, size_t wanted);
  Result<std::span<const float>> runDecode(int32_t id);

  ModelConfig model;
  Device &device;
  StepProvider provider;
  int64_t context;
  CancelFlag cancelled;
  int64_t nextPosition = 0;
  double compileSeconds = 0, readySeconds = 0;
  const WeightSource &source;
  WeightStore weights;
  KVCache cache;
  std::map<StepShape, std::unique_ptr<ProgramRunner>> programs;
  Step decoder;              ///< of one token, once it is there
  std::vector<int32_t> rows; ///< positions of a step's rows, or their numbers
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_SESSION_H
