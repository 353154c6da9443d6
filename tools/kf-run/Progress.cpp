//===- Progress.cpp - What long work is at, on a terminal -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

using namespace kf;
using namespace std::chrono_literals;

namespace {

constexpr auto kDelay = 1s;
constexpr auto kInterval = 100ms;
constexpr std::string_view kErase = "\r\033[K", kEraseRest = "\033[K";
/// Columns that are worth showing something in.
constexpr size_t kLeastRoom = 16;

/// Whether lines can be drawn and erased where stderr goes.
bool isTerminal() {
  const char *type = std::getenv("TERM");
  return isatty(STDERR_FILENO) && type && std::strcmp(type, "dumb") != 0;
}

/// Columns of the terminal.
size_t widthOfTerminal() {
  winsize size = {};
  const bool known =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

void draw(std::string_view text) {
  // A terminal that is gone is none to draw on.
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

/// Set under ProgressLine's lock, and read by signal handlers: whether the line
/// is there, and whether it stands behind other text.
std::atomic<bool> isDrawn{false}, isBehindText{false};

/// Where `text`, printed from column `column` on, ends. Letters of most scripts
/// that have two columns are counted so; a column too many does no harm.
size_t columnBehind(std::string_view text, size_t column) {
  bool inSequence = false; // of control, ESC [ ... letter
  for (unsigned char c : text) {
    if (inSequence)
      inSequence = !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
    else if (c == 0x1b)
      inSequence = true;
    else if (c == '\n' || c == '\r')
      column = 0;
    else if (c == '\b')
      column -= column > 0;
    else if (c == '\t')
      column += 8 - column % 8;
    else if ((c & 0xc0) != 0x80)
      column += c >= 0xe1 ? 2 : 1;
  }
  return column;
}

} // namespace

namespace kf {

/// The line, and the thread that draws it. One for the process.
class ProgressLine {
public:
  static ProgressLine &get() {
    // Never destroyed: its thread may be at work when the process ends.
    static ProgressLine *line = new ProgressLine;
    return *line;
  }

  void begin(Progress *work) {
    {
      const std::lock_guard<std::recursive_mutex> lock(mutex);
      works.push_back(work);
      if (off || works.size() > 1)
        return;
      began = std::chrono::steady_clock::now();
    }
    start();
  }

  void end() {
    {
      const std::lock_guard<std::recursive_mutex> lock(mutex);
      works.pop_back();
      if (!works.empty())
        return;
      erase();
    }
    changed.notify_all();
    if (thread.joinable())
      thread.join();
  }

  void erase() {
    if (isDrawn)
      draw(isBehindText ? kEraseRest : kErase);
    isDrawn = false;
  }

  std::recursive_mutex mutex; ///< of all below
  bool off = !isTerminal();
  size_t column = 0; ///< where what is printed next goes

private:
  /// Starts drawing. Without a thread there is no line.
  void start() try {
    // Signals are for the thread that works.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread = std::thread([this] { run(); });
    } catch (const std::system_error &) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } catch (const std::bad_alloc &) {
  }

  void run() {
    std::unique_lock<std::recursive_mutex> lock(mutex);
    auto ended = [this] { return works.empty(); };
    auto next = began + kDelay;
    while (!changed.wait_until(lock, next, ended)) {
      next = std::chrono::steady_clock::now() + kInterval;
      // In the background, the terminal is somebody else's.
      if (off || tcgetpgrp(STDERR_FILENO) != getpgrp())
        continue;
      const size_t width = std::max<size_t>(widthOfTerminal(), 1);
      const size_t used = column % width;
      if (column > 0 && width - used < kLeastRoom)
        continue;
      char line[512];
      const size_t size = format(line, std::min(sizeof(line), width - used));
      isBehindText = column > 0;
      draw({line, size});
      isDrawn = true;
    }
  }

  /// Writes the line of the innermost work to `out`, in less than `width`
  /// columns, and what takes the cursor back; returns its bytes. Takes no
  /// memory.
  size_t format(char (&out)[512], size_t width) const {
    const Progress &work = *works.back();
    char text[256];
    int size = std::snprintf(text, sizeof(text), "%s", work.text.c_str());
    if (work.share)
      size =
          std::snprintf(text, sizeof(text), "%s: %d %%%s%s", work.text.c_str(),
                        static_cast<int>(*work.share * 100),
                        work.detail.empty() ? "" : ", ", work.detail.c_str());
    const size_t room = std::min(sizeof(text) - 1, width > 0 ? width - 1 : 0);
    // Whatever is printed next, by whomever, takes the line's place.
    if (column > 0) {
      constexpr size_t around = 3; // " [" and "]"
      const int shown = static_cast<int>(
          std::min<size_t>(size, room - std::min(room, around)));
      return static_cast<size_t>(
          std::snprintf(out, sizeof(out), " [%.*s]\033[K\033[%dD", shown, text,
                        shown + static_cast<int>(around)));
    }
    const int shown = static_cast<int>(std::min<size_t>(size, room));
    return static_cast<size_t>(
        std::snprintf(out, sizeof(out), "\r%.*s\033[K\r", shown, text));
  }

  std::vector<Progress *> works;               ///< the innermost last
  std::chrono::steady_clock::time_point began; ///< the outermost one
  std::condition_variable_any changed;
  std::thread thread;
};

} // namespace kf

Progress::Progress(std::string text) : text(std::move(text)) {
  ProgressLine::get().begin(this);
}

Progress::~Progress() { ProgressLine::get().end(); }

void Progress::update(double newShare) { update(newShare, {}); }

void Progress::update(double newShare, std::string_view newDetail) {
  const std::lock_guard<std::recursive_mutex> lock(ProgressLine::get().mutex);
  share = std::clamp(newShare, 0.0, 1.0);
  detail = newDetail;
}

void Progress::turnOff() {
  const std::lock_guard<std::recursive_mutex> lock(ProgressLine::get().mutex);
  ProgressLine::get().off = true;
}

ProgressPause::ProgressPause() {
  ProgressLine::get().mutex.lock();
  ProgressLine::get().erase();
}

ProgressPause::~ProgressPause() { ProgressLine::get().mutex.unlock(); }

void kf::noteShown(std::string_view text) {
  size_t &column = ProgressLine::get().column;
  column = columnBehind(text, column);
}

std::string_view kf::progressEraser() {
  return !isDrawn ? std::string_view() : isBehindText ? kEraseRest : kErase;
}
