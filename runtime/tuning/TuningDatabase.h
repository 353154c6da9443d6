//===- TuningDatabase.h - Schedules that were measured ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The best schedule known for each kernel, as a JSON file that people can read,
// compare and share:
//
//   {"version": 1, "entries": [
//   {"key": {"op": "matmul", "shapes": [[-1, 2048], [5632, 2048]],
//            "types": ["f32", "q4_0"], "target": "cpu", "device": "...",
//            "compiler": "22.1.8"},
//    "schedule": "#kf.vector<...>",
//    "measured": {"seconds": 1.25e-4, "date": "2026-01-31"}}
//   ]}
//
// Schedules are text here; whoever asks parses them and has them verified.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_TUNINGDATABASE_H
#define KF_RUNTIME_TUNING_TUNINGDATABASE_H

#include "runtime/core/Status.h"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What a measurement holds for. Strings are printable ASCII, at most 1024
/// characters; `op`, `target`, `device` and `compiler` are not empty.
struct TuningKey {
  std::string op;                           ///< "matmul", with what is fused
  std::vector<std::vector<int64_t>> shapes; ///< of arguments; -1: any extent
  std::vector<std::string> types;           ///< of arguments
  std::string target;                       ///< "cpu", "vulkan" ...
  std::string device;                       ///< model, features, threads
  std::string compiler;                     ///< version

  auto operator<=>(const TuningKey &) const = default;
};

struct TuningEntry {
  TuningKey key;
  std::string schedule; ///< "#kf.vector<...>", printable ASCII
  double seconds = 0;   ///< of one run; finite and positive
  std::string date;     ///< "2026-01-31"; empty: unknown
};

/// Not thread-safe; any number of processes may load and save one file.
class TuningDatabase {
public:
  /// Reads the file at `path`; one that does not exist is an empty database.
  /// Errors name the file and the entry: the file is checked in full.
  static Result<TuningDatabase> load(const std::string &path);
  /// The same from memory; `name` appears in errors.
  static Result<TuningDatabase> parse(std::string_view text,
                                      const std::string &name);

  /// $XDG_CACHE_HOME/kernelforge/tuning.json, or in $HOME/.cache.
  static Result<std::string> defaultPath();

  /// The entry of exactly this key; null if there is none. Valid until the next
  /// insert() or the database's end.
  const TuningEntry *find(const TuningKey &key) const;
  /// Takes the place of what was measured for the same key before. An error
  /// says what load() would not accept.
  Status insert(TuningEntry entry);

  size_t size() const { return entries.size(); }
  /// All entries, sorted by key.
  std::vector<TuningEntry> list() const;

  /// What load() reads.
  std::string serialize() const;
  /// Replaces the file at `path` in one step, making its folder where there is
  /// none, which is for this user alone in case of defaultPath(). The file
  /// keeps what others saved since load(); keys that were inserted here are
  /// this database's. A lock file beside it, `path`.lock, makes writers wait
  /// for each other. Errors: a file that load() refuses, which stays as it is;
  /// one that cannot be written.
  Status save(const std::string &path) const;

private:
  std::map<TuningKey, TuningEntry> entries;
  std::set<TuningKey> inserted; ///< since load()
};

} // namespace kf

#endif // KF_RUNTIME_TUNING_TUNINGDATABASE_H
