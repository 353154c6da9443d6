//===- KernelMeasurer.cpp - A search's candidates on a device -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelMeasurer.h"

#include "runtime/core/Exceptions.h"

#include <cassert>

using namespace kf;

std::vector<std::string> kf::namesOfCases(std::span<const int64_t> tokens) {
  std::vector<std::string> names;
  for (int64_t count : tokens)
    names.push_back("with " + std::to_string(count) +
                    (count == 1 ? " row" : " rows"));
  return names;
}

Result<CandidateMeasurer::Verdict>
KernelMeasurer::prepare(size_t candidate) try {
  KF_ASSIGN_OR_RETURN(Executable executable, compile(candidate));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<KernelVariant> variant,
                      runner.load(executable));
  KF_ASSIGN_OR_RETURN(ResultDifference difference, variant->check());
  if (difference.agrees)
    variants[candidate] = std::move(variant);
  return Verdict{difference.agrees, difference.largest,
                 std::move(difference.complaint)};
} catch (...) {
  return statusOfException();
}

Result<std::vector<double>>
KernelMeasurer::measure(size_t candidate, size_t inCase, int64_t runs) {
  auto found = variants.find(candidate);
  assert(found != variants.end() && "a candidate that is not ready");
  const int64_t tokens =
      inCase == 0 ? runner.kernelCase().tokens : fewerTokens[inCase - 1];
  return found->second->measure(runs, cancelled, tokens);
}
