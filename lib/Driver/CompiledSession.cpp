//===- CompiledSession.cpp - Sessions whose steps are compiled ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledSession.h"

#include "kf/Driver/MeasuredSchedules.h"
#include "kf/Driver/StepCompiler.h"

#include "runtime/core/Exceptions.h"

using namespace kf;

Result<CompilerOptions> kf::compilerOptionsFor(const CompileChoice &choice,
                                               const Device &device,
                                               CancelFlag cancelled,
                                               Observer *observer) try {
  CompilerOptions compiler;
  compiler.target = targetFor(device, choice.targetCpu);
  compiler.activationType = choice.activationType;
  compiler.targetCpu = choice.targetCpu;
  compiler.workers = device.workers();
  compiler.device = device.description();
  compiler.cancelled = cancelled;
  if (observer)
    compiler.onWarning = [observer](const std::string &line) {
      observer->onWarning(line);
    };
  KF_RETURN_IF_ERROR(checkRunsOnHost(compiler));
  compiler.cacheType = choice.cacheType;
  if (choice.cacheType.empty()) {
    KF_ASSIGN_OR_RETURN(compiler.cacheType, defaultCacheType(compiler));
  }
  KF_RETURN_IF_ERROR(loadMeasuredSchedules(choice.tuningFile, compiler));
  return compiler;
} catch (...) {
  return statusOfException();
}

/// Of programs that a compiler provides.
static std::string originOf(const StepCompiler &compiler) {
  return compiler.compiled() + compiler.cached() == 0 ? "not finished"
         : compiler.compiled() == 0                   ? "cached"
         : compiler.cached() == 0                     ? "compiled"
                                                      : "partly cached";
}

OpenSteps
kf::compileSteps(CompileChoice choice,
                 std::function<void(const CompilerOptions &)> onOptions) {
  return [choice = std::move(choice), onOptions = std::move(onOptions)](
             const ModelFiles &model, const Device &device,
             const SessionOptions &options) -> Result<SessionSteps> {
    KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                        compilerOptionsFor(choice, device, options.cancelled,
                                           options.observer));
    KF_ASSIGN_OR_RETURN(const DataType cacheType,
                        parseDataType(compiler.cacheType));
    KF_ASSIGN_OR_RETURN(StepCompiler made,
                        StepCompiler::create(model, compiler, choice.useCache,
                                             options.observer));
    if (onOptions)
      onOptions(compiler);
    const auto steps = std::make_shared<StepCompiler>(std::move(made));
    return SessionSteps{
        .provide =
            [steps](const StepShape &shape) { return steps->compile(shape); },
        .cacheType = cacheType,
        .origin = [steps] { return originOf(*steps); }};
  };
}

Result<std::unique_ptr<Session>>
kf::openSession(SessionOptions options, const CompileChoice &choice,
                OpenEmbedded openEmbedded) try {
  return Session::open(std::move(options),
                       {.device = openDevice,
                        .steps = compileSteps(choice),
                        .embedded = std::move(openEmbedded)});
} catch (...) {
  return statusOfException();
}
