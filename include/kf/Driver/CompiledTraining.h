//===- CompiledTraining.h - Training with compiled programs -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program needs that trains a model, and all that it needs: no header of
// MLIR, no command line (runtime/train/CompiledTrainingModel.h has an example).
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_COMPILEDTRAINING_H
#define KF_DRIVER_COMPILEDTRAINING_H

#include "kf/Driver/CompiledSession.h"
#include "runtime/train/CompiledTrainingModel.h"
#include "runtime/train/TrainingRequest.h"

#include <functional>
#include <memory>
#include <string>

namespace kf {

/// Programs that are compiled when they are needed, or come from the cache.
/// `choice`'s cache type does not matter.
OpenTrainingPrograms compileTraining(CompileChoice choice);

/// Opens a model to train it on any device, with programs that are compiled;
/// `openEmbedded` is for the model that the program carries.
Result<std::unique_ptr<CompiledTrainingModel>>
openTraining(TrainingOptions options, const CompileChoice &choice = {},
             OpenEmbedded openEmbedded = nullptr);

/// The model that the program carries; none: it carries none.
struct CarriedModel {
  OpenEmbedded open;
  /// Adds what the model has beside its weights to a folder.
  std::function<Status(const std::string &folder)> save;
};

/// Opens the model of `request`, which is complete, and the run that trains it,
/// as TrainingRun::open() does.
Result<std::unique_ptr<TrainingRun>>
openTrainingRun(const TrainingRequest &request, const CompileChoice &choice,
                const CarriedModel &carried);

} // namespace kf

#endif // KF_DRIVER_COMPILEDTRAINING_H
