//===- CompareTargets.cpp - Whose answers are compared --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompareTargets.h"

#include "Interrupt.h"
#include "OwnApi.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

using namespace kf;
using namespace std::chrono_literals;

//===----------------------------------------------------------------------===//
// The model itself
//===----------------------------------------------------------------------===//

namespace {

/// A request that the model is at.
struct Going {
  size_t number = 0;
  Stopwatch watch = {};
  std::unique_ptr<HttpAnswer> answer = {};
  std::unique_ptr<AnswerReader> reader = {}; ///< once there is a head

  /// Reads what is new; returns whether it was the last.
  Result<bool> read() {
    HttpAnswer::Piece piece = answer->take();
    const double now = watch.seconds();
    if (piece.head) {
      reader = std::make_unique<AnswerReader>(piece.head->status,
                                              piece.head->contentType);
      KF_RETURN_IF_ERROR(reader->push(piece.head->body, now));
    }
    if (!piece.body.empty())
      KF_RETURN_IF_ERROR(reader->push(piece.body, now));
    return piece.isLast;
  }
};

/// Asks the model, without a server.
class OwnModel {
public:
  Status open(const ModelFlags &flags, const TemplateOptions &chatTemplate,
              int64_t parallel) {
    return api.open(flags, chatTemplate, {.parallel = parallel}, parallel,
                    {.access = {}, .names = {"model"}});
  }

  void ask(const std::vector<RemoteRequest> &requests, size_t parallel,
           const OnCompared &onDone, std::vector<RemoteOutcome> &outcomes) {
    size_t next = 0, done = 0;
    std::vector<Going> going;
    while (done < requests.size() && !interruptFlag()) {
      while (next < requests.size() && going.size() < parallel) {
        Result<Going> begun = begin(requests[next], next);
        ++next;
        if (begun.ok()) {
          going.push_back(begun.take());
          continue;
        }
        outcomes[next - 1].error = begun.status();
        ++done;
      }
      std::erase_if(going, [&](Going &one) {
        RemoteOutcome &outcome = outcomes[one.number];
        const Result<bool> isOver = one.read();
        if (isOver.ok() && !*isOver)
          return false;
        Result<Answer> answer = isOver.ok()
                                    ? one.reader->finish(one.watch.seconds())
                                    : Result<Answer>(isOver.status());
        // An interrupt ends the model's steps, and is no fault of theirs.
        outcome.error = !answer.ok() && interruptFlag() ? Status::cancelled()
                                                        : answer.status();
        if (answer.ok())
          outcome.answer = answer.take();
        ++done;
        return true;
      });
      onDone(done);
      if (!going.empty())
        api.wait();
    }
    for (const Going &one : going)
      outcomes[one.number].error = Status::cancelled();
    for (; next < requests.size(); ++next)
      outcomes[next].error = Status::cancelled();
  }

  Status showProfile(const ModelFlags &flags) {
    return kf::showProfile(flags, api.session());
  }

private:
  Result<Going> begin(const RemoteRequest &request, size_t number) {
    KF_ASSIGN_OR_RETURN(std::string body, request.bodyFor(""));
    Going one{.number = number};
    one.answer = api.post(std::string(request.path()), std::move(body));
    return one;
  }

  OwnApi api;
};

} // namespace

Status kf::askModel(const ModelFlags &flags,
                    const TemplateOptions &chatTemplate,
                    const std::vector<RemoteRequest> &requests,
                    int64_t parallel, const OnCompared &onDone,
                    TargetRun &run) {
  OwnModel model;
  KF_RETURN_IF_ERROR(model.open(flags, chatTemplate, parallel));
  run.outcomes.assign(requests.size(), {});
  const Stopwatch watch;
  model.ask(requests, static_cast<size_t>(parallel), onDone, run.outcomes);
  run.seconds = watch.seconds();
  return model.showProfile(flags);
}

//===----------------------------------------------------------------------===//
// Servers
//===----------------------------------------------------------------------===//

namespace {

/// Requests that connections take one by one.
class ServerQueue {
public:
  ServerQueue(const std::vector<RemoteRequest> &requests, TargetRun &run)
      : requests(requests), run(run) {}

  size_t doneCount() const { return done; }

  /// What each thread does.
  void work(RemoteConnection &connection) {
    for (size_t number; (number = next++) < requests.size(); ++done) {
      Status status = catchExceptions([&] { return ask(connection, number); });
      if (!status.ok())
        run.outcomes[number].error = std::move(status);
    }
  }

private:
  /// Fills the outcome of a request; an error is one that was not sent.
  Status ask(RemoteConnection &connection, size_t number) {
    if (interruptFlag())
      return Status::cancelled();
    {
      const std::scoped_lock lock(mutex);
      KF_RETURN_IF_ERROR(refusal); // it would be this one's, too
    }
    run.outcomes[number] = connection.ask(requests[number], run.model);
    if (run.outcomes[number].isRefused) {
      const std::scoped_lock lock(mutex);
      refusal = run.outcomes[number].error;
    }
    return Status();
  }

  const std::vector<RemoteRequest> &requests;
  TargetRun &run;
  std::atomic<size_t> next = 0, done = 0;
  std::mutex mutex; ///< of what follows
  Status refusal;
};

} // namespace

Status kf::askServer(const RemoteServer &server,
                     const std::vector<RemoteRequest> &requests,
                     int64_t parallel, const OnCompared &onDone,
                     TargetRun &run) {
  std::vector<RemoteConnection> connections;
  const size_t count = std::min(static_cast<size_t>(parallel), requests.size());
  for (size_t i = 0; i < count; ++i) {
    KF_ASSIGN_OR_RETURN(RemoteConnection connection,
                        RemoteConnection::create(server, &interruptFlag()));
    connections.push_back(std::move(connection));
  }
  run.outcomes.assign(requests.size(), {});
  if (run.model.empty()) {
    Result<std::string> model = connections.front().firstModel();
    if (!model.ok()) {
      for (RemoteOutcome &outcome : run.outcomes)
        outcome.error = model.status();
      return Status();
    }
    run.model = model.take();
  }
  ServerQueue queue(requests, run);
  const Stopwatch watch;
  std::vector<std::jthread> threads;
  for (RemoteConnection &connection : connections)
    threads.emplace_back([&queue, &connection] { queue.work(connection); });
  while (queue.doneCount() < requests.size()) {
    onDone(queue.doneCount());
    std::this_thread::sleep_for(20ms);
  }
  threads.clear();
  run.seconds = watch.seconds();
  return Status();
}
