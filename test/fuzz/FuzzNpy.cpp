//===- FuzzNpy.cpp - Any bytes as a .npy file -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include <cstdlib>

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tensor = parseNpy(std::as_bytes(std::span(data, size)));
  if (!tensor.ok())
    return 0;
  // What is read can be written, and reads back the same.
  auto bytes = formatNpy(*tensor);
  if (!bytes.ok())
    return 0; // more dimensions than format 1 has room for
  auto back = parseNpy(std::as_bytes(std::span(*bytes)));
  if (!back.ok() || back->shape != tensor->shape ||
      back->type != tensor->type || back->bytes != tensor->bytes)
    std::abort();
  return 0;
}
