//===- TaskThread.cpp - Work in the order that it came --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/TaskThread.h"

#include <utility>

using namespace kf;

TaskThread::TaskThread() : thread([this] { loop(); }) {}

TaskThread::~TaskThread() {
  {
    const std::scoped_lock lock(mutex);
    isEnding = true;
  }
  changed.notify_one();
  thread.join();
}

void TaskThread::run(std::function<void()> task) {
  {
    const std::scoped_lock lock(mutex);
    tasks.push_back(std::move(task));
  }
  changed.notify_one();
}

void TaskThread::loop() {
  for (;;) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return isEnding || !tasks.empty(); });
    if (isEnding)
      return;
    const std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    task();
  }
}
