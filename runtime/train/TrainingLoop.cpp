//===- TrainingLoop.cpp - Steps of training -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingLoop.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <cmath>

using namespace kf;

/// An error of a number that steps cannot go on with.
static Status notFinite(const char *what, double value) {
  return Status::error("the " + std::string(what) + " is not finite (" +
                           spellNumber(value) +
                           "); a lower learning rate, or a smaller norm to "
                           "clip at, may help",
                       StatusCode::Internal);
}

namespace {

class Loop {
public:
  Loop(TrainingModel &model, TrainingBatches &data, TrainingBatches *held,
       const TrainingLoopOptions &options, TrainingListener &listener)
      : model(model), data(data), held(held), options(options),
        listener(listener), saved(model.updates()) {}

  Status run();

private:
  int64_t steps() const { return options.learningRate.steps; }
  Status runSteps();
  Result<TrainingStep> runStep(int64_t number);
  Status evaluate();
  Status save();
  /// `status`, with what there is to go on from.
  Status withSaved(const Status &status) const;
  /// Whether something is due behind step `step`, the last one apart.
  bool isDue(int64_t step, int64_t every) const {
    return every > 0 && step % every == 0 && step != steps();
  }

  TrainingModel &model;
  TrainingBatches &data;
  TrainingBatches *held;
  const TrainingLoopOptions &options;
  TrainingListener &listener;
  int64_t saved;       ///< the step that was saved last, or begun from
  bool isSound = true; ///< whether the model may be saved, and can be
};

static std::string stepText(int64_t step) {
  return "step " + std::to_string(step);
}

Status Loop::withSaved(const Status &status) const {
  if (saved == 0)
    return status;
  return Status::error(status.message() + "; " + stepText(saved) +
                           " was saved last",
                       status.code());
}

Status Loop::save() {
  const int64_t step = model.updates();
  if (step == saved)
    return Status();
  isSound = false; // not once more where it fails
  KF_RETURN_IF_ERROR(options.save(step));
  isSound = true;
  saved = step;
  return Status();
}

Result<TrainingStep> Loop::runStep(int64_t number) {
  const Stopwatch watch;
  TrainingStep step;
  step.step = number + 1;
  step.learningRate = options.learningRate.at(number);
  for (int64_t i = 0; i < options.accumulate; ++i) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    listener.onStepProgress(static_cast<double>(i) /
                            static_cast<double>(options.accumulate));
    const TrainingBatch batch = data.batch(number * options.accumulate + i);
    const auto tokens = std::ranges::count_if(
        batch.examples, [](int32_t example) { return example >= 0; });
    if (tokens == 0)
      continue; // behind the last epoch's end
    KF_ASSIGN_OR_RETURN(const TrainingLoss loss,
                        model.accumulate(batch, options.cancelled));
    if (!std::isfinite(loss.sum))
      return notFinite("loss", loss.sum);
    step.loss += loss;
    step.tokens += tokens;
  }
  KF_ASSIGN_OR_RETURN(
      step.gradientNorm,
      model.update({.learningRate = static_cast<float>(step.learningRate),
                    .labels = step.loss.labels}));
  if (!std::isfinite(step.gradientNorm))
    return notFinite("norm of the gradient", step.gradientNorm);
  step.seconds = watch.seconds();
  return step;
}

/// Nothing where nothing is held out.
Status Loop::evaluate() {
  if (!held)
    return Status();
  KF_ASSIGN_OR_RETURN(const TrainingLoss loss,
                      evaluateLoss(model, *held, listener, options.cancelled));
  return listener.onEvaluation(model.updates(), loss)
      .in("evaluation behind " + stepText(model.updates()));
}

Status Loop::runSteps() {
  // An interruption may have been within it.
  if (saved > 0 && isDue(saved, options.evaluateEvery))
    KF_RETURN_IF_ERROR(evaluate());
  while (model.updates() < steps()) {
    const int64_t number = model.updates();
    Result<TrainingStep> step = runStep(number);
    if (!step.ok()) {
      isSound = step.status().isCancelled();
      return isSound ? step.status() : step.status().in(stepText(number + 1));
    }
    KF_RETURN_IF_ERROR(listener.onStep(*step).in(stepText(number + 1)));
    if (isDue(number + 1, options.evaluateEvery))
      KF_RETURN_IF_ERROR(evaluate());
    if (isDue(number + 1, options.saveEvery))
      KF_RETURN_IF_ERROR(save());
  }
  KF_RETURN_IF_ERROR(save());
  return evaluate();
}

Status Loop::run() {
  const Status status = runSteps();
  if (status.ok())
    return status;
  // What steps have come to is not lost where something else fails.
  const Status kept = isSound ? save() : Status();
  if (status.isCancelled())
    return kept.ok() ? status : kept;
  return withSaved(status);
}

} // namespace

Status kf::train(TrainingModel &model, TrainingBatches &data,
                 TrainingBatches *held, const TrainingLoopOptions &options,
                 TrainingListener &listener) try {
  return Loop(model, data, held, options, listener).run();
} catch (...) {
  return statusOfException();
}

Result<TrainingLoss> kf::evaluateLoss(TrainingModel &model,
                                      TrainingBatches &data,
                                      TrainingListener &listener,
                                      CancelFlag cancelled) {
  TrainingLoss sum;
  for (int64_t i = 0; i < data.count(); ++i) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    listener.onEvaluationProgress(static_cast<double>(i) /
                                  static_cast<double>(data.count()));
    Result<TrainingLoss> loss = model.evaluate(data.batch(i), cancelled);
    if (!loss.ok())
      return loss.status().isCancelled()
                 ? loss.status()
                 : loss.status().in("evaluation behind step " +
                                    std::to_string(model.updates()));
    sum += *loss;
  }
  return sum;
}

std::string kf::jsonLine(const TrainingStep &step, double seconds) {
  return jsonObject(
      {{"step", jsonText(step.step)},
       {"loss", jsonText(step.loss.mean())},
       {"learning_rate", jsonText(step.learningRate)},
       {"gradient_norm", jsonText(step.gradientNorm)},
       {"tokens", jsonText(step.tokens)},
       {"labels", jsonText(step.loss.labels)},
       {"tokens_per_second",
        jsonText(static_cast<double>(step.tokens) / step.seconds)},
       {"seconds", jsonText(seconds)}});
}

std::string kf::jsonLine(int64_t step, const TrainingLoss &heldOut,
                         double seconds) {
  return jsonObject({{"step", jsonText(step)},
                     {"eval_loss", jsonText(heldOut.mean())},
                     {"eval_labels", jsonText(heldOut.labels)},
                     {"seconds", jsonText(seconds)}});
}
