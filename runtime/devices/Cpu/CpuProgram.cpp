//===- CpuProgram.cpp - A program made ready on the CPU -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/CpuProgram.h"

#include "runtime/Exceptions.h"

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

std::string numbered(const char *what, size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

Status checkBuffer(Buffer *buffer, uint64_t bytes) {
  if (!buffer)
    return Status::error("no buffer is bound");
  if (!buffer->hostPointer() && bytes > 0)
    return Status::error("its buffer is not in the CPU's memory");
  if (buffer->size() < bytes)
    return Status::error("its buffer has " + std::to_string(buffer->size()) +
                         " bytes where " + std::to_string(bytes) +
                         " are needed");
  return Status();
}

/// Checks the number of buffers of one kind and that each is there; their
/// sizes go to `sizes`.
Status checkBuffers(const char *what, const std::vector<Buffer *> &buffers,
                    size_t count, std::vector<uint64_t> &sizes) {
  if (buffers.size() != count)
    return Status::error(std::to_string(buffers.size()) + " " + what +
                         " buffers are bound where the program has " +
                         std::to_string(count));
  sizes.clear();
  for (size_t i = 0; i < count; ++i) {
    KF_RETURN_IF_ERROR(checkBuffer(buffers[i], 0).in(numbered(what, i)));
    KF_RETURN_IF_ERROR(
        checkBuffer(buffers[i], buffers[i]->size()).in(numbered(what, i)));
    sizes.push_back(buffers[i]->size());
  }
  return Status();
}

std::byte *bytesOf(Buffer *buffer) {
  return static_cast<std::byte *>(buffer->hostPointer());
}

/// Checks buffers of inputs or outputs against what a step's sizes need.
Status checkTensors(const char *what, const std::vector<TensorSpec> &specs,
                    const std::vector<uint64_t> &sizes,
                    std::span<const int64_t> scalars) {
  for (size_t i = 0; i < specs.size(); ++i) {
    KF_ASSIGN_OR_RETURN(
        int64_t bytes,
        checkedByteCount(specs[i].type, resolveShape(specs[i].shape, scalars)));
    if (sizes[i] < static_cast<uint64_t>(bytes))
      return Status::error(
          numbered(what, i) + " needs " + std::to_string(bytes) +
          " bytes for " + std::to_string(scalars[KF_SCALAR_N_TOKENS]) +
          " tokens; its buffer has " + std::to_string(sizes[i]));
  }
  return Status();
}

Result<uint64_t> workgroupCount(const DispatchSpec &dispatch,
                                std::span<const int64_t> scalars) {
  int64_t total = 1;
  for (const kf_grid_dim &dim : dispatch.grid) {
    int64_t extent = dim.value;
    if (dim.scalar >= 0) {
      int64_t scalar = scalars[dim.scalar];
      if (scalar < 0)
        return Status::error("scalar " + std::to_string(dim.scalar) +
                             " of a grid is negative");
      extent = scalar / dim.value + (scalar % dim.value != 0);
    }
    if (__builtin_mul_overflow(total, extent, &total))
      return Status::error("a grid has more workgroups than 63 bits can count");
  }
  return static_cast<uint64_t>(total);
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

CpuProgram::CpuProgram(const Executable &executable, CpuContext &context)
    : context(context), limits(executable.limits()),
      arenaBytes(executable.arenaBytes), caches(executable.caches),
      inputs(executable.inputs), outputs(executable.outputs),
      dispatches(executable.dispatches),
      shares(new Share[context.pool->size()]),
      activities(new Activity[context.pool->size()]) {}

Result<std::unique_ptr<CpuProgram>>
CpuProgram::load(const Executable &executable, CpuContext &context) {
  KF_RETURN_IF_ERROR(executable.verify());
  std::unique_ptr<CpuProgram> program(new CpuProgram(executable, context));
  for (const WeightSpec &weight : executable.weights) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, weight.packedBytes());
    program->weightBytes.push_back(static_cast<uint64_t>(bytes));
  }
  uint64_t scratchBytes = 0;
  std::vector<std::string> names;
  for (const KernelSpec &kernel : executable.kernels) {
    scratchBytes = std::max(scratchBytes, kernel.scratchBytes);
    names.push_back(kernel.name);
  }
  KF_RETURN_IF_ERROR(context.reserveScratch(scratchBytes));
  if (names.empty())
    return program;
  KF_ASSIGN_OR_RETURN(program->object,
                      context.loader->load(executable.binary, names));
  return program;
}

CpuProgram::~CpuProgram() { context.pool->quiesce(); }

Status CpuProgram::bind(const BindingTable &table) try {
  context.pool->quiesce();
  bound = prepared = false;
  if (arenaBytes > 0)
    KF_RETURN_IF_ERROR(checkBuffer(table.arena, arenaBytes).in("the arena"));
  std::vector<uint64_t> weightSizes;
  KF_RETURN_IF_ERROR(
      checkBuffers("weight", table.weights, weightBytes.size(), weightSizes));
  for (size_t i = 0; i < weightBytes.size(); ++i)
    KF_RETURN_IF_ERROR(checkBuffer(table.weights[i], weightBytes[i])
                           .in(numbered("weight", i)));
  KF_RETURN_IF_ERROR(
      checkBuffers("cache", table.caches, caches.size(), cacheSizes));
  KF_RETURN_IF_ERROR(
      checkBuffers("input", table.inputs, inputs.size(), inputSizes));
  KF_RETURN_IF_ERROR(
      checkBuffers("output", table.outputs, outputs.size(), outputSizes));

  // verify() has checked every index and arena offset.
  auto addressOf = [&](const kf_binding &binding) {
    switch (binding.kind) {
    case KF_BINDING_WEIGHT:
      return bytesOf(table.weights[binding.index]);
    case KF_BINDING_CACHE: // of its first layer; prepare() finds the others
      return bytesOf(table.caches[binding.index]);
    case KF_BINDING_INPUT:
      return bytesOf(table.inputs[binding.index]);
    case KF_BINDING_OUTPUT:
      return bytesOf(table.outputs[binding.index]);
    default:
      return bytesOf(table.arena) + binding.offset;
    }
  };
  calls.clear();
  pointers.clear();
  layers.clear();
  for (const DispatchSpec &dispatch : dispatches) {
    calls.push_back({object->functions()[dispatch.kernel], pointers.size()});
    for (const kf_binding &binding : dispatch.bindings) {
      std::byte *address = addressOf(binding);
      if (binding.kind == KF_BINDING_CACHE)
        layers.push_back(
            {pointers.size(), binding.index, binding.offset, address});
      pointers.push_back(address);
    }
  }
  bound = true;
  return Status();
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status CpuProgram::checkSizes(std::span<const int64_t> newScalars) const {
  KF_RETURN_IF_ERROR(limits.check(newScalars));
  int64_t capacity = newScalars[KF_SCALAR_CACHE_CAPACITY];
  for (size_t i = 0; i < caches.size(); ++i) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, caches[i].bytes(capacity));
    if (cacheSizes[i] < static_cast<uint64_t>(bytes))
      return Status::error(
          numbered("cache", i) + " needs " + std::to_string(bytes) +
          " bytes for " + std::to_string(capacity) + " pages; its buffer has " +
          std::to_string(cacheSizes[i]));
  }
  KF_RETURN_IF_ERROR(checkTensors("input", inputs, inputSizes, newScalars));
  return checkTensors("output", outputs, outputSizes, newScalars);
}

/// Everything that depends on the scalars' values; decoding changes none from
/// token to token.
Status CpuProgram::prepare(std::span<const int64_t> newScalars) {
  context.pool->quiesce();
  prepared = false;
  KF_RETURN_IF_ERROR(checkSizes(newScalars));
  const bool counted = context.pool->size() > 1;
  before.assign(1, 0);
  for (size_t i = 0; i < dispatches.size(); ++i) {
    Result<uint64_t> count = workgroupCount(dispatches[i], newScalars);
    if (!count.ok())
      return count.status().in(numbered("dispatch", i));
    if (counted && *count >= uint64_t(1) << kIndexBits)
      return Status::error(numbered("dispatch", i) + " has " +
                           std::to_string(*count) +
                           " workgroups, more than the CPU device can count");
    before.push_back(before.back() + *count);
  }
  // checkSizes() has found that every layer lies in its buffer.
  for (const Layer &layer : layers) {
    const CacheSpec &cache = caches[layer.cache];
    KF_ASSIGN_OR_RETURN(int64_t bytes,
                        cache.bytes(newScalars[KF_SCALAR_CACHE_CAPACITY]));
    pointers[layer.pointer] = layer.base + layer.index * (bytes / cache.layers);
  }
  std::ranges::copy(newScalars, scalars.begin());
  reset();
  prepared = true;
  return Status();
}

/// Starts counting anew, with the team as it is; no worker may be in this
/// program.
void CpuProgram::reset() {
  teamVersion = context.team->version();
  for (int i = 0; i < context.pool->size(); ++i)
    shares[i].claimed.store(0, std::memory_order_relaxed);
  finished.store(0, std::memory_order_relaxed);
  currentRun.store(0, std::memory_order_relaxed);
}

Status CpuProgram::run(std::span<const int64_t> newScalars,
                       CancelFlag newCancelled) try {
  if (!bound)
    return Status::error("the program runs before its buffers are bound");
  if (newScalars.size() != KF_SCALAR_COUNT)
    return Status::error("a program takes " + std::to_string(KF_SCALAR_COUNT) +
                         " scalars, not " + std::to_string(newScalars.size()));
  if (!prepared || !std::ranges::equal(newScalars, scalars))
    KF_RETURN_IF_ERROR(prepare(newScalars));
  if (cancelled != newCancelled) {
    context.pool->quiesce();
    cancelled = newCancelled;
  }
  if (context.pool->size() > 1)
    context.team->update(ThreadTeam::Clock::now());
  if (context.team->size() == 1)
    return runAlone() ? Status() : Status::cancelled();

  uint64_t run = currentRun.load(std::memory_order_relaxed) + 1;
  // Numbers of dispatches have 40 bits; start over long before they wrap.
  constexpr uint64_t lastNumber = uint64_t(1) << (63 - kIndexBits);
  if (teamVersion != context.team->version() ||
      run >= lastNumber / (dispatches.size() + 1)) {
    context.pool->quiesce();
    reset();
    run = 1;
  }
  currentRun.store(run, std::memory_order_release);
  context.pool->start(*this);
  if (walk(0, run))
    return Status();
  context.pool->quiesce();
  reset();
  return Status::cancelled();
} catch (...) {
  return statusOfException();
}

/// Whether it got to the end.
bool CpuProgram::runAlone() {
  for (size_t d = 0; d < calls.size(); ++d) {
    if (isCancelled(cancelled))
      return false;
    int64_t count = static_cast<int64_t>(before[d + 1] - before[d]);
    for (int64_t workgroup = 0; workgroup < count; ++workgroup)
      call(0, d, workgroup);
  }
  return true;
}

void CpuProgram::work(int thread) {
  walk(thread, currentRun.load(std::memory_order_acquire));
}

inline void CpuProgram::call(int thread, size_t dispatch, int64_t workgroup) {
  const Call &ready = calls[dispatch];
  ready.function(pointers.data() + ready.firstBinding, scalars.data(),
                 context.scratch[thread].data(), workgroup);
}

/// Takes part in run number `run` (from 1) until its last dispatch is over. A
/// thread that comes late, even in a later run, finds every dispatch over. Each
/// thread leaves by itself when the run is cancelled, always between
/// dispatches, so that whoever is still in one finds its workgroups done or
/// unclaimed. Returns whether the thread got to the end.
bool CpuProgram::walk(int thread, uint64_t run) {
  const int members = context.team->size();
  const int rank = context.team->rankOf(thread);
  if (rank < 0)
    return true;
  const uint64_t base = (run - 1) * before.back();
  for (size_t d = 0; d < calls.size(); ++d) {
    if (isCancelled(cancelled))
      return false;
    const uint64_t target = base + before[d + 1];
    auto over = [&] {
      return finished.load(std::memory_order_acquire) >= target;
    };
    if (over())
      continue;
    const uint64_t number = run * calls.size() + d;
    std::atomic<uint64_t> &activity = activities[thread].number;
    activity.store(number, std::memory_order_relaxed);
    finish(runShare(rank, thread, d, number), number, target);
    activity.store(0, std::memory_order_relaxed);
    if (spinUntil(over, kStealDelay))
      continue;
    activity.store(number, std::memory_order_relaxed);
    uint64_t stolen = 0;
    for (int i = 1; i < members; ++i)
      stolen += runShare((rank + i) % members, thread, d, number);
    finish(stolen, number, target);
    activity.store(0, std::memory_order_relaxed);
    if (!spinUntil(over, EventCount::spinLimit))
      waitFor(thread, number, target);
  }
  return true;
}

/// Sleeps until the dispatch is over. By now every workgroup is claimed: what
/// is waited for is in other threads' hands, and one of them may be without a
/// core.
void CpuProgram::waitFor(int thread, uint64_t number, uint64_t target) {
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
uint64_t CpuProgram::runShare(int owner, int thread, size_t dispatch,
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
void CpuProgram::finish(uint64_t workgroups, uint64_t number, uint64_t target) {
  if (workgroups == 0)
    return;
  uint64_t now = finished.fetch_add(workgroups, std::memory_order_acq_rel);
  if (now + workgroups != target)
    return;
  overTime.store(ThreadTeam::Clock::now());
  overNumber.store(number);
  progress.notify();
}

} // namespace kf
