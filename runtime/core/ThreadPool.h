//===- ThreadPool.h - Worker threads ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Persistent worker threads that help the calling thread and never hold it up:
// a worker that the operating system has not scheduled yet is not waited for,
// since others do its share. Waits spin briefly, then sleep.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_THREADPOOL_H
#define KF_RUNTIME_CORE_THREADPOOL_H

#include "runtime/core/EventCount.h"
#include "runtime/core/Status.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace kf {

/// Threads: one thread at a time may call into a pool, and never from within
/// the pool's own work.
class ThreadPool {
public:
  /// What workers take part in. One that arrives late has to find out by
  /// itself that there is nothing left.
  class Job {
  public:
    virtual ~Job() = default;
    /// Called by worker `thread`, 1 <= thread < size(), at most once a start().
    /// Must not throw.
    virtual void work(int thread) = 0;
  };

  static constexpr int maxThreads = 1024;

  /// A pool of `threads` threads, the caller's own among them; 0 stands for
  /// usableThreads(). Errors: a number that is not possible, threads that the
  /// system does not give.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();

  /// How many threads work, the caller's included.
  int size() const { return threadCount; }

  /// Processor time that `thread` has used so far, where the system tells; 0 is
  /// the thread that called start() last.
  std::optional<std::chrono::nanoseconds> cpuTime(int thread) const;

  /// Offers `job` to the workers and returns. `job` has to live until the next
  /// quiesce().
  void start(Job &job);
  /// Returns when no worker is in a job and none will enter one.
  void quiesce();

  /// Calls fn(0) ... fn(count - 1), each once, on whichever threads are free,
  /// and returns when all have returned. An error that fn returns ends it: no
  /// call begins after that, those that have begun are waited for, and the
  /// first error is returned. What fn throws is an error, too (Exceptions.h).
  Status parallelFor(int64_t count, const std::function<Status(int64_t)> &fn);

private:
  struct alignas(64) Worker {
    std::atomic<bool> busy{false};
    std::thread thread;
  };

  explicit ThreadPool(int threads);
  Status startWorkers();
  void workerLoop(int thread);

  int threadCount;
  std::unique_ptr<Worker[]> workers; // [threadCount - 1]
  int started = 0;                   // workers whose thread exists
  std::atomic<uint32_t> epoch{0};    // counts start()s
  std::atomic<Job *> job{nullptr};
  std::atomic<std::thread::native_handle_type> caller; // of start()
  std::atomic<bool> stopping{false};
  EventCount wake; // workers wait here for the next epoch
  EventCount idle; // quiesce() waits here for busy workers
};

} // namespace kf

#endif // KF_RUNTIME_CORE_THREADPOOL_H
