//===- TextStream.h - What a service and a handle share ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Locks are taken in one order: the inbox's before a stream's. No lock is held
// while `onNews` is called.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_TEXTSTREAM_H
#define KF_RUNTIME_SERVE_TEXTSTREAM_H

#include "runtime/serve/Service.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>

namespace kf {

/// What other threads ask of a service's thread, and what it lets them see.
struct ServiceInbox {
  using TimePoint = std::chrono::steady_clock::time_point;

  std::mutex mutex; ///< of all that follows
  /// Notified for the service's thread: of requests and stop().
  std::condition_variable asked;
  std::condition_variable ended; ///< once `hasEnded`

  std::deque<std::shared_ptr<TextStream>> queue; ///< not begun, by arrival
  std::deque<std::shared_ptr<TextStream>> begun; ///< by arrival
  std::optional<TimePoint> stopAt;               ///< once stop() was called
  ServiceState state = ServiceState::Loading;
  Status failure;
  ServiceCounts counts; ///< but for what `queue` and `begun` say
  int64_t refused = 0, cancelledInQueue = 0, failedInQueue = 0;
  uint64_t submitted = 0;
  bool hasEnded = false; ///< the thread will touch no text any more

  /// Takes `stream` out of the queue and ends it; returns whether it was there.
  bool cancelQueued(TextStream &stream);
};

/// A text on its way from the service's thread to a reader.
class TextStream {
public:
  TextStream(std::shared_ptr<ServiceInbox> inbox, TextRequest request,
             std::function<void()> onNews);

  // The reader's side.
  TextPiece take();
  TextPiece wait(std::optional<ServiceInbox::TimePoint> until);
  void cancel();

  // The service's side.
  bool isCancelled() const { return cancelled.load(std::memory_order_relaxed); }
  /// Whether cancelled or late at `now`.
  bool isOver(ServiceInbox::TimePoint now) const;
  /// Adds to what is new, and lets the reader know. May throw for want of
  /// memory, and nothing is added then.
  void give(const std::string &text, std::span<const int32_t> ids,
            std::span<const TextLogProbs> logProbs);
  /// The last thing that is given; `tells` says whether `onNews` is called.
  void finish(Result<GenerationResult> result, bool tells = true) noexcept;

  uint64_t number = 0; ///< once it is submitted
  const TextRequest request;
  const ServiceInbox::TimePoint arrival = std::chrono::steady_clock::now();
  std::atomic<int64_t> generated = 0; ///< tokens

private:
  TextPiece takeLocked();
  void tell(std::unique_lock<std::mutex> &lock, bool tells);

  const std::shared_ptr<ServiceInbox> inbox;
  const std::function<void()> onNews;
  std::atomic<bool> cancelled = false;

  std::mutex mutex; ///< of all that follows
  std::condition_variable news;
  TextPiece piece;      ///< what nobody has taken
  bool isTold = false;  ///< since the last take()
  bool isTaken = false; ///< the end was
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_TEXTSTREAM_H
