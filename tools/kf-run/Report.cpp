//===- Report.cpp - What kf-run prints and writes -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "OutOfMemory.h"
#include "Progress.h"

#include "runtime/core/NoBadAlloc.h"
#include "runtime/core/Shorten.h"
#include "runtime/core/WriteFile.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include <unistd.h>

using namespace kf;

namespace {

/// Bytes that a message may have where it is printed.
constexpr size_t kMaxMessage = 2000;

void printLine(std::string_view kind, std::string_view message) {
  std::string line(kind);
  line += shorten(oneLine(message), kMaxMessage);
  line += '\n';
  const ProgressPause pause;
  std::fwrite(line.data(), 1, line.size(), stderr);
  noteShown(line);
}

template <typename T> std::string shortest(T value) {
  if (!std::isfinite(value))
    return "null";
  char buffer[64];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, end);
}

/// Of this process.
struct Warnings {
  static inline std::set<std::string, std::less<>> printed; ///< or waiting
  static inline std::vector<std::string> waiting;
  static inline bool held = false;
};

} // namespace

std::string kf::rateText(double perSecond, std::string_view unit) {
  if (!(perSecond > 0))
    return "unknown";
  constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  for (; perSecond >= 1000 && prefix + 1 < std::size(prefixes); ++prefix)
    perSecond /= 1000;
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f %s%.*s",
                perSecond < 10    ? 2
                : perSecond < 100 ? 1
                                  : 0,
                perSecond, prefixes[prefix], static_cast<int>(unit.size()),
                unit.data());
  return buffer;
}

/// Whether printLastError() has said why the process ends.
static std::atomic<bool> saidLast{false};

void kf::printError(std::string_view message) {
  if (saidLast)
    return;
  const bool placed = message.find(": error: ") != std::string_view::npos;
  printLine(placed ? "" : "error: ", message);
}

void kf::printLastError(std::string_view message) {
  if (!saidLast.exchange(true))
    printLine("error: ", message);
}

void kf::printWarning(std::string_view message) {
  if (!Warnings::printed.emplace(message).second)
    return;
  if (Warnings::held)
    Warnings::waiting.emplace_back(message);
  else
    printLine("warning: ", message);
}

void kf::printNote(std::string_view message) { printLine("note: ", message); }

void HeldWarnings::begin() { Warnings::held = true; }

HeldWarnings::~HeldWarnings() {
  const NoBadAlloc guard(exitOutOfMemory);
  end();
}

void HeldWarnings::end() {
  Warnings::held = false;
  for (const std::string &message : Warnings::waiting)
    printLine("warning: ", message);
  Warnings::waiting.clear();
}

int kf::report(const Status &status) {
  if (status.ok())
    return ExitSuccess;
  // What was printed before stays in order with the error.
  std::fflush(stdout);
  printError(status.message());
  return ExitFailure;
}

int kf::reportInterrupt(std::string_view undone) {
  std::fflush(stdout);
  printError("interrupted; " + std::string(undone));
  return ExitInterrupted;
}

std::string kf::jsonNumber(double value) { return shortest(value); }
std::string kf::jsonNumber(float value) { return shortest(value); }

// Past stdio, which loses what it holds when a signal interrupts a write.
Status kf::writeStdout(std::string_view text) {
  static const bool onTerminal = isatty(STDOUT_FILENO);
  std::optional<ProgressPause> pause;
  if (onTerminal && !text.empty()) {
    pause.emplace();
    noteShown(text);
  }
  bool failed = std::fflush(stdout) != 0;
  while (!failed && !text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<size_t>(count));
    else
      failed = errno != EINTR;
  }
  if (failed)
    return Status::error(std::string("cannot write to stdout: ") +
                         std::strerror(errno));
  return Status();
}

Status kf::writeOutput(const std::string &path, std::string_view text) {
  if (path == "-")
    return writeStdout(text);
  return writeFile(path, text);
}

Status kf::checkOutput(const std::string &path) {
  return path.empty() || path == "-" ? Status() : checkCanWrite(path);
}

uint64_t kf::peakMemory() {
  std::FILE *file = std::fopen("/proc/self/status", "re");
  if (!file)
    return 0;
  uint64_t kibibytes = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), file))
    if (std::strncmp(line, "VmHWM:", 6) == 0)
      kibibytes = std::strtoull(line + 6, nullptr, 10);
  std::fclose(file);
  return kibibytes * 1024;
}
