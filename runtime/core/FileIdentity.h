//===- FileIdentity.h - Whether a file is the one it was --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_FILEIDENTITY_H
#define KF_RUNTIME_CORE_FILEIDENTITY_H

#include <cstdint>
#include <string>

struct stat;

namespace kf {

/// Tells a file's bytes from others without reading them: where all of it is as
/// it was, so are the bytes. The system sets `touched` whenever bytes, name or
/// owner change, to a time that nobody chooses, but of a clock with steps: what
/// is written soon after another write may have the same (isSettled()).
struct FileIdentity {
  std::string path; ///< absolute, without symbolic links
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t changed = 0; ///< nanoseconds since 1970, of the bytes
  int64_t touched = 0; ///< the same of anything about the file

  /// That of a file at `path`, of which the system says `info`.
  static FileIdentity of(const std::string &path, const struct stat &info);

  /// All of it in a line that no other identity has.
  std::string text() const;
  /// Whether there is such a file at the path now.
  bool isCurrent() const;
  /// Whether the last change was so long ago, two seconds, that another one
  /// gets another time on every file system.
  bool isSettled() const;

  bool operator==(const FileIdentity &) const = default;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_FILEIDENTITY_H
