//===- FuzzTokenizer.cpp - Any bytes as a tokenizer.json ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerUse.h"

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view json(reinterpret_cast<const char *>(data), size);
  useTokenizer(Tokenizer::fromJson(json, "fuzz"));
  return 0;
}
