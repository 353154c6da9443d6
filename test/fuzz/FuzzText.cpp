//===- FuzzText.cpp - Any bytes through kf-stories' tokenizer -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <cstdio>
#include <cstdlib>

using namespace kf;

static Tokenizer load() {
  auto tokenizer =
      Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json");
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.message().c_str());
    std::exit(1);
  }
  return tokenizer.take();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Tokenizer tokenizer = load();
  std::string_view text(reinterpret_cast<const char *>(data), size);
  auto ids = tokenizer.encode(text, false);
  if (!ids.ok() || tokenizer.decode(*ids, false) != text)
    std::abort();
  StreamDecoder decoder(tokenizer, false);
  std::string streamed;
  for (int32_t id : *ids)
    streamed += decoder.push(id);
  streamed += decoder.flush();
  if (streamed != toValidUtf8(text))
    std::abort();
  return 0;
}
