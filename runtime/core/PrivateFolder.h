//===- PrivateFolder.h - Files that only this user writes -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder that is opened once: whatever its path comes to mean meanwhile, its
// files are read from the folder that was looked at. A file or folder is
// private if it belongs to this user and nobody else may write to it, which
// leaves the administrator.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_PRIVATEFOLDER_H
#define KF_RUNTIME_CORE_PRIVATEFOLDER_H

#include "runtime/core/Descriptor.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// Any number of threads may use one.
class PrivateFolder {
public:
  /// Nothing where there is no such folder. Whether it is private is asked
  /// apart. Errors name the folder.
  static Result<std::optional<PrivateFolder>> open(const std::string &path);
  /// The same, made where it is missing, like those above it, for this user
  /// alone (mode 0700).
  static Result<PrivateFolder> make(const std::string &path);

  /// An error that says what to do where others may have put files here.
  Status checkPrivate() const;
  /// An error where files cannot be made here.
  Status checkWritable() const;

  /// What became of reading a file.
  struct Reading {
    enum class State {
      Done,
      Missing,
      Failed, ///< the system could not; the file may be sound
      Refused ///< no regular file, not private, or too large
    };
    State state = State::Missing;
    std::string bytes; ///< where it is done
    std::string why;   ///< where it failed or was refused
  };
  /// Reads a file of up to `most` bytes whole; never through a symbolic link.
  Reading read(const std::string &name, uint64_t most = UINT64_MAX) const;

  /// A file that is open to be read, or why it is not, as read() says.
  struct Opening {
    Reading::State state = Reading::State::Missing;
    Descriptor descriptor = Descriptor();
    uint64_t bytes = 0;   ///< its size
    std::string why = {}; ///< where it failed or was refused
  };
  Opening openFile(const std::string &name) const;

  struct File {
    std::string name;
    uint64_t bytes = 0;
    int64_t changed = 0; ///< nanoseconds since 1970
  };
  /// What lies in the folder but for folders, sorted by name.
  Result<std::vector<File>> files() const;

  /// Sets the file's time of change to now, where that can be done.
  void touch(const std::string &name) const;
  /// Fails with nothing but the reason; a file that is gone is removed.
  Status remove(const std::string &name) const;

private:
  PrivateFolder(std::string path, Descriptor folder)
      : path(std::move(path)), folder(std::move(folder)) {}

  std::string path;
  Descriptor folder;
};

} // namespace kf

#endif // KF_RUNTIME_CORE_PRIVATEFOLDER_H
