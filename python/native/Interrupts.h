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

#include "runtime/core/Exceptions.h"

#include <atomic>
#include <chrono>
#include <future>

namespace kf::python {

/// How long a thread waits without asking.
inline constexpr std::chrono::milliseconds kSignalInterval{20};

/// Has Python handle signals, with the GIL; throws what a handler raises,
/// KeyboardInterrupt mostly.
inline void handleSignals() {
  if (PyErr_CheckSignals() != 0)
    nanobind::raise_python_error();
}

/// Returns fn(), a Status or a Result, which runs on a thread of its own,
/// without the GIL. Where a signal's handler raises meanwhile, `cancelled` is
/// set, fn() is waited for, and the exception is thrown. With the GIL.
template <typename Fn>
auto runInterruptibly(std::atomic<bool> &cancelled, Fn &&fn) -> decltype(fn()) {
  auto caught = [&fn] { return catchExceptions(fn); };
  std::future<decltype(fn())> result;
  bool isInterrupted = false;
  const Status started = catchExceptions([&] {
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
    if (!isDone && PyErr_CheckSignals() != 0) {
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
