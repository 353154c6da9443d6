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

Result<std::unique_ptr<TrainingRun>>
kf::openTrainingRun(const TrainingRequest &request, const CompileChoice &choice,
                    const CarriedModel &carried) try {
  TrainingOptions training = {.model = request.model,
                              .withTokenizer = false,
                              .device = request.device,
                              .lora = request.lora,
                              .optimizer = request.optimizer,
                              .recompute = request.recompute,
                              .cancelled = request.run.cancelled,
                              .observer = request.run.observer,
                              .profile = request.profile};
  KF_RETURN_IF_ERROR(checkTraining(training));
  KF_RETURN_IF_ERROR(checkReadFiles(request.run));
  KF_ASSIGN_OR_RETURN(const ModelFiles files,
                      openModel(request.model, /*withTokenizer=*/true,
                                carried.open, request.run.observer));
  KF_RETURN_IF_ERROR(checkTraining(training, files));
  // Before examples are read, which may take long.
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openDevice(request.device, request.run.observer));
  KF_RETURN_IF_ERROR(checkTrainsOn(device->name()));
  const TrainingSources sources = {
      .device = [&](const DeviceChoice &, Observer *)
          -> Result<std::unique_ptr<Device>> { return std::move(device); },
      .programs = compileTraining(choice),
      .embedded = carried.open};
  auto openTrained =
      [&](int64_t rows, int64_t length,
          uint64_t seed) -> Result<std::unique_ptr<TrainingModel>> {
    training.rows = rows;
    training.length = length;
    training.seed = seed;
    KF_ASSIGN_OR_RETURN(std::unique_ptr<CompiledTrainingModel> model,
                        CompiledTrainingModel::open(training, sources));
    return std::unique_ptr<TrainingModel>(std::move(model));
  };
  TrainingRunOptions options = request.run;
  options.saveEmbedded = carried.save;
  return TrainingRun::open(files, std::move(options), openTrained);
} catch (...) {
  return statusOfException();
}
