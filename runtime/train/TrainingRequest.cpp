//===- TrainingRequest.cpp - What a training is asked for -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRequest.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace kf;

/// An error where `word` is none of `known`.
static Status checkWord(const char *option, const std::string &word,
                        std::initializer_list<const char *> known) {
  std::string names;
  for (const char *each : known) {
    if (word == each)
      return Status();
    names += (names.empty() ? "" : ", ") + std::string(each);
  }
  return Status::error(std::string(option) + " is " + inQuotes(word) +
                       "; one of " + names + " is expected");
}

Status TrainingRequest::completeAdapter() {
  if (full == rank.has_value())
    return Status::error(
        full ? "--lora and --full exclude each other"
             : "give --lora RANK to train an adapter, 16 for instance, or "
               "--full to train all weights");
  for (const auto &[name, isGiven] :
       {std::pair("--lora-alpha", alpha.has_value()),
        std::pair("--lora-targets", !targets.empty()),
        std::pair("--lora-dropout", dropout.has_value()),
        std::pair("--rslora", rankStabilized)})
    if (isGiven && !rank)
      return Status::error(std::string(name) + " is for --lora");
  if (full)
    run.fullModel = model.path;
  if (!rank)
    return Status();
  if (std::ranges::find(targets, "") != targets.end())
    return Status::error("--lora-targets has an empty name");
  lora.emplace();
  lora->rank = *rank;
  lora->alpha = alpha.value_or(2 * static_cast<double>(*rank));
  lora->rankStabilized = rankStabilized;
  lora->dropout = dropout.value_or(0);
  KF_RETURN_IF_ERROR(checkDropout(lora->dropout));
  lora->targets = targets;
  if (targets.empty())
    lora->targets.emplace_back(kAllLinear);
  return Status();
}

Status TrainingRequest::completeOptimizer() {
  KF_RETURN_IF_ERROR(checkWord("--optimizer", optimizerName, {"adamw", "sgd"}));
  const bool isSgd = optimizerName == "sgd";
  optimizer.kind =
      isSgd ? OptimizerOptions::Kind::Sgd : OptimizerOptions::Kind::AdamW;
  for (const auto &[name, isOfSgd, value, out] :
       {std::tuple("--beta1", false, beta1, &optimizer.beta1),
        std::tuple("--beta2", false, beta2, &optimizer.beta2),
        std::tuple("--epsilon", false, epsilon, &optimizer.epsilon),
        std::tuple("--momentum", true, momentum, &optimizer.momentum)}) {
    if (value && isOfSgd != isSgd)
      return Status::error(std::string(name) + " is for --optimizer " +
                           (isOfSgd ? "sgd" : "adamw"));
    *out = value.value_or(*out);
  }
  optimizer.weightDecay = weightDecay;
  optimizer.clipNorm = clip;
  return optimizer.validate();
}

Status TrainingRequest::completeRate() {
  KF_RETURN_IF_ERROR(
      checkWord("--schedule", schedule, {"constant", "linear", "cosine"}));
  if (minimumRate && schedule == "constant")
    return Status::error("--min-learning-rate is for --schedule linear and "
                         "cosine");
  LearningRate &out = run.learningRate;
  out.peak = rate.value_or(full ? 2e-5 : 2e-4);
  out.minimum = minimumRate.value_or(0);
  out.decay = schedule == "constant" ? LearningRate::Decay::Constant
              : schedule == "cosine" ? LearningRate::Decay::Cosine
                                     : LearningRate::Decay::Linear;
  for (const auto &[name, value] :
       {std::pair("--learning-rate", out.peak),
        std::pair("--min-learning-rate", out.minimum)})
    if (!std::isfinite(value) || value < 0)
      return Status::error(std::string(name) + " is " + spellNumber(value) +
                           "; a finite number of at least 0 is expected");
  if (out.minimum > out.peak)
    return Status::error("--min-learning-rate is more than --learning-rate, " +
                         spellNumber(out.peak));
  return Status();
}

Status TrainingRequest::complete() {
  if (run.data.empty())
    return Status::error("--data is missing");
  if (run.output.empty())
    return Status::error("--output is missing");
  KF_RETURN_IF_ERROR(completeAdapter());
  if (run.epochs && run.steps)
    return Status::error("--epochs and --steps exclude each other");
  if (run.evalData && run.evalSplit)
    return Status::error("--eval-data and --eval-split exclude each other");
  if (run.evalSplit == 0)
    return Status::error("--eval-split takes a number above 0");
  if (run.evalEvery && !run.evalData && !run.evalSplit)
    return Status::error("--eval-every needs --eval-data or --eval-split");
  KF_RETURN_IF_ERROR(completeOptimizer());
  KF_RETURN_IF_ERROR(completeRate());
  KF_RETURN_IF_ERROR(checkWord("--long", longName, {"cut", "drop"}));
  run.longExamples =
      longName == "drop" ? LongExamples::Drop : LongExamples::Cut;
  KF_RETURN_IF_ERROR(
      checkWord("--recompute", recomputeName, {"layers", "cheap"}));
  recompute = recomputeName == "layers" ? Recompute::Layers : Recompute::Cheap;
  run.modelOptions = typedOptions(lora, optimizer);
  return Status();
}
