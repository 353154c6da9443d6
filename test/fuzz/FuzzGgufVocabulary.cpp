//===- FuzzGgufVocabulary.cpp - Any bytes as a GGUF vocabulary ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerUse.h"

#include "runtime/io/Gguf.h"

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = Gguf::parse(
      std::as_bytes(std::span(reinterpret_cast<const char *>(data), size)),
      "fuzz");
  if (file.ok())
    useTokenizer(Tokenizer::fromGguf(**file));
  return 0;
}
