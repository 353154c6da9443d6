//===- CpuProgram.cpp - A program made ready on the CPU -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/CpuProgram.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>

namespace kf {
namespace {

/// How long a thread that is done with its share waits before it looks for
/// work in others' shares: longer than the usual difference between threads.
constexpr std::chrono::nanoseconds kStealDelay{2000};

/// Workgroups [first, first + count) of `total` belong to `thread` of
/// `threads`.
struct Range {
  uint64_t first, count;
};

Range shareOf(uint64_t total, uint64_t thread, uint64_t threads) {
  uint64_t each = total / threads, rest = total % threads;
  return {thread * each + std::min(thread, rest), each + (thread < rest)};
}

/// Workgroups of a dispatch whose grid was checked.
uint64_t workgroupCount(const DispatchSpec &dispatch,
                        std::span<const int64_t> scalars) {
  const std::array<int64_t, 3> grid = *gridOf(dispatch, scalars);
  return static_cast<uint64_t>(grid[0]) * grid[1] * grid[2];
}

uint64_t nanosecondsBetween(std::chrono::steady_clock::time_point from,
                            std::chrono::steady_clock::time_point to) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(to - from).count());
}

} // namespace

Status CpuContext::reserveScratch(uint64_t bytes) {
  scratch.resize(pool->size());
  for (AlignedBuffer &buffer : scratch) {
    if (buffer.size() >= bytes)
      continue;
    KF_ASSIGN_OR_RETURN(buffer, AlignedBuffer::allocate(bytes));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Loading and binding
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<LoadedProgram>>
CpuProgram::load(const Executable &executable, CpuContext &context) {
  std::unique_ptr<CpuProgram> program(new CpuProgram(executable, context));
  uint64_t scratchBytes = 0;
  std::vector<std::string> names;
  for (const KernelSpec &kernel : executable.kernels) {
    scratchBytes = std::max(scratchBytes, kernel.scratchBytes);
    names.push_back(kernel.name);
  }
  KF_RETURN_IF_ERROR(context.reserveScratch(scratchBytes));
  KF_RETURN_IF_ERROR(ObjectLoader::checkFeatures(executable.features));
  if (!names.empty()) {
    KF_ASSIGN_OR_RETURN(program->object,
                        context.loader->load(executable.binary, names));
  }
  return std::unique_ptr<LoadedProgram>(std::move(program));
}

Result<std::unique_ptr<Instance>>
CpuProgram::doBind(const BindingTable &table) {
  std::span<const kf_kernel_fn> kernels;
  if (object)
    kernels = object->functions();
  return std::unique_ptr<Instance>(
      std::make_unique<CpuInstance>(program(), table, kernels, context));
}

CpuInstance::CpuInstance(const Executable &program, const BindingTable &table,
                         std::span<const kf_kernel_fn> kernels,
                         CpuContext &context)
    : HostInstance(program, table), context(context),
      shares(new Share[context.pool->size()]),
      activities(new Activity[context.pool->size()]) {
  for (const DispatchSpec &dispatch : program.dispatches) {
    calls.push_back({dispatch.collective ? nullptr : kernels[dispatch.kernel],
                     pointers.size(),
                     dispatch.collective ? &*dispatch.collective : nullptr});
    for (const kf_binding &binding : dispatch.bindings) {
      std::byte *address = HostBuffer::of(*bufferOf(table, binding)).data();
      if (binding.kind == KF_BINDING_CACHE) // prepare() finds its layer
        layers.push_back(
            {pointers.size(), binding.index, binding.offset, address});
      else
        address += binding.offset;
      pointers.push_back(address);
    }
  }
}

CpuInstance::~CpuInstance() { context.pool->quiesce(); }

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status CpuInstance::doCheck(std::span<const int64_t> newScalars) {
  if (context.pool->size() == 1)
    return Status();
  for (size_t i = 0; i < program().dispatches.size(); ++i)
    if (uint64_t count = workgroupCount(program().dispatches[i], newScalars);
        count >= uint64_t(1) << kIndexBits)
      return Status::error("dispatch " + std::to_string(i) + " has " +
                           std::to_string(count) +
                           " workgroups, more than the CPU device can count");
  return Status();
}

/// Everything that depends on the scalars' values; decoding changes none from
/// token to token.
Status CpuInstance::prepare(std::span<const int64_t> newScalars) {
  context.pool->quiesce();
  prepared = false;
  if (newScalars[KF_SCALAR_N_TOKENS] != scalars[KF_SCALAR_N_TOKENS])
    leastDispatch = Clock::duration::max();
  before.assign(1, 0);
  for (const DispatchSpec &dispatch : program().dispatches)
    before.push_back(before.back() + workgroupCount(dispatch, newScalars));
  // Every layer lies in its buffer: that was checked when the run was enqueued.
  for (const Layer &layer : layers) {
    const CacheSpec &cache = program().caches[layer.cache];
    KF_ASSIGN_OR_RETURN(int64_t bytes,
                        cache.bytes(newScalars[KF_SCALAR_CACHE_PAGES]));
    pointers[layer.pointer] = layer.base + layer.index * (bytes / cache.layers);
  }
  std::ranges::copy(newScalars, scalars.begin());
  reset();
  prepared = true;
  return Status();
}

/// Starts counting anew, with the team as it is; no worker may be in this
/// program.
void CpuInstance::reset() {
  teamVersion = context.team->version();
  for (int i = 0; i < context.pool->size(); ++i)
    shares[i].claimed.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  currentRun.store(0, std::memory_order_relaxed);
}

Status CpuInstance::run(std::span<const int64_t> newScalars,
                        CancelFlag newCancelled, DispatchTimes *times) {
  if (!prepared || !std::ranges::equal(newScalars, scalars))
    KF_RETURN_IF_ERROR(prepare(newScalars));
  if (cancelled != newCancelled) {
    context.pool->quiesce();
    cancelled = newCancelled;
  }
  setMeasuring(times != nullptr);
  if (!times)
    return runOnce();
  // A worker that is late finds nothing to do, and writes nothing.
  for (std::vector<Stint> &each : stints)
    std::ranges::fill(each, Stint());
  const Clock::time_point start = Clock::now();
  Status status = runOnce();
  times->clear();
  Clock::time_point begin = start;
  for (size_t d = 0; status.ok() && d < calls.size(); ++d) {
    DispatchTime time;
    time.kernel = program().nameOf(program().dispatches[d]);
    // It is over when the last of its workgroups is, whenever the caller's
    // thread comes to know.
    Clock::time_point end = begin;
    for (const std::vector<Stint> &each : stints)
      end = std::max({end, each[2 * d].end, each[2 * d + 1].end});
    time.nanoseconds = nanosecondsBetween(begin, end);
    time.begin = nanosecondsBetween(start, begin);
    addWorkers(d, start, time);
    times->push_back(std::move(time));
    begin = end;
  }
  return status;
}

void CpuInstance::setMeasuring(bool on) {
  if (on == !stints.empty())
    return;
  context.pool->quiesce();
  stints.clear();
  if (on)
    stints.assign(context.pool->size(), std::vector<Stint>(2 * calls.size()));
}

/// Who worked on a dispatch of the last run, which began at `start`.
void CpuInstance::addWorkers(size_t dispatch, Clock::time_point start,
                             DispatchTime &time) const {
  for (size_t thread = 0; thread < stints.size(); ++thread)
    for (size_t i = 0; i < 2; ++i) {
      const Stint &stint = stints[thread][2 * dispatch + i];
      if (stint.workgroups)
        time.workers.push_back({static_cast<uint32_t>(thread),
                                nanosecondsBetween(start, stint.begin),
                                nanosecondsBetween(stint.begin, stint.end),
                                stint.workgroups});
    }
}

/// Runs all dispatches for the scalars that were prepared.
Status CpuInstance::runOnce() {
  if (context.pool->size() == 1)
    return runTogether();
  const Clock::time_point begin = Clock::now();
  context.team->update(begin, leastDispatch);
  Status status = runTogether();
  if (status.ok() && !calls.empty())
    leastDispatch = std::min<Clock::duration>(
        leastDispatch, (Clock::now() - begin) / calls.size());
  return status;
}

/// Runs them with the team as it is.
Status CpuInstance::runTogether() {
  if (context.team->size() == 1)
    return runAlone();

  collected = Status();
  stopped.store(false, std::memory_order_relaxed);
  uint64_t run = currentRun.load(std::memory_order_relaxed) + 1;
  // Numbers of dispatches have 40 bits; start over long before they wrap.
  constexpr uint64_t lastNumber = uint64_t(1) << (63 - kIndexBits);
  if (teamVersion != context.team->version() ||
      run >= lastNumber / (calls.size() + 1)) {
    context.pool->quiesce();
    reset();
    run = 1;
  }
  currentRun.store(run, std::memory_order_release);
  context.pool->start(*this);
  const bool isWhole = walk(0, run);
  if (isWhole && collected.ok())
    return Status();
  context.pool->quiesce();
  reset();
  return collected.ok() ? Status::cancelled() : collected;
}

Status CpuInstance::runAlone() {
  for (size_t d = 0; d < calls.size(); ++d) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    int64_t count = static_cast<int64_t>(before[d + 1] - before[d]);
    const Clock::time_point begin = startStint();
    if (calls[d].collective)
      KF_RETURN_IF_ERROR(collect(d));
    else
      for (int64_t workgroup = 0; workgroup < count; ++workgroup)
        call(0, d, workgroup);
    endStint(0, 2 * d, static_cast<uint64_t>(count), begin);
  }
  return Status();
}

/// Runs a collective, which all threads' earlier work is ready for.
Status CpuInstance::collect(size_t dispatch) {
  const Call &ready = calls[dispatch];
  const size_t count = ready.collective->bindings();
  std::array<std::byte *, 2> memory = {};
  for (size_t i = 0; i < count; ++i)
    memory[i] = static_cast<std::byte *>(pointers[ready.firstBinding + i]);
  return catchExceptions([&] {
    return runCollective(*device()->group(), *ready.collective, scalars,
                         std::span(memory).first(count), staging);
  });
}

/// Now, where the run is measured.
inline CpuInstance::Clock::time_point CpuInstance::startStint() const {
  return stints.empty() ? Clock::time_point() : Clock::now();
}

/// Notes what the thread did since `begin` in its part number `stint` of the
/// run, where that is measured. It comes before the workgroups are counted as
/// done: until then the run cannot be over.
inline void CpuInstance::endStint(int thread, size_t stint, uint64_t workgroups,
                                  Clock::time_point begin) {
  if (!stints.empty() && workgroups)
    stints[thread][stint] = {workgroups, begin, Clock::now()};
}

void CpuInstance::work(int thread) {
  walk(thread, currentRun.load(std::memory_order_acquire));
}

inline void CpuInstance::call(int thread, size_t dispatch, int64_t workgroup) {
  const Call &ready = calls[dispatch];
  ready.function(pointers.data() + ready.firstBinding, scalars.data(),
                 context.scratch[thread].data(), workgroup);
}

/// Takes part in run number `run` (from 1) until its last dispatch is over. A
/// thread that comes late, even in a later run, finds every dispatch over. Each
/// thread leaves by itself when the run is cancelled, always between
/// dispatches, so that whoever is still in one finds its workgroups done or
/// unclaimed. Returns whether the thread got to the end.
bool CpuInstance::walk(int thread, uint64_t run) {
  const int rank = context.team->rankOf(thread);
  if (rank < 0)
    return true;
  const uint64_t base = (run - 1) * before.back();
  for (size_t d = 0; d < calls.size(); ++d) {
    // Whoever comes late must not look at the caller's flag, which may be gone.
    if (thread == 0 && isCancelled(cancelled))
      stopped.store(true, std::memory_order_relaxed);
    if (stopped.load(std::memory_order_relaxed)) {
      // Others may wait in a collective that this thread does not come to.
      if (thread == 0)
        progress.notify();
      return false;
    }
    takePart(thread, rank, d, run * calls.size() + d, base + before[d + 1]);
  }
  return true;
}

/// Helps with dispatch `d`, the one with this number, until it is over: when
/// `target` workgroups are finished.
void CpuInstance::takePart(int thread, int rank, size_t d, uint64_t number,
                           uint64_t target) {
  auto over = [&] {
    return finished.load(std::memory_order_acquire) >= target;
  };
  if (over())
    return;
  if (calls[d].collective)
    return takePartInCollective(thread, d, number, target);
  std::atomic<uint64_t> &activity = activities[thread].number;
  activity.store(number, std::memory_order_relaxed);
  Clock::time_point begin = startStint();
  const uint64_t ran = runShare(rank, thread, d, number);
  endStint(thread, 2 * d, ran, begin);
  finish(ran, number, target);
  activity.store(0, std::memory_order_relaxed);
  if (spinUntil(over, kStealDelay))
    return;
  activity.store(number, std::memory_order_relaxed);
  const int members = context.team->size();
  uint64_t stolen = 0;
  begin = startStint();
  for (int i = 1; i < members; ++i)
    stolen += runShare((rank + i) % members, thread, d, number);
  endStint(thread, 2 * d + 1, stolen, begin);
  finish(stolen, number, target);
  activity.store(0, std::memory_order_relaxed);
  if (!spinUntil(over, EventCount::spinLimit))
    waitFor(thread, number, target);
}

/// The same of a collective, whose only workgroup is thread 0's: where the run
/// is stopped, nobody may come to it.
void CpuInstance::takePartInCollective(int thread, size_t d, uint64_t number,
                                       uint64_t target) {
  if (thread != 0)
    return progress.await([&] {
      return finished.load(std::memory_order_acquire) >= target ||
             stopped.load(std::memory_order_relaxed);
    });
  const Clock::time_point begin = startStint();
  collected = collect(d);
  endStint(0, 2 * d, 1, begin);
  if (!collected.ok())
    stopped.store(true, std::memory_order_relaxed);
  finish(1, number, target);
}

/// Sleeps until the dispatch is over. By now every workgroup is claimed: what
/// is waited for is in other threads' hands, and one of them may be without a
/// core.
void CpuInstance::waitFor(int thread, uint64_t number, uint64_t target) {
  auto over = [&] {
    return finished.load(std::memory_order_acquire) >= target;
  };
  int suspect = 0;
  while (suspect < context.pool->size() &&
         activities[suspect].number.load(std::memory_order_relaxed) != number)
    ++suspect;
  if (suspect == context.pool->size()) {
    progress.await(over, std::chrono::nanoseconds(0));
    return;
  }
  ThreadTeam::Watch watch(*context.team, suspect);
  progress.await(over, std::chrono::nanoseconds(0));
  // An observer that gets a core late itself finds later dispatches over.
  ThreadTeam::Clock::time_point end = overTime.load();
  if (overNumber.load() == number)
    watch.report(thread, end);
}

/// Claims and runs what is left of `owner`'s share of a dispatch; how many
/// workgroups that were. `owner` is a rank in the team.
uint64_t CpuInstance::runShare(int owner, int thread, size_t dispatch,
                               uint64_t number) {
  const Range range = shareOf(before[dispatch + 1] - before[dispatch], owner,
                              context.team->size());
  std::atomic<uint64_t> &claimed = shares[owner].claimed;
  uint64_t ran = 0;
  uint64_t seen = claimed.load(std::memory_order_relaxed);
  for (;;) {
    // A smaller number is an earlier dispatch's: nothing claimed yet of this
    // one. A larger one is a later dispatch's: this one is over, and no claim
    // can succeed, for every claim changes the counter.
    const uint64_t seenNumber = seen >> kIndexBits;
    if (seenNumber > number)
      return ran;
    const uint64_t fresh = number << kIndexBits;
    const uint64_t current = seenNumber == number ? seen : fresh;
    const uint64_t index = current - fresh;
    if (index >= range.count)
      return ran;
    if (!claimed.compare_exchange_weak(seen, current + 1,
                                       std::memory_order_relaxed))
      continue;
    call(thread, dispatch, static_cast<int64_t>(range.first + index));
    ++ran;
    seen = claimed.load(std::memory_order_relaxed);
  }
}

/// Counts workgroups as done; wakes the others if they were the dispatch's
/// last.
void CpuInstance::finish(uint64_t workgroups, uint64_t number,
                         uint64_t target) {
  if (workgroups == 0)
    return;
  // The run is not over before these are counted, so that the flag is there.
  if (isCancelled(cancelled))
    stopped.store(true, std::memory_order_relaxed);
  uint64_t now = finished.fetch_add(workgroups, std::memory_order_acq_rel);
  if (now + workgroups != target)
    return;
  overTime.store(ThreadTeam::Clock::now());
  overNumber.store(number);
  progress.notify();
}

} // namespace kf
