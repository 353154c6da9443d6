//===- Exec.cpp - kf-run exec ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "ProgramExec.h"
#include "Report.h"
#include "TuningFlags.h"

#include "kf/Driver/Compiler.h"
#include "kf/Driver/MeasuredSchedules.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/engine/ProgramFiles.h"
#include "runtime/io/Gguf.h"

#include <algorithm>
#include <filesystem>

using namespace kf;

namespace {

struct ExecOptions {
  std::string file, function, targetCpu = "native";
  int64_t maxTokens = 0;
  ExecFlags run;
  TuningFlags tuning;

  void addTo(OptionParser &parser) {
    parser.positional("FILE.mlir", true, file, "functions of kf ops, as text");
    parser.text({"function", 0, "NAME"}, function,
                "which function of the file; its only one by default");
    run.addTo(parser);
    parser.integer({"max-tokens", 0, "N"}, maxTokens, 1, int64_t(1) << 24,
                   "the largest `?` to compile for; by default the inputs' "
                   "and at least 512");
    parser.text({"target-cpu", 0, "CPU"}, targetCpu,
                "LLVM's name of the CPU or GPU to compile for; native by "
                "default");
    tuning.addTo(parser);
  }
};

/// The i32 elements of an input; nothing where it is of another type, which the
/// runner reports.
std::span<const int32_t> intsOf(std::span<const HostTensor> inputs,
                                size_t index) {
  if (index >= inputs.size() || inputs[index].type != DataType::I32)
    return {};
  return {inputs[index].data<int32_t>(),
          inputs[index].bytes.size() / sizeof(int32_t)};
}

Status failOf(size_t input, const std::string &message) {
  return Status::error("input " + std::to_string(input) + " has " + message);
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
  for (size_t row = 0; row < positions.size(); ++row) {
    const int64_t position = positions[row], sequence = sequences[row];
    if (position < 0)
      continue;
    if (position / use.page >= tablePages)
      return failOf(use.positions, "the position " + std::to_string(position) +
                                       ", but the page table, input " +
                                       std::to_string(use.pageTable) +
                                       ", has room for " +
                                       std::to_string(tablePages * use.page));
    if (sequence < 0 || sequence >= count)
      return failOf(use.sequences, "the sequence " + std::to_string(sequence) +
                                       ", but the page table, input " +
                                       std::to_string(use.pageTable) +
                                       ", has " + std::to_string(count));
    const int64_t first =
        use.isAttention ? use.window.firstOf(position) : position;
    for (int64_t i = first / use.page; i <= position / use.page; ++i) {
      const int64_t page = table[sequence * tablePages + i];
      if (page < 0 || page >= pages)
        return failOf(use.pageTable, "the page " + std::to_string(page) +
                                         ", but KV caches have " +
                                         std::to_string(pages) + " of " +
                                         std::to_string(use.page) +
                                         " positions; --context N makes more");
    }
  }
  return Status();
}

/// An error where a row is of no sequence, or at no position of one, or where
/// its state is not in a slot that a cache beside `pages` pages has.
Status checkStateUse(std::span<const HostTensor> inputs, const StateUse &use,
                     int64_t pages) {
  const auto positions = intsOf(inputs, use.positions),
             sequences = intsOf(inputs, use.sequences),
             states = intsOf(inputs, use.states);
  // The runner says what is wrong with them.
  if (positions.size() != sequences.size() || states.empty())
    return Status();
  const int64_t count = std::ssize(states),
                slots = CacheSpec{.slotPages = use.slotPages}.slots(pages);
  for (size_t row = 0; row < positions.size(); ++row) {
    const int64_t position = positions[row], sequence = sequences[row];
    if (position < 0)
      return failOf(use.positions, "the position " + std::to_string(position) +
                                       ", but rows whose states are kept have "
                                       "positions from 0 on");
    if (sequence < 0 || sequence >= count)
      return failOf(use.sequences, "the sequence " + std::to_string(sequence) +
                                       ", but the states, input " +
                                       std::to_string(use.states) +
                                       ", are of " + std::to_string(count));
    const int64_t slot = states[static_cast<size_t>(sequence)];
    if (slot < 0 || slot >= slots)
      return failOf(use.states, "the slot " + std::to_string(slot) +
                                    ", but caches of states have " +
                                    std::to_string(slots) +
                                    "; --context N makes more");
  }
  return Status();
}

/// `error` of a file without functions, with what to type for it.
Status explain(Status error, const std::string &path) {
  const std::string takes =
      "exec takes functions of kf ops, as MLIR's text; 'kf-run emit-mlir MODEL "
      "-o FILE.mlir' writes those of a model";
  const Result<MappedFile> file = MappedFile::open(path);
  if (file.ok() && Gguf::recognize(file->bytes()))
    return Status::error(quotePath(path) +
                         " is a model, which 'kf-run "
                         "generate MODEL' runs; " +
                         takes);
  if (file.ok() && readExecutable(path).ok())
    return Status::error(quotePath(path) +
                         " is a compiled program, which 'kf-exec run FILE' "
                         "runs; " +
                         takes);
  std::error_code none;
  if (file.ok() ? file->text().find("func.func") != std::string_view::npos
                : !std::filesystem::is_directory(path, none))
    return error;
  return Status::error(error.message() + "; " + takes, error.code());
}

Status exec(const ExecOptions &options) {
  KF_ASSIGN_OR_RETURN(const ExecData data, readExecData(options.run));
  Result<CompilerModule> parsed =
      CompilerModule::parse(options.file, options.function, true);
  if (!parsed.ok())
    return explain(parsed.status(), options.file);
  CompilerModule module = parsed.take();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openExecDevice(options.run, module.ranks()));

  CompilerOptions compiler;
  compiler.target = targetFor(*device, options.targetCpu);
  compiler.targetCpu = options.targetCpu;
  compiler.workers = device->workers();
  compiler.device = device->description();
  compiler.onWarning = [](const std::string &line) { printWarning(line); };
  KF_RETURN_IF_ERROR(checkRunsOnHost(compiler));
  KF_RETURN_IF_ERROR(loadMeasuredSchedules(options.tuning.file, compiler));
  for (const HostTensor &input : data.inputs)
    if (!input.shape.empty())
      compiler.maxTokens = std::max(compiler.maxTokens, input.shape.front());
  if (options.maxTokens)
    compiler.maxTokens = options.maxTokens;
  const std::vector<CacheUse> cacheUses = module.cacheUses();
  const std::vector<StateUse> stateUses = module.stateUses();
  KF_ASSIGN_OR_RETURN(Executable executable, module.compile(compiler));
  const int64_t pages = cachePages(executable, options.run.context);
  for (const CacheUse &use : cacheUses)
    KF_RETURN_IF_ERROR(checkCacheUse(data.inputs, use, pages));
  for (const StateUse &use : stateUses)
    KF_RETURN_IF_ERROR(checkStateUse(data.inputs, use, pages));
  return execProgram(options.run, std::move(executable), data,
                     std::move(device));
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
  if (std::optional<int> code = options.run.checkOutputs(parser))
    return *code;
  return report(exec(options));
}
