//===- TaskThread.h - Work in the order that it came ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_TASKTHREAD_H
#define KF_RUNTIME_SERVE_TASKTHREAD_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace kf {

/// A thread that runs what it is given, one after another. Any thread may give
/// it tasks, which do not throw.
class TaskThread {
public:
  TaskThread();
  /// Ends it after the task that runs; others are dropped.
  ~TaskThread();
  TaskThread(const TaskThread &) = delete;
  TaskThread &operator=(const TaskThread &) = delete;

  void run(std::function<void()> task);

private:
  void loop();

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool isEnding = false;
  std::thread thread; ///< the last: it uses the others
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_TASKTHREAD_H
