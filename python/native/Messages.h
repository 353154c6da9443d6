//===- Messages.h - What the runtime tells, for Python's log ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_MESSAGES_H
#define KF_PYTHON_NATIVE_MESSAGES_H

#include "runtime/core/Observer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kf::python {

/// Keeps lines until a thread of Python's takes them: the threads that work
/// must not need the GIL. Any thread.
class Messages final : public Observer {
public:
  /// The level, as Python's logging calls it, and the line.
  using Line = std::pair<std::string, std::string>;

  void onBegin(const std::string &work) override { add("DEBUG", work); }
  void onWarning(const std::string &line) override { add("WARNING", line); }
  void onNote(const std::string &line) override { add("INFO", line); }

  /// All lines since the last call. A line is given once.
  std::vector<Line> take() {
    const std::scoped_lock lock(mutex);
    std::vector<Line> taken(lines.begin(), lines.end());
    lines.clear();
    return taken;
  }

private:
  static constexpr size_t kMost = 1000; ///< that are kept

  void add(const char *level, const std::string &text) {
    try {
      const std::scoped_lock lock(mutex);
      Line line(level, toValidUtf8(text)); // a path may be no text
      if (std::ranges::find(seen, line) != seen.end())
        return;
      if (seen.size() < kMost)
        seen.push_back(line);
      lines.push_back(std::move(line));
      if (lines.size() > kMost)
        lines.pop_front();
    } catch (...) { // no memory: work goes on without the line
    }
  }

  std::mutex mutex;
  std::deque<Line> lines;
  std::vector<Line> seen;
};

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_MESSAGES_H
