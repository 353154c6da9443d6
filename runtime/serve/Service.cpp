//===- Service.cpp - Texts of many threads by one engine ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/Service.h"

#include "runtime/core/Exceptions.h"
#include "runtime/serve/TextStream.h"

#include <algorithm>
#include <thread>
#include <utility>

using namespace kf;

using Clock = std::chrono::steady_clock;

std::string_view kf::nameOf(ServiceState state) {
  switch (state) {
  case ServiceState::Loading:
    return "loading";
  case ServiceState::Ready:
    return "ready";
  case ServiceState::Stopping:
    return "stopping";
  case ServiceState::Stopped:
    return "stopped";
  case ServiceState::Failed:
    return "failed";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

/// What the service's thread does. But for what is said of the inbox and of
/// `limits`, it alone touches this.
class Service::Loop {
public:
  Loop(Engine &engine, const Tokenizer *tokenizer,
       const ServiceOptions &options)
      : inbox(std::make_shared<ServiceInbox>()),
        limits{engine.textLimit(), engine.model().config().vocabSize,
               options.mostQueued + engine.parallel()},
        engine(engine), tokenizer(tokenizer), options(options) {
    inbox->counts.pagesTotal = engine.pages().total();
  }

  void start() {
    thread = std::thread([this] { run(); });
  }
  void joinThread() {
    if (thread.joinable())
      thread.join();
  }

  /// Numbers that do not change: any thread may read them.
  struct Limits {
    int64_t context; ///< positions of a text
    int64_t vocabulary;
    int64_t mostTexts;
  };

  const std::shared_ptr<ServiceInbox> inbox;
  const Limits limits;

private:
  /// A text that was begun. Members are destroyed from the last on: what others
  /// refer to comes first.
  struct Job {
    std::shared_ptr<TextStream> stream;
    std::optional<Sampler> sampler;
    std::unique_ptr<Sequence> sequence;
    std::unique_ptr<Generation> generation;
    // What the step brought.
    std::string text;
    std::vector<int32_t> ids;
    std::vector<TextLogProbs> logProbs;
    std::optional<Clock::time_point> last; ///< when the last token came
    std::optional<Result<GenerationResult>> end;
  };

  void run();
  Status prepare();
  bool awaitWork();
  void endQueued(Clock::time_point now);
  void setFailure(const Status &status);
  bool refuseQueued(const Status &status);
  void beginQueued();
  Status begin(Job &job);
  void onToken(Job &job, int32_t id);
  bool cancelOver();
  void deliver();
  void count(const Job &job);
  void publish();

  Engine &engine;
  const Tokenizer *tokenizer;
  const ServiceOptions options;
  std::vector<std::unique_ptr<Job>> jobs; ///< by arrival
  /// What the thread counts by itself: texts and tokens.
  ServiceCounts counted;
  bool cancelsAll = false; ///< what there is has to end
  std::thread thread;
};

void Service::Loop::run() {
  const Status prepared = catchExceptions([&] { return prepare(); });
  if (!prepared.ok()) {
    setFailure(prepared);
    while (refuseQueued(prepared)) {
    }
  } else {
    while (awaitWork()) {
      if (cancelOver())
        deliver(); // not after a step of others
      const Status begun = catchExceptions([&] {
        beginQueued();
        return Status();
      });
      // For want of memory it waits for others to end, if there are any.
      if (!begun.ok() && jobs.empty())
        (void)refuseQueued(begun);
      engine.step();
      deliver();
    }
  }
  std::unique_lock lock(inbox->mutex);
  if (inbox->state != ServiceState::Failed)
    inbox->state = ServiceState::Stopped;
  inbox->hasEnded = true;
  lock.unlock();
  inbox->ended.notify_all();
}

/// Makes programs ready. stop() ends it where nobody waits for a text.
Status Service::Loop::prepare() {
  auto isOver = [&] {
    std::unique_lock lock(inbox->mutex);
    return inbox->stopAt &&
           (inbox->queue.empty() || *inbox->stopAt <= Clock::now());
  };
  for (Engine *each : {&engine, engine.draftEngine()}) {
    if (!each || !options.preparesPrograms)
      continue;
    for (const StepShape &shape : each->shapesToPrepare()) {
      endQueued(Clock::now());
      if (isOver())
        return Status();
      KF_RETURN_IF_ERROR(each->prepare(shape));
    }
  }
  std::unique_lock lock(inbox->mutex);
  if (inbox->state == ServiceState::Loading)
    inbox->state = ServiceState::Ready;
  return Status();
}

/// From now on nothing is submitted.
void Service::Loop::setFailure(const Status &status) {
  Status copy = catchExceptions([&] { return status; });
  std::unique_lock lock(inbox->mutex);
  inbox->state = ServiceState::Failed;
  inbox->failure = std::move(copy);
}

/// Sleeps until there is something to do; returns whether there is, and will
/// be.
bool Service::Loop::awaitWork() {
  std::unique_lock lock(inbox->mutex);
  // Texts are queued beside those that run only, which look at the time.
  inbox->asked.wait(lock, [&] {
    return !jobs.empty() || !inbox->queue.empty() || inbox->stopAt;
  });
  const Clock::time_point now = Clock::now();
  cancelsAll = inbox->stopAt && *inbox->stopAt <= now;
  lock.unlock();
  endQueued(now);
  lock.lock();
  return !jobs.empty() || !inbox->queue.empty() || !inbox->stopAt;
}

/// Ends what is late in the queue, or all of it. Needs no memory.
void Service::Loop::endQueued(Clock::time_point now) {
  auto isOver = [&](const std::shared_ptr<TextStream> &stream) {
    return cancelsAll || stream->isOver(now);
  };
  for (;;) {
    std::unique_lock lock(inbox->mutex);
    const auto found = std::ranges::find_if(inbox->queue, isOver);
    if (found == inbox->queue.end())
      return;
    const std::shared_ptr<TextStream> stream = *found;
    inbox->queue.erase(found);
    ++inbox->cancelledInQueue;
    lock.unlock();
    GenerationResult result;
    result.reason = StopReason::Cancelled;
    stream->finish(std::move(result));
  }
}

/// Ends the first text of the queue with `status`; returns whether there was
/// one. Needs no memory.
bool Service::Loop::refuseQueued(const Status &status) {
  std::unique_lock lock(inbox->mutex);
  if (inbox->queue.empty())
    return false;
  const std::shared_ptr<TextStream> stream = inbox->queue.front();
  inbox->queue.pop_front();
  ++inbox->failedInQueue;
  lock.unlock();
  stream->finish(
      catchExceptions([&]() -> Result<GenerationResult> { return status; }));
  return true;
}

/// As many as may go on at once.
void Service::Loop::beginQueued() {
  while (static_cast<int64_t>(jobs.size()) < engine.parallel()) {
    auto job = std::make_unique<Job>();
    jobs.reserve(jobs.size() + 1);
    std::unique_lock lock(inbox->mutex);
    if (inbox->queue.empty())
      return;
    inbox->begun.push_back(inbox->queue.front());
    inbox->queue.pop_front();
    job->stream = inbox->begun.back();
    lock.unlock();
    jobs.push_back(std::move(job));
    Job &begun = *jobs.back();
    if (Status status = catchExceptions([&] { return begin(begun); });
        !status.ok())
      begun.end = std::move(status);
  }
}

Status Service::Loop::begin(Job &job) {
  const TextRequest &request = job.stream->request;
  KF_ASSIGN_OR_RETURN(job.sampler, Sampler::create(request.sampling));
  KF_ASSIGN_OR_RETURN(job.sequence, engine.createSequence(request.adapter));
  GenerationOptions wanted;
  // Where the cache has fewer positions than the context, it is the limit.
  const int64_t room =
      limits.context - static_cast<int64_t>(request.prompt.size()) + 1;
  wanted.maxTokens = limits.context < engine.contextLength()
                         ? std::min(request.maxTokens, room)
                         : request.maxTokens;
  wanted.stopIds = request.stopIds;
  wanted.stopTexts = request.stopTexts;
  wanted.embedding = request.embedding;
  if (request.constraint) {
    KF_ASSIGN_OR_RETURN(wanted.constraint, request.constraint->begin());
  }
  if (request.topLogProbs) {
    wanted.topLogProbs = *request.topLogProbs;
    wanted.onLogProbs = [&job](const TextLogProbs &logProbs) {
      job.logProbs.push_back(logProbs);
    };
  }
  wanted.onText = [&job](std::string_view text) { job.text += text; };
  wanted.onToken = [this, &job](int32_t id) { onToken(job, id); };
  job.generation = std::make_unique<Generation>(*job.sequence, *job.sampler,
                                                tokenizer, std::move(wanted));
  return job.generation->start(request.prompt);
}

/// A token was chosen, and the prompt was read if it is the first.
void Service::Loop::onToken(Job &job, int32_t id) {
  const Clock::time_point now = Clock::now();
  auto secondsSince = [&](Clock::time_point before) {
    return std::chrono::duration<double>(now - before).count();
  };
  if (job.last) {
    counted.betweenTokens.add(secondsSince(*job.last));
  } else {
    counted.firstToken.add(secondsSince(job.stream->arrival));
    counted.promptTokens +=
        static_cast<int64_t>(job.stream->request.prompt.size());
    counted.cachedTokens += job.sequence->reusedTokens();
  }
  job.last = now;
  ++counted.generatedTokens;
  job.stream->generated.fetch_add(1, std::memory_order_relaxed);
  job.ids.push_back(id);
}

/// Ends what runs and is cancelled or late: no step reads for it any more.
/// Returns whether there was any.
bool Service::Loop::cancelOver() {
  const Clock::time_point now = Clock::now();
  bool any = false;
  for (const std::unique_ptr<Job> &job : jobs)
    if (cancelsAll || job->stream->isOver(now)) {
      job->sequence->cancel();
      any = true;
    }
  return any;
}

/// Hands out what the step brought. What has ended gives its pages back, and is
/// counted, before anybody learns of it.
void Service::Loop::deliver() {
  for (const std::unique_ptr<Job> &job : jobs) {
    Status given = catchExceptions([&] {
      if (!job->text.empty() || !job->ids.empty() || !job->logProbs.empty())
        job->stream->give(job->text, job->ids, job->logProbs);
      job->text.clear();
      job->ids.clear();
      job->logProbs.clear();
      return Status();
    });
    if (!given.ok())
      job->end.emplace(std::move(given));
    else if (!job->end && job->generation->isDone())
      job->end.emplace(
          catchExceptions([&] { return job->generation->take(); }));
    if (!job->end)
      continue;
    job->generation.reset();
    job->sequence.reset();
    count(*job);
  }
  publish();
  std::erase_if(jobs, [](const std::unique_ptr<Job> &job) {
    if (!job->end)
      return false;
    job->stream->finish(std::move(*job->end));
    return true;
  });
}

/// Of a text that has ended.
void Service::Loop::count(const Job &job) {
  const Result<GenerationResult> &end = *job.end;
  if (!end.ok()) {
    ++counted.failed;
    return;
  }
  ++(end->reason == StopReason::Cancelled ? counted.cancelled
                                          : counted.finished);
  if (!job.last) { // a prompt without a token behind it
    counted.promptTokens += end->promptTokens;
    counted.cachedTokens += end->reusedTokens;
  }
}

/// Lets other threads see the counts.
void Service::Loop::publish() {
  const PagePool &pool = engine.pages();
  counted.pagesUsed = pool.used();
  counted.pagesCached = pool.cached();
  counted.pagesTotal = pool.total();
  counted.preemptions = engine.counts().preemptions;
  counted.steps = engine.counts().steps;
  counted.waiting = engine.waiting();
  std::unique_lock lock(inbox->mutex);
  for (const std::unique_ptr<Job> &job : jobs)
    if (job->end)
      std::erase(inbox->begun, job->stream);
  inbox->counts = counted;
}

//===----------------------------------------------------------------------===//
// Service
//===----------------------------------------------------------------------===//

Service::Service(std::unique_ptr<Loop> loop) : loop(std::move(loop)) {}

Result<std::unique_ptr<Service>>
Service::create(Engine &engine, const Tokenizer *tokenizer,
                const ServiceOptions &options) {
  if (options.mostQueued < 1)
    return Status::error("a queue of " + std::to_string(options.mostQueued) +
                         " requests takes none; it has room for at least 1");
  return catchExceptions([&]() -> Result<std::unique_ptr<Service>> {
    std::unique_ptr<Service> service(
        new Service(std::make_unique<Loop>(engine, tokenizer, options)));
    service->loop->start();
    return service;
  });
}

Service::~Service() {
  stop();
  loop->joinThread();
}

/// An error that says what is wrong with `request`.
static Status check(const TextRequest &request, int64_t room,
                    int64_t vocabulary) {
  if (request.prompt.empty())
    return Status::error("there are no tokens to continue; begin with the "
                         "begin-of-text token");
  for (int32_t id : request.prompt)
    if (id < 0 || id >= vocabulary)
      return Status::error("token id " + std::to_string(id) +
                           " is outside the vocabulary of " +
                           std::to_string(vocabulary));
  if (static_cast<uint64_t>(room) < request.prompt.size())
    return Status::error("the prompt has " +
                         std::to_string(request.prompt.size()) +
                         " tokens; there is room for " + std::to_string(room));
  if (request.maxTokens < 0)
    return Status::error("a text of " + std::to_string(request.maxTokens) +
                         " tokens is not possible; 0 or more are");
  if (std::ranges::any_of(request.stopTexts, &std::string::empty))
    return Status::error("a text that is to stop at an empty text has no "
                         "beginning; stop texts have at least one character");
  KF_RETURN_IF_ERROR(request.sampling.validate());
  return request.sampling.validateIds(vocabulary);
}

Result<std::unique_ptr<TextHandle>>
Service::submit(TextRequest request, std::function<void()> onNews) try {
  KF_RETURN_IF_ERROR(
      check(request, loop->limits.context, loop->limits.vocabulary));
  const std::shared_ptr<ServiceInbox> &inbox = loop->inbox;
  auto stream = std::make_shared<TextStream>(inbox, std::move(request),
                                             std::move(onNews));
  // Before the lock: where it fails to be submitted, its end takes the lock.
  std::unique_ptr<TextHandle> handle(new TextHandle(stream));
  std::unique_lock lock(inbox->mutex);
  if (inbox->state == ServiceState::Failed)
    return inbox->failure;
  if (inbox->stopAt)
    return Status::error("the service is stopping", StatusCode::Cancelled);
  // Those that are to be begun by the next step are in the queue still.
  if (inbox->queue.size() + inbox->begun.size() >=
      static_cast<uint64_t>(loop->limits.mostTexts)) {
    ++inbox->refused;
    return Status::error(
        "the queue is full: " + std::to_string(inbox->queue.size()) +
            " requests wait; try again later",
        StatusCode::Unavailable);
  }
  inbox->queue.push_back(stream);
  stream->number = ++inbox->submitted;
  lock.unlock();
  inbox->asked.notify_one();
  return handle;
} catch (...) {
  return statusOfException();
}

ServiceState Service::state() const {
  std::unique_lock lock(loop->inbox->mutex);
  return loop->inbox->state;
}

Status Service::failure() const {
  std::unique_lock lock(loop->inbox->mutex);
  return loop->inbox->failure;
}

ServiceCounts Service::counts() const {
  const ServiceInbox &inbox = *loop->inbox;
  std::unique_lock lock(loop->inbox->mutex);
  ServiceCounts counts = inbox.counts;
  counts.queued = static_cast<int64_t>(inbox.queue.size());
  counts.running = static_cast<int64_t>(inbox.begun.size()) - counts.waiting;
  counts.cancelled += inbox.cancelledInQueue;
  counts.failed += inbox.failedInQueue;
  counts.refused = inbox.refused;
  return counts;
}

std::vector<TextState> Service::texts() const {
  const ServiceInbox &inbox = *loop->inbox;
  std::vector<TextState> states;
  std::unique_lock lock(loop->inbox->mutex);
  states.reserve(inbox.begun.size() + inbox.queue.size());
  auto add = [&](const std::shared_ptr<TextStream> &stream, bool isBegun) {
    states.push_back({stream->number, isBegun,
                      static_cast<int64_t>(stream->request.prompt.size()),
                      stream->generated.load(std::memory_order_relaxed)});
  };
  for (const std::shared_ptr<TextStream> &stream : inbox.begun)
    add(stream, true);
  for (const std::shared_ptr<TextStream> &stream : inbox.queue)
    add(stream, false);
  return states;
}

int64_t Service::contextLength() const { return loop->limits.context; }
int64_t Service::mostTexts() const { return loop->limits.mostTexts; }

void Service::stop(Clock::time_point deadline) {
  ServiceInbox &inbox = *loop->inbox;
  std::unique_lock lock(inbox.mutex);
  inbox.stopAt = std::min(inbox.stopAt.value_or(deadline), deadline);
  if (inbox.state == ServiceState::Loading ||
      inbox.state == ServiceState::Ready)
    inbox.state = ServiceState::Stopping;
  lock.unlock();
  inbox.asked.notify_one();
}

void Service::join() {
  ServiceInbox &inbox = *loop->inbox;
  std::unique_lock lock(inbox.mutex);
  inbox.ended.wait(lock, [&] { return inbox.hasEnded; });
}
