//===- StepCompiler.cpp - Steps from the cache or the compiler ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepCompiler.h"

#include "Progress.h"
#include "Report.h"

#include "runtime/program/ProgramIdentity.h"

using namespace kf;

Result<StepCompiler> StepCompiler::create(const ModelFiles &model,
                                          CompilerOptions options,
                                          bool useCache) {
  StepCompiler result(model, std::move(options));
  KF_ASSIGN_OR_RETURN(result.fingerprint, compilerFingerprint(result.options));
  if (!useCache)
    return result;
  if (Status status = result.openCache(); !status.ok())
    printWarning(status.message() + "; going on without the executable cache");
  return result;
}

Status StepCompiler::openCache() {
  KF_ASSIGN_OR_RETURN(std::string folder, ExecutableCache::defaultFolder());
  KF_ASSIGN_OR_RETURN(uint64_t limit, ExecutableCache::defaultLimit());
  // No program outlives the compiler that made it.
  KF_ASSIGN_OR_RETURN(identity, programIdentity());
  signature = signatureOf(*model);
  ExecutableCache opened(
      folder, [](const std::string &line) { printWarning(line); }, limit);
  KF_RETURN_IF_ERROR(opened.prepare());
  if (Status status = opened.checkWritable(); !status.ok()) {
    printWarning(status.message() + "; compiled programs are not kept");
    keeps = false;
  }
  cache.emplace(std::move(opened));
  return Status();
}

std::string StepCompiler::keyOf(const StepShape &shape) const {
  return hashKey({signature, nameOf(shape), options.cacheType,
                  options.activationType, fingerprint, identity});
}

Result<Executable> StepCompiler::compile(const StepShape &shape) {
  std::string key;
  if (cache) {
    key = keyOf(shape);
    KF_ASSIGN_OR_RETURN(std::optional<Executable> found, cache->lookup(key));
    if (found) {
      ++cachedCount;
      return std::move(*found);
    }
  }
  const Progress progress("compiling " + nameOf(shape));
  Result<CompilerModule> module =
      CompilerModule::import(model->config, *model->weights, shape, options);
  if (!module.ok())
    return nameModel(*model, module.status());
  KF_ASSIGN_OR_RETURN(Executable executable, module->compile(options));
  ++compiledCount;
  if (cache && keeps)
    KF_RETURN_IF_ERROR(cache->store(key, executable));
  return executable;
}
