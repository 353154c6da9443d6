//===- Progress.h - What long work is at, on a terminal ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One line on stderr for a person who waits: it is there only if stderr is a
// terminal, once work has gone on for a second, and it is erased when the work
// ends. What else is printed (Report.h) goes first: the line makes room for it,
// and stands behind a text that goes on in the same line.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_PROGRESS_H
#define KF_TOOLS_KF_RUN_PROGRESS_H

#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// Work that may take long. One that begins within another is shown in its
/// place, and the other one again after it; the second counts from the first
/// one's begin. They end in the reverse order, all on one thread.
class Progress {
public:
  /// `text` says what is done, in ASCII: "compiling body_1".
  explicit Progress(std::string text);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// How much of it is done, from 0 to 1.
  void update(double share);
  /// The same, with more to say.
  void update(double share, std::string_view detail);

  /// From now on, nothing is shown: for --quiet.
  static void turnOff();

private:
  friend class ProgressLine;
  std::string text, detail;
  std::optional<double> share;
};

/// Keeps the line off the terminal as long as it lives: for what is printed
/// meanwhile. May be nested; any thread.
class ProgressPause {
public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause &) = delete;
  ProgressPause &operator=(const ProgressPause &) = delete;
};

/// Says what was printed on the terminal: behind it, in the same line, is where
/// progress is shown. Within a pause.
void noteShown(std::string_view text);

/// What to print in front of an error where no lock can be had, in a signal
/// handler: it takes the line away, if there is one.
std::string_view progressEraser();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_PROGRESS_H
