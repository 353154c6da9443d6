//===- ProgramExec.cpp - Running an Executable on tensors -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramExec.h"

#include "Report.h"
#include "TerminalObserver.h"

#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/io/Npy.h"
#include "runtime/session/LocalRanks.h"

#include <algorithm>
#include <cstdio>

using namespace kf;

namespace {

/// An --expected that every result meets.
constexpr std::string_view kIgnored = "(ignored)";

std::string numbered(const char *what, size_t index) {
  return std::string(what) + "[" + std::to_string(index) + "]";
}

/// Reads what --input or --expected say; "(ignored)" becomes nothing.
Result<std::vector<std::optional<HostTensor>>>
parseTensors(const char *option, const std::vector<std::string> &texts) {
  std::vector<std::optional<HostTensor>> tensors;
  for (const std::string &text : texts) {
    if (text == kIgnored) {
      tensors.emplace_back();
      continue;
    }
    Result<HostTensor> tensor = parseTensorLiteral(text);
    if (!tensor.ok())
      return tensor.status().in(option);
    tensors.emplace_back(tensor.take());
  }
  return tensors;
}

Result<std::vector<HostTensor>>
parseInputs(const std::vector<std::string> &texts) {
  KF_ASSIGN_OR_RETURN(auto parsed, parseTensors("--input", texts));
  std::vector<HostTensor> inputs;
  for (std::optional<HostTensor> &tensor : parsed) {
    if (!tensor)
      return Status::error("--input takes a tensor, not (ignored)");
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

/// Checks that `given` uses of `option` fit `results` results.
Status checkCount(const char *option, size_t given, size_t results) {
  if (given == 0 || given == results)
    return Status();
  return Status::error(std::string(option) + " is given " +
                       std::to_string(given) + " times, but the function has " +
                       std::to_string(results) + " results");
}

Status checkResults(std::span<const HostTensor> results,
                    std::span<const std::optional<HostTensor>> expected,
                    const Tolerance &tolerance) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i])
      KF_RETURN_IF_ERROR(compareTensors(numbered("result", i), results[i],
                                        *expected[i], tolerance));
  return Status();
}

/// Prints a result, or writes it where --output says.
Status showResult(size_t index, const HostTensor &result,
                  const std::string &output, int64_t limit) {
  if (output != "-")
    return writeNpy(output.substr(1), result).in(numbered("result", index));
  return writeStdout(numbered("result", index) + ": tensor<" +
                     typeText(result) + ">\n" + tensorText(result, limit) +
                     "\n");
}

/// A program with what it needs on one device.
struct LoadedExec {
  LoadedExec(const ExecFlags &flags, const Executable &executable,
             const ExecData &data, Device &device)
      : weights(device, data.weights.get()),
        cache(device, cachePages(executable, flags.context),
              cachePages(executable, flags.context) * kCachePage) {}

  WeightStore weights;
  KVCache cache;
  std::unique_ptr<ProgramRunner> runner;
};

Result<std::unique_ptr<LoadedExec>> load(const ExecFlags &flags,
                                         const Executable &executable,
                                         const ExecData &data, Device &device) {
  auto loaded = std::make_unique<LoadedExec>(flags, executable, data, device);
  KF_ASSIGN_OR_RETURN(loaded->runner,
                      ProgramRunner::create(executable, device, loaded->weights,
                                            loaded->cache));
  return loaded;
}

/// That all ranks of the group, null for none, have equal bits.
Status checkSame(std::span<const HostTensor> results, Group *group) {
  if (!group)
    return Status();
  size_t hash = 0;
  for (const HostTensor &result : results)
    hash = hash * 31 + std::hash<std::string_view>()(std::string_view(
                           reinterpret_cast<const char *>(result.bytes.data()),
                           result.bytes.size()));
  std::vector<size_t> all(static_cast<size_t>(group->size()));
  KF_RETURN_IF_ERROR(group->allGather(&hash, all.data(), sizeof(hash)));
  const auto other = std::ranges::find_if(
      all, [&](size_t each) { return each != all.front(); });
  if (other == all.end())
    return Status();
  return Status::error("the results of rank " +
                           std::to_string(other - all.begin()) +
                           " differ from those of rank 0",
                       StatusCode::Internal);
}

/// What another rank than the first one does.
Status follow(const ExecFlags &flags, const Executable &executable,
              const ExecData &data, Group &group) {
  DeviceChoice choice = flags.device;
  KF_ASSIGN_OR_RETURN(choice, deviceOfRank(choice, group.size()));
  choice.rank = group.rank();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openDevice(withThreads(choice, group.size()), nullptr));
  KF_RETURN_IF_ERROR(device->join(group));
  KF_ASSIGN_OR_RETURN(const auto loaded,
                      load(flags, executable, data, *device));
  KF_ASSIGN_OR_RETURN(const auto results, loaded->runner->run(data.inputs));
  KF_RETURN_IF_ERROR(checkSame(results, &group));
  KF_ASSIGN_OR_RETURN(StepSizes sizes, loaded->runner->sizesOf(data.inputs));
  for (int64_t i = 0; i < flags.bench; ++i)
    KF_RETURN_IF_ERROR(loaded->runner->execute(sizes));
  return Status();
}

/// Times runs on the inputs that the program has had.
Status bench(ProgramRunner &runner, const StepSizes &sizes, int64_t count) {
  std::vector<double> seconds;
  for (int64_t i = 0; i < count; ++i) {
    Stopwatch watch;
    KF_RETURN_IF_ERROR(runner.execute(sizes));
    seconds.push_back(watch.seconds());
  }
  std::ranges::sort(seconds);
  std::fprintf(stderr, "%lld runs: least %.6g ms, median %.6g ms\n",
               static_cast<long long>(count), seconds.front() * 1e3,
               seconds[seconds.size() / 2] * 1e3);
  return Status();
}

} // namespace

void ExecFlags::addTo(OptionParser &parser) {
  parser.texts({"input", 0, "TENSOR"}, inputs,
               "one for each tensor that the function takes, in order: "
               "2x3xf32=1,2,3,4,5,6 or 2x3xf32=[1 2 3][4 5 6]; 4xi32=7 "
               "fills; @x.npy; 2x3xf32=@x.bin");
  parser.texts({"output", 0, "@FILE"}, outputs,
               "one for each result, in order: @x.npy writes it, - prints "
               "it");
  parser.texts({"expected", 0, "TENSOR"}, expected,
               "one for each result, in order, written as inputs are; a "
               "result that differs is an error. (ignored) fits all");
  parser.real({"atol", 0, "X"}, tolerance.absolute, 0, 1e30,
              "absolute tolerance of --expected; 1e-05 by default");
  parser.real({"rtol", 0, "X"}, tolerance.relative, 0, 1e30,
              "tolerance relative to the expected value; 1e-05 by default");
  parser.text(
      {"weights", 0, "FILE"}, weights,
      "a safetensors or GGUF file, or a model's folder, that holds what "
      "kf.weight names");
  parser.integer({"context", 0, "N"}, context, 1, int64_t(1) << 24,
                 "positions that the pages of a KV cache have room for, which "
                 "start as zeros; 256 by default");
  parser.integer({"print-limit", 0, "N"}, printLimit, 0, int64_t(1) << 62,
                 "elements of each result to print; 1024 by default");
  parser.integer({"bench", 0, "N"}, bench, 0, 1000000,
                 "runs the function N more times and prints how long it "
                 "took");
  device.addTo(parser);
  profile.addTo(parser);
}

std::optional<int> ExecFlags::checkOutputs(const OptionParser &parser) const {
  for (const std::string &output : outputs)
    if (output == "@-" ||
        (output != "-" && (!output.starts_with('@') || output.size() == 1)))
      return parser.usageError("--output takes @FILE.npy or -, not " +
                               inQuotes(output));
  for (const std::string &output : outputs)
    if (Status status = checkOutput(output == "-" ? output : output.substr(1));
        !status.ok())
      return report(status);
  return std::nullopt;
}

Result<ExecData> kf::readExecData(const ExecFlags &flags) {
  ExecData data;
  KF_ASSIGN_OR_RETURN(data.inputs, parseInputs(flags.inputs));
  KF_ASSIGN_OR_RETURN(data.expected,
                      parseTensors("--expected", flags.expected));
  if (!flags.weights.empty()) {
    KF_ASSIGN_OR_RETURN(data.weights, openModelWeights(flags.weights));
  }
  return data;
}

int64_t kf::cachePages(const Executable &program, int64_t positions) {
  int64_t pages = 1;
  for (const CacheSpec &cache : program.caches)
    pages = std::max(pages, (positions + cache.page - 1) / cache.page);
  return pages;
}

Result<std::unique_ptr<Device>> kf::openExecDevice(const ExecFlags &flags,
                                                   int64_t ranks) {
  if (ranks == 1)
    return openDevice(flags.device, &terminal());
  KF_ASSIGN_OR_RETURN(const DeviceChoice choice,
                      deviceOfRank(flags.device, ranks));
  return openDevice(withThreads(choice, ranks), &terminal());
}

Status kf::execProgram(const ExecFlags &flags, Executable executable,
                       const ExecData &data, std::unique_ptr<Device> given) {
  if (!data.weights && !executable.weights.empty())
    return Status::error("the function reads weight " +
                         inQuotes(executable.weights.front().names.front()) +
                         "; give --weights FILE");
  const size_t resultCount = executable.outputs.size();
  KF_RETURN_IF_ERROR(
      checkCount("--expected", flags.expected.size(), resultCount));
  KF_RETURN_IF_ERROR(checkCount("--output", flags.outputs.size(), resultCount));

  std::unique_ptr<LocalRanks> others; // outlives the device
  const std::unique_ptr<Device> device = std::move(given);
  if (executable.ranks > 1) {
    KF_ASSIGN_OR_RETURN(
        others,
        LocalRanks::start(executable.ranks, [&](Group &group, RankChannel &) {
          return follow(flags, executable, data, group);
        }));
    KF_RETURN_IF_ERROR(device->join(others->group()));
  }
  KF_ASSIGN_OR_RETURN(const auto loaded,
                      load(flags, executable, data, *device));
  ProgramRunner &runner = *loaded->runner;
  const std::unique_ptr<Profile> profile = flags.profile.make();
  runner.setProfile(profile.get());
  KF_ASSIGN_OR_RETURN(const std::vector<HostTensor> results,
                      runner.run(data.inputs));
  KF_RETURN_IF_ERROR(checkSame(results, device->group()));
  if (flags.bench) {
    KF_ASSIGN_OR_RETURN(StepSizes sizes, runner.sizesOf(data.inputs));
    KF_RETURN_IF_ERROR(bench(runner, sizes, flags.bench));
  }
  if (profile)
    KF_RETURN_IF_ERROR(showProfile(flags.profile, *profile, *device));

  // Without anything else to do with them, results are printed.
  const bool print = flags.outputs.empty() && flags.expected.empty();
  if (print)
    KF_RETURN_IF_ERROR(
        writeStdout("EXEC @" + runner.program().programName + "\n"));
  for (size_t i = 0; i < results.size(); ++i)
    if (print || !flags.outputs.empty())
      KF_RETURN_IF_ERROR(showResult(
          i, results[i], print ? "-" : flags.outputs[i], flags.printLimit));
  if (data.expected.empty())
    return Status();
  KF_RETURN_IF_ERROR(checkResults(results, data.expected, flags.tolerance));
  return writeStdout("[SUCCESS] all results are as expected\n");
}
