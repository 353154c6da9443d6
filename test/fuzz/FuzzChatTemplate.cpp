//===- FuzzChatTemplate.cpp - Any bytes as a chat template ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateUse.h"

#include <cstdio>
#include <cstdlib>

using namespace kf;

/// Steps of a rendering, and the time of the CPU that they may take with the
/// sanitizers: five times what the dearest steps are known to.
static constexpr uint64_t kMaxSteps = 200'000;
static constexpr double kMaxSeconds = 1;

/// The bytes are a template; with a zero byte among them, what follows it is
/// the user's message. Steps that do not bound the time are a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view source(reinterpret_cast<const char *>(data), size);
  std::string content = " It's <|im_end|> {{ x }} \xff\u00e9\u2003\n";
  if (const size_t zero = source.find('\0'); zero != source.npos) {
    content = source.substr(zero + 1);
    source = source.substr(0, zero);
  }
  const double seconds = useTemplate(source, content, kMaxSteps);
  if (seconds > kMaxSeconds) {
    std::fprintf(stderr, "%llu steps took %.2f s\n",
                 static_cast<unsigned long long>(kMaxSteps), seconds);
    std::abort();
  }
  return 0;
}
