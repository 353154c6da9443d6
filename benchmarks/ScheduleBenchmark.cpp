//===- ScheduleBenchmark.cpp - All schedules of a kernel, measured --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures every candidate of the only kernel of a file on this CPU, but those
// that ask for lines of weights in other ways than the default, and prints a
// table as JSON: what the test of the cost model compares its predictions with
// (test/Target/LLVMCPU/Inputs/schedules).
//
//   kf_schedule_benchmark [--threads N] [--depth N] [--seconds S] [--wait]
//                         FILE.mlir > FILE.json
//
// --seconds is how long measuring may take; all candidates are measured twice
// in turns, and then, again and again, the default and the quarter that was the
// fastest so far.
// --depth is how many positions a cache holds before the first row. With --wait
// everything is compiled, and measuring begins when a line can be read, so that
// a busy machine can be made quiet first.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/InputRoles.h"
#include "kf/Pipelines/KernelModules.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "runtime/measure/Ceilings.h"
#include "runtime/tuning/KernelRunner.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <iostream>
#include <numeric>

using namespace kf;
using mlir::kf::KernelModule;

namespace {

/// Bytes of weights that decoding goes round: more than caches hold.
constexpr uint64_t kRotateBytes = uint64_t(384) << 20;
/// Rows up to which reading weights is what takes time.
constexpr int64_t kFewRows = 16;
/// Candidates that are measured up to the end, if there are so many.
constexpr size_t kStay = 16;

struct Options {
  std::string file;
  int64_t threads = 1, depth = 0;
  double seconds = 30;
  bool waits = false;
};

struct Candidate {
  std::string schedule;
  std::unique_ptr<KernelVariant> variant;
  double seconds = 1e30; ///< the least of all runs
};

int fail(const std::string &message) {
  llvm::errs() << "error: " << message << "\n";
  return 1;
}

std::optional<Options> parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--wait")
      options.waits = true;
    else if (argument == "--threads")
      options.threads = std::atoll(value), ++i;
    else if (argument == "--depth")
      options.depth = std::atoll(value), ++i;
    else if (argument == "--seconds")
      options.seconds = std::atof(value), ++i;
    else
      options.file = argument;
  }
  if (options.file.empty() || options.threads < 1)
    return std::nullopt;
  return options;
}

/// Measures in turns until the time is over, the fastest at least three times.
Status measure(std::vector<Candidate> &candidates, double seconds) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t(0));
  Stopwatch watch;
  for (int round = 0; round < 3 || watch.seconds() < seconds; ++round) {
    if (round == 2) {
      // The default first, which stays.
      std::ranges::sort(order.begin() + 1, order.end(), {},
                        [&](size_t i) { return candidates[i].seconds; });
      order.resize(std::min(order.size(), std::max(kStay, order.size() / 4)));
    }
    for (size_t i : order) {
      // Short kernels run more often, so that a disturbance ends meanwhile.
      const double known = std::min(candidates[i].seconds, 1.0);
      const int64_t runs =
          round == 0 ? 1 : std::clamp<int64_t>(0.01 / known, 1, 50);
      KF_ASSIGN_OR_RETURN(std::vector<double> samples,
                          candidates[i].variant->measure(runs));
      candidates[i].seconds =
          std::min(candidates[i].seconds, *std::ranges::min_element(samples));
    }
  }
  return Status();
}

/// How the schedule asks for lines of a weight, which predictions do not tell.
mlir::kf::PrefetchKind prefetchOf(const std::string &schedule,
                                  mlir::MLIRContext &context) {
  return mlir::cast<mlir::kf::VectorScheduleAttr>(
             mlir::parseAttribute(schedule, &context))
      .getPrefetch();
}

void print(const KernelModule &kernel, const std::string &target,
           const MachineRates &rates, std::vector<Candidate> &candidates) {
  llvm::json::OStream json(llvm::outs(), 1);
  auto number = [&](const char *key, double value) {
    json.attributeBegin(key);
    json.rawValue(
        [&](llvm::raw_ostream &out) { out << llvm::format("%.4g", value); });
    json.attributeEnd();
  };
  json.object([&] {
    json.attribute("kernel", kernel.name);
    json.attribute("rows", kernel.rows);
    json.attribute("target", target);
    json.attributeObject("machine", [&] {
      number("read_bytes_per_second", rates.readBytesPerSecond);
      number("f32_flops_per_second", rates.f32FlopsPerSecond);
      number("i8_ops_per_second", rates.i8OpsPerSecond);
      number("bf16_flops_per_second", rates.bf16FlopsPerSecond);
      json.attribute("threads", rates.threads);
    });
    json.attributeArray("candidates", [&] {
      for (const Candidate &candidate : candidates)
        json.object([&] {
          json.attribute("schedule", candidate.schedule);
          number("seconds", candidate.seconds);
        });
    });
  });
  llvm::outs() << "\n";
}

int run(const Options &options) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::ParserConfig config(&context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(options.file, config);
  if (!module)
    return 1; // reported
  mlir::kf::CompileOptions compiler;
  compiler.workers = options.threads;
  if (llvm::Error error = mlir::kf::runPhases(
          *module, compiler, mlir::kf::Phase::Import, mlir::kf::Phase::Program))
    return fail(llvm::toString(std::move(error)));
  auto kernels = mlir::kf::splitKernels(*module);
  if (!kernels)
    return fail(llvm::toString(kernels.takeError()));
  if (kernels->size() != 1)
    return fail("the file makes " + std::to_string(kernels->size()) +
                " kernels; write a function of one");
  const KernelModule &kernel = kernels->front();

  CpuDeviceOptions deviceOptions;
  deviceOptions.threads = static_cast<int>(options.threads);
  auto device = createCpuDevice(deviceOptions);
  if (!device.ok())
    return fail(device.message());
  auto reference = createReferenceDevice();

  mlir::kf::CompileOptions forReference;
  forReference.target = "reference";
  auto program = mlir::kf::compile(kernel, "", forReference);
  if (!program)
    return fail(llvm::toString(program.takeError()));
  KernelCase kernelCase;
  kernelCase.tokens = kernel.rows;
  kernelCase.depth = options.depth;
  for (auto op : kernel.module.get().getOps<mlir::kf::ProgramOp>())
    kernelCase.inputs = mlir::kf::getInputRoles(op);
  KernelRunnerOptions runnerOptions;
  runnerOptions.rotateBytes = kernel.rows <= kFewRows ? kRotateBytes : 0;
  auto runner = KernelRunner::create(**device, *reference, *program, kernelCase,
                                     runnerOptions);
  if (!runner.ok())
    return fail(runner.message());

  auto listed = mlir::kf::scheduleCandidates(kernel, compiler, {});
  if (!listed)
    return fail(llvm::toString(listed.takeError()));
  std::vector<Candidate> candidates;
  const mlir::kf::PrefetchKind prefetch =
      prefetchOf(listed->front().schedule, context);
  for (const mlir::kf::ScheduleCandidate &each : *listed) {
    if (prefetchOf(each.schedule, context) != prefetch)
      continue;
    auto executable = mlir::kf::compile(kernel, each.schedule, compiler);
    if (!executable)
      return fail(each.schedule + ": " +
                  llvm::toString(executable.takeError()));
    auto variant = (*runner)->load(*executable);
    if (!variant.ok())
      return fail(each.schedule + ": " + variant.message());
    auto difference = (*variant)->check();
    if (!difference.ok())
      return fail(each.schedule + ": " + difference.message());
    if (!difference->agrees)
      return fail(each.schedule + ": " + difference->complaint);
    candidates.push_back({each.schedule, variant.take()});
  }

  auto laidOut = mlir::kf::layOut(kernel, compiler);
  if (!laidOut)
    return fail(llvm::toString(laidOut.takeError()));
  const std::string target = mlir::debugString(
      (*laidOut)->getOperation()->getAttr(mlir::kf::kTargetAttrName));
  llvm::errs() << options.file << ": " << candidates.size()
               << " candidates compiled\n";
  if (options.waits)
    std::cin.get();
  CeilingOptions ceilingOptions;
  ceilingOptions.seconds = 0.05;
  auto ceilings =
      HostCeilings::create(static_cast<int>(options.threads), ceilingOptions);
  if (!ceilings.ok())
    return fail(ceilings.message());
  auto rates = (*ceilings)->measure();
  if (!rates.ok())
    return fail(rates.message());
  if (Status status = measure(candidates, options.seconds); !status.ok())
    return fail(status.message());
  print(kernel, target, *rates, candidates);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (std::optional<Options> options = parse(argc, argv))
    return run(*options);
  return fail("usage: kf_schedule_benchmark [--threads N] [--depth N] "
              "[--seconds S] [--wait] FILE.mlir > FILE.json");
}
