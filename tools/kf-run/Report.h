//===- Report.h - What kf-run prints and writes ------------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_REPORT_H
#define KF_TOOLS_KF_RUN_REPORT_H

#include "runtime/core/Lines.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

/// kf-run's exit codes: done; an error while at it; a command line that asks
/// for nothing that kf-run does; a comparison that noise leaves open; ended by
/// an interrupt, as shells count it.
enum ExitCode {
  ExitSuccess = 0,
  ExitFailure = 1,
  ExitUsage = 2,
  ExitUnclear = 3,
  ExitInterrupted = 130
};

/// A rate, `perSecond` of what "B/s" or "FLOP/s" count: "15.9 GB/s", "1.20
/// TFLOP/s"; "unknown" for 0.
std::string rateText(double perSecond, std::string_view unit);

// Every message of kf-run goes through these: to stderr, as oneLine makes it,
// and in at most 2000 bytes (shorten).

/// Prints "error: <message>". A diagnostic that begins with its position
/// ("file:line:column: error: ...") is printed without another "error: ".
void printError(std::string_view message);
/// The same, of what ends the process: no error is printed after it, which
/// would only say so again. Any thread.
void printLastError(std::string_view message);
/// Prints "warning: <message>", each message once.
void printWarning(std::string_view message);
/// Prints "note: <message>".
void printNote(std::string_view message);

/// Keeps warnings out of text that is printed bit by bit: they wait from
/// begin() to end(), which the end of its life implies. One at a time.
class HeldWarnings {
public:
  HeldWarnings() = default;
  HeldWarnings(const HeldWarnings &) = delete;
  HeldWarnings &operator=(const HeldWarnings &) = delete;
  ~HeldWarnings();
  void begin();
  void end();
};

/// Prints the error, if it is one, and returns the exit code.
int report(const Status &status);
/// Prints that an interrupt ended the command, and what it did not do; returns
/// the exit code.
int reportInterrupt(std::string_view undone);

/// The shortest decimal number that reads back as `value`; "null" for JSON's
/// lack of NaN and infinities.
std::string jsonNumber(double value);
std::string jsonNumber(float value);

/// Writes `text` to the file `path` (writeFile), or to stdout if it is "-".
/// Errors name the file.
Status writeOutput(const std::string &path, std::string_view text);
/// Whether writeOutput() could write `path` now (checkCanWrite). Empty is none.
Status checkOutput(const std::string &path);
/// Writes `text` to stdout, whatever signals arrive meanwhile.
Status writeStdout(std::string_view text);

/// Bytes of memory that this process had at most; 0 where the system does not
/// tell.
uint64_t peakMemory();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_REPORT_H
