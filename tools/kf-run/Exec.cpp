//===- Exec.cpp - kf-run exec ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Compiler.h"
#include "Devices.h"
#include "ProfileFlags.h"
#include "Report.h"
#include "TensorText.h"
#include "Tuning.h"

#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <cstdio>

#include <sys/stat.h>

using namespace kf;

namespace {

/// An --expected that every result meets.
constexpr std::string_view kIgnored = "(ignored)";

struct ExecOptions {
  std::string file, function, weights, targetCpu = "native";
  std::vector<std::string> inputs, outputs, expected;
  Tolerance tolerance;
  int64_t context = 256, maxTokens = 0, printLimit = 1024, bench = 0;
  DeviceOptions device;
  ProfileFlags profile;
  TuningFlags tuning;

  void addTo(OptionParser &parser) {
    parser.positional("FILE.mlir", true, file, "functions of kf ops, as text");
    parser.text({"function", 0, "NAME"}, function,
                "which function of the file; its only one by default");
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
    parser.text({"weights", 0, "FILE"}, weights,
                "a safetensors or GGUF file that holds what kf.weight names");
    parser.integer(
        {"context", 0, "N"}, context, 1, int64_t(1) << 24,
        "positions that the pages of a KV cache have room for, which "
        "start as zeros; 256 by default");
    parser.integer({"max-tokens", 0, "N"}, maxTokens, 1, int64_t(1) << 24,
                   "the largest `?` to compile for; by default the inputs' "
                   "and at least 512");
    parser.integer({"print-limit", 0, "N"}, printLimit, 0, int64_t(1) << 62,
                   "elements of each result to print; 1024 by default");
    parser.integer({"bench", 0, "N"}, bench, 0, 1000000,
                   "runs the function N more times and prints how long it "
                   "took");
    parser.text({"target-cpu", 0, "CPU"}, targetCpu,
                "LLVM's name of the CPU or GPU to compile for; native by "
                "default");
    device.addTo(parser);
    profile.addTo(parser);
    tuning.addTo(parser);
  }
};

/// Opens `path` as the format that its first bytes name.
Result<std::unique_ptr<WeightSource>> openWeights(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode))
    return openSafetensors(path);
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::openIfGguf(path));
  if (!gguf)
    return openSafetensors(path);
  return std::unique_ptr<WeightSource>(std::move(gguf));
}

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

/// The i32 elements of an input; nothing where it is of another type, which the
/// runner reports.
std::span<const int32_t> intsOf(std::span<const HostTensor> inputs,
                                size_t index) {
  if (index >= inputs.size() || inputs[index].type != DataType::I32)
    return {};
  return {inputs[index].data<int32_t>(),
          inputs[index].bytes.size() / sizeof(int32_t)};
}

/// An error where a row's page is not one of a cache of `pages` pages, or where
/// it would not be stored.
Status checkCacheUse(std::span<const HostTensor> inputs, const CacheUse &use,
                     int64_t pages) {
  const auto positions = intsOf(inputs, use.positions),
             sequences = intsOf(inputs, use.sequences),
             table = intsOf(inputs, use.pageTable);
  // The runner says what is wrong with them.
  if (positions.size() != sequences.size() || use.pageTable >= inputs.size() ||
      inputs[use.pageTable].type != DataType::I32 ||
      inputs[use.pageTable].shape.size() != 2)
    return Status();
  const int64_t count = inputs[use.pageTable].shape[0],
                tablePages = inputs[use.pageTable].shape[1];
  auto fail = [](size_t input, const std::string &message) {
    return Status::error("input " + std::to_string(input) + " has " + message);
  };
  for (size_t row = 0; row < positions.size(); ++row) {
    const int64_t position = positions[row], sequence = sequences[row];
    if (position < 0)
      continue;
    if (position / use.page >= tablePages)
      return fail(use.positions, "the position " + std::to_string(position) +
                                     ", but the page table, input " +
                                     std::to_string(use.pageTable) +
                                     ", has room for " +
                                     std::to_string(tablePages * use.page));
    if (sequence < 0 || sequence >= count)
      return fail(use.sequences, "the sequence " + std::to_string(sequence) +
                                     ", but the page table, input " +
                                     std::to_string(use.pageTable) + ", has " +
                                     std::to_string(count));
    int64_t first = position;
    if (use.isAttention)
      first = use.window ? std::max<int64_t>(position - *use.window + 1, 0) : 0;
    for (int64_t i = first / use.page; i <= position / use.page; ++i) {
      const int64_t page = table[sequence * tablePages + i];
      if (page < 0 || page >= pages)
        return fail(use.pageTable, "the page " + std::to_string(page) +
                                       ", but KV caches have " +
                                       std::to_string(pages) + " of " +
                                       std::to_string(use.page) +
                                       " positions; --context N makes more");
    }
  }
  return Status();
}

/// Pages of pools that have room for `positions` positions.
int64_t cachePages(const Executable &program, int64_t positions) {
  int64_t pages = 1;
  for (const CacheSpec &cache : program.caches)
    pages = std::max(pages, (positions + cache.page - 1) / cache.page);
  return pages;
}

Status exec(const ExecOptions &options) {
  KF_ASSIGN_OR_RETURN(std::vector<HostTensor> inputs,
                      parseInputs(options.inputs));
  KF_ASSIGN_OR_RETURN(auto expected,
                      parseTensors("--expected", options.expected));
  std::unique_ptr<WeightSource> source;
  if (!options.weights.empty()) {
    KF_ASSIGN_OR_RETURN(source, openWeights(options.weights));
  }
  KF_ASSIGN_OR_RETURN(
      CompilerModule module,
      CompilerModule::parse(options.file, options.function, true));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openDevice(options.device));

  CompilerOptions compiler;
  compiler.target = targetFor(*device, options.targetCpu);
  compiler.targetCpu = options.targetCpu;
  compiler.workers = device->workers();
  compiler.device = device->description();
  KF_RETURN_IF_ERROR(checkRunsOnHost(compiler));
  KF_RETURN_IF_ERROR(loadTuning(options.tuning, compiler));
  for (const HostTensor &input : inputs)
    if (!input.shape.empty())
      compiler.maxTokens = std::max(compiler.maxTokens, input.shape.front());
  if (options.maxTokens)
    compiler.maxTokens = options.maxTokens;
  const std::vector<CacheUse> cacheUses = module.cacheUses();
  KF_ASSIGN_OR_RETURN(Executable executable, module.compile(compiler));
  const int64_t pages = cachePages(executable, options.context);
  for (const CacheUse &use : cacheUses)
    KF_RETURN_IF_ERROR(checkCacheUse(inputs, use, pages));
  if (!source && !executable.weights.empty())
    return Status::error("the function reads weight " +
                         inQuotes(executable.weights.front().names.front()) +
                         "; give --weights FILE");
  const size_t resultCount = executable.outputs.size();
  KF_RETURN_IF_ERROR(
      checkCount("--expected", options.expected.size(), resultCount));
  KF_RETURN_IF_ERROR(
      checkCount("--output", options.outputs.size(), resultCount));

  WeightStore weights(*device, source.get());
  KVCache cache(*device, pages);
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<ProgramRunner> runner,
      ProgramRunner::create(std::move(executable), *device, weights, cache));
  const std::unique_ptr<Profile> profile = options.profile.make();
  runner->setProfile(profile.get());
  KF_ASSIGN_OR_RETURN(std::vector<HostTensor> results, runner->run(inputs));
  if (options.bench) {
    KF_ASSIGN_OR_RETURN(StepSizes sizes, runner->sizesOf(inputs));
    KF_RETURN_IF_ERROR(bench(*runner, sizes, options.bench));
  }
  if (profile)
    KF_RETURN_IF_ERROR(showProfile(options.profile, *profile, *device));

  // Without anything else to do with them, results are printed.
  const bool print = options.outputs.empty() && options.expected.empty();
  if (print)
    KF_RETURN_IF_ERROR(
        writeStdout("EXEC @" + runner->program().programName + "\n"));
  for (size_t i = 0; i < results.size(); ++i)
    if (print || !options.outputs.empty())
      KF_RETURN_IF_ERROR(showResult(
          i, results[i], print ? "-" : options.outputs[i], options.printLimit));
  if (expected.empty())
    return Status();
  KF_RETURN_IF_ERROR(checkResults(results, expected, options.tolerance));
  return writeStdout("[SUCCESS] all results are as expected\n");
}

} // namespace

int kf::runExec(Arguments arguments) {
  ExecOptions options;
  OptionParser parser("exec FILE.mlir [options]",
                      "Compiles a function of kf ops, runs it, and prints or "
                      "checks its results.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  for (const std::string &output : options.outputs)
    if (output == "@-" ||
        (output != "-" && (!output.starts_with('@') || output.size() == 1)))
      return parser.usageError("--output takes @FILE.npy or -, not " +
                               inQuotes(output));
  for (const std::string &output : options.outputs)
    if (Status status = checkOutput(output == "-" ? output : output.substr(1));
        !status.ok())
      return report(status);
  return report(exec(options));
}
