//===- TrainingRun.cpp - A training from files to files -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRun.h"

#include "runtime/chat/LocalTime.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"
#include "runtime/session/OpenModel.h"
#include "runtime/train/ModelDigest.h"
#include "runtime/train/ResultFiles.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

using namespace kf;

static std::string countText(int64_t count, const std::string &thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// An error where training all weights of the model at `path` comes to a result
/// that cannot be written to `output`.
static Status checkFullOutput(const ModelFiles &files, const std::string &path,
                              const std::string &output) {
  if (Status status = checkSaves(files.config); !status.ok())
    return nameModel(files, status);
  std::error_code ignored; // one of them may not be there
  if (std::filesystem::equivalent(path, output, ignored))
    return Status::error(quotePath(output) +
                         " is the model's own folder, whose weights would be "
                         "overwritten; give another --output");
  return Status();
}

/// The seed of the training of a checkpoint, or `other` where it tells none.
static uint64_t seedOf(const CheckpointHead &head, uint64_t other) {
  const auto option = head.options.find("--seed");
  if (option != head.options.end())
    std::from_chars(option->second.data(),
                    option->second.data() + option->second.size(), other);
  return other;
}

/// What became of the examples of a file, as one line.
static std::string describeData(const std::string &path,
                                const TrainingData &data) {
  std::string text =
      quotePath(path) + ": " +
      countText(static_cast<int64_t>(data.examples.size()), "example") + ", " +
      countText(data.tokens(), "token") + ", of which " +
      std::to_string(data.labels()) + " are to be learnt";
  if (data.cut)
    text += "; " + std::to_string(data.cut) + " longer than a row, and cut";
  if (data.tooLong)
    text += "; " + std::to_string(data.tooLong) +
            " longer than a row, and left out";
  if (data.empty)
    text += "; " + std::to_string(data.empty) +
            " without a token to learn, and left out";
  return text;
}

void TrainingRun::note(const std::string &line) const {
  if (options.observer)
    options.observer->onNote(line);
}

TrainingBatches::Options TrainingRun::batchOptions() const {
  return {.rows = options.batch,
          .length = length,
          .pack = options.pack,
          .shuffle = options.shuffle,
          .seed = options.seed,
          .epochs = options.steps ? 0 : options.epochs.value_or(1)};
}

Status TrainingRun::findCheckpoint() {
  const std::string output = quotePath(options.output);
  if (!options.resume)
    return checkpoints.steps().empty()
               ? Status()
               : Status::error(output +
                               " has checkpoints of a training; --resume goes "
                               "on from them, and another --output begins "
                               "anew");
  if (!options.resume->empty()) {
    last = *options.resume;
    KF_ASSIGN_OR_RETURN(begun, readCheckpointHead(last));
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path folder = fs::canonical(last, ignored).parent_path();
    if (!checkpoints.steps().empty() &&
        !fs::equivalent(folder, options.output, ignored))
      return Status::error(output +
                           " has checkpoints of a training, of which " +
                           quotePath(last) + " is none; give another --output");
    // A later checkpoint may know of a result that this one does not.
    const std::optional<CheckpointHead> newest = checkpoints.newest();
    head.ownsResult = newest && (newest->ownsResult || begun->ownsResult);
    return Status();
  }
  begun = checkpoints.newest();
  if (!begun)
    return Status::error(output +
                             " has no checkpoint to go on from; leave --resume "
                             "out, or give another --output",
                         StatusCode::NotFound);
  last = checkpoints.pathOf(begun->step);
  head.ownsResult = begun->ownsResult;
  return Status();
}

/// Files that this training has not written stay.
Status TrainingRun::checkReplaced() const {
  if (options.force || head.ownsResult)
    return Status();
  const std::vector<std::string> found =
      resultFilesIn(options.output, options.fullModel.has_value());
  if (found.empty())
    return Status();
  return Status::error(quotePath(options.output + "/" + found.front()) +
                       " is there already, and the result would replace "
                       "it; give --force, or another --output");
}

/// A checkpoint of step `head.step`. The last one says that the result, which
/// is written behind it, is the training's own.
Status TrainingRun::saveCheckpoint() {
  if (head.step == allSteps)
    head.ownsResult = checkReplaced().ok();
  KF_RETURN_IF_ERROR(checkpoints.save(*trained, head));
  last = checkpoints.pathOf(head.step);
  return Status();
}

/// The option that says how long the training is, as it is typed.
std::string TrainingRun::givenSteps() const {
  return options.steps
             ? "--steps " + std::to_string(*options.steps)
             : "--epochs " + std::to_string(options.epochs.value_or(1));
}

Status TrainingRun::readData(const ModelFiles &files) {
  constexpr int64_t usual = 512;
  const int64_t most = files.config.maxPositions;
  length = options.length.value_or(std::min(usual, most));
  if (length > most)
    return Status::error("--length " + std::to_string(length) +
                         " is more than the " + std::to_string(most) +
                         " positions of the model");
  const TrainingShape shape = {.rows = options.batch, .length = length};
  KF_RETURN_IF_ERROR(shape.validate());
  KF_ASSIGN_OR_RETURN(
      const ExampleEncoder encoder,
      ExampleEncoder::open(files, options.chatTemplate, options.trainOnPrompt));
  const TrainingDataOptions reading = {.length = length,
                                       .longExamples = options.longExamples,
                                       .cancelled = options.cancelled,
                                       .observer = options.observer};
  KF_ASSIGN_OR_RETURN(data, readTrainingData(options.data, encoder, reading));
  note(describeData(options.data, data));
  if (options.evalData) {
    KF_ASSIGN_OR_RETURN(held,
                        readTrainingData(*options.evalData, encoder, reading));
    note(describeData(*options.evalData, *held));
  } else if (options.evalSplit) {
    KF_ASSIGN_OR_RETURN(
        held, splitTrainingData(data, *options.evalSplit, options.seed));
    note(countText(static_cast<int64_t>(held->examples.size()), "example") +
         " of these held out");
  }
  allSteps = options.steps.value_or(0);
  if (!options.steps) {
    const int64_t batches =
        TrainingBatches(data.examples, batchOptions()).count();
    allSteps = (batches + options.accumulate - 1) / options.accumulate;
  }
  int64_t rows = 0;
  if (__builtin_mul_overflow(options.batch, options.accumulate, &rows) ||
      __builtin_mul_overflow(rows, allSteps, &rows))
    return Status::error(givenSteps() +
                         " reads more rows than can be counted; give less");
  return Status();
}

/// Examples are the same on any day that the training goes on.
Status TrainingRun::chooseTime() {
  std::optional<std::tm> &now = options.chatTemplate.now;
  if (begun && !begun->time.empty()) {
    KF_ASSIGN_OR_RETURN(now, parseLocalTime(begun->time));
  } else if (!now) {
    now = localTimeNow();
  }
  head.time = localTimeText(*now);
  return Status();
}

/// Sets `head` to all that a step depends on.
Status TrainingRun::describeTraining(const ModelFiles &files) {
  KF_ASSIGN_OR_RETURN(head.model, modelDigest(files));
  head.data = data.digest();
  head.options = options.modelOptions;
  const LearningRate &rate = options.learningRate;
  head.options["--batch"] = std::to_string(options.batch);
  head.options["--length"] = std::to_string(length);
  head.options["--accumulate"] = std::to_string(options.accumulate);
  head.options["--seed"] = std::to_string(options.seed);
  head.options["--learning-rate"] = jsonText(rate.peak);
  head.options["--warmup"] = std::to_string(rate.warmup);
  head.options["--schedule"] =
      rate.decay == LearningRate::Decay::Constant ? "constant"
      : rate.decay == LearningRate::Decay::Linear ? "linear"
                                                  : "cosine";
  // Where the rate stays, a training may be made longer.
  if (rate.decay != LearningRate::Decay::Constant) {
    head.options["--steps"] = std::to_string(allSteps);
    head.options["--min-learning-rate"] = jsonText(rate.minimum);
  }
  // Behind the last epoch a step may have empty rows.
  if (!options.steps &&
      TrainingBatches(data.examples, batchOptions()).epochRows() %
              (options.batch * options.accumulate) !=
          0)
    head.options["--epochs"] = std::to_string(batchOptions().epochs);
  if (options.evalSplit)
    head.options["--eval-split"] = jsonText(*options.evalSplit);
  if (options.longExamples == LongExamples::Drop)
    head.options["--long"] = "drop";
  for (const auto &[name, isGiven] :
       {std::pair("--train-on-prompt", options.trainOnPrompt),
        std::pair("--no-pack", !options.pack),
        std::pair("--no-shuffle", !options.shuffle)})
    if (isGiven)
      head.options[name] = "";
  if (!begun)
    return Status();
  return checkSteps();
}

/// What is gone on from is of this training, which says by steps or by epochs
/// how long it is.
Status TrainingRun::checkSteps() const {
  const std::string origin = "checkpoint " + quotePath(last);
  CheckpointHead same = head;
  const auto saved = begun->options.find("--steps");
  const auto now = same.options.find("--steps");
  const bool differs = saved != begun->options.end() &&
                       now != same.options.end() &&
                       saved->second != now->second;
  if (differs)
    now->second = saved->second;
  KF_RETURN_IF_ERROR(checkSameTraining(last, *begun, same));
  const std::string steps = countText(allSteps, "step");
  if (differs)
    return Status::error(
        origin + " is of a training of " + saved->second + " steps, and now " +
        givenSteps() + (options.steps ? " is given" : " makes " + steps) +
        "; give what it was made with, or train anew in another --output");
  if (begun->step > allSteps)
    return Status::error(origin + " is of step " + std::to_string(begun->step) +
                         ", and " + givenSteps() + " ends behind " + steps +
                         "; give more, or an earlier checkpoint");
  return Status();
}

void TrainingRun::warnOfWarmup() const {
  const int64_t warmup = options.learningRate.warmup;
  if (warmup >= allSteps && options.observer)
    options.observer->onWarning(
        "--warmup " + std::to_string(warmup) + " takes all of the training's " +
        countText(allSteps, "step") +
        ", so that the learning rate never comes to --learning-rate");
}

std::map<std::string, std::string>
kf::typedOptions(const std::optional<LoraConfig> &lora,
                 const OptimizerOptions &optimizer) {
  const bool isAdamW = optimizer.kind == OptimizerOptions::Kind::AdamW;
  std::map<std::string, std::string> options = {
      {"--optimizer", isAdamW ? "adamw" : "sgd"},
      {"--weight-decay", jsonText(optimizer.weightDecay)},
      {"--clip", jsonText(optimizer.clipNorm)}};
  if (lora) {
    std::string names;
    for (const std::string &name : lora->targets)
      names += (names.empty() ? "" : ",") + name;
    options["--lora"] = std::to_string(lora->rank);
    options["--lora-alpha"] = jsonText(lora->alpha);
    options["--lora-targets"] = names;
    if (lora->rankStabilized)
      options["--rslora"] = "";
    if (lora->dropout > 0)
      options["--lora-dropout"] = jsonText(lora->dropout);
  } else {
    options["--full"] = "";
  }
  if (isAdamW) {
    options["--beta1"] = jsonText(optimizer.beta1);
    options["--beta2"] = jsonText(optimizer.beta2);
    options["--epsilon"] = jsonText(optimizer.epsilon);
  } else {
    options["--momentum"] = jsonText(optimizer.momentum);
  }
  return options;
}

Status kf::checkReadFiles(const TrainingRunOptions &options) try {
  for (const std::string &path :
       {options.data, options.evalData.value_or(""), options.chatTemplate.file})
    if (!path.empty())
      KF_RETURN_IF_ERROR(MappedFile::open(path).status());
  if (options.resume && !options.resume->empty())
    KF_RETURN_IF_ERROR(readCheckpointHead(*options.resume).status());
  return Status();
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<TrainingRun>>
TrainingRun::open(const ModelFiles &files, TrainingRunOptions options,
                  const OpenTrainingModel &open) try {
  if (options.fullModel)
    KF_RETURN_IF_ERROR(
        checkFullOutput(files, *options.fullModel, options.output));
  KF_ASSIGN_OR_RETURN(
      Checkpoints checkpoints,
      Checkpoints::open(options.output, options.keep, options.observer));
  std::unique_ptr<TrainingRun> run(
      new TrainingRun(std::move(options), std::move(checkpoints)));
  KF_RETURN_IF_ERROR(run->findCheckpoint());
  KF_RETURN_IF_ERROR(run->checkReplaced());
  if (run->begun && run->options.anySeed)
    run->options.seed = seedOf(*run->begun, run->options.seed);
  KF_RETURN_IF_ERROR(run->chooseTime());
  KF_RETURN_IF_ERROR(run->readData(files));
  KF_RETURN_IF_ERROR(run->describeTraining(files));
  run->warnOfWarmup();
  KF_ASSIGN_OR_RETURN(run->trained,
                      open(run->options.batch, run->length, run->options.seed));
  if (run->begun) {
    KF_RETURN_IF_ERROR(loadCheckpoint(run->last, *run->begun, *run->trained));
    run->note("goes on from " + quotePath(run->last));
  }
  return run;
} catch (...) {
  return statusOfException();
}

Status TrainingRun::run(TrainingListener &listener) try {
  TrainingBatches batches(data.examples, batchOptions());
  std::optional<TrainingBatches> heldBatches;
  if (held)
    heldBatches.emplace(held->examples,
                        TrainingBatches::Options{.rows = options.batch,
                                                 .length = length,
                                                 .shuffle = false,
                                                 .epochs = 1});
  TrainingLoopOptions loop = {.learningRate = options.learningRate,
                              .accumulate = options.accumulate,
                              .evaluateEvery = options.evalEvery,
                              .saveEvery = options.saveEvery,
                              .save =
                                  [this](int64_t step) {
                                    head.step = step;
                                    return saveCheckpoint();
                                  },
                              .cancelled = options.cancelled};
  loop.learningRate.steps = allSteps;
  KF_RETURN_IF_ERROR(train(*trained, batches,
                           heldBatches ? &*heldBatches : nullptr, loop,
                           listener));
  KF_RETURN_IF_ERROR(checkReplaced());
  KF_RETURN_IF_ERROR(trained->save(options.output));
  return options.fullModel && options.fullModel->empty() && options.saveEmbedded
             ? options.saveEmbedded(options.output)
             : Status();
} catch (...) {
  return statusOfException();
}
