//===- Budget.cpp - What one rendering may use ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Budget.h"

#include "runtime/chat/Values.h"

using namespace kf;
using namespace kf::jinja;

/// Steps between two looks at whether the rendering is cancelled: less than a
/// hundredth of a second.
static constexpr uint64_t kStride = 16384;

void jinja::fail(std::string message, int line) {
  throw Failure{std::move(message), line};
}

void Budget::takeMore(uint64_t count) {
  if (isCancelled(cancelled))
    throw Cancelled();
  const uint64_t missing = count - ready;
  if (missing > left)
    fail("the template does not end within " + std::to_string(maxSteps) +
         " steps");
  const uint64_t taken = std::min(left, std::max(missing, kStride));
  left -= taken;
  ready += taken;
}

void Budget::tooDeep() {
  fail("the template nests calls and expressions more than " +
       std::to_string(kMaxDepth) + " deep");
}

void Budget::hold(uint64_t count) {
  held += count;
  if (held > kMaxBytes)
    fail("the template makes more than " + std::to_string(kMaxBytes >> 20) +
         " MiB of text and lists");
}

void Budget::characters(std::string_view text) {
  characters(text.size());
  const auto others = std::ranges::count_if(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  steps(static_cast<uint64_t>(others) / 4);
}

void Budget::text(uint64_t count, uint64_t before) {
  if (count > kMaxText)
    fail("the template makes a text of more than " +
         std::to_string(kMaxText >> 20) + " MiB");
  const uint64_t added = count > before ? count - before : 0;
  bytes(added);
  hold(added);
}

void Budget::items(uint64_t count) {
  if (count > kMaxBytes / sizeof(Value))
    fail("the template makes a list of " + std::to_string(count) + " items");
  steps(count);
  hold(count * sizeof(Value) + 64);
}

void Budget::item() {
  steps(1);
  hold(sizeof(Value));
}
