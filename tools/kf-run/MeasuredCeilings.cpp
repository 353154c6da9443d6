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

void kf::warnOfLowCeilings() {
  printWarning("the machine was busy; ceilings may be too low");
}

Result<MachineRates> kf::measureCeilings(Device &device,
                                         const CeilingOptions &options) {
  bool disturbed = false;
  Result<MachineRates> rates = measureRates(device, options, &disturbed);
  if (rates.ok() && disturbed)
    warnOfLowCeilings();
  return rates;
}
