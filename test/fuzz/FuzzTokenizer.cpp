//===- FuzzTokenizer.cpp - Any bytes as a tokenizer.json ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view json(reinterpret_cast<const char *>(data), size);
  auto tokenizer = Tokenizer::fromJson(json, "fuzz");
  if (!tokenizer.ok())
    return 0;
  auto ids = tokenizer->encode("It's  12 <s>\xff\xc3 \u00e9\u2003abc\n", true);
  if (ids.ok())
    (void)tokenizer->decode(*ids, false);
  return 0;
}
