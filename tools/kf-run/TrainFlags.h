//===- TrainFlags.h - Options of kf-run train -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TRAINFLAGS_H
#define KF_TOOLS_KF_RUN_TRAINFLAGS_H

#include "DeviceFlags.h"
#include "ModelArgument.h"
#include "OptionParser.h"
#include "ProfileFlags.h"
#include "TemplateFlags.h"
#include "TuningFlags.h"

#include "kf/Driver/CompiledTraining.h"
#include "runtime/train/TrainingRun.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The names of a list "q_proj,v_proj"; one that is empty stays so.
std::vector<std::string> splitNames(std::string_view list);

/// What the command line says of a training.
struct TrainFlags {
  std::string model;                ///< empty: the embedded one
  std::optional<std::string> named; ///< the model, as an option says it
  DummyFlags dummy;
  DeviceFlags device;
  Float8Flag float8;
  TemplateFlags chatTemplate;
  TuningFlags tuning;
  ProfileFlags profile;
  bool noCache = false;
  std::string targetCpu = "native";

  TrainingRequest request; ///< complete, once all arguments are read
  std::optional<std::string> log;
  int64_t printEvery = 10;

  void addTo(OptionParser &parser);

private:
  void addDataTo(OptionParser &parser);
  void addTrainedTo(OptionParser &parser);
  void addStepsTo(OptionParser &parser);
  void addOptimizerTo(OptionParser &parser);
  Status complete();

  // As they are typed.
  std::optional<uint64_t> seed;
  std::string targets;
  bool noPack = false, noShuffle = false;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TRAINFLAGS_H
