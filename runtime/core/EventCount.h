//===- EventCount.h - Wait a little, then sleep -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How threads of the runtime wait for one another: spin for some microseconds,
// because the other side is nearly always about to finish, then sleep in the
// kernel, because otherwise the other side may be waiting for this core.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_EVENTCOUNT_H
#define KF_RUNTIME_CORE_EVENTCOUNT_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace kf {

/// Tells the processor that this is a spin loop.
inline void spinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Calls `ready` until it is true or `limit` has passed; whether it was true.
template <typename Ready>
bool spinUntil(Ready ready, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr int polls = 16; // between two looks at the clock
  for (int i = 0; i < polls; ++i) {
    if (ready())
      return true;
    spinPause();
  }
  Clock::time_point end = Clock::now() + limit;
  do {
    for (int i = 0; i < polls; ++i) {
      if (ready())
        return true;
      spinPause();
    }
  } while (Clock::now() < end);
  return ready();
}

/// A place where threads wait for a condition on atomic variables. Whoever
/// makes the condition true calls notify() afterwards. Any number of threads.
class EventCount {
public:
  static constexpr std::chrono::microseconds spinLimit{20};

  /// Returns when `ready()` is true; `ready` reads atomic variables only.
  template <typename Ready>
  void await(Ready ready, std::chrono::nanoseconds spin = spinLimit) {
    if (spinUntil(ready, spin))
      return;
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      uint32_t seen = generation.load(std::memory_order_seq_cst);
      // Pairs with notify(): either this sees the condition, or notify() sees
      // the sleeper.
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (ready())
        break;
      generation.wait(seen, std::memory_order_seq_cst);
    }
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  /// Wakes every sleeper to look at its condition; costs next to nothing when
  /// there is none.
  void notify() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) == 0)
      return;
    generation.fetch_add(1, std::memory_order_seq_cst);
    generation.notify_all();
  }

private:
  alignas(64) std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace kf

#endif // KF_RUNTIME_CORE_EVENTCOUNT_H
