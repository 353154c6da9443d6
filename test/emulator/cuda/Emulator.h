//===- Emulator.h - The parts of the emulator of CUDA ----------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel runs at a time, on the thread that launched it, cluster after
// cluster; run() in Fibers.cpp holds lock() meanwhile. Whatever is wrong with a
// kernel is a fault: one line on stderr, and the end of the process, so that a
// debugger or a test sees where.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_EMULATOR_CUDA_EMULATOR_H
#define KF_TEST_EMULATOR_CUDA_EMULATOR_H

#include "KernelRuntime.h"

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace emu {

//===- Settings -----------------------------------------------------------===//

/// What run.sh says by an environment variable, or `otherwise`.
const char *setting(const char *name, const char *otherwise);

/// sm_80 is 80, sm_90a is 90.
int capability();

/// Of driver and memory: all that is not a thread's.
std::recursive_mutex &lock();

//===- Modules (Modules.cpp) ----------------------------------------------===//

/// A kernel that was translated and loaded; it lives as long as the process.
struct Kernel {
  std::string name; ///< in the text
  std::string text; ///< the file of the PTX, beside which the C is
  std::string library;
  void (*run)(Thread *) = nullptr;
  std::vector<int> parameters;     ///< bytes of each
  const int *cluster, *threads;    ///< [3], or 0 first: not said
  uint64_t staticShared = 0;       ///< bytes
  uint64_t mostDynamic = 48 << 10; ///< bytes that a launch may ask for
};

/// Null, after a line on stderr, where the text cannot be translated.
Kernel *loadKernel(const std::string &ptx);

//===- Memory (Memory.cpp) ------------------------------------------------===//

/// Memory filled with NaNs, with a canary behind it, and behind that nothing.
/// 0 where there is none.
uint64_t allocate(uint64_t bytes);
void release(uint64_t base);
/// Ends the process if a canary was written over.
void checkCanaries();
void copyBytes(uint64_t to, uint64_t from, uint64_t bytes);

//===- Threads (Fibers.cpp) -----------------------------------------------===//

/// A copy that was begun and that nothing waited for.
struct Copy {
  uint64_t to, from;
  uint32_t bytes, of;
};

struct Workgroup;

/// A thread of the kernel, with a stack of its own.
struct Fiber {
  Thread thread = {}; ///< first: a Thread * is a Fiber *
  void *stack = nullptr;
  bool isDone = false;
  const char *waitsFor = "its turn";
  Workgroup *workgroup = nullptr;
  std::deque<std::vector<Copy>> committed; ///< oldest first
  std::vector<Copy> begun;                 ///< not in a group yet
  void *meets = nullptr;                   ///< what it brings to a meeting
  uint64_t turnsGiven = 0;
  uint64_t clusterPhase = 0; ///< in which it arrived at the cluster's barrier
};

struct Warp {
  std::vector<Fiber *> lanes;
  uint32_t existing = 0; ///< bit per lane
  uint32_t arrived = 0, mask = 0, line = 0;
};

struct Barrier {
  uint32_t arrived = 0, threads = 0;
  std::vector<Fiber *> waiting;
};

struct Workgroup {
  std::vector<Fiber *> fibers;
  std::vector<Warp> warps;
  Barrier barriers[16];
};

inline Fiber *fiberOf(Thread *t) { return reinterpret_cast<Fiber *>(t); }

struct Launch {
  Kernel *kernel;
  uint32_t grid[3], block[3];
  uint64_t dynamicShared;
  void **parameters;
};
void run(const Launch &launch);

/// The kernel that runs, or the last one; null before.
const Kernel *currentKernel();
/// Whether `address` is in shared memory of the cluster that runs.
bool isShared(uint64_t address, uint64_t bytes);

void wake(Fiber *fiber);
/// Runs others until the fiber is woken.
void suspend(Fiber *fiber, const char *waitsFor);

/// All lanes of `mask` meet; the last one runs `act`, then all go on.
void meet(Thread *t, uint32_t mask, void *brings,
          const std::function<void(Warp &)> &act);

[[noreturn]] void fault(const std::string &what);

} // namespace emu

#endif // KF_TEST_EMULATOR_CUDA_EMULATOR_H
