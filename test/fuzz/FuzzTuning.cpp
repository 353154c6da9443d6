//===- FuzzTuning.cpp - Any bytes as a tuning database --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TuningDatabase.h"

#include <cstdlib>

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto database = TuningDatabase::parse(
      {reinterpret_cast<const char *>(data), size}, "fuzz");
  if (!database.ok())
    return 0;
  // What is accepted can be inserted, found, and read again as it is written.
  TuningDatabase copy;
  for (const TuningEntry &entry : database->list())
    if (!copy.insert(entry).ok() || !copy.find(entry.key))
      std::abort();
  const std::string text = database->serialize();
  auto again = TuningDatabase::parse(text, "again");
  if (!again.ok() || again->serialize() != text || copy.serialize() != text)
    std::abort();
  return 0;
}
