//===- ReadFaults.h - Mapped files that shrink while in use -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A read from a mapped file faults (SIGBUS) where another process has cut the
// file off meanwhile or where its disk fails. It happens in the middle of a
// kernel or a parser, on any thread, and nothing there can go on. A program
// that calls exitOnReadFaults() ends with one line that names the file; for
// that, mappings and the temporary files of writers are known process-wide.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_READFAULTS_H
#define KF_RUNTIME_CORE_READFAULTS_H

#include <cstddef>
#include <string>

namespace kf {

/// From now on, a read that faults inside a KnownMapping, on whatever thread,
/// prints "error: cannot read '<path>': <why>" to stderr, removes the files of
/// every KnownTemporary, and ends the process with exit code 1. Any other bus
/// error has the effect that it had before. For main(), once: how signals are
/// handled is the program's business, not a library's.
void exitOnReadFaults();

/// An entry of what the handler of faults knows; see ReadFaults.cpp.
struct FaultNode;

/// Says that `size` bytes at `data` are those of the file `path`, as long as it
/// lives. Any thread may make and end others meanwhile.
class KnownMapping {
public:
  KnownMapping() = default;
  KnownMapping(const void *data, size_t size, const std::string &path);
  KnownMapping(KnownMapping &&other) noexcept;
  KnownMapping &operator=(KnownMapping &&other) noexcept;
  ~KnownMapping();

private:
  FaultNode *node = nullptr;
};

/// Says that the file `path` is to go if the process ends by a read fault, as
/// long as it lives. Any thread may make and end others meanwhile.
class KnownTemporary {
public:
  KnownTemporary() = default;
  explicit KnownTemporary(const std::string &path);
  KnownTemporary(KnownTemporary &&other) noexcept;
  KnownTemporary &operator=(KnownTemporary &&other) noexcept;
  ~KnownTemporary();

private:
  FaultNode *node = nullptr;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_READFAULTS_H
