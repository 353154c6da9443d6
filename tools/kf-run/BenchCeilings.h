//===- BenchCeilings.h - What a test is held against ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_BENCHCEILINGS_H
#define KF_TOOLS_KF_RUN_BENCHCEILINGS_H

#include "BenchTest.h"

#include "runtime/measure/Ceilings.h"
#include "runtime/model/ModelWork.h"

#include <memory>
#include <optional>
#include <string_view>

namespace kf {

/// What bounds a test: the rate, in its unit, and the least seconds that a run
/// can take with it.
struct BenchCeiling {
  double rate = 0;
  std::string_view unit; ///< "GB/s", "GFLOP/s", "GOP/s", "t/s"
  double seconds = 0;
};

/// Measures a device beside the tests that it runs. One thread.
class BenchCeilings {
public:
  /// For tests of `work` on `device`, which must outlive this, and those of
  /// `ranks` - 1 other ranks like it, that read up to `mostBytes` a step.
  /// Errors: those of measuring.
  static Result<BenchCeilings> create(Device &device, int64_t ranks,
                                      const ModelWork &work, double mostBytes);

  /// Before a test's runs.
  Status begin(const BenchTest &test);
  /// After them, with the engine that made them: the better of both times
  /// counts. Nothing where what would bound the test is not known of the
  /// device.
  Result<std::optional<BenchCeiling>> end(const Engine &engine);
  /// Whether others had cores both times.
  bool wasDisturbed() const { return disturbed; }

private:
  explicit BenchCeilings(const ModelWork &work) : work(work) {}
  Status measure();
  /// By the units of the machine that are fastest for each type of weights.
  std::optional<BenchCeiling> boundOf(const StepWork &amount,
                                      bool isPrompt) const;

  const ModelWork &work;
  std::unique_ptr<HostCeilings> host; ///< null: another device
  MachineRates rates;
  bool disturbed = false;
  BenchTest test;
};

/// Bytes that a step of `test` reads when its sequences are longest.
double mostStepBytes(const ModelWork &work, const BenchTest &test);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_BENCHCEILINGS_H
