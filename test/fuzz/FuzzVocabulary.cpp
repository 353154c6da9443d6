//===- FuzzVocabulary.cpp - Any bytes as a vocabulary ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenizerUse.h"

#include "runtime/io/Gguf.h"

using namespace kf;

/// A GGUF file, or else a tokenizer.model.
static Result<Tokenizer> open(std::string_view bytes) {
  std::span<const std::byte> file = std::as_bytes(std::span(bytes));
  if (!Gguf::recognize(file))
    return Tokenizer::fromSentencePiece(bytes, "fuzz");
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::parse(file, "fuzz"));
  return Tokenizer::fromGguf(*gguf);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  useTokenizer(open({reinterpret_cast<const char *>(data), size}));
  return 0;
}
