//===- Fibers.cpp - Threads of a kernel, taking turns ----------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread runs until it waits for others. Which of those that can go on comes
// next is the order: KF_EMULATOR_ORDER is fifo, lifo or random:SEED.
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/mman.h>

using namespace emu;

/// Saves the registers that a call keeps, and goes on where `to` did so.
extern "C" void emuSwitch(void **from, void *to);
asm(R"(
.text
.globl emuSwitch
.hidden emuSwitch
emuSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace {

constexpr uint64_t stackBytes = 128 << 10;
/// From workgroup to workgroup of a cluster: more than any chip has.
constexpr uint64_t sharedStride = 256 << 10;
constexpr uint64_t mostInCluster = 16;
/// Turns that a thread gives away before it is taken for one that spins.
constexpr uint64_t mostTurns = 3'000'000;

enum class Order { Fifo, Lifo, Random };
Order order = Order::Fifo;
std::mt19937 generator;

const Kernel *kernel = nullptr;
std::vector<Fiber> fibers; ///< of the cluster that runs
std::vector<Workgroup> workgroups;
std::deque<Fiber *> ready;
Fiber *current = nullptr;
void *launcher = nullptr; ///< the stack of run()

char *sharedMemory = nullptr;
char *stacks = nullptr;
uint64_t stackCount = 0;

uint32_t clusterArrived = 0;
uint64_t clusterPhase = 0;
std::vector<Fiber *> clusterWaiting;

char *map(uint64_t bytes, int flags) {
  void *made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (made == MAP_FAILED)
    fault("no memory for threads");
  return static_cast<char *>(made);
}

void readOrder() {
  const std::string text = setting("KF_EMULATOR_ORDER", "fifo");
  order = text == "fifo"   ? Order::Fifo
          : text == "lifo" ? Order::Lifo
                           : Order::Random;
  if (order == Order::Random)
    generator.seed(atoi(text.substr(text.find(':') + 1).c_str()));
}

Fiber *pick() {
  if (order == Order::Random)
    std::swap(ready[generator() % ready.size()], ready.back());
  Fiber *next = order == Order::Fifo ? ready.front() : ready.back();
  order == Order::Fifo ? ready.pop_front() : ready.pop_back();
  return next;
}

std::string place(const Thread &t) {
  char text[160];
  snprintf(text, sizeof text, "workgroup %u %u %u, thread %u %u %u, line %u",
           t.ctaid[0], t.ctaid[1], t.ctaid[2], t.tid[0], t.tid[1], t.tid[2],
           t.line);
  return text;
}

[[noreturn]] void deadlock() {
  size_t waiting = 0;
  const Fiber *first = nullptr, *last = nullptr;
  for (const Fiber &each : fibers)
    if (!each.isDone) {
      ++waiting;
      first = first ? first : &each;
      last = &each;
    }
  fault("deadlock of " + std::to_string(waiting) + " threads, from " +
        place(first->thread) + " (" + first->waitsFor + ") to " +
        place(last->thread) + " (" + last->waitsFor + ")");
}

void switchTo(Fiber *next, void **from) {
  current = next;
  emuSwitch(from, next->stack);
}

/// Where a fiber begins, and ends by going elsewhere.
void fiberMain() {
  kernel->run(&current->thread);
  emuCommitCopies(&current->thread);
  emuAwaitCopies(&current->thread, 0);
  current->isDone = true;
  void *nowhere;
  if (!ready.empty())
    switchTo(pick(), &nowhere);
  for (const Fiber &each : fibers)
    if (!each.isDone)
      deadlock();
  emuSwitch(&nowhere, launcher);
  __builtin_trap();
}

void makeThread(const Launch &launch, const uint32_t cluster[3],
                const uint32_t at[3], uint32_t rank, uint32_t i) {
  const uint32_t *block = launch.block;
  const uint32_t size = block[0] * block[1] * block[2];
  const uint32_t within[3] = {rank % cluster[0], rank / cluster[0] % cluster[1],
                              rank / cluster[0] / cluster[1]};
  Fiber &fiber = fibers[rank * size + i];
  Thread &t = fiber.thread;
  for (int d = 0; d < 3; ++d) {
    t.ntid[d] = block[d];
    t.nctaid[d] = launch.grid[d];
    t.clusterCtaid[d] = within[d];
    t.clusterNctaid[d] = cluster[d];
    t.clusterid[d] = at[d];
    t.nclusterid[d] = launch.grid[d] / cluster[d];
    t.ctaid[d] = at[d] * cluster[d] + within[d];
  }
  t.tid[0] = i % block[0];
  t.tid[1] = i / block[0] % block[1];
  t.tid[2] = i / block[0] / block[1];
  t.clusterRank = rank;
  t.clusterSize = cluster[0] * cluster[1] * cluster[2];
  t.lane = i % 32;
  t.warp = i / 32;
  t.cluster = reinterpret_cast<u64>(sharedMemory);
  t.stride = sharedStride;
  t.shared = t.cluster + rank * sharedStride;
  t.sharedBytes = launch.kernel->staticShared + launch.dynamicShared;
  t.parameters = launch.parameters;

  Workgroup &workgroup = workgroups[rank];
  fiber.workgroup = &workgroup;
  workgroup.fibers.push_back(&fiber);
  Warp &warp = workgroup.warps[i / 32];
  warp.lanes.push_back(&fiber);
  warp.existing |= 1u << (i % 32);

  // As if emuSwitch() had been called at the start of fiberMain(): its return
  // address, six registers below it, and nothing to return to.
  auto *top = reinterpret_cast<uint64_t *>(
      stacks + (uint64_t(rank) * size + i + 1) * stackBytes - 64);
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&fiberMain);
  for (int k = 0; k < 6; ++k)
    *--top = 0;
  fiber.stack = top;
  wake(&fiber);
}

void runCluster(const Launch &launch, const uint32_t cluster[3],
                const uint32_t at[3]) {
  const uint32_t size = launch.block[0] * launch.block[1] * launch.block[2];
  const uint32_t count = cluster[0] * cluster[1] * cluster[2];
  fibers.clear();
  fibers.resize(uint64_t(size) * count);
  workgroups.clear();
  workgroups.resize(count);
  ready.clear();
  clusterWaiting.clear();
  clusterArrived = 0;
  clusterPhase = 1;
  for (uint32_t rank = 0; rank < count; ++rank) {
    workgroups[rank].warps.resize((size + 31) / 32);
    // NaNs: whoever reads before another has written gets one.
    memset(sharedMemory + rank * sharedStride, 0xff,
           launch.kernel->staticShared + launch.dynamicShared);
    for (uint32_t i = 0; i < size; ++i)
      makeThread(launch, cluster, at, rank, i);
  }
  switchTo(pick(), &launcher);
}

/// What a driver would refuse, too.
void checkLaunch(const Launch &launch, const uint32_t cluster[3]) {
  const Kernel &of = *launch.kernel;
  for (int d = 0; d < 3; ++d) {
    if (of.threads[0] && launch.block[d] != uint32_t(of.threads[d]))
      fault("launched with other threads than its .reqntid");
    if (!launch.grid[d] || launch.grid[d] % cluster[d])
      fault("launched with a grid that is no multiple of its cluster");
  }
  if (launch.dynamicShared > of.mostDynamic)
    fault("launched with more dynamic shared memory than was asked for");
  if (of.staticShared + launch.dynamicShared > sharedStride ||
      cluster[0] * cluster[1] * cluster[2] > mostInCluster)
    fault("launched with more shared memory or workgroups than a cluster has");
}

} // namespace

const Kernel *emu::currentKernel() { return kernel; }

bool emu::isShared(uint64_t address, uint64_t bytes) {
  const auto base = reinterpret_cast<uint64_t>(sharedMemory);
  return address >= base &&
         address + bytes <= base + workgroups.size() * sharedStride;
}

void emu::run(const Launch &launch) {
  std::lock_guard guard(lock());
  kernel = launch.kernel;
  uint32_t cluster[3] = {1, 1, 1};
  if (kernel->cluster[0])
    std::copy_n(kernel->cluster, 3, cluster);
  if (*setting("KF_EMULATOR_LOG", ""))
    fprintf(stderr,
            "cuda emulator: %s: grid %u %u %u, block %u %u %u, cluster %u %u "
            "%u, shared %lu + %lu\n",
            kernel->text.c_str(), launch.grid[0], launch.grid[1],
            launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
            cluster[0], cluster[1], cluster[2], kernel->staticShared,
            launch.dynamicShared);
  checkLaunch(launch, cluster);
  readOrder();
  if (!sharedMemory) {
    // Below 2 GiB: kernels hold addresses of shared memory in 32 bits. Where
    // it begins is a multiple of the stride, as its own alignments are.
    char *made = map((mostInCluster + 1) * sharedStride, MAP_32BIT);
    const auto base = reinterpret_cast<uint64_t>(made);
    sharedMemory = made + (sharedStride - base % sharedStride) % sharedStride;
  }
  const uint64_t needed = uint64_t(cluster[0]) * cluster[1] * cluster[2] *
                          launch.block[0] * launch.block[1] * launch.block[2];
  if (stackCount < needed) {
    if (stacks)
      munmap(stacks, stackCount * stackBytes);
    stacks = map(needed * stackBytes, 0);
    stackCount = needed;
  }
  uint32_t clusters[3];
  for (int d = 0; d < 3; ++d)
    clusters[d] = launch.grid[d] / cluster[d];
  const uint64_t count = uint64_t(clusters[0]) * clusters[1] * clusters[2];
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t flat = order == Order::Lifo ? count - 1 - i : i;
    const uint32_t at[3] = {uint32_t(flat % clusters[0]),
                            uint32_t(flat / clusters[0] % clusters[1]),
                            uint32_t(flat / clusters[0] / clusters[1])};
    runCluster(launch, cluster, at);
  }
  checkCanaries();
}

void emu::wake(Fiber *fiber) { ready.push_back(fiber); }

void emu::suspend(Fiber *fiber, const char *waitsFor) {
  fiber->waitsFor = waitsFor;
  if (ready.empty())
    deadlock();
  Fiber *next = pick();
  if (next != fiber)
    switchTo(next, &fiber->stack);
}

void emuYield(Thread *t) {
  Fiber *fiber = fiberOf(t);
  if (++fiber->turnsGiven > mostTurns)
    emuFail(t, "spins for ever: turns given away", fiber->turnsGiven, 0);
  if (ready.empty())
    return;
  // Behind all others, whatever the order is.
  order == Order::Fifo ? ready.push_back(fiber) : ready.push_front(fiber);
  suspend(fiber, "its turn");
}

void emuFail(Thread *t, const char *what, u64 a, u64 b) {
  char numbers[96];
  snprintf(numbers, sizeof numbers, " %lu (0x%lx), %lu: ", a, a, b);
  fault(what + std::string(numbers) + place(*t));
}

void emu::fault(const std::string &what) {
  fprintf(stderr, "cuda emulator: fault: %s; kernel %s of %s\n", what.c_str(),
          kernel ? kernel->name.c_str() : "none",
          kernel ? kernel->text.c_str() : "no text");
  abort();
}

void emuClusterArrive(Thread *t) {
  fiberOf(t)->clusterPhase = clusterPhase;
  if (++clusterArrived < fibers.size())
    return;
  clusterArrived = 0;
  ++clusterPhase;
  for (Fiber *each : std::exchange(clusterWaiting, {}))
    wake(each);
}

void emuClusterWait(Thread *t) {
  Fiber *fiber = fiberOf(t);
  if (fiber->clusterPhase < clusterPhase)
    return;
  clusterWaiting.push_back(fiber);
  suspend(fiber, "the cluster's barrier");
}
