//===- ModelFlags.cpp - Options of commands that compile a model ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelFlags.h"

#include "Interrupt.h"
#include "Ranks.h"
#include "TerminalObserver.h"

#include "runtime/session/EmbeddedModel.h"

using namespace kf;

void ModelFlags::addTo(OptionParser &parser, bool withThreads) {
  SessionFlags::addTo(parser, /*withEmbedded=*/true, withThreads);
  parser.choice({"cache-type", 0, "TYPE"}, cacheType,
                {"f32", "f16", "bf16", "q8_0"},
                "elements of the KV cache; f16 by default, and f32 on the "
                "reference. bf16 and f16 take half of f32's memory, q8_0 about "
                "a quarter; they round keys and values");
  parser.choice({"activation-type", 0, "TYPE"}, activationType,
                {"f32", "f16", "bf16"},
                "elements of what kernels hand on to one another; f32 by "
                "default. The others take half of its memory and round");
  parser.flag({"no-cache"}, noCache,
              "neither read nor write the cache of compiled programs");
  tuning.addTo(parser);
  parser.text({"target-cpu", 0, "CPU"}, targetCpu,
              "LLVM's name of the CPU or GPU to compile for; native by "
              "default");
  parser.presets();
}

void ModelFlags::addRanksTo(OptionParser &parser) {
  parser.integer({"tensor-parallel", 0, "N"}, ranksGiven, 1, kMaxRanks,
                 "shares the model out among N ranks, which compute each step "
                 "together: each has some heads and columns of every layer, "
                 "and a GPU of its own or its part of the threads. 1, the "
                 "default: it is whole. Processes that mpirun starts are ranks "
                 "without it");
  parser.integer({"pipeline-parallel", 0, "P"}, stagesGiven, 1, kMaxRanks,
                 "cuts the model's layers into P stages, which P ranks compute "
                 "one after the other, each with a GPU of its own or all "
                 "threads: for models that one has no room for, on slow "
                 "networks. Several texts at once keep all of them busy, or of "
                 "three or more processes without MPI and NCCL the first and "
                 "another one; one alone is no faster than on one rank. 1, the "
                 "default: it is "
                 "whole. Of processes that mpirun starts, P is their number");
  parser.integer(
      {"context-parallel", 0, "N"}, sharersGiven, 1, kMaxRanks,
      "shares the positions of each text out among N ranks, each "
      "with all weights and every N-th 64 positions of the cache: "
      "for texts whose cache one has no room for. Each has a GPU of "
      "its own or its part of the threads. 1, the default: each text "
      "is whole. Of processes that mpirun starts, N is their number");
  parser.addCheck([this] { return checkRanks(); });
}

/// Which of the options shares the model out, and among how many ranks.
Status ModelFlags::checkRanks() {
  const RankProcesses *processes = ledProcesses();
  const int64_t alone = processes ? processes->size() : 1;
  const RanksGiven all[] = {{Parallelism::Tensor, ranksGiven},
                            {Parallelism::Pipeline, stagesGiven},
                            {Parallelism::Context, sharersGiven}};
  KF_RETURN_IF_ERROR(checkOneWay(all));
  ranks = ranksGiven.value_or(alone);
  std::optional<Parallelism> one; // given as 1
  for (const auto &[kind, given] : all)
    if (given == 1) {
      one = kind;
    } else if (given) {
      parallelism = kind;
      ranks = *given;
    }
  if (one && one != Parallelism::Tensor && parallelism == Parallelism::Tensor &&
      !ranksGiven && alone > 1)
    return Status::error(optionOf(*one) + " 1, and the launcher has started " +
                         std::to_string(alone) +
                         " ranks; give their number, or leave it out");
  if (processes && ranks != alone)
    return Status::error(
        optionOf(parallelism) + " " + std::to_string(ranks) +
        ", and the launcher has started " + std::to_string(alone) + " ranks; " +
        (parallelism == Parallelism::Tensor ? "leave it out"
                                            : "give their number"));
  return Status();
}

Status kf::checkOneWay(std::span<const RanksGiven> given) {
  std::string first;
  for (const auto &[kind, count] : given) {
    if (count.value_or(1) == 1)
      continue;
    if (!first.empty())
      return Status::error(first + " and " + optionOf(kind) +
                           " share the model out in two ways, and ranks of "
                           "both at once are not supported; leave one of them "
                           "out");
    first = optionOf(kind);
  }
  return Status();
}

CompileChoice ModelFlags::compileChoice() const {
  return {.cacheType = cacheType,
          .activationType = activationType,
          .targetCpu = targetCpu,
          .tuningFile = tuning.file,
          .useCache = !noCache};
}

Result<ModelFiles> kf::openModel(const ModelChoice &choice,
                                 bool withTokenizer) {
  return openModel(choice, withTokenizer, openEmbeddedModel, &terminal());
}

Result<CompilerOptions> kf::compilerOptionsFor(const ModelFlags &flags,
                                               const Device &device) {
  return compilerOptionsFor(flags.compileChoice(), device, &interruptFlag(),
                            &terminal());
}

Result<std::unique_ptr<Session>> kf::openSession(const ModelFlags &flags,
                                                 bool withTokenizer,
                                                 CompilerOptions *used) {
  return Session::open(
      flags.options(withTokenizer),
      {.device = openDevice,
       .steps = compileSteps(flags.compileChoice(),
                             [used](const CompilerOptions &options) {
                               if (used)
                                 *used = options;
                             }),
       .embedded = openEmbeddedModel});
}
