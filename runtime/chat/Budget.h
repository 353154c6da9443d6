//===- Budget.h - What one rendering may use --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Templates come from anywhere, and a short one can ask for any amount of work.
// So all work is paid for in steps, before it is done: a step is a node of the
// template, an item of a container, or as many bytes of a text as are handled
// in the same time, some tenths of a microsecond. What goes through texts takes
// the budget as an argument, so that nothing does so for free.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_BUDGET_H
#define KF_RUNTIME_CHAT_BUDGET_H

#include "runtime/core/Cancellation.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace kf::jinja {

/// What ends parsing or rendering. `line` 0: not known yet.
struct Failure {
  std::string message;
  int line = 0;
  bool raised = false; ///< by raise_exception: the message stands alone
};
[[noreturn]] void fail(std::string message, int line = 0);

/// What ends a rendering that is cancelled.
struct Cancelled {};

/// The steps, bytes and nesting of one rendering. Every operation pays before
/// it does; it throws Failure where that cannot be afforded. One thread, but
/// for `cancelled`.
class Budget {
public:
  /// Paying throws Cancelled soon after `cancelled` is set.
  explicit Budget(uint64_t maxSteps, CancelFlag cancelled = nullptr)
      : maxSteps(maxSteps), left(maxSteps), cancelled(cancelled) {}

  static constexpr uint64_t kMaxBytes = uint64_t(256) << 20;
  static constexpr uint64_t kMaxText = uint64_t(16) << 20;
  static constexpr int kMaxDepth = 800; ///< of nested evaluations

  void steps(uint64_t count) {
    if (count > ready)
      takeMore(count);
    ready -= count;
  }
  /// Before `count` bytes are copied or compared.
  void bytes(uint64_t count) { steps(count / 64); }
  /// Before a text of `count` bytes is gone through byte by byte.
  void characters(uint64_t count) { steps(1 + count / 8); }
  /// Before `text` is gone through character by character: what is not ASCII
  /// is looked up in tables.
  void characters(std::string_view text);
  /// Before a text of `count` bytes is made, or has grown to them from
  /// `before`.
  void text(uint64_t count, uint64_t before = 0);
  /// Before a container of `count` items is made.
  void items(uint64_t count);
  /// Before one item is added to a container.
  void item();
  /// Before anything else that takes `count` bytes is made.
  void hold(uint64_t count);
  /// After something is gone for which hold(count) was paid.
  void release(uint64_t count) { held -= count; }
  void enter() {
    if (++depth > kMaxDepth)
      tooDeep();
  }
  void leave() { --depth; }

private:
  /// Puts at least `count` steps into `ready`.
  void takeMore(uint64_t count);
  [[noreturn]] void tooDeep();

  uint64_t maxSteps;
  uint64_t left;      ///< steps that are not ready
  uint64_t ready = 0; ///< steps until somebody looks at `cancelled`
  uint64_t held = 0;  ///< bytes
  int depth = 0;
  CancelFlag cancelled;
};

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_BUDGET_H
