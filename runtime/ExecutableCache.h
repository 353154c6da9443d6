//===- ExecutableCache.h - Compiled programs kept on disk -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder with one file per compiled program, named after a key that the
// caller makes from everything the result depends on. Losing the cache costs
// time and nothing else: damage and unwritable folders are warnings.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_EXECUTABLECACHE_H
#define KF_RUNTIME_EXECUTABLECACHE_H

#include "runtime/Executable.h"

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// 128-bit FNV-1a of `fields` as 32 hexadecimal digits. Each field is hashed
/// with its length, so that ("ab", "c") and ("a", "bc") differ. Not
/// cryptographic.
std::string hashKey(std::span<const std::string_view> fields);
std::string hashKey(std::initializer_list<std::string_view> fields);

/// Threads: any number may use one cache, if its warning function allows it;
/// any number of processes may use one folder.
class ExecutableCache {
public:
  /// Takes one line, for the user to see.
  using Warning = std::function<void(const std::string &)>;

  struct Entry {
    std::string key;
    std::string program; ///< "(damaged)" when the file cannot be read
    std::string target;
    uint64_t bytes = 0;   ///< size of the file
    int64_t modified = 0; ///< seconds since 1970
  };

  /// A cache in `folder`, which prepare() or the first store() makes. `warn`
  /// may be empty.
  explicit ExecutableCache(std::string folder, Warning warn = {});

  /// $XDG_CACHE_HOME/kernelforge, or $HOME/.cache/kernelforge; an error when
  /// neither variable is an absolute path.
  static Result<std::string> defaultFolder();

  const std::string &folder() const { return path; }

  /// Makes the folder; an error, which names it, where store() could not write.
  Status prepare() const;

  /// The program stored under `key`, or nothing. A damaged or unreadable file
  /// is removed, warned about, and counts as nothing. The only error is a key
  /// that is not 1 to 64 hexadecimal digits.
  Result<std::optional<Executable>> lookup(std::string_view key) const;

  /// Writes `executable` under `key`, replacing what was there in one step. A
  /// folder that cannot be written is a warning; the only error is a bad key.
  Status store(std::string_view key, const Executable &executable) const;

  /// All entries, sorted by key; none if the folder does not exist.
  Result<std::vector<Entry>> list() const;

  /// Removes all entries and what writers left that were interrupted more than
  /// an hour ago; returns how many entries
  /// there were.
  Result<int64_t> clear() const;

private:
  void warning(const std::string &line) const;
  std::string fileOf(std::string_view key) const;

  std::string path;
  Warning warn;
};

} // namespace kf

#endif // KF_RUNTIME_EXECUTABLECACHE_H
