//===- RankLinks.cpp - A process' connections to other ranks --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankLinks.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

using namespace kf;

/// Bytes of a message at most: a program, or the rows of a long step.
static constexpr uint64_t kMostMessage = uint64_t(1) << 32;

struct RankLinks::Link {
  explicit Link(RankPeer peer) : peer(std::move(peer)), reader(kMostMessage) {}

  RankPeer peer;
  FrameReader reader; ///< the thread's, as `heard`
  Clock::time_point heard = Clock::now();
  std::mutex sending;
  std::atomic<bool> closed{false}, hasLeft{false};
  /// The other end has still to be told of a failure.
  std::atomic<bool> isUntold{false};
  MessageQueue<Frame> messages; ///< and the ends of sessions
  MessageQueue<std::string> data;
  uint64_t sessions = 0; ///< that were opened here
  uint64_t ended = 0;    ///< that were ended there, as far as it was read
};

class RankLinks::Channel final : public RankChannel {
public:
  Channel(RankLinks &links, Link &link)
      : links(links), link(link), number(++link.sessions) {}
  ~Channel() override {
    (void)catchExceptions(
        [&] { return links.send(link, FrameKind::SessionEnd, {}); });
  }

  Status send(std::string message) override {
    return links.send(link, FrameKind::Message, message);
  }

  Result<std::optional<std::string>> receive() override {
    while (link.ended < number) {
      std::optional<Frame> frame = link.messages.pop();
      if (!frame && links.hasFailed())
        return links.failure();
      if (!frame)
        break;
      if (frame->kind == FrameKind::SessionEnd)
        ++link.ended;
      else if (link.ended + 1 == number)
        return std::optional(std::move(frame->payload));
    }
    return std::optional<std::string>();
  }

private:
  RankLinks &links;
  Link &link;
  uint64_t number;
};

RankLinks::RankLinks(RankIdentity own, RankTimes times, RankEvents events)
    : own(std::move(own)), times(times), events(std::move(events)),
      wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<RankLinks>> RankLinks::start(RankIdentity own,
                                                    std::vector<RankPeer> peers,
                                                    RankTimes times,
                                                    RankEvents events) try {
  std::unique_ptr<RankLinks> made(
      new RankLinks(std::move(own), times, std::move(events)));
  if (!made->wake.ok())
    return Status::error(std::string("cannot watch other ranks: ") +
                             std::strerror(errno),
                         StatusCode::Unavailable);
  for (RankPeer &peer : peers)
    made->links.push_back(std::make_unique<Link>(std::move(peer)));
  made->thread = std::thread([links = made.get()] { links->watch(); });
  return made;
} catch (const std::system_error &error) {
  return Status::error(std::string("cannot start the thread that watches other "
                                   "ranks: ") +
                           error.what(),
                       StatusCode::Unavailable);
} catch (...) {
  return statusOfException();
}

RankLinks::~RankLinks() {
  ending.store(true);
  (void)::eventfd_write(wake.get(), 1);
  if (thread.joinable())
    thread.join();
}

const RankIdentity &RankLinks::facts(size_t link) const {
  return links[link]->peer.facts;
}

std::unique_ptr<RankChannel> RankLinks::openChannel(size_t link) {
  return std::make_unique<Channel>(*this, *links[link]);
}

bool RankLinks::hasLeft(size_t link) const { return links[link]->hasLeft; }

bool RankLinks::hasEnded(size_t link) const {
  return links[link]->hasLeft || links[link]->closed;
}

Status RankLinks::failure() const {
  std::lock_guard<std::mutex> lock(guard);
  return why;
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

static Status isClosed() {
  return Status::error("the connection is closed", StatusCode::Unavailable);
}

/// Waits where there is no room, which the other rank's thread makes however
/// long its step takes; one that does not is lost before long.
Status RankLinks::send(Link &link, FrameKind kind, std::string_view payload) {
  const std::string header = frameHeader(kind, payload.size());
  std::lock_guard<std::mutex> lock(link.sending);
  const int socket = link.peer.socket.get();
  for (std::string_view rest : {std::string_view(header), payload})
    while (!rest.empty()) {
      if (link.closed)
        return hasFailed() ? failure() : isClosed();
      const Result<size_t> count = writeSome(socket, rest);
      if (!count.ok()) {
        // The thread sees it, too, and says why.
        const Clock::time_point end = Clock::now() + times.silence;
        while (!hasFailed() && !link.closed && Clock::now() < end)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return hasFailed() ? failure() : isClosed();
      }
      rest.remove_prefix(*count);
      if (*count == 0)
        awaitWritable(socket, Clock::now() + times.heartbeat);
    }
  return Status();
}

/// Sends a short frame unless another is being sent, or there is no room, where
/// it returns false: never waits.
bool RankLinks::sendIfFree(Link &link, FrameKind kind,
                           std::string_view payload) {
  const std::unique_lock<std::mutex> lock(link.sending, std::try_to_lock);
  if (link.closed)
    return true;
  if (!lock.owns_lock() || !awaitWritable(link.peer.socket.get(), Clock::now()))
    return false;
  const std::string frame = frameHeader(kind, payload.size()).append(payload);
  const Result<size_t> count = writeSome(link.peer.socket.get(), frame);
  if (count.ok() && *count < frame.size()) // of no more use
    ::shutdown(link.peer.socket.get(), SHUT_RDWR);
  return true;
}

/// At once, or by the thread when what is being sent is through.
void RankLinks::tellOfFailure(Link &link, std::string_view reason) {
  if (!sendIfFree(link, FrameKind::Abort, reason))
    link.isUntold = true;
}

Status RankLinks::sendData(size_t link, std::string_view bytes) {
  return hasFailed() ? failure() : send(*links[link], FrameKind::Data, bytes);
}

Result<std::string> RankLinks::receiveData(size_t link) {
  std::optional<std::string> bytes =
      hasFailed() ? std::nullopt : links[link]->data.pop();
  if (bytes)
    return std::move(*bytes);
  return hasFailed() ? failure() : isClosed();
}

void RankLinks::abort(std::string_view reason) {
  const std::string text = nameOf(own) + ": " + std::string(reason);
  if (!fail(Status::error(text, StatusCode::Unavailable)))
    return;
  for (const auto &link : links)
    tellOfFailure(*link, text);
}

void RankLinks::bye() {
  saidBye.store(true);
  for (const auto &link : links)
    (void)catchExceptions([&] { return send(*link, FrameKind::Bye, {}); });
  (void)::eventfd_write(wake.get(), 1);
}

//===----------------------------------------------------------------------===//
// Watching
//===----------------------------------------------------------------------===//

/// Whether it is the first failure, of which those who wait are told.
bool RankLinks::fail(const Status &status, bool isLoss) {
  {
    std::lock_guard<std::mutex> lock(guard);
    if (!why.ok())
      return false;
    why = status;
  }
  if (isLoss && events.lost)
    events.lost(status);
  failed.store(true, std::memory_order_release);
  for (const auto &link : links) {
    link->messages.close();
    link->data.close();
  }
  return true;
}

/// The other end of a link is gone, or as good as gone.
void RankLinks::lose(Link &link, const std::string &how) {
  auto close = [&] {
    link.closed = true;
    ::shutdown(link.peer.socket.get(), SHUT_RDWR);
  };
  if (saidBye || link.hasLeft) {
    close();
    link.messages.close();
    link.data.close();
    return;
  }
  const Status status = Status::error(nameOf(link.peer.facts) + " " + how,
                                      StatusCode::Unavailable);
  // Who finds the link closed finds the reason, too.
  const bool isFirst = fail(status, /*isLoss=*/true);
  close();
  if (!isFirst)
    return;
  for (const auto &other : links)
    tellOfFailure(*other, status.message());
  overdueAt = Clock::now() + times.end;
}

void RankLinks::take(Link &link, Frame frame) {
  switch (frame.kind) {
  case FrameKind::Heartbeat:
    return;
  case FrameKind::Message:
  case FrameKind::SessionEnd:
    link.messages.push(std::move(frame));
    return;
  case FrameKind::Data:
    link.data.push(std::move(frame.payload));
    return;
  case FrameKind::Abort:
    if (fail(Status::error(frame.payload, StatusCode::Unavailable)))
      for (const auto &other : links)
        if (other.get() != &link)
          tellOfFailure(*other, frame.payload);
    return;
  case FrameKind::Bye:
    link.hasLeft = true;
    link.messages.close();
    link.data.close();
    return;
  default:
    lose(link, "says what no rank says");
  }
}

/// Reads what is there, and hands on what is whole.
void RankLinks::read(Link &link) {
  char room[1 << 16];
  const Result<size_t> count = readSome(link.peer.socket.get(), room);
  if (!count.ok())
    return lose(link, "has ended");
  link.heard = Clock::now();
  link.reader.append({room, *count});
  while (!link.closed) {
    Result<std::optional<Frame>> frame = link.reader.next();
    if (!frame.ok())
      return lose(link, "sends " + frame.message());
    if (!*frame)
      return;
    take(link, std::move(**frame));
  }
}

/// Says, once, that this process is still there when it should not be.
void RankLinks::endOverdue(Clock::time_point now) {
  if (now < overdueAt)
    return;
  overdueAt = Clock::time_point::max();
  if (const auto say = std::exchange(events.overdue, nullptr))
    say();
}

void RankLinks::watch() {
  std::vector<pollfd> entries;
  Clock::time_point beat = Clock::now();
  for (;;) {
    entries.assign(1, {wake.get(), POLLIN, 0});
    for (const auto &link : links)
      entries.push_back(
          {link->closed ? -1 : link->peer.socket.get(), POLLIN, 0});
    const Clock::time_point before = Clock::now();
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(
        std::clamp<Clock::duration>(beat - before, Clock::duration::zero(),
                                    times.heartbeat));
    ::poll(entries.data(), entries.size(), static_cast<int>(pause.count()));
    if (ending)
      return;
    const Clock::time_point now = Clock::now();
    // Where this process itself was stopped, others may have been, too, and
    // have some time to say that they go on again.
    const bool wasStopped = now - before > pause + times.silence / 2;
    (void)catchExceptions([&] {
      for (size_t i = 0; i < links.size(); ++i)
        if (entries[i + 1].revents)
          read(*links[i]);
      for (const auto &link : links)
        if (wasStopped)
          link->heard =
              std::max(link->heard, now - times.silence + 2 * times.heartbeat);
        else if (!link->closed && now - link->heard > times.silence)
          lose(*link, "does not answer: it is stopped, or cut off");
      if (now >= beat) {
        beat = now + times.heartbeat;
        for (const auto &link : links)
          sendIfFree(*link, FrameKind::Heartbeat, {});
      }
      for (const auto &link : links)
        if (link->isUntold &&
            sendIfFree(*link, FrameKind::Abort, failure().message()))
          link->isUntold = false;
      return Status();
    });
    if (entries[0].revents & POLLIN) {
      eventfd_t count = 0;
      (void)::eventfd_read(wake.get(), &count);
      if (saidBye)
        overdueAt = std::min(overdueAt, now + 5 * times.end);
    }
    endOverdue(now);
  }
}
