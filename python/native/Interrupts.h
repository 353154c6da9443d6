//===- Interrupts.h - Ctrl-C while something goes on ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python's handlers of signals run on the main thread, when that asks for it.
// Hence a thread that calls from Python computes nothing that may take long: it
// waits, without the GIL, and asks every now and then. Other threads than the
// main one may ask, too, and learn of nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_INTERRUPTS_H
#define KF_PYTHON_NATIVE_INTERRUPTS_H

#include "Gil.h"
#include "OwnProcess.h"

#include "runtime/core/Exceptions.h"

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <thread>

namespace kf::python {

/// How long a thread waits without asking.
inline constexpr std::chrono::milliseconds kSignalInterval{20};

/// Has Python handle signals, with the GIL; whether a handler raised.
inline bool hasRaised() {
  return stayIfEnded([] { return PyErr_CheckSignals(); }) != 0;
}

/// Has Python handle signals, with the GIL; throws what a handler raises,
/// KeyboardInterrupt mostly.
inline void handleSignals() {
  if (hasRaised())
    nanobind::raise_python_error();
}

/// How often a thread that has to wait for its turn looks.
inline constexpr std::chrono::milliseconds kTurnInterval{2};

/// Has other threads run, and Python handle signals.
inline void waitForTurn() {
  withoutGil([] { std::this_thread::sleep_for(kTurnInterval); });
  handleSignals();
}

/// A thread that works for one of Python's, which waits for it. With the GIL,
/// which guards the list of all.
class Worker {
public:
  /// It ends soon after `cancelled` is set.
  explicit Worker(std::atomic<bool> &cancelled) : cancelled(cancelled) {
    ofThisProcess().insert(this);
  }
  ~Worker() { ofThisProcess().erase(this); }
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  /// Ends all, waits for them, and lets none begin any more: what they use is
  /// gone once the interpreter has ended. One that is in Python's code, and may
  /// wait there for the calling thread, is waited for briefly. Throws what a
  /// signal's handler raises.
  static void endAll() {
    using Clock = std::chrono::steady_clock;
    isOver = true;
    Clock::time_point busy = Clock::now();
    while (const size_t count = cancelAll()) {
      if (HeldGil::count() < count)
        busy = Clock::now();
      else if (Clock::now() - busy > kCallbackTime)
        return;
      waitForTurn();
    }
  }
  /// An error once all were ended.
  static Status check() {
    return isOver ? Status::error("the interpreter ends", StatusCode::Cancelled)
                  : Status();
  }

private:
  /// How long all that work may be in Python's code before they are left.
  static constexpr std::chrono::seconds kCallbackTime{2};

  /// How many there are.
  static size_t cancelAll() {
    for (const Worker *worker : ofThisProcess())
      worker->cancelled = true;
    return ofThisProcess().size();
  }
  /// Those of a process that this one was forked from are not here, and their
  /// memory may be another's.
  static std::set<const Worker *> &ofThisProcess() {
    static std::set<const Worker *> all;
    static std::optional<OwnProcess> process;
    if (!process || !process->isThis()) {
      all.clear();
      HeldGil::forgetAll();
      process.emplace();
    }
    return all;
  }

  inline static bool isOver = false;

  std::atomic<bool> &cancelled;
};

/// Returns fn(), a Status or a Result, which runs on a thread of its own,
/// without the GIL. Where a signal's handler raises meanwhile, `cancelled` is
/// set, fn() is waited for, and the exception is thrown. With the GIL. Errors:
/// fn()'s, Worker::check()'s.
template <typename Fn>
auto runInterruptibly(std::atomic<bool> &cancelled, Fn &&fn) -> decltype(fn()) {
  auto caught = [&fn] { return catchExceptions(fn); };
  std::optional<Worker> worker;
  std::future<decltype(fn())> result;
  bool isInterrupted = false;
  const Status started = catchExceptions([&]() -> Status {
    KF_RETURN_IF_ERROR(Worker::check());
    worker.emplace(cancelled);
    result = std::async(std::launch::async, caught);
    return Status();
  });
  if (!started.ok())
    return started;
  for (bool isDone = false; !isDone;) {
    isDone = withoutGil([&] {
      if (isInterrupted)
        result.wait();
      return result.wait_for(kSignalInterval) == std::future_status::ready;
    });
    if (!isDone && hasRaised()) {
      isInterrupted = true;
      cancelled = true;
    }
  }
  if (isInterrupted)
    nanobind::raise_python_error();
  return result.get();
}

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_INTERRUPTS_H
