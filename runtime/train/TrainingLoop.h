//===- TrainingLoop.h - Steps of training -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step reads some batches, whose gradients are added up, and updates the
// model once. Which batches and which learning rate follows from its number, so
// that a model that has been updated n times goes on at step n.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGLOOP_H
#define KF_RUNTIME_TRAIN_TRAININGLOOP_H

#include "runtime/core/Cancellation.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/TrainingBatches.h"
#include "runtime/train/TrainingModel.h"

#include <cstdint>
#include <functional>
#include <string>

namespace kf {

/// What a step did.
struct TrainingStep {
  int64_t step = 0;  ///< its number, from 1
  TrainingLoss loss; ///< before the update
  double learningRate = 0;
  double gradientNorm = 0; ///< before clipping
  int64_t tokens = 0;      ///< that were read
  double seconds = 0;
};

/// Is told what training is at. All calls come from the thread that trains; an
/// error of one ends it.
class TrainingListener {
public:
  virtual ~TrainingListener() = default;
  /// `share` of a step's batches are read, and of those of an evaluation.
  virtual void onStepProgress(double /*share*/) {}
  virtual void onEvaluationProgress(double /*share*/) {}
  virtual Status onStep(const TrainingStep &step) = 0;
  /// What is held out is predicted so after `step` steps.
  virtual Status onEvaluation(int64_t step, const TrainingLoss &loss) = 0;
};

struct TrainingLoopOptions {
  LearningRate learningRate; ///< with the number of steps
  int64_t accumulate = 1;    ///< batches of a step
  int64_t evaluateEvery = 0; ///< steps; 0: at the end alone
  int64_t saveEvery = 0;     ///< likewise
  /// Keeps the model as it is after `step` steps.
  std::function<Status(int64_t step)> save;
  CancelFlag cancelled = nullptr;
};

/// Trains `model` from the step after its last update to the last step, with
/// the batches of `data`, which has as many; evaluates it on those of `held`,
/// which may be null, also at first where that is due behind the last update.
/// It is saved at the end, too, and where it is cancelled:
/// then what was read since the last update is forgotten, and
/// Status::cancelled() is returned. Errors name the step, and the last one that
/// is saved: the model's, and a loss or a gradient that is not finite, behind
/// which nothing is saved; an evaluation's and the listener's, behind which the
/// model is saved first.
Status train(TrainingModel &model, TrainingBatches &data, TrainingBatches *held,
             const TrainingLoopOptions &options, TrainingListener &listener);

/// The loss of all batches of `data`, which have an end.
Result<TrainingLoss> evaluateLoss(TrainingModel &model, TrainingBatches &data,
                                  TrainingListener &listener,
                                  CancelFlag cancelled = nullptr);

/// A step and an evaluation as a line of JSON, without a line break. `seconds`
/// are those of training until then.
std::string jsonLine(const TrainingStep &step, double seconds);
std::string jsonLine(int64_t step, const TrainingLoss &heldOut, double seconds);

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGLOOP_H
