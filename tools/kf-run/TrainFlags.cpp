//===- TrainFlags.cpp - Options of kf-run train ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TrainFlags.h"

#include "Interrupt.h"
#include "TerminalObserver.h"

#include "runtime/core/Quote.h"

#include <tuple>

using namespace kf;

/// The most steps, or tokens of a row, that options take.
static constexpr int64_t kMost = int64_t(1) << 24;

void TrainFlags::addTo(OptionParser &parser) {
  addModelArgument(parser, model, named,
                   "a GGUF file, or a folder with config.json, "
                   "model.safetensors (or its index) and a tokenizer; without "
                   "it, the embedded model, kf-stories");
  addDataTo(parser);
  addTrainedTo(parser);
  addStepsTo(parser);
  addOptimizerTo(parser);
  dummy.addTo(parser, model);
  device.addTo(parser);
  float8.addTo(parser);
  parser.flag({"no-cache"}, noCache,
              "neither read nor write the cache of compiled programs");
  tuning.addTo(parser);
  parser.text({"target-cpu", 0, "CPU"}, targetCpu,
              "LLVM's name of the CPU or GPU to compile for; native by "
              "default");
  parser.addCheck([this] { return complete(); });
}

void TrainFlags::addDataTo(OptionParser &parser) {
  parser.text({"data", 0, "FILE"}, run.data,
              "what to learn: a JSON object a line, of 'messages' (of which "
              "the assistant's count), 'prompt' and 'completion' (which "
              "counts), or 'text'; a .txt file is one text, a .json file an "
              "array");
  parser.text({"output", 'o', "DIR"}, run.output,
              "the folder for the result and for checkpoints");
  parser.text({"eval-data", 0, "FILE"}, run.evalData,
              "examples, as --data has them, whose loss is measured at the end "
              "and every --eval-every steps");
  parser.real({"eval-split", 0, "X"}, run.evalSplit, 0, 0.9,
              "the same with a share of --data, which is not learnt");
  chatTemplate.addTo(parser);
  parser.flag({"train-on-prompt"}, run.trainOnPrompt,
              "has all tokens count, not the assistant's or the completion's "
              "alone");
  parser.integer({"length", 0, "N"}, run.length, 1, kMost,
                 "tokens of a row, which has several short examples; 512 by "
                 "default, or all that the model has positions for");
  parser.choice({"long", 0, "WHAT"}, longName, {"cut", "drop"},
                "what becomes of examples that are longer than a row; cut by "
                "default");
  parser.flag({"no-pack"}, noPack, "a row has one example");
  parser.flag({"no-shuffle"}, noShuffle, "rows are in the same order always");
  parser.seed({"seed", 's', "N"}, seed,
              "of the order of rows and of the adapter's first values; 0 by "
              "default, -1: one by the clock, or with --resume the "
              "checkpoint's",
              &run.anySeed);
}

void TrainFlags::addTrainedTo(OptionParser &parser) {
  parser.integer({"lora", 0, "RANK"}, rank, 1, 4096,
                 "trains an adapter (LoRA) of this rank; the model's own "
                 "weights, of any type, stay");
  parser.real({"lora-alpha", 0, "X"}, alpha, 0, 1e6,
              "what the adapter adds is scaled by X / RANK; twice the rank by "
              "default");
  parser.text({"lora-targets", 0, "NAME,..."}, targets,
              "the modules that it adds to, as PEFT names them: "
              "q_proj,v_proj; all-linear by default");
  parser.flag({"rslora"}, rankStabilized, "scales by X / sqrt(RANK)");
  parser.flag({"full"}, full, "trains all weights of the model");
}

void TrainFlags::addStepsTo(OptionParser &parser) {
  parser.integer({"epochs", 0, "N"}, run.epochs, 1, 100000,
                 "how often all examples are read; 1 by default");
  parser.integer({"steps", 0, "N"}, run.steps, 1, int64_t(1) << 40,
                 "updates in all, instead of --epochs");
  parser.integer({"batch", 'b', "N"}, run.batch, 1, 65536,
                 "rows that are read at once; 4 by default");
  parser.integer({"accumulate", 0, "N"}, run.accumulate, 1, 65536,
                 "batches of an update; 1 by default");
  parser.integer({"eval-every", 0, "N"}, run.evalEvery, 0, kMost,
                 "steps; 0, the default: at the end");
  parser.integer({"save-every", 0, "N"}, run.saveEvery, 0, kMost,
                 "writes a checkpoint every N steps; 0, the default: at the "
                 "end, and where Ctrl-C ends the training");
  parser.integer({"keep", 0, "N"}, run.keep, 0, kMost,
                 "checkpoints that stay, the last ones; 2 by default, 0: all");
  parser.optionalText({"resume", 0, "CHECKPOINT"}, "", run.resume,
                      "goes on from a checkpoint, the last one of --output by "
                      "default, to what it would have come to without an "
                      "interruption, bit for bit");
  parser.text({"log", 0, "FILE"}, log,
              "writes a line of JSON with the time that chat templates tell, "
              "and one for each step: step, loss, learning_rate, "
              "gradient_norm, tokens, tokens_per_second, seconds; - is stdout");
  parser.integer({"print-every", 0, "N"}, printEvery, 1, kMost,
                 "steps from one line on stdout to the next; 10 by default");
}

void TrainFlags::addOptimizerTo(OptionParser &parser) {
  parser.real({"learning-rate", 0, "X"}, rate, 0, 1e3,
              "the highest; 2e-4 by default, and 2e-5 with --full");
  parser.real({"min-learning-rate", 0, "X"}, minimumRate, 0, 1e3,
              "what it falls to; 0 by default");
  parser.choice({"schedule", 0, "NAME"}, schedule,
                {"constant", "linear", "cosine"},
                "how it falls behind the warmup; linear by default");
  parser.integer({"warmup", 0, "N"}, run.learningRate.warmup, 0, kMost,
                 "steps in which it rises; 0 by default");
  parser.choice({"optimizer", 0, "NAME"}, optimizerName, {"adamw", "sgd"},
                "adamw by default");
  parser.real({"beta1", 0, "X"}, beta1, 0, 1, "of adamw; 0.9 by default");
  parser.real({"beta2", 0, "X"}, beta2, 0, 1, "of adamw; 0.999 by default");
  parser.real({"epsilon", 0, "X"}, epsilon, 0, 1, "of adamw; 1e-8 by default");
  parser.real({"momentum", 0, "X"}, momentum, 0, 1, "of sgd; 0.9 by default");
  optimizer.weightDecay = 0;
  parser.real({"weight-decay", 0, "X"}, optimizer.weightDecay, 0, 10,
              "of matrices; 0 by default");
  parser.real({"clip", 0, "X"}, optimizer.clipNorm, 0, 1e9,
              "the most that the norm of all gradients may be; 1 by default, "
              "0: any");
}

Status TrainFlags::readTargets() {
  std::string_view rest = targets.empty() ? kAllLinear : targets;
  while (true) {
    const std::string_view name = rest.substr(0, rest.find(','));
    if (name.empty())
      return Status::error("--lora-targets has an empty name");
    lora->targets.emplace_back(name);
    if (name.size() == rest.size())
      return Status();
    rest.remove_prefix(name.size() + 1);
  }
}

Status TrainFlags::readOptimizer() {
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
  return optimizer.validate();
}

Status TrainFlags::complete() {
  if (run.data.empty())
    return Status::error("--data is missing");
  if (run.output.empty())
    return Status::error("--output is missing");
  if (full == rank.has_value())
    return Status::error(
        full ? "--lora and --full exclude each other"
             : "give --lora RANK to train an adapter, 16 for instance, or "
               "--full to train all weights");
  for (const auto &[name, isGiven] :
       {std::pair("--lora-alpha", alpha.has_value()),
        std::pair("--lora-targets", !targets.empty()),
        std::pair("--rslora", rankStabilized)})
    if (isGiven && !rank)
      return Status::error(std::string(name) + " is for --lora");
  if (rank) {
    lora.emplace();
    lora->rank = *rank;
    lora->alpha = alpha.value_or(2 * static_cast<double>(*rank));
    lora->rankStabilized = rankStabilized;
    KF_RETURN_IF_ERROR(readTargets());
  }
  if (run.epochs && run.steps)
    return Status::error("--epochs and --steps exclude each other");
  if (run.evalData && run.evalSplit)
    return Status::error("--eval-data and --eval-split exclude each other");
  if (run.evalSplit == 0)
    return Status::error("--eval-split takes a number above 0");
  if (run.evalEvery && !run.evalData && !run.evalSplit)
    return Status::error("--eval-every needs --eval-data or --eval-split");
  KF_RETURN_IF_ERROR(readOptimizer());
  LearningRate &learningRate = run.learningRate;
  learningRate.peak = rate.value_or(full ? 2e-5 : 2e-4);
  if (minimumRate && schedule == "constant")
    return Status::error("--min-learning-rate is for --schedule linear and "
                         "cosine");
  learningRate.minimum = minimumRate.value_or(0);
  if (learningRate.minimum > learningRate.peak)
    return Status::error("--min-learning-rate is more than --learning-rate, " +
                         spellNumber(learningRate.peak));
  learningRate.decay = schedule == "constant" ? LearningRate::Decay::Constant
                       : schedule == "cosine" ? LearningRate::Decay::Cosine
                                              : LearningRate::Decay::Linear;
  if (full)
    run.fullModel = model;
  run.chatTemplate = chatTemplate.options;
  run.longExamples =
      longName == "drop" ? LongExamples::Drop : LongExamples::Cut;
  run.pack = !noPack;
  run.shuffle = !noShuffle;
  run.seed = seed.value_or(0);
  run.modelOptions = typedOptions(lora, optimizer);
  run.cancelled = &interruptFlag();
  run.observer = &terminal();
  return Status();
}
