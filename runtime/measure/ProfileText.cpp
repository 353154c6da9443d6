//===- ProfileText.cpp - A profile as a table and as a trace --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/JsonText.h"
#include "runtime/measure/Profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>

using namespace kf;

namespace {

std::string formatted(const char *format, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

/// "512", "65.5k", "1.23M": four characters of a number at least, by thousands.
std::string shortCount(double value) {
  constexpr const char *units[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0)
    return formatted("%.0f", value);
  const char *format = value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f";
  return formatted(format, value) + units[unit];
}

/// A rate in thousands of millions.
std::string billions(double amount, double seconds) {
  return seconds > 0 ? formatted("%.2f", amount / seconds * 1e-9) : "-";
}

std::string percent(double part, double whole) {
  return whole > 0 ? formatted("%.1f%%", 100 * part / whole) : "-";
}

constexpr size_t kColumns = 9; // behind the name
using Row = std::array<std::string, kColumns + 1>;

const Row kHead = {"kernel", "calls", "ms",      "share",   "bytes",
                   "flops",  "GB/s",  "GFLOP/s", "ceiling", ""};

/// Bytes and flops are those of a call, on the average.
Row rowOf(const std::string &name, const KernelProfile &kernel, double all,
          const MachineRates &rates) {
  Row row;
  row[0] = name;
  row[1] = std::to_string(kernel.calls);
  row[2] = formatted("%.3f", kernel.seconds * 1e3);
  row[3] = percent(kernel.seconds, all);
  // What is not known of all calls is not known.
  if (!kernel.hasWork() || kernel.unknown) {
    std::fill(row.begin() + 4, row.begin() + 9, "-");
    return row;
  }
  const double calls = static_cast<double>(kernel.calls);
  const double flops = kernel.work.operations();
  row[4] = shortCount(kernel.work.bytes / calls);
  row[5] = shortCount(flops / calls);
  row[6] = billions(kernel.work.bytes, kernel.seconds);
  row[7] = billions(flops, kernel.seconds);
  const std::string_view bound = boundOf(kernel.work, rates);
  row[8] = bound.empty()
               ? "-"
               : percent(leastSeconds(kernel.work, rates), kernel.seconds);
  row[9] = bound;
  return row;
}

/// Columns that a table has at most, as far as numbers go.
constexpr size_t kMostColumns = 100;

/// Numbers to the right, names to the left: one that is too long for that has a
/// line of its own above its numbers.
std::string aligned(const std::vector<Row> &rows) {
  std::array<size_t, kColumns + 1> widths = {};
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  size_t numbers = 2 * kColumns - 1;
  for (size_t i = 1; i <= kColumns; ++i)
    numbers += widths[i];
  if (widths[0] + numbers > kMostColumns)
    widths[0] = kMostColumns - std::min(numbers, kMostColumns);
  std::string text;
  for (const Row &row : rows) {
    std::string line = row[0];
    if (line.size() > widths[0]) {
      text += line + '\n';
      line.clear();
    }
    line.append(widths[0] - line.size(), ' ');
    for (size_t i = 1; i <= kColumns; ++i) {
      line.append(2 - (i == kColumns), ' ');
      if (i < kColumns)
        line.append(widths[i] - row[i].size(), ' ');
      line += row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string counted(uint64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string ceilingsLine(const MachineRates &rates) {
  std::string text;
  auto add = [&](double rate, const char *what, const char *unit) {
    if (rate > 0)
      text += (text.empty() ? "ceilings: " : ", ") + std::string(what) + " " +
              formatted("%.1f", rate * 1e-9) + " " + unit;
  };
  add(rates.readBytesPerSecond, "read", "GB/s");
  if (!text.empty() && rates.threads == 0)
    text += " (of copies)";
  add(rates.f32FlopsPerSecond, "f32", "GFLOP/s");
  add(rates.i8OpsPerSecond, "i8", "GOP/s");
  add(rates.i8TileOpsPerSecond, "i8 tiles", "GOP/s");
  add(rates.bf16FlopsPerSecond, "bf16", "GFLOP/s");
  if (text.empty())
    return "ceilings: not known of this device\n";
  if (rates.threads)
    text += ", of " + counted(static_cast<uint64_t>(rates.threads), "thread");
  return text + "\n";
}

/// Shares of a ceiling above this are no chance.
constexpr double kImplausible = 1.1;

/// What there is to say about ceilings that others' work made too low, or about
/// shares above all of one, if there are any.
std::string remarks(const std::vector<ProgramProfile> &programs,
                    const MachineRates &rates, bool disturbed) {
  if (disturbed)
    return "other processes had cores while the ceilings were measured, which "
           "may be higher:\nshares of them are at most what is shown, and "
           "another one may hold a kernel back;\nprofile again when the "
           "machine is idle\n";
  bool reads = false, computes = false;
  for (const ProgramProfile &program : programs)
    for (const KernelProfile &kernel : program.kernels) {
      if (kernel.unknown ||
          leastSeconds(kernel.work, rates) <= kImplausible * kernel.seconds)
        continue;
      (boundOf(kernel.work, rates) == "read" ? reads : computes) = true;
    }
  std::string text;
  // Copies write as much as they read, and are slower than reading for it.
  if (reads)
    text += std::string("more than 100% of read: what the kernel reads may "
                        "stay in a cache,\nor the ") +
            (rates.threads ? "machine was slower while the ceilings were "
                             "measured\n"
                           : "device reads faster than it copies\n");
  if (computes)
    text += "more than 100% of what is computed: the machine was slower while "
            "the ceilings were\nmeasured; profile again\n";
  return text;
}

/// Microseconds, as traces count.
std::string microseconds(double seconds) {
  return formatted("%.3f", seconds * 1e6);
}

std::string naming(uint32_t track, const std::string &name) {
  return jsonObject({{"ph", jsonText("M")},
                     {"pid", "1"},
                     {"tid", jsonText(track)},
                     {"name", jsonText("thread_name")},
                     {"args", jsonObject({{"name", jsonText(name)}})}});
}

} // namespace

std::string Profile::table(const MachineRates &rates, bool disturbed) const {
  std::string text;
  for (const ProgramProfile &program : sums) {
    const double all = program.kernelSeconds();
    text += program.program + ": " + counted(program.runs, "run") + ", " +
            formatted("%.3f ms", program.seconds * 1e3) + ", " +
            formatted("%.3f ms", all * 1e3) + " of it in kernels\n";
    std::vector<const KernelProfile *> kernels;
    KernelProfile sum;
    for (const KernelProfile &kernel : program.kernels) {
      kernels.push_back(&kernel);
      sum.calls += kernel.calls;
      sum.seconds += kernel.seconds;
      sum.work += kernel.work;
      sum.unknown += kernel.unknown;
    }
    std::ranges::sort(kernels, {}, [](const KernelProfile *kernel) {
      return std::pair(-kernel->seconds, kernel);
    });
    std::vector<Row> rows = {kHead};
    for (const KernelProfile *kernel : kernels)
      rows.push_back(rowOf(kernel->kernel, *kernel, all, rates));
    rows.push_back(rowOf("all", sum, all, rates));
    text += aligned(rows);
  }
  return text + ceilingsLine(rates) + remarks(sums, rates, disturbed);
}

std::string Profile::trace(const std::string &device) const {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"otherData\":" +
                     jsonObject({{"device", jsonText(device)},
                                 {"dropped_events", jsonText(dropped)}}) +
                     ",\"traceEvents\":[\n";
  text += jsonObject({{"ph", jsonText("M")},
                      {"pid", "1"},
                      {"name", jsonText("process_name")},
                      {"args", jsonObject({{"name", jsonText("kf-run")}})}});
  std::set<uint32_t> tracks;
  for (const Event &event : events)
    tracks.insert(event.track);
  constexpr uint32_t runs = static_cast<uint32_t>(Event::Track::Runs),
                     dispatches =
                         static_cast<uint32_t>(Event::Track::Dispatches),
                     threads = static_cast<uint32_t>(Event::Track::FirstThread);
  for (uint32_t track : tracks)
    text += ",\n" +
            naming(track, track == runs ? "steps"
                          : track == dispatches
                              ? "stream of " + device
                              : "thread " + std::to_string(track - threads));
  for (const Event &event : events) {
    const ProgramProfile &program = sums[event.program];
    const bool isRun = event.track == runs;
    auto number = [&](int i) { return formatted("%.0f", event.amount[i]); };
    const std::string arguments =
        isRun ? jsonObject({{"n_tokens", number(0)}})
        : event.track == dispatches
            ? jsonObject({{"program", jsonText(program.program)},
                          {"bytes", number(0)},
                          {"flops", number(1)}})
            : jsonObject({{"workgroups", number(0)}});
    text +=
        ",\n" +
        jsonObject(
            {{"ph", jsonText("X")},
             {"pid", "1"},
             {"tid", jsonText(event.track)},
             {"cat", jsonText(isRun ? "step" : "kernel")},
             {"name", jsonText(isRun ? program.program
                                     : program.kernels[event.kernel].kernel)},
             {"ts", microseconds(event.begin)},
             {"dur", microseconds(event.seconds)},
             {"args", arguments}});
  }
  return text + "\n]}\n";
}
