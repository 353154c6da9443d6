//===- TrainingRun.h - A training from files to files -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf-run train does, for any program: reads examples, opens the model that
// is trained, goes on from a checkpoint where it is to, trains, and writes the
// result. Errors name options as kf-run has them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGRUN_H
#define KF_RUNTIME_TRAIN_TRAININGRUN_H

#include "runtime/model/Training.h"
#include "runtime/train/Checkpoints.h"
#include "runtime/train/TrainingData.h"
#include "runtime/train/TrainingLoop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kf {

struct TrainingRunOptions {
  std::string data;   ///< a file of examples (TrainingData.h)
  std::string output; ///< a folder, which is made where it is missing
  // What is not learnt, one of them or none:
  std::optional<std::string> evalData; ///< another file
  std::optional<double> evalSplit;     ///< a share of `data`, above 0
  /// A checkpoint to go on from; empty: the newest of `output`. `output` has
  /// no others than that one's training.
  std::optional<std::string> resume;
  /// Whether the result may replace files of `output` that are no training's.
  bool force = false;

  /// The path of the model where all of its weights are trained, so that the
  /// result is a model of its own; empty: the embedded one.
  std::optional<std::string> fullModel;
  /// Adds to a folder what the embedded model has beside its weights.
  std::function<Status(const std::string &folder)> saveEmbedded;

  /// A checkpoint's time goes before that of the template, and what neither
  /// says is the present.
  TemplateOptions chatTemplate;
  bool trainOnPrompt = false;
  LongExamples longExamples = LongExamples::Cut;
  int64_t batch = 4;             ///< rows
  std::optional<int64_t> length; ///< tokens of a row; nothing: 512 at most
  bool pack = true, shuffle = true;
  uint64_t seed = 0;    ///< of the order of rows, and of what is held out
  bool anySeed = false; ///< a checkpoint's own goes before it
  std::optional<int64_t> epochs; ///< 1 by default, unless there are `steps`
  std::optional<int64_t> steps;  ///< in place of epochs
  int64_t accumulate = 1;        ///< batches of a step
  LearningRate learningRate;     ///< without its steps
  int64_t evalEvery = 0, saveEvery = 0; ///< steps; 0: at the end alone
  int64_t keep = 2;                     ///< checkpoints; 0: all

  /// What the model is trained with besides: typedOptions().
  std::map<std::string, std::string> modelOptions;
  CancelFlag cancelled = nullptr;
  Observer *observer = nullptr; ///< may be null, and outlives the run
};

/// What `lora` and `optimizer` say, as it is typed: modelOptions.
std::map<std::string, std::string>
typedOptions(const std::optional<LoraConfig> &lora,
             const OptimizerOptions &optimizer);

/// An error where a file that the training reads cannot be opened. It is for
/// those who open a model before the run.
Status checkReadFiles(const TrainingRunOptions &options);

/// Opens the model that is trained, for batches of `rows` rows of `length`
/// tokens. `seed` is the training's, a checkpoint's where it goes on from one.
using OpenTrainingModel = std::function<Result<std::unique_ptr<TrainingModel>>(
    int64_t rows, int64_t length, uint64_t seed)>;

/// One thread.
class TrainingRun {
public:
  /// Reads all examples with the tokenizer of `files`, then opens the model.
  /// Errors: a model that cannot be written, or not to `output`, where it is
  /// read from; a folder that has checkpoints or none, against `resume`, or
  /// files that the result would replace, without `force`; a checkpoint of
  /// another training; those of the files and of `open`; Status::cancelled().
  static Result<std::unique_ptr<TrainingRun>>
  open(const ModelFiles &files, TrainingRunOptions options,
       const OpenTrainingModel &open);

  /// Steps in all, and those that were done when it was opened.
  int64_t steps() const { return allSteps; }
  int64_t firstStep() const { return begun ? begun->step : 0; }
  /// The checkpoint that was written last, or gone on from; empty: none.
  const std::string &lastCheckpoint() const { return last; }
  TrainingModel &model() { return *trained; }
  /// The local time that the chat template tells (LocalTime.h).
  const std::string &templateTime() const { return head.time; }

  /// Trains, as train() does, and writes the result to `output`. Cancelled, it
  /// has written a checkpoint of all whole steps. Errors besides: files that
  /// the result would replace have come meanwhile, without `force`.
  Status run(TrainingListener &listener);

private:
  TrainingRun(TrainingRunOptions options, Checkpoints checkpoints)
      : options(std::move(options)), checkpoints(std::move(checkpoints)) {}
  Status findCheckpoint();
  Status checkReplaced() const;
  Status saveCheckpoint();
  Status chooseTime();
  Status readData(const ModelFiles &files);
  Status describeTraining(const ModelFiles &files);
  Status checkSteps() const;
  void warnOfWarmup() const;
  std::string givenSteps() const;
  TrainingBatches::Options batchOptions() const;
  void note(const std::string &line) const;

  TrainingRunOptions options;
  Checkpoints checkpoints;
  std::string last;
  std::optional<CheckpointHead> begun; ///< what it goes on from
  TrainingData data;
  std::optional<TrainingData> held;
  int64_t length = 0, allSteps = 0;
  CheckpointHead head; ///< of all checkpoints, but for their steps
  std::unique_ptr<TrainingModel> trained;
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGRUN_H
