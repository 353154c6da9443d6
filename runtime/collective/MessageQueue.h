//===- MessageQueue.h - What one thread hands to another --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_COLLECTIVE_MESSAGEQUEUE_H
#define KF_RUNTIME_COLLECTIVE_MESSAGEQUEUE_H

#include "runtime/core/EventCount.h"

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace kf {

/// Messages in the order in which they came, until it is closed. Any thread may
/// push and close; one at a time pops, and waits for a message briefly
/// spinning, then asleep.
template <typename Message> class MessageQueue {
public:
  /// Whether it is open; nothing is kept where it is not.
  bool push(Message message) {
    {
      std::lock_guard<std::mutex> lock(guard);
      if (closed.load(std::memory_order_relaxed))
        return false;
      messages.push_back(std::move(message));
      waiting.store(messages.size(), std::memory_order_release);
    }
    arrival.notify();
    return true;
  }

  /// The next message, which it waits for; nothing: it is closed, and empty.
  std::optional<Message> pop() {
    arrival.await([&] {
      return waiting.load(std::memory_order_acquire) > 0 ||
             closed.load(std::memory_order_acquire);
    });
    std::lock_guard<std::mutex> lock(guard);
    if (messages.empty())
      return std::nullopt;
    std::optional<Message> message = std::move(messages.front());
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
  std::deque<Message> messages;
  std::atomic<size_t> waiting{0}; ///< messages.size()
  std::atomic<bool> closed{false};
  EventCount arrival;
};

} // namespace kf

#endif // KF_RUNTIME_COLLECTIVE_MESSAGEQUEUE_H
