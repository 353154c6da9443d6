//===- ProgramFiles.h - A model's programs, compiled ahead ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_PROGRAMFILES_H
#define KF_RUNTIME_ENGINE_PROGRAMFILES_H

#include "runtime/engine/ModelFiles.h"
#include "runtime/model/Step.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Reads the file of an Executable. Errors name the file.
Result<Executable> readExecutable(const std::string &path);

/// Parts of one model's steps that files hold: what a StepProvider gives where
/// nothing is compiled.
class ProgramFiles {
public:
  /// Reads the files at `paths`. Errors, which name the file: one that holds no
  /// part of a step of `model`, or one for another device than `device` (a
  /// Device::name()); two that hold the same, or that keep keys and values in
  /// different ways; a part that none is of, but for what makes embeddings; a
  /// choice without the head of as many rows.
  static Result<ProgramFiles> open(std::span<const std::string> paths,
                                   const ModelFiles &model,
                                   std::string_view device);

  /// What there is, in order.
  std::vector<StepShape> shapes() const;
  /// The KV caches of all bodies.
  const std::vector<CacheSpec> &caches() const {
    return programs.begin()->second.caches;
  }
  /// The program of `shape`. Errors: one that there is no file of.
  Result<Executable> get(const StepShape &shape) const;

private:
  Status add(const std::string &path, const ModelFiles &model,
             const std::string &modelKey, std::string_view device);
  bool hasBody() const {
    return !programs.empty() && programs.begin()->first.part == StepPart::Body;
  }
  Status checkWhole() const;

  std::map<StepShape, Executable> programs;
  std::map<StepShape, std::string> origins; ///< paths of the files
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_PROGRAMFILES_H
