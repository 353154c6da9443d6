//===- Model.cpp - A decoder on a device ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Model.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/RankLeader.h"
#include "runtime/model/TensorList.h"

#include <optional>
#include <utility>
#include <vector>

using namespace kf;

Model::Model(ModelConfig config, Device &device, const WeightSource &source,
             StepProvider provider, ModelOptions options)
    : name(std::move(options.name)), model(std::move(config)), target(device),
      source(source), provider(std::move(provider)),
      only(std::move(options.shapes)), others(options.ranks),
      stages(std::move(options.stages)),
      store(device, &source, {options.pool, options.cancelled}) {
  if (options.packed)
    store.keepIn(*options.packed, std::move(options.packedFrom));
}

bool Model::hasProgram(const StepShape &shape) const {
  return programs.count(shape) != 0;
}

const StepShape *Model::largestShape(StepPart part) const {
  const StepShape *largest = nullptr;
  for (const StepShape &shape : only)
    if (shape.part == part)
      largest = &shape;
  return largest;
}

const StepShape *Model::smallestShape(StepPart part, int64_t rows) const {
  for (const StepShape &shape : only)
    if (shape.part == part && shape.rows >= rows)
      return &shape;
  return nullptr;
}

Result<LoadedProgram *> Model::program(const StepShape &shape) try {
  if (auto found = programs.find(shape); found != programs.end())
    return found->second.get();
  Stopwatch watch;
  Result<Executable> executable = provider(shape);
  compiling += watch.seconds();
  if (!executable.ok())
    return executable.status();
  KF_RETURN_IF_ERROR(checkStep(*executable, shape, model));
  RankLeader *const ranks = ranksWith(shape.part);
  std::vector<RankCommand> loads;
  if (ranks) {
    KF_ASSIGN_OR_RETURN(loads, loadsOf(shape, *executable));
  }
  watch = Stopwatch();
  const auto own = [&] { return load(shape, *executable); };
  const Status loaded = ranks ? ranks->together(loads, own) : own();
  loading += watch.seconds();
  if (!loaded.ok()) {
    programs.erase(shape); // another rank may be without it
    return loaded;
  }
  return programs.at(shape).get();
} catch (...) {
  return statusOfException();
}

/// What has other ranks load `executable`, which all run, or their stages'.
Result<std::vector<RankCommand>> Model::loadsOf(const StepShape &shape,
                                                const Executable &executable) {
  if (stages.empty())
    return std::vector<RankCommand>{LoadProgram{shape, executable.serialize()}};
  const Stopwatch watch;
  std::vector<RankCommand> loads;
  for (const StepProvider &provide : stages) {
    KF_ASSIGN_OR_RETURN(const Executable stage, provide(shape));
    loads.push_back(LoadProgram{shape, stage.serialize()});
  }
  compiling += watch.seconds();
  return loads;
}

Status Model::load(const StepShape &shape, const Executable &executable) {
  Result<std::unique_ptr<LoadedProgram>> loaded = target.load(executable);
  if (!loaded.ok())
    return loaded.status().in("program '" + executable.programName + "'");
  programs.emplace(shape, loaded.take());
  return Status();
}

Status Model::badLogits(const std::string &what) const {
  badLogitsGiven = true;
  return Status::error("model '" + name + "': " + what, StatusCode::Internal);
}

/// What helps if keys or values do not fit into the cache; empty where it holds
/// whatever f32 does.
std::string Model::adviceOnCache() const {
  for (const auto &[shape, program] : programs)
    for (const CacheSpec &cache : program->program().caches)
      if (cache.type == DataType::F16 || cache.type == DataType::Q8_0)
        return "; keys and values may do so where the cache's " +
               std::string(nameOf(cache.type)) +
               " holds no more than 65504: --cache-type bf16 or f32 holds them";
  return "";
}

Result<std::string> Model::findCauseOfBadLogits() const try {
  if (!cause.empty())
    return cause;
  std::vector<std::string> names;
  KF_ASSIGN_OR_RETURN(std::vector<ListedTensor> tensors,
                      findTensors(model, source));
  for (ListedTensor &tensor : tensors)
    names.push_back(std::move(tensor.name));
  KF_ASSIGN_OR_RETURN(std::optional<std::string> found,
                      store.findNonFinite(names));
  const char *const finite =
      others ? "rank 0's weights are finite, so others' are not, or what the "
               "model computes overflows"
             : "all weights are finite, so what the model computes overflows";
  cause = found ? *found : finite + adviceOnCache();
  return cause;
} catch (...) {
  return statusOfException();
}

Status Model::explain(const Status &error) const try {
  if (error.ok() || !gaveBadLogits())
    return error;
  const Result<std::string> why = findCauseOfBadLogits();
  return why.ok() ? Status::error(error.message() + "; " + *why, error.code())
                  : error;
} catch (...) {
  return statusOfException();
}
