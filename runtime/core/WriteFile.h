//===- WriteFile.h - Bytes to a file ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_WRITEFILE_H
#define KF_RUNTIME_CORE_WRITEFILE_H

#include "runtime/core/ReadFaults.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace kf {

/// A file that is written beside its place, as its name, a number and kSuffix,
/// and gets its name when it is complete and on the disk. Until then, and if
/// anything fails, what had the name before is as it was. Behind a symbolic
/// link the link stays, and what it leads to is replaced. Errors name the file.
/// One thread.
class AtomicFile {
public:
  static constexpr std::string_view kSuffix = ".tmp";
  struct Options {
    /// Takes the place of a regular file of that name; otherwise one is an
    /// error.
    bool replace = true;
    /// Permissions of a new file, less the umask. One that replaces another
    /// has those of the other, and its owner where the system lets it.
    unsigned mode = 0666;
  };
  static Result<AtomicFile> create(const std::string &path, Options options);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  /// Removes what finish() has not completed.
  ~AtomicFile();

  /// Asks the disk for room for `bytes` in all, where its file system can tell
  /// at once that there is none.
  Status reserve(uint64_t bytes);
  Status append(std::string_view bytes);
  Status finish();

private:
  AtomicFile() = default;
  Status open(Options options);
  Status failed(int reason) const;

  std::string name;      ///< as the caller has it, for errors
  std::string target;    ///< behind symbolic links
  std::string temporary; ///< empty: there is no such file
  KnownTemporary known;  ///< the same
  int descriptor = -1;
  bool mayReplace = true;
};

/// Writes `bytes` to the file `path`, which becomes theirs alone or, if that
/// fails, stays as it was (AtomicFile); without `replace`, a file of that name
/// is an error. Besides regular files it may be a character device such as
/// /dev/null; of pipes, which may wait for a reader for ever, only those that
/// the process has open already: /dev/stdout, /dev/stderr, /dev/fd/N. These are
/// written in place. Errors name the file.
Status writeFile(const std::string &path, std::string_view bytes,
                 bool replace = true);

/// Whether writeFile() could write `path` now, if the disk has room; what is
/// there stays as it is. An error is writeFile()'s.
Status checkCanWrite(const std::string &path);

} // namespace kf

#endif // KF_RUNTIME_CORE_WRITEFILE_H
