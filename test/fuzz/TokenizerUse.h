//===- TokenizerUse.h - What fuzz targets do with a tokenizer ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_FUZZ_TOKENIZERUSE_H
#define KF_TEST_FUZZ_TOKENIZERUSE_H

#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <cstdlib>
#include <string>

namespace kf {

/// Encodes and decodes with a tokenizer that any bytes made.
inline void useTokenizer(const Result<Tokenizer> &tokenizer) {
  if (!tokenizer.ok())
    return;
  std::string text = "It's  12 <s>\xff\xc3 \u00e9\u2003abc\n<tool> \u2581the";
  text += std::string(40, 'a') + std::string(40, ' ') + std::string(1, '\0');
  for (bool parseSpecial : {true, false}) {
    auto ids = tokenizer->encode(text, EncodeOptions{true, parseSpecial});
    if (!ids.ok())
      continue;
    std::string decoded = toValidUtf8(tokenizer->decode(*ids, parseSpecial));
    StreamDecoder decoder(*tokenizer, parseSpecial);
    std::string streamed;
    for (int32_t id : *ids) {
      if (!tokenizer->pieceOf(id))
        std::abort();
      streamed += decoder.push(id);
    }
    if (streamed + decoder.flush() != decoded)
      std::abort();
  }
}

} // namespace kf

#endif // KF_TEST_FUZZ_TOKENIZERUSE_H
