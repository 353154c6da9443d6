//===- MeasuredCeilings.cpp - Ceilings, and whether they hold -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MeasuredCeilings.h"

#include "Report.h"

using namespace kf;

/// Null: there is no compiler.
static Result<Executable> (*copyCompiler)(const Device &device,
                                          int64_t rows) = nullptr;

void kf::installCopyCompiler(Result<Executable> (*compile)(const Device &device,
                                                           int64_t rows)) {
  copyCompiler = compile;
}

void kf::warnOfLowCeilings() {
  printWarning("the machine was busy; ceilings may be too low");
}

Result<MachineRates> kf::measureCeilings(Device &device, CeilingOptions options,
                                         bool *disturbed) {
  bool wasDisturbed = false;
  options.copyProgram = copyCompiler;
  Result<MachineRates> rates = measureRates(device, options, &wasDisturbed);
  if (disturbed)
    *disturbed = wasDisturbed;
  else if (rates.ok() && wasDisturbed)
    warnOfLowCeilings();
  return rates;
}
