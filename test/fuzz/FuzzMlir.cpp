//===- FuzzMlir.cpp - Any text through the whole CPU pipeline -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/MlirText.h"

#include <cstdlib>
#include <memory>

namespace {
/// A context keeps every type and attribute that it has seen.
constexpr int textsOfAContext = 256;
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<kf::TextCompiler> compiler;
  static int texts = 0;
  if (texts++ % textsOfAContext == 0)
    compiler = std::make_unique<kf::TextCompiler>();
  const kf::Outcome outcome =
      compiler->use({reinterpret_cast<const char *>(data), size});
  if (outcome.stage == kf::Stage::Refused && outcome.error.empty())
    std::abort(); // nothing is refused without an error
  return 0;
}
