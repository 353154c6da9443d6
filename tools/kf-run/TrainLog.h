//===- TrainLog.h - The log of kf-run train ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TRAINLOG_H
#define KF_TOOLS_KF_RUN_TRAINLOG_H

#include "runtime/core/Descriptor.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string>

namespace kf {

/// A file of JSON lines, each of which is there as soon as it is written. One
/// thread.
class TrainLog {
public:
  /// Of a training that goes on behind step `step`: the lines of what is
  /// behind it, which an interrupted one has left, go, and with `step` 0 all of
  /// them. "-" is stdout. Errors name the file.
  static Result<TrainLog> open(const std::string &path, int64_t step);

  /// Whether it has no line yet.
  bool isEmpty() const { return empty; }

  Status write(const std::string &line);

private:
  TrainLog(std::string path, Descriptor file, bool empty)
      : path(std::move(path)), file(std::move(file)), empty(empty) {}

  std::string path;
  Descriptor file; ///< none: stdout
  bool empty;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TRAINLOG_H
