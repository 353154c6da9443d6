//===- FuzzVocabulary.cpp - Any bytes as a tokenizer.model or GGUF --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Gguf.h"
#include "runtime/text/Tokenizer.h"

#include <cstdlib>

using namespace kf;

static Result<Tokenizer> open(std::string_view bytes) {
  std::span<const std::byte> file = std::as_bytes(std::span(bytes));
  if (!Gguf::recognize(file))
    return Tokenizer::fromSentencePiece(bytes, "fuzz");
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::parse(file, "fuzz"));
  return Tokenizer::fromGguf(*gguf);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto tokenizer = open({reinterpret_cast<const char *>(data), size});
  if (!tokenizer.ok())
    return 0;
  auto ids = tokenizer->encode("It's  12 <s>\xff\xc3 \u00e9\u2003abc\n", true);
  if (!ids.ok())
    return 0;
  // Every id that is made has to be one that can be undone.
  for (int32_t id : *ids)
    if (id < 0 || id >= tokenizer->vocabSize())
      std::abort();
  (void)tokenizer->decode(*ids, false);
  return 0;
}
