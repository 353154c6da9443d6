//===- TrainingRequest.h - What a training is asked for ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf-run's options and Python's arguments say of a training, and what
// comes of those that they leave out. Errors name options as kf-run has them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGREQUEST_H
#define KF_RUNTIME_TRAIN_TRAININGREQUEST_H

#include "runtime/devices/OpenDevice.h"
#include "runtime/measure/Profile.h"
#include "runtime/session/OpenModel.h"
#include "runtime/train/TrainingRun.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

struct TrainingRequest {
  ModelChoice model;
  DeviceChoice device;

  // What is trained: one of `rank` and `full`.
  std::optional<int64_t> rank;      ///< of an adapter (--lora)
  std::optional<double> alpha;      ///< twice the rank by default
  std::vector<std::string> targets; ///< kAllLinear by default
  bool rankStabilized = false;
  std::optional<double> dropout; ///< 0 by default
  bool full = false;             ///< all weights

  /// The highest; 2e-4 by default, and 2e-5 where all weights are trained.
  std::optional<double> rate;
  std::optional<double> minimumRate;   ///< 0 by default; of schedules that fall
  std::string schedule = "linear";     ///< constant, linear or cosine
  std::string optimizerName = "adamw"; ///< or sgd
  // Of one of the optimizers, with OptimizerOptions' defaults:
  std::optional<double> beta1, beta2, epsilon, momentum;
  double weightDecay = 0, clip = 1;
  std::string longName = "cut";         ///< or drop: LongExamples
  std::string recomputeName = "layers"; ///< or cheap

  /// All else.
  TrainingRunOptions run;
  /// What each kernel takes; null: nobody asks.
  std::shared_ptr<Profile> profile;

  // What complete() makes of them, beside `run`:
  std::optional<LoraConfig> lora; ///< nothing: all weights
  OptimizerOptions optimizer;
  Recompute recompute = Recompute::Layers;

  /// Sets `lora`, `optimizer`, `recompute`, and of `run` what follows from the
  /// above. To be called once. Errors: what is missing, excludes one another or
  /// is of no use, and numbers that none of this works with.
  Status complete();

private:
  Status completeAdapter();
  Status completeOptimizer();
  Status completeRate();
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGREQUEST_H
