//===- CompiledSession.h - Sessions whose steps are compiled ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a program needs that opens a model and compiles it, and all that it
// needs: no header of MLIR, no command line.
//
//   SessionOptions options;
//   options.model.path = "model.gguf";
//   std::unique_ptr<Session> session = openSession(options).take();
//   session->start({.parallel = 8});
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_COMPILEDSESSION_H
#define KF_DRIVER_COMPILEDSESSION_H

#include "kf/Driver/Compiler.h"
#include "runtime/session/Session.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

/// How a model is compiled.
struct CompileChoice {
  /// Elements of the KV cache: f32, f16, bf16 or q8_0; empty:
  /// defaultCacheType().
  std::string cacheType = {};
  /// Elements of what kernels hand on to one another: f32, f16 or bf16.
  std::string activationType = "f32";
  /// LLVM's name of the CPU or GPU to compile for; or "native".
  std::string targetCpu = "native";
  /// The file of measured schedules, or "none"; nothing:
  /// TuningDatabase::defaultPath(), if it is there.
  std::optional<std::string> tuningFile = std::nullopt;
  /// Programs come from the executable cache, and are kept there.
  bool useCache = true;
};

/// What to compile a model with, to run on `device`. `cancelled` and `observer`
/// may be null, and must outlive what is returned. Errors:
/// loadMeasuredSchedules()'s, a type that there is not, and a CPU that this
/// machine is not.
Result<CompilerOptions> compilerOptionsFor(const CompileChoice &choice,
                                           const Device &device,
                                           CancelFlag cancelled,
                                           Observer *observer);

/// Steps that are compiled when they are needed, or come from the cache.
/// `onOptions`, unless it is empty, is told what they are compiled with once
/// that is known: when the session is opened.
OpenSteps
compileSteps(CompileChoice choice,
             std::function<void(const CompilerOptions &)> onOptions = {});

/// Opens a model on any device, with steps that are compiled; `openEmbedded` is
/// for the model that the program carries.
Result<std::unique_ptr<Session>>
openSession(SessionOptions options, const CompileChoice &choice = {},
            OpenEmbedded openEmbedded = nullptr);

} // namespace kf

#endif // KF_DRIVER_COMPILEDSESSION_H
