//===- FuzzSentencePiece.cpp - Any bytes as a tokenizer.model -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerUse.h"

using namespace kf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view model(reinterpret_cast<const char *>(data), size);
  useTokenizer(Tokenizer::fromSentencePiece(model, "fuzz"));
  return 0;
}
