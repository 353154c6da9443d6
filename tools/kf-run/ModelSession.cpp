//===- ModelSession.cpp - A model opened to be run ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelSession.h"

#include "Interrupt.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/core/Stopwatch.h"

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
}

Result<CompilerOptions> kf::compilerOptionsFor(const ModelFlags &flags,
                                               const Device &device) {
  CompilerOptions compiler;
  compiler.target = targetFor(device, flags.targetCpu);
  compiler.cacheType = flags.cacheType.empty() ? defaultCacheType(device.name())
                                               : flags.cacheType;
  compiler.activationType = flags.activationType;
  compiler.targetCpu = flags.targetCpu;
  compiler.workers = device.workers();
  compiler.device = device.description();
  compiler.cancelled = &interruptFlag();
  compiler.onWarning = [](const std::string &line) { printWarning(line); };
  KF_RETURN_IF_ERROR(checkRunsOnHost(compiler));
  KF_RETURN_IF_ERROR(loadTuning(flags.tuning, compiler));
  return compiler;
}

/// Of programs that a compiler provides.
static std::string originOf(const StepCompiler &compiler) {
  return compiler.compiled() + compiler.cached() == 0 ? "not finished"
         : compiler.compiled() == 0                   ? "cached"
         : compiler.cached() == 0                     ? "compiled"
                                                      : "partly cached";
}

Result<std::unique_ptr<ModelSession>>
ModelSession::open(const ModelFlags &options, bool withTokenizer) {
  Stopwatch watch;
  const Progress progress("opening the model");
  std::unique_ptr<ModelSession> result(new ModelSession());
  KF_RETURN_IF_ERROR(result->openFiles(options, withTokenizer));
  KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                      compilerOptionsFor(options, result->device()));
  KF_ASSIGN_OR_RETURN(
      result->steps,
      StepCompiler::create(result->files(), compiler, !options.noCache));
  StepCompiler &steps = *result->steps;
  result->programs = {
      [&steps](const StepShape &shape) { return steps.compile(shape); },
      {},
      compiler.cacheType,
      [&steps] { return originOf(steps); }};
  result->seconds = watch.seconds();
  return result;
}
