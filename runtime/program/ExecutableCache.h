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
// time and nothing else: damage and unwritable folders are warnings. As what it
// holds is run, it takes nothing from a folder or file that anyone else may
// have written (PrivateFolder).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_EXECUTABLECACHE_H
#define KF_RUNTIME_PROGRAM_EXECUTABLECACHE_H

#include "runtime/program/CacheCounts.h"
#include "runtime/program/Executable.h"

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

  static constexpr uint64_t kDefaultLimit = uint64_t(1) << 30;
  /// Ends the names of files that devices keep in the same folder: what their
  /// drivers compiled. They count for nothing but clear().
  static constexpr std::string_view kDriverSuffix = ".kfpipelines";

  struct Entry {
    std::string key;
    std::string program; ///< or why there is none, in parentheses
    std::string target;
    uint64_t bytes = 0; ///< size of the file
    int64_t used = 0; ///< seconds since 1970, when it was stored or found last
    CacheCounts counts = {}; ///< of lookups
  };

  /// A cache in `folder`, which prepare() or the first store() makes. Entries
  /// that were not used for the longest time go where all would have more than
  /// `limit` bytes; with 0, nothing is found or stored, and store() removes
  /// what other limits left. `warn` may be empty.
  explicit ExecutableCache(std::string folder, Warning warn = {},
                           uint64_t limit = kDefaultLimit);

  /// $XDG_CACHE_HOME/kernelforge, or $HOME/.cache/kernelforge; an error when
  /// neither variable is an absolute path.
  static Result<std::string> defaultFolder();
  /// $KF_CACHE_SIZE, a number of bytes, or of KiB, MiB or GiB with K, M or G
  /// behind it; kDefaultLimit where it is not set.
  static Result<uint64_t> defaultLimit();

  const std::string &folder() const { return path; }
  uint64_t limit() const { return most; }

  /// Makes the folder, for this user alone; an error, which names it, where
  /// there is none that is safe to use. lookup() finds nothing then.
  Status prepare() const;
  /// An error, which names the folder, where store() could not write.
  Status checkWritable() const;

  /// The program stored under `key`, or nothing; and its note, unless `note` is
  /// null. Whatever else is there is warned about and counts as nothing: a file
  /// that cannot be read, for want of memory too, stays; one that is damaged,
  /// holds another program or is not private is removed. The only error is a
  /// key that is not 1 to 64 hexadecimal digits. counts() counts it, except
  /// with a note, by which the caller tells whether the program is of use, and
  /// calls count().
  Result<std::optional<Executable>> lookup(std::string_view key,
                                           std::string *note = nullptr) const;

  /// Counts a lookup of `key`. What was found is worth more: without memory for
  /// it, it stays uncounted.
  void count(std::string_view key, bool isHit) const noexcept;

  /// Writes `executable` under `key`, replacing what was there in one step,
  /// with a note, a line without a line break, for whoever looks it up;
  /// then removes entries until the limit holds; those that were used since
  /// this object was made stay. A folder that cannot be written, and want of
  /// memory, are warnings; the only error is a bad key.
  Status store(std::string_view key, const Executable &executable,
               std::string_view note = {}) const;

  /// All entries, sorted by key; none if the folder does not exist. One that
  /// is not private is warned about.
  Result<std::vector<Entry>> list() const;

  /// How often lookups found something, and did not, since clear(), for entries
  /// that are gone too. A folder that cannot be written counts nothing.
  CacheCounts counts() const;

  /// Removes all entries, the counts, what drivers compiled, and what writers
  /// left that were interrupted more than an hour ago; returns how many entries
  /// there were.
  Result<int64_t> clear() const;

private:
  void warning(const std::string &line) const;
  /// Warns that the exception that is being handled ended `what`; says nothing
  /// where there is no memory for that either.
  void warnOfException(const char *what) const noexcept;
  Result<std::optional<Executable>> find(std::string_view key,
                                         std::string *note) const;
  bool isPrivate() const;
  CacheCountsByKey countsByKey() const;
  std::string pathOf(std::string_view name) const;
  Status write(std::string_view key, const Executable &executable,
               std::string_view note) const;
  void evict() const;

  std::string path;
  Warning warn;
  uint64_t most;
  int64_t made; ///< nanoseconds since 1970, by the clock of file systems
};

} // namespace kf

#endif // KF_RUNTIME_PROGRAM_EXECUTABLECACHE_H
