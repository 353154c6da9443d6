//===- TextStream.cpp - What a service and a handle share -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/TextStream.h"

#include <algorithm>
#include <utility>

using namespace kf;

//===----------------------------------------------------------------------===//
// The reader's side
//===----------------------------------------------------------------------===//

TextStream::TextStream(std::shared_ptr<ServiceInbox> inbox, TextRequest request,
                       std::function<void()> onNews)
    : request(std::move(request)), inbox(std::move(inbox)),
      onNews(std::move(onNews)) {}

TextPiece TextStream::takeLocked() {
  isTold = false;
  isTaken |= piece.end.has_value();
  return std::exchange(piece, {});
}

TextPiece TextStream::take() {
  std::unique_lock lock(mutex);
  return takeLocked();
}

TextPiece TextStream::wait(std::optional<ServiceInbox::TimePoint> until) {
  std::unique_lock lock(mutex);
  auto hasNews = [&] { return !piece.isEmpty() || isTaken; };
  if (until)
    news.wait_until(lock, *until, hasNews);
  else
    news.wait(lock, hasNews);
  return takeLocked();
}

void TextStream::cancel() {
  // Whoever takes it out of the queue ends it: that is done here, or it runs.
  if (!inbox->cancelQueued(*this))
    cancelled.store(true, std::memory_order_relaxed);
}

bool ServiceInbox::cancelQueued(TextStream &stream) {
  std::shared_ptr<TextStream> removed;
  std::unique_lock lock(mutex);
  const auto found =
      std::ranges::find(queue, &stream, &std::shared_ptr<TextStream>::get);
  if (found == queue.end())
    return false;
  removed = std::move(*found);
  queue.erase(found);
  ++cancelledInQueue;
  lock.unlock();
  GenerationResult result;
  result.reason = StopReason::Cancelled;
  removed->finish(std::move(result), /*tells=*/false);
  return true;
}

//===----------------------------------------------------------------------===//
// The service's side
//===----------------------------------------------------------------------===//

bool TextStream::isOver(ServiceInbox::TimePoint now) const {
  return isCancelled() || (request.deadline && *request.deadline <= now);
}

void TextStream::give(const std::string &text, std::span<const int32_t> ids,
                      std::span<const TextLogProbs> logProbs) {
  std::unique_lock lock(mutex);
  const size_t idsBefore = piece.ids.size();
  const size_t logProbsBefore = piece.logProbs.size();
  try {
    piece.ids.insert(piece.ids.end(), ids.begin(), ids.end());
    piece.logProbs.insert(piece.logProbs.end(), logProbs.begin(),
                          logProbs.end());
    piece.text += text;
  } catch (...) {
    piece.ids.resize(idsBefore);
    piece.logProbs.resize(logProbsBefore);
    throw;
  }
  tell(lock, /*tells=*/true);
}

void TextStream::finish(Result<GenerationResult> result, bool tells) noexcept {
  std::unique_lock lock(mutex);
  piece.end.emplace(std::move(result));
  tell(lock, tells);
}

void TextStream::tell(std::unique_lock<std::mutex> &lock, bool tells) {
  const bool isFirst = !std::exchange(isTold, true);
  lock.unlock();
  news.notify_all();
  if (tells && isFirst && onNews)
    onNews();
}

//===----------------------------------------------------------------------===//
// TextHandle
//===----------------------------------------------------------------------===//

TextHandle::TextHandle(std::shared_ptr<TextStream> stream)
    : stream(std::move(stream)) {}

TextHandle::~TextHandle() { stream->cancel(); }

TextPiece TextHandle::take() { return stream->take(); }

TextPiece
TextHandle::wait(std::optional<std::chrono::steady_clock::time_point> until) {
  return stream->wait(until);
}

void TextHandle::cancel() { stream->cancel(); }
