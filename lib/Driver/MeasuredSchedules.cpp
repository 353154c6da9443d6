//===- MeasuredSchedules.cpp - Schedules of the tuning database -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/MeasuredSchedules.h"

#include "runtime/core/Lines.h"

#include <algorithm>
#include <charconv>
#include <set>

using namespace kf;

namespace {

/// What the CPU's description says of its threads: ", 2 threads" apart from the
/// rest, and the number; 0 where it says nothing.
struct DeviceThreads {
  std::string_view rest;
  int64_t threads = 0;
};

DeviceThreads splitThreads(std::string_view device) {
  const size_t at = device.rfind("; ");
  if (at == std::string_view::npos)
    return {device};
  const std::string_view last = device.substr(at + 2);
  int64_t threads = 0;
  const auto [end, code] =
      std::from_chars(last.data(), last.data() + last.size(), threads);
  const std::string_view unit(end, last.data() + last.size());
  if (code != std::errc() || (unit != " thread" && unit != " threads"))
    return {device};
  return {device.substr(0, at), threads};
}

void warn(const CompilerOptions &options, const std::string &line) {
  if (options.onWarning)
    options.onWarning(line);
}

/// Says so where all that counts for `options` but for the number of threads
/// was measured with another one: then nothing of it is used.
Status warnOfOtherThreads(const CompilerOptions &options) {
  const std::vector<TuningScope> scopes = options.tuning->scopes();
  KF_ASSIGN_OR_RETURN(const TuningScope here, tuningScopeOf(options));
  if (std::ranges::find(scopes, here) != scopes.end())
    return Status();
  const DeviceThreads own = splitThreads(options.device);
  std::set<int64_t> numbers;
  for (const TuningScope &scope : scopes) {
    const DeviceThreads other = splitThreads(scope.device);
    if (other.rest != own.rest || other.threads <= 0 || own.threads == 0)
      continue;
    CompilerOptions with = options;
    with.workers = other.threads;
    with.device = scope.device;
    KF_ASSIGN_OR_RETURN(const TuningScope there, tuningScopeOf(with));
    if (there == scope)
      numbers.insert(other.threads);
  }
  if (numbers.empty())
    return Status();
  std::string list;
  for (const int64_t number : numbers)
    list += (list.empty() ? "" : ", ") + std::to_string(number);
  const std::string threads = std::to_string(own.threads);
  warn(options,
       "the schedules in " + quotePath(options.tuningFile) +
           " count for the number of threads that they were measured with (" +
           list + "), and none for " + threads + "; 'kf-run tune -t " +
           threads + "' measures these");
  return Status();
}

} // namespace

Status kf::loadMeasuredSchedules(const std::optional<std::string> &file,
                                 CompilerOptions &options) {
  if (file == "none")
    return Status();
  const Result<std::string> path =
      file ? Result<std::string>(*file) : TuningDatabase::defaultPath();
  if (!path.ok()) // nor is there a cache, which is warned of
    return Status();
  Result<TuningDatabase> database =
      file ? TuningDatabase::loadExisting(*path) : TuningDatabase::load(*path);
  if (!file && database.ok() && database->size() == 0)
    return Status();
  KF_ASSIGN_OR_RETURN(const bool hasNoSchedules, isInterpreted(options));
  if (hasNoSchedules)
    return Status();
  if (!database.ok() && file)
    return database.status().in("--tuning-db");
  if (!database.ok()) {
    warn(options, database.message() + "; going on without measured schedules");
    return Status();
  }
  options.tuning = std::make_shared<const TuningDatabase>(database.take());
  options.tuningFile = *path;
  return warnOfOtherThreads(options);
}
