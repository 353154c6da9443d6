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
//   {"version": 2, "entries": [
//   {"key": {"kernel": "6c62272e07bb014262b821756295c58d", "rows": 512,
//            "target": "#kf.cpu_target<...>", "identity": "4b1f...",
//            "device": "AMD EPYC ...; 2 threads",
//            "compiler": "kf-0.1.0 llvm-22.1.8 abi-9 schedules-3"},
//    "about": {"op": "matmul_add", "shapes": [[-1, 2048], [5632, 2048]],
//              "types": ["f32", "q4_0"]},
//    "schedule": "#kf.vector<...>",
//    "measured": {"seconds": 1.25e-4, "default_seconds": 1.5e-4,
//                 "error": 1e-6, "date": "2026-01-31"},
//    "tried": [{"schedule": "#kf.vector<...>", "predicted": 1e-4,
//               "seconds": 0, "error": 0.5, "rejected": "..."}]}
//   ]}
//
// Schedules are text here; whoever asks parses them and has them verified.
// docs/decisions/tuning-key.md says why the key is what it is.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_TUNINGDATABASE_H
#define KF_RUNTIME_TUNING_TUNINGDATABASE_H

#include "runtime/core/Status.h"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What measurements depend on beside the kernel. Strings are printable ASCII,
/// at most 1024 characters; all but `identity` are not empty.
struct TuningScope {
  std::string target; ///< what code is for: "#kf.cpu_target<...>"
  /// Hash of what `target` leaves open, such as the features of "native";
  /// empty: nothing.
  std::string identity;
  std::string device;   ///< Device::description()
  std::string compiler; ///< its version and that of its parts

  auto operator<=>(const TuningScope &) const = default;
};

/// What a measurement holds for.
struct TuningKey {
  /// Of the kernel's text without its name: 32 hexadecimal digits.
  std::string kernel;
  int64_t rows = 1; ///< the most that it computes; positive
  TuningScope scope;

  auto operator<=>(const TuningKey &) const = default;
};

/// What the kernel of a key is, for people. Strings are as in TuningScope.
struct TuningSubject {
  std::string op; ///< "matmul", with what is fused; not empty
  std::vector<std::vector<int64_t>> shapes; ///< of arguments; -1: any extent
  std::vector<std::string> types;           ///< of the same: "f32", "q4_0"

  bool operator==(const TuningSubject &) const = default;
};

/// A schedule that was tried, as TuningEntry::schedule is. Numbers are finite
/// and not negative.
struct TuningTrial {
  std::string schedule;
  double predictedSeconds = 0; ///< 0: not known
  double seconds = 0;          ///< of one run; 0: it was not measured
  double error = 0;            ///< against the reference; 0 too if not compared
  /// Why it does not count; empty: it does. Printable ASCII, at most 1024
  /// characters.
  std::string rejected;

  bool operator==(const TuningTrial &) const = default;
};

struct TuningEntry {
  TuningKey key;
  TuningSubject subject;
  std::string schedule; ///< "#kf.vector<...>" of at most 4096 characters
  double seconds = 0;   ///< of one run; finite and positive
  /// Of the schedule that the target chooses by itself; 0: not measured.
  double defaultSeconds = 0;
  double error = 0;               ///< largest error against the reference
  std::string date;               ///< "2026-01-31"; empty: unknown
  std::vector<TuningTrial> tried; ///< at most 1024
};

/// Not thread-safe; any number of processes may load and save one file.
class TuningDatabase {
public:
  /// Reads the file at `path`; one that does not exist is an empty database.
  /// Errors name the file and the entry: the file is checked in full.
  static Result<TuningDatabase> load(const std::string &path);
  /// The same, but a file that does not exist is an error.
  static Result<TuningDatabase> loadExisting(const std::string &path);
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

  /// What the entries were measured in, each once, sorted.
  std::vector<TuningScope> scopes() const;

  /// A hash of the schedules that there are for `keys`, in their order, and
  /// what they are for; empty where there is none. Times do not count.
  std::string digest(std::span<const TuningKey> keys) const;

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
