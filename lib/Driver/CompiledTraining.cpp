//===- CompiledTraining.cpp - Training with compiled programs -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledTraining.h"

#include "kf/Driver/StepCompiler.h"

#include "runtime/core/Exceptions.h"

using namespace kf;

OpenTrainingPrograms kf::compileTraining(CompileChoice choice) {
  return [choice = std::move(choice)](
             const ModelFiles &model, const Device &device,
             const TrainingOptions &options) -> Result<TrainingProvider> {
    KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                        compilerOptionsFor(choice, device, options.cancelled,
                                           options.observer));
    KF_ASSIGN_OR_RETURN(StepCompiler made,
                        StepCompiler::create(model, compiler, choice.useCache,
                                             options.observer));
    const auto programs = std::make_shared<StepCompiler>(std::move(made));
    return TrainingProvider([programs](const TrainingShape &shape) {
      return programs->compile(shape);
    });
  };
}

Result<std::unique_ptr<CompiledTrainingModel>>
kf::openTraining(TrainingOptions options, const CompileChoice &choice,
                 OpenEmbedded openEmbedded) try {
  return CompiledTrainingModel::open(std::move(options),
                                     {.device = openDevice,
                                      .programs = compileTraining(choice),
                                      .embedded = std::move(openEmbedded)});
} catch (...) {
  return statusOfException();
}
