//===- FuzzSchema.cpp - Any bytes as a JSON schema ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarUse.h"

using namespace kf;

/// The bytes are a schema; a grammar that it makes also writes a text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  JsonOptions options;
  options.maxIndent = size % 2 ? 0 : 3;
  const Result<Grammar> grammar =
      Grammar::fromJsonSchema(text, fuzzLimits(), options);
  if (grammar.ok())
    useGrammar(*grammar, size);
  else if (grammar.message().find('\n') != std::string::npos)
    std::abort();
  return 0;
}
