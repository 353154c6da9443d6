//===- EmitMlir.cpp - kf-run emit-mlir ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "ModelFlags.h"
#include "OptionParser.h"
#include "Report.h"
#include "TrainFlags.h"
#include "TuningFlags.h"

#include "kf/Driver/Compiler.h"
#include "kf/Driver/MeasuredSchedules.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/model/Stages.h"

#include <algorithm>

using namespace kf;

namespace {

struct EmitOptions {
  std::string source, phase = "lowered", function, kernel, part, out = "-";
  std::string cacheType; ///< empty: defaultCacheType()
  int64_t maxTokens = 0, ranks = 1, loraRank = 0;
  double loraDropout = 0;
  std::string loraTargets = std::string(kAllLinear);
  std::string recompute = "layers";
  std::optional<int64_t> stage; ///< of so many, which ranks have then
  bool sharesPositions = false; ///< what ranks have of a model
  CompilerOptions compiler;
  TuningFlags tuning;
  DummyFlags dummy;
  Float8Flag float8;
  AdapterFlags lora;

  bool isTraining() const {
    return part == "loss" || part == "gradient" || part == "update";
  }
  TrainingShape trainingShape() const {
    TrainingShape shape;
    shape.part = part == "loss"     ? TrainingPart::Loss
                 : part == "update" ? TrainingPart::Update
                                    : TrainingPart::Gradient;
    shape.length = std::max<int64_t>(maxTokens, 1);
    if (loraRank)
      shape.lora = LoraConfig{.rank = loraRank,
                              .alpha = 2 * static_cast<double>(loraRank),
                              .targets = splitNames(loraTargets),
                              .dropout = loraDropout};
    shape.recompute =
        recompute == "layers" ? Recompute::Layers : Recompute::Cheap;
    return shape;
  }

  void addTo(OptionParser &parser) {
    parser.positional(
        "MODEL|FILE.mlir", false, source,
        "a model's file or folder, or functions of kf ops as text; "
        "without it, the embedded model");
    dummy.addTo(parser, source);
    parser.choice(
        {"compile-to", 0, "PHASE"}, phase,
        {"import", "fused", "program", "scheduled", "lowered", "binary"},
        "import (functions of kf ops), fused, program (kernels and "
        "dispatches), scheduled, lowered (the default: the target's "
        "dialect), or binary (an executable file, which needs -o)");
    parser.choice({"device", 0, "NAME"}, compiler.target,
                  {"cpu", "reference", "vulkan", "cuda"},
                  "what to compile for; cpu by default");
    parser.choice({"cache-type", 0, "TYPE"}, cacheType,
                  {"f32", "f16", "bf16", "q8_0"},
                  "elements of a model's KV cache; f16 by default, and f32 on "
                  "the reference");
    parser.choice({"activation-type", 0, "TYPE"}, compiler.activationType,
                  {"f32", "f16", "bf16"},
                  "elements of what a model's kernels hand on; f32 by default");
    float8.addTo(parser);
    lora.addTo(parser);
    parser.text({"function", 0, "NAME"}, function,
                "which function of a file; all by default");
    parser.text({"kernel", 0, "NAME"}, kernel,
                "this kernel alone, as a program of one dispatch whose inputs "
                "are what other kernels make");
    parser.choice(
        {"part", 0, "WHAT"}, part,
        {"body", "head", "choose", "embed", "loss", "gradient", "update"},
        "which part of a model's step: body, the default, from ids to "
        "hidden rows; head, from those that are wanted to logits; "
        "choose, from these to ids; embed, from hidden rows that are wanted "
        "to embeddings; or of its training, by one row of --max-tokens: loss; "
        "gradient, the same with derivatives; update, what AdamW makes of "
        "them");
    parser.integer({"lora-rank", 0, "R"}, loraRank, 1, int64_t(1) << 16,
                   "of training: adapters of rank R for all products of its "
                   "layers; all weights by default");
    parser.text({"lora-targets", 0, "NAME,..."}, loraTargets,
                "of adapters: the modules that they add to; all-linear by "
                "default");
    parser.choice({"recompute", 0, "WHAT"}, recompute, {"layers", "cheap"},
                  "of --part=gradient: what is computed again, as 'kf-run "
                  "train' has it; layers by default");
    parser.real({"lora-dropout", 0, "P"}, loraDropout, 0, 1,
                "of --part=gradient: what adapters read is left out with this "
                "probability");
    parser.integer(
        {"max-tokens", 0, "N"}, maxTokens, 1, int64_t(1) << 24,
        "the most rows of a step: those that a body reads, and those "
        "that are wanted of the others; by default 1 of a model's, 512 "
        "of a file's");
    parser.integer({"ranks", 0, "N"}, ranks, 1, kMaxRanks,
                   "what each of N devices runs that share a model's heads, "
                   "inner columns and vocabulary; 1 by default");
    parser.integer({"stage", 0, "S"}, stage, 0, kMaxRanks - 1,
                   "with --ranks N, which share a model's layers then: what "
                   "the one with stage S runs, of 0 to N - 1");
    parser.flag({"shared-positions"}, sharesPositions,
                "with --ranks N, which share the positions of texts then: what "
                "each of them runs");
    parser.text(
        {"target-cpu", 0, "CPU"}, compiler.targetCpu,
        "LLVM's name of the CPU or GPU to compile for (sm_90a); native, "
        "which on cuda is sm_80, by default");
    parser.integer({"threads", 't', "N"}, compiler.workers, 0,
                   ThreadPool::maxThreads,
                   "threads that the CPU's kernels are divided for; 0, the "
                   "default, is not known");
    parser.text({"tuning-db", 0, "FILE|none"}, tuning.file,
                "the file of measured schedules; none by default, since what "
                "is printed may be for another machine");
    parser.addCheck([this] { return tuning.check(); });
    parser.text({"tuning-device", 0, "TEXT"}, compiler.device,
                "the device whose measurements count, as 'kf-run devices' "
                "describes it; by default the only one that FILE has for what "
                "is compiled for, -t included");
    parser.text({"output", 'o', "FILE"}, out, "writes FILE instead of stdout");
    parser.output(out);
  }
};

/// Opens what is to be compiled; `modelKey` is that of a model.
Result<CompilerModule> openSource(const EmitOptions &options,
                                  std::string &modelKey) {
  if (options.source.ends_with(".mlir"))
    return CompilerModule::parse(options.source, options.function,
                                 options.phase == "binary");
  KF_ASSIGN_OR_RETURN(ModelFiles model,
                      openModel({.path = options.source,
                                 .dummy = options.dummy,
                                 .float8 = options.float8.choice(),
                                 .adapters = options.lora.choices},
                                false));
  if (options.ranks > 1 && !model.adapters.empty())
    return Status::error("adapters are for one rank; leave --ranks or --lora "
                         "out");
  if (options.ranks > 1) {
    // Of parts of layers, and of positions, all ranks run the same programs.
    const Parallelism kind = options.stage             ? Parallelism::Pipeline
                             : options.sharesPositions ? Parallelism::Context
                                                       : Parallelism::Tensor;
    auto shard = partOfRank(model.config, std::move(model.weights),
                            (options.stage.value_or(-1) + 1) % options.ranks,
                            options.ranks, kind);
    if (!shard.ok())
      return nameModel(model, shard.status());
    model.config = std::move(shard->config);
    model.weights = std::move(shard->weights);
  }
  modelKey = modelKeyOf(model);
  if (options.isTraining()) {
    Result<CompilerModule> module = CompilerModule::importTraining(
        model.config, *model.weights, options.trainingShape(),
        options.compiler);
    if (!module.ok())
      return nameModel(model, module.status());
    return module;
  }
  StepShape shape = {StepPart::Body, std::max<int64_t>(options.maxTokens, 1)};
  for (StepPart part : kStepParts)
    if (options.part == nameOf(part))
      shape.part = part;
  Result<CompilerModule> module = CompilerModule::import(
      model.config, *model.weights, shape, options.compiler);
  if (!module.ok())
    return nameModel(model, module.status());
  return module;
}

Status emit(EmitOptions &options) {
  options.compiler.cacheType = options.cacheType;
  if (options.cacheType.empty()) {
    KF_ASSIGN_OR_RETURN(options.compiler.cacheType,
                        defaultCacheType(options.compiler));
  }
  if (options.maxTokens)
    options.compiler.maxTokens = options.maxTokens;
  options.compiler.onWarning = [](const std::string &line) {
    printWarning(line);
  };
  if (options.tuning.file)
    KF_RETURN_IF_ERROR(
        loadMeasuredSchedules(options.tuning.file, options.compiler));
  std::string modelKey;
  KF_ASSIGN_OR_RETURN(CompilerModule module, openSource(options, modelKey));
  if (!options.kernel.empty())
    KF_RETURN_IF_ERROR(module.isolate(options.kernel, options.compiler));
  if (options.phase != "binary") {
    KF_ASSIGN_OR_RETURN(std::string text,
                        module.print(options.compiler, options.phase));
    return writeOutput(options.out, text);
  }
  KF_ASSIGN_OR_RETURN(Executable executable, module.compile(options.compiler));
  if (options.kernel.empty())
    executable.model = modelKey;
  return writeOutput(options.out, executable.serialize());
}

} // namespace

int kf::runEmitMlir(Arguments arguments) {
  EmitOptions options;
  OptionParser parser(
      "emit-mlir [MODEL|FILE.mlir] [options]",
      "Compiles a part of a model's step or a file up to a phase "
      "and prints the module.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  const bool file = options.source.ends_with(".mlir");
  if (!options.kernel.empty() &&
      (options.phase == "import" || options.phase == "fused"))
    return parser.usageError("--kernel needs --compile-to=program or a later "
                             "phase; " +
                             options.phase + " has no kernels yet");
  if (options.phase == "binary" && options.out == "-")
    return parser.usageError("--compile-to=binary needs -o FILE");
  if (!file && !options.function.empty())
    return parser.usageError("--function is for .mlir files; a model has one "
                             "step, of which --part says what");
  if (!options.tuning.file && !options.compiler.device.empty())
    return parser.usageError("--tuning-device says what of --tuning-db counts; "
                             "give that, too");
  if (file && options.ranks > 1)
    return parser.usageError("--ranks shares out models; a file says itself "
                             "for how many it is, in kf.ranks");
  if (options.sharesPositions && (options.ranks == 1 || options.stage))
    return parser.usageError("--shared-positions is of --ranks N of 2 or more, "
                             "without --stage");
  if (options.stage && *options.stage >= options.ranks)
    return parser.usageError("--stage " + std::to_string(*options.stage) +
                             " is none of " + std::to_string(options.ranks) +
                             ": --ranks says how many stages there are, which "
                             "are counted from 0");
  if (options.stage && !options.part.empty() && options.part != "body" &&
      *options.stage + 1 != options.ranks)
    return parser.usageError("--stage " + std::to_string(*options.stage) +
                             " runs bodies alone: the last stage has what "
                             "follows them");
  if (options.loraRank && !options.isTraining())
    return parser.usageError("--lora-rank is for parts of training: "
                             "--part=loss, gradient or update");
  if (options.loraDropout && !options.loraRank)
    return parser.usageError("--lora-dropout needs --lora-rank");
  if (options.loraTargets != kAllLinear && !options.loraRank)
    return parser.usageError("--lora-targets needs --lora-rank");
  if (!options.lora.choices.empty() && options.isTraining())
    return parser.usageError("--lora adds adapters to steps; training's have "
                             "--lora-rank");
  if (file && !options.part.empty())
    return parser.usageError("--part is for models; a function of a file is "
                             "whole");
  return report(emit(options));
}
