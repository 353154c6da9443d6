//===- CompileBenchmark.cpp - How long compiling a model takes ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a model's configuration to an executable for this CPU, which is what
// `kf-run emit-mlir --compile-to=binary` does and what the executable cache
// saves. Weights are described alone: compiling reads none.
//
//===----------------------------------------------------------------------===//

#include "kf/Import/Import.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/NamedConfigs.h"

#include "mlir/IR/MLIRContext.h"
#include <benchmark/benchmark.h>

using namespace kf;

namespace {

Status compileStep(const ModelConfig &config, const WeightSource &weights,
                   const StepShape &shape) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry);
  mlir::kf::ImportOptions options;
  options.shape = shape;
  options.cacheType = DataType::F16;
  auto module = mlir::kf::importStep(context, config, weights, options);
  if (!module)
    return Status::error(llvm::toString(module.takeError()));
  auto executable = mlir::kf::compile(**module, {});
  if (!executable)
    return Status::error(llvm::toString(executable.takeError()));
  benchmark::DoNotOptimize(executable->serialize());
  return Status();
}

Status compileSteps(benchmark::State &state, const char *model, DataType type) {
  const NamedConfig *named = findNamedConfig(model);
  if (!named)
    return Status::error(std::string("there is no model called ") + model);
  KF_ASSIGN_OR_RETURN(const ModelConfig config, parseModelConfig(named->json));
  KF_ASSIGN_OR_RETURN(const auto weights,
                      DummyWeights::create(config, type, 0));
  // What one sequence needs.
  for (auto _ : state)
    for (const StepShape &shape :
         {StepShape{StepPart::Body, state.range(0)},
          StepShape{StepPart::Head, 1}, StepShape{StepPart::Choose, 1}})
      KF_RETURN_IF_ERROR(compileStep(config, *weights, shape));
  return Status();
}

void addModel(const char *model, DataType type) {
  const std::string name =
      std::string("compile/") + model + "/" + std::string(nameOf(type));
  benchmark::RegisterBenchmark(
      name.c_str(),
      [model, type](benchmark::State &state) {
        if (Status status = compileSteps(state, model, type); !status.ok())
          state.SkipWithError(status.message().c_str());
      })
      ->ArgName("tokens")
      ->Arg(1)
      ->Arg(512)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

} // namespace

int main(int argc, char **argv) {
  for (const char *model : {"tinyllama-1.1b", "llama-3.2-1b", "llama-3-8b"})
    for (DataType type : {DataType::BF16, DataType::Q4_0})
      addModel(model, type);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
