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

#include "benchmarks/Ceilings.h"
#include "test/conformance/ModelUnderTest.h"

#include <benchmark/benchmark.h>

using namespace kf;

namespace {

constexpr size_t weightBytes = 12569408; // models/kf-stories/model.safetensors

void setRate(benchmark::State &state, const char *name, double amount) {
  state.counters[name] =
      benchmark::Counter(amount * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void readPeak(benchmark::State &state) {
  std::vector<float> data(weightBytes / sizeof(float), 1.0f);
  for (auto _ : state)
    benchmark::DoNotOptimize(bench::readLoop(data.data(), weightBytes));
  setRate(state, "B/s", weightBytes);
}
BENCHMARK(readPeak)->Unit(benchmark::kMicrosecond);

/// The model with the programs compiled that `prompt` and decoding need.
std::unique_ptr<test::ModelUnderTest>
openModel(int64_t threads, const std::vector<int32_t> &prompt) {
  auto model =
      test::ModelUnderTest::open(KF_SOURCE_DIR "/models/kf-stories", "cpu",
                                 static_cast<unsigned>(threads));
  (void)model->session().prefill(prompt).ok();
  (void)model->session().decode(0).ok();
  model->session().reset();
  return model;
}

/// Steps after the first state.range(1) tokens.
void decode(benchmark::State &state) {
  std::vector<int32_t> prompt(state.range(1), 256);
  auto model = openModel(state.range(0), prompt);
  Session &session = model->session();
  auto logits = session.prefill(prompt);
  if (!logits.ok())
    return state.SkipWithError(logits.message().c_str());
  int32_t next = test::argmax(*logits);
  for (auto _ : state) {
    if (session.position() + 1 >= session.contextLength()) {
      state.PauseTiming();
      session.reset();
      (void)session.prefill(prompt).ok();
      state.ResumeTiming();
    }
    auto step = session.decode(next);
    if (!step.ok())
      return state.SkipWithError(step.message().c_str());
    next = test::argmax(*step);
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
  auto model = openModel(state.range(0), prompt);
  for (auto _ : state) {
    model->session().reset();
    auto logits = model->session().prefill(prompt);
    if (!logits.ok())
      return state.SkipWithError(logits.message().c_str());
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
