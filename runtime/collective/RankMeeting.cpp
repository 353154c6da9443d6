//===- RankMeeting.cpp - How ranks of a job find one another --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankMeeting.h"

#include "runtime/collective/MessageBytes.h"
#include "runtime/collective/RankFrame.h"
#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

using namespace kf;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::string_view kProtocol = "kf-ranks-1";
constexpr size_t kNonce = 32; // bytes

/// Bytes of a frame before both sides have proven the key. The facts of all
/// ranks are the most.
constexpr uint64_t kMostOfStranger = 4096;
constexpr uint64_t kMostOfLeader = uint64_t(1) << 24;

/// Connections that are looked at at once, beyond one for each rank.
constexpr size_t kMostStrangers = 32;

/// Frames over a socket, each by a deadline.
class Talk {
public:
  Talk(const Descriptor &socket, uint64_t most)
      : socket(socket.get()), reader(most) {}

  Status send(FrameKind kind, std::string_view payload, Deadline deadline) {
    const std::string bytes = frameHeader(kind, payload.size()).append(payload);
    std::string_view rest = bytes;
    while (!rest.empty()) {
      if (!awaitWritable(socket, deadline))
        return tooLate();
      KF_ASSIGN_OR_RETURN(const size_t count, writeSome(socket, rest));
      rest.remove_prefix(count);
    }
    return Status();
  }

  /// The payload of the next frame, which is a `kind`. Reads no byte beyond it.
  Result<std::string> receive(FrameKind kind, Deadline deadline) {
    char room[4096];
    for (;;) {
      KF_ASSIGN_OR_RETURN(std::optional<Frame> frame, reader.next());
      if (frame && frame->kind != kind)
        return Status::error("another message than one that is due");
      if (frame)
        return std::move(frame->payload);
      if (!awaitReadable(socket, deadline))
        return tooLate();
      const size_t most = std::min<uint64_t>(sizeof(room), reader.missing());
      KF_ASSIGN_OR_RETURN(const size_t count, readSome(socket, {room, most}));
      reader.append({room, count});
    }
  }

private:
  static Status tooLate() {
    return Status::error("no answer", StatusCode::Unavailable);
  }

  int socket;
  FrameReader reader;
};

void put(MessageWriter &writer, const RankIdentity &facts) {
  writer.put(facts.rank);
  writer.put(facts.size);
  writer.put(std::string_view(facts.build));
  writer.put(std::string_view(facts.host));
  writer.put(std::string_view(facts.cpus));
}

RankIdentity getFacts(MessageReader &reader) {
  RankIdentity facts;
  reader.get(facts.rank);
  reader.get(facts.size);
  reader.get(facts.build);
  reader.get(facts.host);
  reader.get(facts.cpus);
  return facts;
}

/// What `side` says, with its proof in front.
std::string proven(const JobKey &key, std::string_view side,
                   std::string_view nonces, const std::string &said) {
  const Digest digest =
      key.prove(std::string(side).append(nonces).append(said));
  return std::string(bytesOf(digest)).append(said);
}

/// What `side` says behind its proof; nothing: it has another key.
std::optional<std::string> checked(const JobKey &key, std::string_view side,
                                   std::string_view nonces,
                                   const std::string &payload) {
  Digest digest;
  if (payload.size() < digest.size())
    return std::nullopt;
  std::copy_n(payload.begin(), digest.size(), digest.begin());
  std::string said = payload.substr(digest.size());
  if (!areEqual(digest,
                key.prove(std::string(side).append(nonces).append(said))))
    return std::nullopt;
  return said;
}

constexpr std::string_view kFollower = "follower ", kLeader = "leader ";

/// One that has connected to rank 0.
struct Caller {
  Descriptor socket;
  std::string nonces;
  std::thread thread;
};

/// One that has proven the key.
struct Follower {
  RankPeer peer;
  std::string nonces; ///< that its proof is of
};

/// Asks for the key's proof; the follower's facts, or why it is none.
Result<RankIdentity> challenge(const JobKey &key, Caller &caller,
                               Deadline deadline) {
  Talk talk(caller.socket, kMostOfStranger);
  KF_ASSIGN_OR_RETURN(const std::string greeting,
                      talk.receive(FrameKind::Greeting, deadline));
  if (greeting.size() != kProtocol.size() + kNonce ||
      !greeting.starts_with(kProtocol))
    return Status::error("another protocol");
  KF_ASSIGN_OR_RETURN(const std::string nonce, randomBytes());
  caller.nonces = greeting.substr(kProtocol.size()) + nonce;
  KF_RETURN_IF_ERROR(talk.send(FrameKind::Challenge, nonce, deadline));
  KF_ASSIGN_OR_RETURN(const std::string proof,
                      talk.receive(FrameKind::Proof, deadline));
  const std::optional<std::string> said =
      checked(key, kFollower, caller.nonces, proof);
  if (!said)
    return Status::error("another job key");
  MessageReader reader(*said);
  RankIdentity facts = getFacts(reader);
  if (reader.failed() || !reader.atEnd())
    return Status::error("facts that are none");
  return facts;
}

/// Those who have connected, looked at in a thread each.
class Callers {
public:
  Callers(const JobKey &key, const RankTimes &times) : key(key), times(times) {}
  ~Callers() {
    for (Caller &caller : callers)
      caller.thread.join();
  }

  void add(Descriptor socket) {
    reap();
    Caller &caller = callers.emplace_back();
    caller.socket = std::move(socket);
    caller.thread = std::thread([this, &caller] { look(caller); });
  }
  size_t count() {
    reap();
    return callers.size();
  }

  /// Those who have proven the key since the last call.
  std::vector<Follower> take() {
    std::lock_guard<std::mutex> lock(guard);
    return std::exchange(found, {});
  }
  int64_t strangers() {
    std::lock_guard<std::mutex> lock(guard);
    return refused;
  }

private:
  void look(Caller &caller) {
    const Result<RankIdentity> facts = catchExceptions(
        [&] { return challenge(key, caller, Clock::now() + times.stranger); });
    std::lock_guard<std::mutex> lock(guard);
    if (facts.ok())
      found.push_back(
          {{*facts, std::move(caller.socket)}, std::move(caller.nonces)});
    else
      ++refused;
    caller.socket = Descriptor();
    done.push_back(&caller);
  }

  void reap() {
    std::unique_lock<std::mutex> lock(guard);
    const std::vector<Caller *> ended = std::exchange(done, {});
    lock.unlock();
    for (Caller *caller : ended) {
      caller->thread.join();
      callers.remove_if([&](const Caller &other) { return &other == caller; });
    }
  }

  const JobKey &key;
  const RankTimes &times;
  std::mutex guard;
  std::list<Caller> callers; ///< the caller's; the rest is behind `guard`
  std::vector<Follower> found;
  std::vector<Caller *> done;
  int64_t refused = 0;
};

/// Whether a rank that has proven the key can be of this job.
Status checkFacts(const RankIdentity &facts, const RankIdentity &own) {
  if (facts.size != own.size)
    return Status::error(nameOf(facts) + " is one of " +
                         std::to_string(facts.size) + " ranks, and " +
                         nameOf(own) + " of " + std::to_string(own.size) +
                         "; start all with the same number");
  if (facts.rank < 1 || facts.rank >= own.size)
    return Status::error("rank " + std::to_string(facts.rank) + " on " +
                         facts.host + " is none of " +
                         std::to_string(own.size));
  if (facts.build != own.build)
    return Status::error(nameOf(facts) +
                         " is another build of this program "
                         "than " +
                         nameOf(own) + "; install the same on all hosts");
  return Status();
}

Status haveNotCome(const std::vector<std::optional<Follower>> &ranks,
                   int64_t strangers) {
  std::string missing;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (!ranks[i])
      missing += (missing.empty() ? "" : ", ") + std::to_string(i + 1);
  std::string text = "of " + std::to_string(ranks.size() + 1) +
                     " ranks, these have not come in time: " + missing;
  if (strangers > 0)
    text += " (" + std::to_string(strangers) +
            " connections did not prove the job's key; KF_JOB_KEY or "
            "KF_JOB_KEY_FILE has to be the same for all ranks)";
  return Status::error(text, StatusCode::Unavailable);
}

} // namespace

std::string kf::nameOf(const RankIdentity &facts) {
  return "rank " + std::to_string(facts.rank) + " on " + facts.host;
}

Result<std::vector<RankPeer>> kf::meetFollowers(Listener &listener,
                                                const JobKey &key,
                                                const RankIdentity &own,
                                                const RankTimes &times) try {
  std::vector<std::optional<Follower>> ranks(static_cast<size_t>(own.size - 1));
  const Deadline deadline = Clock::now() + times.meeting;
  Callers callers(key, times);
  while (std::ranges::any_of(ranks, [](const auto &r) { return !r; })) {
    if (Clock::now() >= deadline)
      return haveNotCome(ranks, callers.strangers());
    constexpr std::chrono::milliseconds pause(5);
    if (callers.count() >= ranks.size() + kMostStrangers) {
      std::this_thread::sleep_for(pause);
    } else {
      KF_ASSIGN_OR_RETURN(
          Descriptor made,
          listener.accept(std::min(deadline, Clock::now() + pause)));
      if (made.ok())
        callers.add(std::move(made));
    }
    for (Follower &follower : callers.take()) {
      const RankIdentity &facts = follower.peer.facts;
      KF_RETURN_IF_ERROR(checkFacts(facts, own));
      std::optional<Follower> &place =
          ranks[static_cast<size_t>(facts.rank - 1)];
      if (place)
        return Status::error("two processes say that they are rank " +
                             std::to_string(facts.rank) + ", on " +
                             place->peer.facts.host + " and on " + facts.host);
      place = std::move(follower);
    }
  }
  std::string said;
  MessageWriter writer(said);
  put(writer, own);
  for (const auto &rank : ranks)
    put(writer, rank->peer.facts);
  std::vector<RankPeer> peers;
  for (auto &rank : ranks) {
    Talk talk(rank->peer.socket, kMostOfStranger);
    const Status sent =
        talk.send(FrameKind::Welcome, proven(key, kLeader, rank->nonces, said),
                  Clock::now() + times.stranger);
    if (!sent.ok())
      return Status::error(nameOf(rank->peer.facts) + " has ended",
                           StatusCode::Unavailable);
    peers.push_back(std::move(rank->peer));
  }
  return peers;
} catch (...) {
  return statusOfException();
}

Result<MetLeader> kf::meetLeader(const std::string &address, uint16_t port,
                                 const JobKey &key, const RankIdentity &own,
                                 const RankTimes &times) try {
  const Deadline deadline = Clock::now() + times.meeting;
  const std::string where = "rank 0 at " + address + ":" + std::to_string(port);
  KF_ASSIGN_OR_RETURN(Descriptor socket, connectTo(address, port, deadline));
  Talk talk(socket, kMostOfLeader);
  KF_ASSIGN_OR_RETURN(const std::string nonce, randomBytes());
  const Deadline soon = Clock::now() + times.stranger;
  std::string greeting(kProtocol);
  KF_RETURN_IF_ERROR(
      talk.send(FrameKind::Greeting, greeting.append(nonce), soon).in(where));
  const Result<std::string> challenged =
      talk.receive(FrameKind::Challenge, soon);
  if (!challenged.ok())
    return Status::error(
        where + " is no rank of this program: " + challenged.message(),
        StatusCode::Unavailable);
  const std::string nonces = nonce + *challenged;
  std::string said;
  MessageWriter writer(said);
  put(writer, own);
  KF_RETURN_IF_ERROR(
      talk.send(FrameKind::Proof, proven(key, kFollower, nonces, said), soon)
          .in(where));
  // All ranks may take as long as this one may.
  const Result<std::string> welcome = talk.receive(
      FrameKind::Welcome, Clock::now() + times.meeting + times.stranger);
  if (!welcome.ok())
    return Status::error(where +
                             " has another job key (KF_JOB_KEY, "
                             "KF_JOB_KEY_FILE), or ended before all ranks were "
                             "there",
                         StatusCode::Unavailable);
  const std::optional<std::string> facts =
      checked(key, kLeader, nonces, *welcome);
  if (!facts)
    return Status::error(where + " does not prove the job's key",
                         StatusCode::Unavailable);
  MetLeader met;
  MessageReader reader(*facts);
  for (int64_t i = 0; i < own.size && !reader.failed(); ++i)
    met.all.push_back(getFacts(reader));
  if (reader.failed() || !reader.atEnd())
    return Status::error(where + " says what cannot be", StatusCode::Internal);
  met.leader = {met.all.front(), std::move(socket)};
  return met;
} catch (...) {
  return statusOfException();
}
