//===- OwnProcess.h - Beside others in a process ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_OWNPROCESS_H
#define KF_PYTHON_NATIVE_OWNPROCESS_H

#include "runtime/core/Status.h"

#include <future>
#include <memory>
#include <string>

#include <unistd.h>

namespace kf::python {

/// The process that something was made in. A fork has its memory and none of
/// its threads: whatever waits for one there waits forever.
class OwnProcess {
public:
  bool isThis() const { return getpid() == id; }
  /// An error in any other process, about `what`.
  Status check(const char *what) const {
    if (isThis())
      return Status();
    return Status::error(std::string(what) +
                             " was opened before this process was forked, and "
                             "its threads are not here: open it in this one, "
                             "or start processes by multiprocessing's 'spawn'",
                         StatusCode::Unavailable);
  }

private:
  const pid_t id = getpid();
};

/// Leaves what `owned` has for good: to destroy it would wait for threads that
/// are not here.
template <typename T> void forget(std::unique_ptr<T> &owned) {
  [[maybe_unused]] T *const forgotten = owned.release();
}

/// Runs fn(), which throws nothing, on a thread of its own: what ends a CUDA
/// device leaves its thread without a context, and the caller's may be another
/// library's. Where there is no thread to be had, on this one.
template <typename Fn> void runOnOwnThread(Fn fn) {
  std::future<void> done;
  try {
    done = std::async(std::launch::async, fn);
  } catch (...) {
    return fn();
  }
  done.wait();
}

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_OWNPROCESS_H
