//===- Function.cpp - A function of kf ops, compiled ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Function.h"

#include "kf/Driver/CompiledSession.h"
#include "runtime/core/Quote.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/text/Utf8.h"

#include <utility>

using namespace kf;
using namespace kf::python;

/// What errors call the text.
static constexpr const char *kTextName = "<mlir>";

Result<Executable> Function::compile() {
  KF_ASSIGN_OR_RETURN(CompilerModule module,
                      CompilerModule::parseText(options.text, kTextName,
                                                options.name, /*single=*/true));
  KF_ASSIGN_OR_RETURN(
      CompilerOptions compiler,
      compilerOptionsFor(CompileChoice(), *device, &cancelled, &told));
  compiler.maxTokens = options.maxTokens;
  return module.compile(compiler);
}

Status Function::open() {
  const std::scoped_lock lock(running);
  if (!options.weights.empty()) {
    KF_ASSIGN_OR_RETURN(source, openModelWeights(options.weights));
  }
  KF_ASSIGN_OR_RETURN(device, openDevice(options.device, &told));
  KF_ASSIGN_OR_RETURN(const Executable program, compile());
  if (!program.caches.empty())
    return Status::error("the function takes a KV cache, which is a model's: "
                         "'kf-run exec' runs it",
                         StatusCode::Unsupported);
  if (!source && !program.weights.empty())
    return Status::error("the function reads weight " +
                         inQuotes(program.weights.front().names.front()) +
                         "; give its file as 'weights'");
  programName = toValidUtf8(program.programName);
  deviceText = device->name();
  inputSpecs = program.inputs;
  outputSpecs = program.outputs;
  weights = std::make_unique<WeightStore>(*device, source.get());
  cache = std::make_unique<KVCache>(*device, /*pages=*/1, kCachePage);
  KF_ASSIGN_OR_RETURN(
      runner, ProgramRunner::create(program, *device, *weights, *cache));
  return Status();
}

void Function::close() {
  cancelled = true;
  if (!process.isThis()) {
    forget(runner);
    forget(cache);
    forget(weights);
    forget(source);
    forget(device);
    return;
  }
  const std::scoped_lock lock(running);
  if (!device)
    return;
  runOnOwnThread([this] {
    runner.reset();
    cache.reset();
    weights.reset();
    source.reset();
    device.reset();
  });
}

Result<std::vector<HostTensor>>
Function::run(std::span<const HostTensor> tensors) {
  KF_RETURN_IF_ERROR(process.check("the function"));
  const std::scoped_lock lock(running);
  if (!runner)
    return Status::error("the function is closed", StatusCode::Cancelled);
  return runner->run(tensors);
}
