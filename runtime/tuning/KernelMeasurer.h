//===- KernelMeasurer.h - A search's candidates on a device -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_KERNELMEASURER_H
#define KF_RUNTIME_TUNING_KERNELMEASURER_H

#include "runtime/tuning/KernelRunner.h"
#include "runtime/tuning/Search.h"

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// The names of cases of so many rows each: "with 1 row".
std::vector<std::string> namesOfCases(std::span<const int64_t> tokens);

/// Compiles each candidate, compares it with the reference and measures it.
class KernelMeasurer final : public CandidateMeasurer {
public:
  using Compile = std::function<Result<Executable>(size_t candidate)>;

  /// `runner` must outlive it. The other cases are those of `fewerTokens`, the
  /// first rows of the runner's case. Candidates are compared with the
  /// reference in that alone, which runs them with few rows and with all.
  KernelMeasurer(KernelRunner &runner, Compile compile,
                 CancelFlag cancelled = nullptr,
                 std::vector<int64_t> fewerTokens = {})
      : runner(runner), compile(std::move(compile)), cancelled(cancelled),
        fewerTokens(std::move(fewerTokens)) {}

  Result<Verdict> prepare(size_t candidate) override;
  std::vector<std::string> otherCases() const override {
    return namesOfCases(fewerTokens);
  }
  Result<std::vector<double>> measure(size_t candidate, size_t inCase,
                                      int64_t runs) override;
  bool wasDisturbed() const override { return runner.wasDisturbed(); }
  void release(size_t candidate) override { variants.erase(candidate); }

private:
  KernelRunner &runner;
  Compile compile;
  CancelFlag cancelled;
  std::vector<int64_t> fewerTokens;
  std::map<size_t, std::unique_ptr<KernelVariant>> variants; ///< by candidate
};

} // namespace kf

#endif // KF_RUNTIME_TUNING_KERNELMEASURER_H
