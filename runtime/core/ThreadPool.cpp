//===- ThreadPool.cpp - Worker threads ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/ThreadPool.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/UsableThreads.h"

#include <algorithm>
#include <string>

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace kf {
namespace {

/// Names the calling thread for debuggers and profilers.
void nameThread(int thread) {
#ifdef __linux__
  std::string name = "kf-worker-" + std::to_string(thread);
  (void)::pthread_setname_np(::pthread_self(), name.c_str());
#endif
}

/// Indices handed out one at a time, until one fails.
class ForJob final : public ThreadPool::Job {
public:
  ForJob(int64_t count, const std::function<Status(int64_t)> &fn)
      : count(count), fn(fn) {}

  void work(int) override {
    int64_t finished = 0;
    for (;;) {
      int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= count)
        break;
      if (!failed.load(std::memory_order_relaxed))
        call(index);
      ++finished;
    }
    if (finished && done.fetch_add(finished) + finished == count)
      allDone.notify();
  }

  void waitUntilDone() {
    allDone.await([&] { return done.load() == count; });
  }

  /// After waitUntilDone().
  Status takeError() { return std::move(error); }

private:
  void call(int64_t index) {
    Status status = catchExceptions([&] { return fn(index); });
    if (!status.ok() && !failed.exchange(true))
      error = std::move(status);
  }

  const int64_t count;
  const std::function<Status(int64_t)> &fn;
  std::atomic<bool> failed{false};
  Status error; // of who set `failed`
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int64_t> done{0};
  EventCount allDone;
};

} // namespace

ThreadPool::ThreadPool(int threads)
    : threadCount(threads), workers(new Worker[threads - 1]),
      caller(::pthread_self()) {}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) try {
  if (threads < 0 || threads > maxThreads)
    return Status::error("cannot use " + std::to_string(threads) +
                         " threads; 0 (all) to " + std::to_string(maxThreads) +
                         " are possible");
  if (threads == 0)
    threads = std::min(usableThreads(), maxThreads);
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads));
  KF_RETURN_IF_ERROR(pool->startWorkers());
  return pool;
} catch (...) {
  return statusOfException();
}

Status ThreadPool::startWorkers() {
  // Signals are the main thread's business; workers inherit a full mask, but
  // for faults of their own, which would end the process unheard.
  sigset_t all, previous;
  sigfillset(&all);
  for (int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &previous);
  Status status = catchExceptions([&] {
    for (; started < threadCount - 1; ++started)
      workers[started].thread =
          std::thread(&ThreadPool::workerLoop, this, started + 1);
    return Status();
  });
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (status.ok())
    return status;
  return Status::error("cannot start thread " + std::to_string(started + 2) +
                           " of " + std::to_string(threadCount) + ": " +
                           status.message() + "; use fewer threads",
                       status.code() == StatusCode::OutOfMemory
                           ? StatusCode::OutOfMemory
                           : StatusCode::Unavailable);
}

ThreadPool::~ThreadPool() {
  stopping.store(true);
  epoch.fetch_add(1);
  wake.notify();
  for (int i = 0; i < started; ++i)
    workers[i].thread.join();
}

void ThreadPool::workerLoop(int thread) {
  nameThread(thread);
  Worker &self = workers[thread - 1];
  uint32_t seen = 0;
  for (;;) {
    wake.await([&] { return epoch.load() != seen; });
    seen = epoch.load();
    if (stopping.load())
      return;
    // Busy before the job is read: quiesce() clears the job first and looks at
    // the flags afterwards, so that one of the two notices the other.
    self.busy.store(true);
    if (Job *current = job.load())
      current->work(thread);
    self.busy.store(false);
    idle.notify();
  }
}

std::optional<std::chrono::nanoseconds> ThreadPool::cpuTime(int thread) const {
#ifdef __linux__
  pthread_t handle =
      thread == 0 ? caller.load() : workers[thread - 1].thread.native_handle();
  clockid_t clock;
  timespec time;
  if (::pthread_getcpuclockid(handle, &clock) == 0 &&
      ::clock_gettime(clock, &time) == 0)
    return std::chrono::seconds(time.tv_sec) +
           std::chrono::nanoseconds(time.tv_nsec);
#endif
  return std::nullopt;
}

void ThreadPool::start(Job &next) {
  caller.store(::pthread_self(), std::memory_order_relaxed);
  job.store(&next);
  epoch.fetch_add(1);
  wake.notify();
}

void ThreadPool::quiesce() {
  job.store(nullptr);
  for (int i = 0; i < started; ++i)
    idle.await([&] { return !workers[i].busy.load(); });
}

Status ThreadPool::parallelFor(int64_t count,
                               const std::function<Status(int64_t)> &fn) {
  if (threadCount == 1 || count <= 1)
    return catchExceptions([&] {
      for (int64_t i = 0; i < count; ++i)
        KF_RETURN_IF_ERROR(fn(i));
      return Status();
    });
  ForJob forJob(count, fn);
  start(forJob);
  forJob.work(0);
  forJob.waitUntilDone();
  quiesce();
  return forJob.takeError();
}

} // namespace kf
