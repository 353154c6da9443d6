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

using namespace kf;

/// The most steps, or tokens of a row, that options take.
static constexpr int64_t kMost = int64_t(1) << 24;

std::vector<std::string> kf::splitNames(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::string_view name = list.substr(0, list.find(','));
    names.emplace_back(name);
    if (name.size() == list.size())
      return names;
    list.remove_prefix(name.size() + 1);
  }
}

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
  profile.addTo(parser);
  parser.addCheck([this] { return complete(); });
}

void TrainFlags::addDataTo(OptionParser &parser) {
  parser.text({"data", 0, "FILE"}, request.run.data,
              "what to learn: a JSON object a line, of 'messages' (of which "
              "the assistant's count), 'prompt' and 'completion' (which "
              "counts), or 'text'; a .txt file is one text, a .json file an "
              "array");
  parser.text({"output", 'o', "DIR"}, request.run.output,
              "the folder for the result and for checkpoints");
  parser.flag({"force", 'f'}, request.run.force,
              "the result may replace files of a model or of an adapter that "
              "the folder has from elsewhere");
  parser.text({"eval-data", 0, "FILE"}, request.run.evalData,
              "examples, as --data has them, whose loss is measured at the end "
              "and every --eval-every steps");
  parser.real({"eval-split", 0, "X"}, request.run.evalSplit, 0, 0.9,
              "the same with a share of --data, which is not learnt");
  chatTemplate.addTo(parser);
  parser.flag({"train-on-prompt"}, request.run.trainOnPrompt,
              "has all tokens count, not the assistant's or the completion's "
              "alone");
  parser.integer({"length", 0, "N"}, request.run.length, 1, kMost,
                 "tokens of a row, which has several short examples; 512 by "
                 "default, or all that the model has positions for");
  parser.choice({"long", 0, "WHAT"}, request.longName, {"cut", "drop"},
                "what becomes of examples that are longer than a row; cut by "
                "default");
  parser.flag({"no-pack"}, noPack, "a row has one example");
  parser.flag({"no-shuffle"}, noShuffle, "rows are in the same order always");
  parser.seed({"seed", 's', "N"}, seed,
              "of the order of rows, of the adapter's first values and of "
              "dropout; 0 by default, -1: one by the clock, or with --resume "
              "the checkpoint's",
              &request.run.anySeed);
}

void TrainFlags::addTrainedTo(OptionParser &parser) {
  parser.integer({"lora", 0, "RANK"}, request.rank, 1, 4096,
                 "trains an adapter (LoRA) of this rank; the model's own "
                 "weights, of any type, stay");
  parser.real({"lora-alpha", 0, "X"}, request.alpha, 0, 1e6,
              "what the adapter adds is scaled by X / RANK; twice the rank by "
              "default");
  parser.text({"lora-targets", 0, "NAME,..."}, targets,
              "the modules that it adds to, as PEFT names them: "
              "q_proj,v_proj; all-linear by default");
  parser.real({"lora-dropout", 0, "P"}, request.dropout, 0, 1,
              "leaves each element that an adapter reads out with this "
              "probability, while it is trained; 0 by default");
  parser.choice(
      {"recompute", 0, "WHAT"}, request.recomputeName, {"layers", "cheap"},
      "what gradients read that is not kept in memory until then, but "
      "computed again: layers, the default, all that is within one; "
      "cheap, norms and activations, which takes much more memory "
      "and up to a fifth less time");
  parser.flag({"rslora"}, request.rankStabilized, "scales by X / sqrt(RANK)");
  parser.flag({"full"}, request.full, "trains all weights of the model");
}

void TrainFlags::addStepsTo(OptionParser &parser) {
  parser.integer({"epochs", 0, "N"}, request.run.epochs, 1, 100000,
                 "how often all examples are read; 1 by default");
  parser.integer({"steps", 0, "N"}, request.run.steps, 1, int64_t(1) << 40,
                 "updates in all, instead of --epochs");
  parser.integer({"batch", 'b', "N"}, request.run.batch, 1, 65536,
                 "rows that are read at once; 4 by default");
  parser.integer({"accumulate", 0, "N"}, request.run.accumulate, 1, 65536,
                 "batches of an update; 1 by default");
  parser.integer({"eval-every", 0, "N"}, request.run.evalEvery, 0, kMost,
                 "steps; 0, the default: at the end");
  parser.integer({"save-every", 0, "N"}, request.run.saveEvery, 0, kMost,
                 "writes a checkpoint every N steps; 0, the default: at the "
                 "end, and where Ctrl-C ends the training");
  parser.integer({"keep", 0, "N"}, request.run.keep, 0, kMost,
                 "checkpoints that stay, the last ones; 2 by default, 0: all");
  parser.optionalText({"resume", 0, "CHECKPOINT"}, "", request.run.resume,
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
  parser.real({"learning-rate", 0, "X"}, request.rate, 0, 1e3,
              "the highest; 2e-4 by default, and 2e-5 with --full");
  parser.real({"min-learning-rate", 0, "X"}, request.minimumRate, 0, 1e3,
              "what it falls to; 0 by default");
  parser.choice({"schedule", 0, "NAME"}, request.schedule,
                {"constant", "linear", "cosine"},
                "how it falls behind the warmup; linear by default");
  parser.integer({"warmup", 0, "N"}, request.run.learningRate.warmup, 0, kMost,
                 "steps in which it rises; 0 by default");
  parser.choice({"optimizer", 0, "NAME"}, request.optimizerName,
                {"adamw", "sgd"}, "adamw by default");
  parser.real({"beta1", 0, "X"}, request.beta1, 0, 1,
              "of adamw; 0.9 by default");
  parser.real({"beta2", 0, "X"}, request.beta2, 0, 1,
              "of adamw; 0.999 by default");
  parser.real({"epsilon", 0, "X"}, request.epsilon, 0, 1,
              "of adamw; 1e-8 by default");
  parser.real({"momentum", 0, "X"}, request.momentum, 0, 1,
              "of sgd; 0.9 by default");
  parser.real({"weight-decay", 0, "X"}, request.weightDecay, 0, 10,
              "of matrices; 0 by default");
  parser.real({"clip", 0, "X"}, request.clip, 0, 1e9,
              "the most that the norm of all gradients may be; 1 by default, "
              "0: any");
}

Status TrainFlags::complete() {
  request.model = {.path = model, .dummy = dummy, .float8 = float8.choice()};
  request.device = device;
  request.profile = profile.make();
  if (!targets.empty())
    request.targets = splitNames(targets);
  TrainingRunOptions &run = request.run;
  run.chatTemplate = chatTemplate.options;
  run.pack = !noPack;
  run.shuffle = !noShuffle;
  run.seed = seed.value_or(0);
  run.cancelled = &interruptFlag();
  run.observer = &terminal();
  return request.complete();
}
