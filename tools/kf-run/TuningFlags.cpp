//===- TuningFlags.cpp - The option --tuning-db ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TuningFlags.h"

using namespace kf;

void TuningFlags::addTo(OptionParser &parser) {
  parser.text({"tuning-db", 0, "FILE|none"}, file,
              "the file of measured schedules, which 'kf-run tune' writes; by "
              "default tuning.json beside the cache of compiled programs, if "
              "it is there");
  parser.addCheck([this] { return check(); });
}

Status TuningFlags::check() const {
  if (file != "-")
    return Status();
  return Status::error("--tuning-db takes the path of a file; ./- is one that "
                       "is called so");
}
