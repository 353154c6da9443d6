//===- FuzzEval.cpp - Any bytes as a report of kf-run eval ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalComparison.h"

#include <cstdlib>

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<EvalReport> report =
      parseEvalReport({reinterpret_cast<const char *>(data), size});
  if (!report.ok()) {
    if (report.message().empty())
      std::abort();
    return 0;
  }
  // What is accepted is read again as it is written, and printed.
  const std::string text = toJson(*report);
  Result<EvalReport> again = parseEvalReport(text);
  if (!again.ok() || toJson(*again) != text ||
      tableOf(*again) != tableOf(*report))
    std::abort();
  // It has all that it has itself, if it has anything.
  const Result<EvalComparison> comparison =
      compareReports(*report, *again, EvalThresholds());
  const bool isEmpty = report->kernels.empty() && !report->fidelity;
  if (comparison.ok() == isEmpty)
    std::abort();
  if (comparison.ok() && (comparison->onlyBaseline || comparison->onlyNow))
    std::abort();
  return 0;
}
