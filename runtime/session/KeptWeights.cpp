//===- KeptWeights.cpp - Packed weights of a session's models -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/KeptWeights.h"

#include "runtime/core/Quote.h"
#include "runtime/program/ExecutableCache.h"
#include "runtime/program/ProgramIdentity.h"

using namespace kf;

Status kf::keepPacked(const PackedCache *cache, const ModelFiles &files,
                      const Device &device, Observer *observer,
                      ModelOptions &options) {
  if (!cache)
    return Status();
  auto warn = [&](const std::string &why) {
    if (observer)
      observer->onWarning("the packed weights of " + inQuotes(files.name) +
                          " are not kept: " + why);
    return Status();
  };
  if (device.name() != "cpu")
    return warn("--packed-cache is for --device cpu, and this is " +
                device.name());
  PackedSource source = {.identity = {},
                         .model = files.name,
                         .files = files.weights->mappedFiles()};
  if (source.files.empty())
    return warn("--packed-cache is for models whose weights are in files, "
                "without adapters");
  KF_ASSIGN_OR_RETURN(const std::string program, programIdentity());
  // What packing does, and what it is told to do.
  source.identity = hashKey({program}) + ' ' + modelKeyOf(files) + '\n';
  options.packed = cache;
  options.packedFrom = std::move(source);
  return Status();
}
