//===- PackedCache.h - Packed weights kept on disk --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder with files of packed weights, which the next start maps in place of
// packing. Losing them costs time and nothing else: damage and folders that
// cannot be written are warnings. It takes nothing from a folder or a file that
// anyone else may have written (PrivateFolder).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_WEIGHTS_PACKEDCACHE_H
#define KF_RUNTIME_WEIGHTS_PACKEDCACHE_H

#include "runtime/core/PrivateFolder.h"
#include "runtime/weights/PackedFile.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Threads: any number may use one cache, if its warning function allows it;
/// any number of processes may use one folder.
class PackedCache {
public:
  /// Takes one line, for the user to see.
  using Warning = std::function<void(const std::string &)>;

  struct Entry {
    std::string name;  ///< of the file
    std::string model; ///< or why there is none, in parentheses
    uint64_t bytes = 0;
    int64_t used = 0; ///< seconds since 1970, when it was stored or found last
  };

  /// A cache in `folder`, which the first store() makes. Files that were not
  /// used for the longest time go where all would have more than `limit` bytes.
  /// `warn` may be empty.
  explicit PackedCache(std::string folder, uint64_t limit = UINT64_MAX,
                       Warning warn = {});

  const std::string &folder() const { return path; }

  /// The weights that are stored as of `identity`; null if there are none.
  /// Whatever else is there is warned about and counts as nothing: a file that
  /// cannot be opened stays; one that is damaged, holds other weights or is not
  /// private is removed. Error: packing is cancelled.
  Result<std::unique_ptr<PackedFile>> lookup(std::string_view identity,
                                             const PackOptions &options) const;

  /// Writes `weights` as those of `identity`, replacing what was there in one
  /// step, after files have made room for them; those that were used since this
  /// object was made stay. Where there is no room, in the limit, on the disk or
  /// in memory, that is a warning. Error: packing is cancelled.
  Status store(std::string_view identity, std::string_view model,
               std::span<const PackedWeight> weights,
               const PackOptions &options) const;

  /// All files, sorted by name; none if the folder does not exist.
  Result<std::vector<Entry>> list() const;

  /// Removes all files, and what writers left that were interrupted more than
  /// an hour ago; returns how many files there were.
  Result<int64_t> clear() const;

  /// Has the user see `line`.
  void warning(const std::string &line) const;

private:
  std::string pathOf(std::string_view name) const;
  Status makeRoom(const PrivateFolder &folder, const std::string &name,
                  uint64_t bytes) const;
  Status write(std::string_view identity, std::string_view model,
               std::span<const PackedWeight> weights,
               const PackOptions &options) const;

  std::string path;
  uint64_t most;
  Warning warn;
  int64_t made; ///< nanoseconds since 1970, by the clock of file systems
};

} // namespace kf

#endif // KF_RUNTIME_WEIGHTS_PACKEDCACHE_H
