//===- BenchOutput.h - What kf-run bench prints -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Results in llama-bench's forms: a Markdown table, CSV, a JSON array, or a
// JSON object a line, under its names where it has one. The table is narrower:
// what all rows have in common stands above it. Each result is printed when it
// is there, so that an end ahead of time loses nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_BENCHOUTPUT_H
#define KF_TOOLS_KF_RUN_BENCHOUTPUT_H

#include "BenchCeilings.h"
#include "BenchTest.h"

#include "runtime/core/Status.h"
#include "runtime/engine/Engine.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// A model on a device, as all its results tell.
struct BenchSubject {
  std::string model;        ///< path or name
  std::string architecture; ///< "llama"
  std::string weightType, cacheType, activationType;
  uint64_t modelBytes = 0, parameters = 0;
  std::string device;      ///< "cpu"
  std::string description; ///< of the device
  bool isHost = false;     ///< the device is the host's processor
  int64_t ranks = 1;       ///< that run it together
  int64_t threads = 0;     ///< of all ranks; 0: the device has none
  std::string preset;      ///< of --preset; empty: none
};

struct BenchResult {
  BenchSubject subject;
  BenchTest test;
  int64_t rowsPerStep = 0;     ///< the most rows that a step reads
  std::string time;            ///< when it began: "2026-01-31T12:00:00Z"
  std::vector<double> seconds; ///< of each run
  double firstToken = 0; ///< seconds to the first token of a run, in the mean
  double load = 0;       ///< seconds: opening files, loading, packing weights
  double compile = 0;  ///< seconds: compiling, or finding programs in the cache
  EngineMemory memory; ///< on the device
  uint64_t peakMemory = 0; ///< bytes of this process so far; 0: unknown
  /// Bytes of the device's memory that are taken, by all processes; nothing
  /// where that is the host's.
  std::optional<uint64_t> deviceMemory;
  std::optional<BenchCeiling> ceiling;
  int64_t drafted = 0;  ///< tokens, in all runs together
  int64_t accepted = 0; ///< of them, those that came true
};

/// The share of what the ceiling allows that the mean run reaches; nothing
/// where there is no ceiling.
std::optional<double> ceilingShareOf(const BenchResult &result);

/// Prints to stdout.
class BenchOutput {
public:
  /// `format` is "md", "csv", "json" or "jsonl"; `tests` are those to come.
  /// Of drafts "md" tells where there are any (`withDrafts`).
  static std::unique_ptr<BenchOutput>
  create(const std::string &format, const std::vector<BenchTest> &tests,
         bool withDrafts);
  virtual ~BenchOutput() = default;
  /// `subject` is the first result's.
  virtual Status begin(const BenchSubject &subject) = 0;
  virtual Status add(const BenchResult &result) = 0;
  /// To be called after begin(), whatever came between them.
  virtual Status end() = 0;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_BENCHOUTPUT_H
