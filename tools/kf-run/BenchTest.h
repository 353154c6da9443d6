//===- BenchTest.h - One test of kf-run bench -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_BENCHTEST_H
#define KF_TOOLS_KF_RUN_BENCHTEST_H

#include "runtime/core/Stopwatch.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Generation.h"
#include "runtime/engine/Sampler.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// Sequences that read a prompt, generate, or do one after the other.
struct BenchTest {
  int64_t prompt = 0;    ///< tokens of each sequence's prompt
  int64_t generated = 0; ///< tokens of each, one a step where none are drafted
  int64_t depth = 0;     ///< tokens that each has before the test begins
  int64_t sequences = 1; ///< that do so at once

  /// "pp512", "tg128 @ d4096", "pp512+tg128".
  std::string name() const;
  /// Positions of the context that a sequence needs.
  int64_t positions() const { return depth + prompt + generated; }
  /// Tokens that a run counts.
  int64_t tokens() const { return sequences * (prompt + generated); }
};

/// Runs a test on an engine as often as it is asked to. The tokens of prompts
/// are random; those that are generated are the most likely ones. One thread;
/// `engine`, which nobody else uses, must outlive it.
class BenchRunner {
public:
  BenchRunner(Engine &engine, const BenchTest &test);

  /// Makes the sequences, up to the test's depth, and runs what makes programs,
  /// weights and memory ready: the whole prompt, and a few tokens. Then runs
  /// the test until all that, but for the making, took `warmUp` seconds.
  Status prepare(double warmUp);
  /// Seconds of a run, less those in which programs were made ready.
  struct Times {
    double all = 0;
    double firstToken = 0; ///< until the first sequence has one
  };
  /// One run.
  Result<Times> run();

private:
  struct Reader {
    std::unique_ptr<Sequence> sequence;
    Sampler sampler;                        ///< the most likely token
    std::unique_ptr<Generation> generation; ///< of a run
  };

  std::vector<int32_t> randomIds(int64_t count);
  /// Has `reader` read random ids, and choose `tokens` behind them.
  Status generate(Reader &reader, int64_t ids, int64_t tokens);
  /// Runs the engine until all have done what they had to.
  Status finish();
  /// Has all sequences be at the test's depth.
  Status begin();
  /// Runs the test from there.
  Status runOnce(int64_t generated);
  Result<Times> timeOnce(int64_t generated);

  Engine &engine;
  BenchTest test;
  std::vector<Reader> readers; ///< [sequences]
  uint32_t drawn = 0;          ///< random ids so far
  Stopwatch watch;             ///< since a run began
  std::optional<double> first; ///< seconds of the run to its first token
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_BENCHTEST_H
