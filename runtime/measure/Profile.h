//===- Profile.h - Where the time of programs goes --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of what a device measured of each dispatch (DispatchTimes), kernel by
// kernel, beside what the kernels had to do (KernelWork.h), as a table; and the
// dispatches one by one, as a trace.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_PROFILE_H
#define KF_RUNTIME_MEASURE_PROFILE_H

#include "runtime/devices/Device.h"
#include "runtime/measure/MachineRates.h"

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// One run of a program that was measured.
struct ProfiledRun {
  std::span<const int64_t> scalars; ///< [KF_SCALAR_COUNT]
  /// What the inputs held that kernels' work depends on, by their number, in
  /// rows of this run; of others nothing has to be known.
  const std::map<uint32_t, std::span<const int32_t>> &inputs;
  const DispatchTimes &times;
  std::chrono::steady_clock::time_point begin; ///< on the host
  double seconds = 0;                          ///< until it was over there
};

/// What all dispatches of a kernel did.
struct KernelProfile {
  std::string kernel; ///< as `kf-run emit-mlir` prints it
  uint64_t calls = 0;
  double seconds = 0;
  WorkAmount work;      ///< of those calls where it is known
  uint64_t unknown = 0; ///< calls whose work is not
  bool hasWork() const { return calls > unknown; }
};

struct ProgramProfile {
  std::string program;
  uint64_t runs = 0;
  double seconds = 0;                 ///< of whole runs, on the host
  std::vector<KernelProfile> kernels; ///< in the order of their first calls

  double kernelSeconds() const;
  /// Bytes that the kernels of a run move, as far as that is known, on the
  /// average.
  double bytesOfRun() const;
};

/// One thread.
class Profile {
public:
  /// Keeps single dispatches for trace() where `withTrace`; no more than
  /// `mostEvents` of them and of the threads' parts in them.
  explicit Profile(bool withTrace = false, size_t mostEvents = 500000)
      : withTrace(withTrace), mostEvents(mostEvents) {}

  /// `run.times` has one entry for each dispatch of `program`. Programs are
  /// told apart by their names.
  void add(const Executable &program, const ProfiledRun &run);

  /// In the order in which they first ran.
  const std::vector<ProgramProfile> &programs() const { return sums; }
  /// Events that the trace lacks, as there were too many.
  uint64_t droppedEvents() const { return dropped; }

  /// For people: a part for each program, kernels by their time. Rates that
  /// are 0 leave out what they would say. `disturbed` says that others' work
  /// may have made them too low, as measureRates() does.
  std::string table(const MachineRates &rates, bool disturbed = false) const;
  /// JSON in the format of Chrome's tracing, which Perfetto reads: a track for
  /// the runs, one for the dispatches of `device`, and one for each thread that
  /// told what it did.
  std::string trace(const std::string &device) const;

private:
  struct Event {
    enum class Track : uint32_t { Runs, Dispatches, FirstThread };
    uint32_t track;
    uint32_t program, kernel; ///< numbers; a run has no kernel
    double begin, seconds;    ///< since the first run began
    double amount[2];         ///< bytes and flops; tokens; workgroups
  };
  void addEvent(const Event &event);

  bool withTrace;
  size_t mostEvents;
  std::vector<ProgramProfile> sums;
  std::vector<Event> events;
  uint64_t dropped = 0;
  std::chrono::steady_clock::time_point first;
};

/// The least time that `work` takes on a machine of these rates, whatever they
/// leave unknown being free: it moves bytes and computes at the same time.
/// Floats, 8-bit integers and bf16 are computed one after the other.
double leastSeconds(const WorkAmount &work, const MachineRates &rates);

/// What holds `work` back on that machine: "read", "f32", "i8" or "bf16";
/// nothing where the rates do not say.
std::string_view boundOf(const WorkAmount &work, const MachineRates &rates);

} // namespace kf

#endif // KF_RUNTIME_MEASURE_PROFILE_H
