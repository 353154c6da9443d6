//===- Model.h - A decoder on a device --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_MODEL_H
#define KF_RUNTIME_ENGINE_MODEL_H

#include "runtime/core/Cancellation.h"
#include "runtime/devices/Device.h"
#include "runtime/engine/RankCommand.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Step.h"
#include "runtime/weights/WeightSource.h"
#include "runtime/weights/WeightStore.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

class RankLeader;

/// Compiles a part of a step, with inputs and outputs as runtime/model/Step.h
/// says, for the model's device.
using StepProvider = std::function<Result<Executable>(const StepShape &shape)>;

struct ModelOptions {
  /// How errors call the model: a path mostly.
  std::string name = {};
  /// Threads that help to pack weights; null for none. Not owned; nobody else
  /// may use it while the model does.
  ThreadPool *pool = nullptr;
  /// Ends packing, between parts of a weight, when it is set. Not owned.
  CancelFlag cancelled = nullptr;
  /// The only shapes that the StepProvider knows, in order; none: any.
  std::vector<StepShape> shapes = {};
  /// Where packed weights are kept, and what they are packed from; null: they
  /// are packed at each start. Not owned.
  const PackedCache *packed = nullptr;
  PackedSource packedFrom = {};
  /// Where others run the model, too, and this one leads them: what tells them.
  /// Null: it does not. Not owned.
  RankLeader *ranks = nullptr;
  /// Where each of these has a stage of the model: what provides the bodies of
  /// ranks 1, 2, ..., which run no other programs. None: they run all that this
  /// one does.
  std::vector<StepProvider> stages = {};
};

/// What all sequences of a decoder share: its programs, which come from the
/// StepProvider when they are first needed, and its weights, each once. Refers
/// to `device` and `source`, which must outlive it. One thread.
class Model {
public:
  Model(ModelConfig config, Device &device, const WeightSource &source,
        StepProvider provider, ModelOptions options = {});

  /// The program of `shape`, ready to be bound, on all ranks. Errors: the
  /// provider's, the devices', and a program that does not fit the model.
  Result<LoadedProgram *> program(const StepShape &shape);
  /// Forgets a program that nobody has bound.
  void dropProgram(const StepShape &shape) { programs.erase(shape); }
  /// Whether program(shape) is there without any work.
  bool hasProgram(const StepShape &shape) const;

  /// The only shapes of programs that there are, in order; none: any.
  const std::vector<StepShape> &shapes() const { return only; }
  /// Of those of `part`, the one of the most rows; null: none, or any.
  const StepShape *largestShape(StepPart part) const;
  /// Of those of `part`, the smallest with room for `rows` rows; null: none, or
  /// any.
  const StepShape *smallestShape(StepPart part, int64_t rows) const;

  const ModelConfig &config() const { return model; }
  Device &device() const { return target; }
  /// ModelOptions::ranks.
  RankLeader *ranks() const { return others; }
  /// The same of ranks that run programs of `part`.
  RankLeader *ranksWith(StepPart part) const {
    return stages.empty() || part == StepPart::Body ? others : nullptr;
  }
  /// Whether this rank and others have a stage of the model each.
  bool hasStages() const { return !stages.empty(); }
  /// How many, this rank's included; 1: the model is whole.
  size_t stageCount() const { return stages.size() + 1; }
  WeightStore &weights() { return store; }
  const WeightStore &weights() const { return store; }
  /// The error of who has got logits that are not finite: `what`, with the
  /// model's name. It takes no time, so that a step may end with it.
  Status badLogits(const std::string &what = "logits are not finite") const;
  /// Whether badLogits() was called.
  bool gaveBadLogits() const { return badLogitsGiven; }
  /// Why: "tensor 'x' has a NaN in row 3", or that all weights are finite. It
  /// reads all weights when it is first asked for, on the threads that pack
  /// them: not for who runs steps of others. Error: ModelOptions::cancelled.
  Result<std::string> findCauseOfBadLogits() const;
  /// `error` with that where the model gave bad logits, else as it is; for who
  /// has read alone.
  Status explain(const Status &error) const;

  /// Seconds in the StepProvider and in loading programs, so far.
  double compileSeconds() const { return compiling; }
  double loadSeconds() const { return loading; }

private:
  Status load(const StepShape &shape, const Executable &executable);
  Result<std::vector<RankCommand>> loadsOf(const StepShape &shape,
                                           const Executable &executable);
  std::string adviceOnCache() const;

  std::string name;
  ModelConfig model;
  Device &target;
  const WeightSource &source;
  StepProvider provider;
  std::vector<StepShape> only;
  RankLeader *others;
  std::vector<StepProvider> stages; ///< of other ranks
  WeightStore store;
  std::map<StepShape, std::unique_ptr<LoadedProgram>> programs;
  double compiling = 0, loading = 0;
  mutable bool badLogitsGiven = false;
  mutable std::string cause; ///< of them, once known
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_MODEL_H
