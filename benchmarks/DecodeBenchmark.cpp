//===- DecodeBenchmark.cpp - Decoding against the memory's read rate ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The embedded model, greedy. Rows: the rate at which one thread reads an array
// as large as the model's weights (the ceiling of a decode step), decode steps
// with 1 and 2 threads, and prefill. Counters are tokens and bytes a second,
// by the clock.
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledSession.h"
#include "runtime/core/AlignedBuffer.h"
#include "runtime/measure/HostLoops.h"

#include <benchmark/benchmark.h>

#include <cstring>

using namespace kf;

namespace {

constexpr size_t weightBytes = 12569408; // models/kf-stories/model.safetensors

void setRate(benchmark::State &state, const char *name, double amount) {
  state.counters[name] =
      benchmark::Counter(amount * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void readPeak(benchmark::State &state) {
  Result<AlignedBuffer> data = AlignedBuffer::allocate(weightBytes);
  if (!data.ok())
    return state.SkipWithError(data.message().c_str());
  std::memset(data->data(), 1, weightBytes);
  const ReadLoop loop = readLoops().front();
  for (auto _ : state)
    benchmark::DoNotOptimize(loop.run(data->span()));
  setRate(state, "B/s", weightBytes);
}
BENCHMARK(readPeak)->Unit(benchmark::kMicrosecond);

/// A session that reads everything anew, and a sequence of it.
struct Running {
  static Result<Running> open(int64_t threads) {
    SessionOptions options;
    options.model.path = KF_SOURCE_DIR "/models/kf-stories";
    options.withTokenizer = false;
    options.device.threads = threads;
    Running run;
    KF_ASSIGN_OR_RETURN(run.session, openSession(options));
    KF_RETURN_IF_ERROR(run.session->start({.reusesPrefixes = false}));
    KF_ASSIGN_OR_RETURN(run.sequence, run.session->engine().createSequence());
    return run;
  }

  /// The most likely token behind `ids`, which are read.
  Result<int32_t> read(std::span<const int32_t> ids) {
    Reading reading;
    reading.ids.assign(ids.begin(), ids.end());
    reading.sampler = &sampler;
    KF_ASSIGN_OR_RETURN(std::optional<int32_t> next,
                        readAlone(*sequence, std::move(reading)));
    return *next;
  }

  std::unique_ptr<Session> session;
  std::unique_ptr<Sequence> sequence;
  Sampler sampler = Sampler::create({}).take();
};

/// Steps after the first state.range(1) tokens.
void decode(benchmark::State &state) {
  std::vector<int32_t> prompt(state.range(1), 256);
  Result<Running> opened = Running::open(state.range(0));
  if (!opened.ok())
    return state.SkipWithError(opened.message().c_str());
  Running &run = *opened;
  Result<int32_t> next = run.read(prompt);
  if (next.ok()) { // a step of one token is compiled with it
    const int32_t id = *next;
    next = run.read({&id, 1});
  }
  for (auto _ : state) {
    if (!next.ok())
      return state.SkipWithError(next.message().c_str());
    if (run.sequence->position() + 1 >= run.sequence->contextLength()) {
      state.PauseTiming();
      (void)run.sequence->rewind(state.range(1)).ok();
      state.ResumeTiming();
    }
    const int32_t id = *next;
    next = run.read({&id, 1});
  }
  setRate(state, "tok/s", 1);
  setRate(state, "B/s", weightBytes);
}
BENCHMARK(decode)
    ->ArgNames({"threads", "prompt"})
    ->Args({1, 5})
    ->Args({2, 5})
    ->Args({1, 800})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void prefill(benchmark::State &state) {
  std::vector<int32_t> prompt(state.range(1), 256);
  Result<Running> opened = Running::open(state.range(0));
  if (!opened.ok())
    return state.SkipWithError(opened.message().c_str());
  Running &run = *opened;
  (void)run.read(prompt).ok(); // compiles
  for (auto _ : state) {
    (void)run.sequence->rewind(0).ok();
    if (Result<int32_t> next = run.read(prompt); !next.ok())
      return state.SkipWithError(next.message().c_str());
  }
  setRate(state, "tok/s", static_cast<double>(prompt.size()));
}
BENCHMARK(prefill)
    ->ArgNames({"threads", "prompt"})
    ->Args({1, 12})
    ->Args({1, 512})
    ->Args({2, 512})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
