//===- ThreadChannel.cpp - Messages within a process ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankChannel.h"

#include "runtime/core/EventCount.h"

#include <atomic>
#include <deque>
#include <mutex>

using namespace kf;

namespace {

/// Messages in one direction.
class Pipe {
public:
  Status push(std::string message) {
    {
      std::lock_guard<std::mutex> lock(guard);
      if (closed.load(std::memory_order_relaxed))
        return Status::error("the connection is closed",
                             StatusCode::Unavailable);
      messages.push_back(std::move(message));
      waiting.store(messages.size(), std::memory_order_release);
    }
    arrival.notify();
    return Status();
  }

  /// Nothing: it is closed, and empty.
  std::optional<std::string> pop() {
    arrival.await([&] {
      return waiting.load(std::memory_order_acquire) > 0 ||
             closed.load(std::memory_order_acquire);
    });
    std::lock_guard<std::mutex> lock(guard);
    if (messages.empty())
      return std::nullopt;
    std::string message = std::move(messages.front());
    messages.pop_front();
    waiting.store(messages.size(), std::memory_order_release);
    return message;
  }

  void close() {
    {
      std::lock_guard<std::mutex> lock(guard);
      closed.store(true, std::memory_order_release);
    }
    arrival.notify();
  }

private:
  std::mutex guard;
  std::deque<std::string> messages;
  std::atomic<size_t> waiting{0}; ///< messages.size()
  std::atomic<bool> closed{false};
  EventCount arrival;
};

class ThreadChannel final : public RankChannel {
public:
  ThreadChannel(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in(std::move(in)), out(std::move(out)) {}
  ~ThreadChannel() override {
    in->close();
    out->close();
  }

  Status send(std::string message) override {
    return out->push(std::move(message));
  }
  Result<std::optional<std::string>> receive() override { return in->pop(); }

private:
  std::shared_ptr<Pipe> in, out;
};

} // namespace

std::pair<std::unique_ptr<RankChannel>, std::unique_ptr<RankChannel>>
kf::createThreadChannel() {
  auto there = std::make_shared<Pipe>(), back = std::make_shared<Pipe>();
  return {std::make_unique<ThreadChannel>(back, there),
          std::make_unique<ThreadChannel>(there, back)};
}
