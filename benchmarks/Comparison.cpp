//===- Comparison.cpp - Ours, peers and ceilings in turns -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Comparison.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/measure/Statistics.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

using namespace kf;
using namespace kf::bench;

namespace {

/// A turn repeats what takes less than this, for the clock's sake.
constexpr double leastSeconds = 1e-3;
/// The first runs, which nothing counts: libraries set memory aside in them.
constexpr int warmUps = 2;
/// An iteration, of which Google Benchmark may take just one: enough for a
/// median that a single disturbed turn does not move.
constexpr int turnsPerIteration = 5;

double differenceOf(const std::vector<float> &ours,
                    const std::vector<float> &other) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    difference += std::pow(static_cast<double>(other[i]) - ours[i], 2);
    size += std::pow(static_cast<double>(ours[i]), 2);
  }
  return std::sqrt(difference / size);
}

struct Turns {
  Entry entry;
  int64_t repeats = 1;
  std::vector<double> seconds; ///< of one run, a turn each

  Status take() {
    Stopwatch watch;
    for (int64_t i = 0; i < repeats; ++i)
      KF_RETURN_IF_ERROR(entry.contender->run().in(entry.name));
    seconds.push_back(watch.seconds() / static_cast<double>(repeats));
    return Status();
  }
};

/// The contenders of the case that runs, warm.
class Prepared {
public:
  static Result<std::unique_ptr<Prepared>> create(const Case &of) {
    KF_ASSIGN_OR_RETURN(std::vector<Entry> entries, of.prepare());
    auto prepared = std::make_unique<Prepared>();
    std::vector<float> ours;
    for (Entry &entry : entries) {
      Turns turns;
      turns.entry = std::move(entry);
      for (int i = 0; i < warmUps; ++i)
        KF_RETURN_IF_ERROR(turns.take());
      turns.repeats = std::max<int64_t>(
          1, std::ceil(leastSeconds / std::max(turns.seconds.back(), 1e-7)));
      KF_ASSIGN_OR_RETURN(std::vector<float> result,
                          turns.entry.contender->result());
      if (prepared->all.empty())
        ours = std::move(result);
      else if (!turns.entry.isCeiling)
        KF_RETURN_IF_ERROR(
            prepared->compare(of, ours, result).in(turns.entry.name));
      prepared->all.push_back(std::move(turns));
    }
    return prepared;
  }

  std::vector<Turns> all;
  double worst = 0; ///< difference of a peer

private:
  Status compare(const Case &of, const std::vector<float> &ours,
                 const std::vector<float> &result) {
    if (ours.size() != result.size())
      return Status::error("has " + std::to_string(result.size()) +
                           " results where ours has " +
                           std::to_string(ours.size()));
    if (ours.empty())
      return Status();
    const double difference = differenceOf(ours, result);
    if (!(difference <= of.tolerance))
      return Status::error("its result differs from ours by " +
                           std::to_string(difference) + ", more than " +
                           std::to_string(of.tolerance));
    worst = std::max(worst, difference);
    return Status();
  }
};

struct Running {
  const Case *of = nullptr;
  std::unique_ptr<Prepared> prepared;
};
/// Google Benchmark calls a case's function several times, to find out how
/// often to repeat it.
Running &running() {
  static Running it;
  return it;
}

bool &failed() {
  static bool any = false;
  return any;
}

const char *nameOf(Unit unit) {
  return unit == Unit::Operations ? "G/s" : "GB/s";
}

void setCounters(benchmark::State &state, const Case &of,
                 const Prepared &prepared) {
  auto rateOf = [&](const Turns &turns) {
    const double amount = turns.entry.amount ? turns.entry.amount : of.amount;
    return amount / statisticsOf(turns.seconds).median * 1e-9;
  };
  const Turns &ours = prepared.all.front();
  std::optional<double> ratio;
  for (const Turns &turns : prepared.all) {
    state.counters[turns.entry.name] = rateOf(turns);
    if (turns.entry.isCeiling)
      state.counters["of ceiling"] = rateOf(ours) / rateOf(turns);
    if (&turns == &ours || turns.entry.isCeiling)
      continue;
    // Of the same turns, so that a drift of the clock cancels out.
    std::vector<double> ratios;
    for (size_t i = 0; i < turns.seconds.size(); ++i)
      ratios.push_back(turns.seconds[i] / ours.seconds[i]);
    ratio = std::min(ratio.value_or(INFINITY), statisticsOf(ratios).median);
  }
  if (ratio)
    state.counters["of best peer"] = *ratio;
  state.counters["difference"] = prepared.worst;
}

void runCase(benchmark::State &state, const Case &of) {
  Running &now = running();
  auto fail = [&](const Status &status) {
    failed() = true;
    state.SkipWithError(status.message().c_str());
  };
  if (now.of != &of) {
    now = {};
    Result<std::unique_ptr<Prepared>> prepared = Prepared::create(of);
    if (!prepared.ok())
      return fail(prepared.status());
    now.of = &of;
    now.prepared = prepared.take();
  }
  for (Turns &turns : now.prepared->all)
    turns.seconds.clear();
  for (auto _ : state) {
    double seconds = 0; // of ours
    for (int turn = 0; turn < turnsPerIteration; ++turn) {
      for (Turns &turns : now.prepared->all)
        if (Status status = turns.take(); !status.ok())
          return fail(status);
      const Turns &ours = now.prepared->all.front();
      seconds += ours.seconds.back() * static_cast<double>(ours.repeats);
    }
    state.SetIterationTime(seconds);
  }
  state.SetLabel(nameOf(of.unit));
  setCounters(state, of, *now.prepared);
}

/// Why a run failed; empty where it did not. Releases of Google Benchmark from
/// 1.8 on have other names for it.
template <typename Run> std::string errorOf(const Run &run) {
  if constexpr (requires { run.error_occurred; })
    return run.error_occurred ? run.error_message : "";
  else
    return run.skipped ? run.skip_message : "";
}

/// A Markdown table.
class TableReporter : public benchmark::BenchmarkReporter {
public:
  explicit TableReporter(std::vector<std::string> peers)
      : peers(std::move(peers)) {}

  bool ReportContext(const Context &context) override {
    PrintBasicContext(&GetErrorStream(), context);
    columns = {"kf"};
    columns.insert(columns.end(), peers.begin(), peers.end());
    columns.insert(columns.end(),
                   {"of best peer", "ceiling", "of ceiling", "difference"});
    std::string head = "| case | unit |", line = "| --- | --- |";
    for (const std::string &column : columns) {
      head += " " + column + " |";
      line += " ---: |";
    }
    GetOutputStream() << head << "\n" << line << std::endl;
    return true;
  }

  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs) {
      std::string name = run.benchmark_name();
      name = name.substr(0, name.find("/manual_time"));
      if (const std::string error = errorOf(run); !error.empty()) {
        GetErrorStream() << "error: " << name << ": " << error << std::endl;
        continue;
      }
      std::string row = "| " + name + " | " + run.report_label + " |";
      for (const std::string &column : columns) {
        auto found = run.counters.find(column);
        row += found == run.counters.end()
                   ? std::string(" |")
                   : " " + textOf(column, found->second.value) + " |";
      }
      GetOutputStream() << row << std::endl;
    }
  }

private:
  static std::string textOf(const std::string &column, double value) {
    const char *format = "%.1f";
    if (column == "difference")
      format = "%.1e";
    else if (column.starts_with("of "))
      format = "%.3f";
    char text[32];
    std::snprintf(text, sizeof(text), format, value);
    return text;
  }

  std::vector<std::string> peers, columns;
};

} // namespace

void bench::addCase(Case added) {
  const std::string name = added.name;
  benchmark::RegisterBenchmark(
      name.c_str(), [of = std::make_shared<Case>(std::move(added))](
                        benchmark::State &state) { runCase(state, *of); })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

int bench::runCases(int argc, char **argv, std::vector<std::string> peers) {
  const bool wantsOther = std::any_of(argv, argv + argc, [](const char *arg) {
    return std::strncmp(arg, "--benchmark_format", 18) == 0;
  });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  TableReporter table(std::move(peers));
  if (wantsOther)
    benchmark::RunSpecifiedBenchmarks();
  else
    benchmark::RunSpecifiedBenchmarks(&table);
  running() = {};
  benchmark::Shutdown();
  return failed();
}
