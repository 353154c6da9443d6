//===- Service.h - Texts of many threads by one engine ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An engine belongs to one thread. A Service is that thread: it takes requests
// from any other, runs the engine's steps as long as there is something to
// read, sleeps otherwise, and hands texts out piece by piece.
//
//   std::unique_ptr<Service> service = Service::create(engine, &tokenizer)
//                                          .take();
//   std::unique_ptr<TextHandle> text = service->submit(request).take();
//   for (;;) {
//     TextPiece piece = text->wait();
//     (show piece.text)
//     if (piece.end)
//       break;
//   }
//
// A request waits in the service's queue until fewer than
// EngineOptions::parallel texts are going on, in the order of arrival. What it
// waits for then, pages and rows of steps, runtime/engine/Scheduler.h says.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_SERVICE_H
#define KF_RUNTIME_SERVE_SERVICE_H

#include "runtime/core/Status.h"
#include "runtime/engine/Engine.h"
#include "runtime/engine/Generation.h"
#include "runtime/engine/Sampler.h"
#include "runtime/serve/Histogram.h"
#include "runtime/text/Tokenizer.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// One text that is wanted.
struct TextRequest {
  /// What is continued: ids of the vocabulary, at least one, and no more than
  /// Service::contextLength().
  std::vector<int32_t> prompt;
  /// Engine::createSequence()'s.
  int64_t adapter = 0;
  /// OpenAI's penalties are those without SamplerOptions::penalizesPrompt.
  SamplerOptions sampling;
  /// The most tokens to generate; 0 reads the prompt alone. More than the
  /// context has room for end with StopReason::ContextFull, and more than the
  /// whole cache has with MaxTokens.
  int64_t maxTokens = 256;
  /// As GenerationOptions'.
  std::vector<int64_t> stopIds;
  std::vector<std::string> stopTexts;
  /// How many likely tokens are told beside each of the text; nothing: no
  /// log-probabilities.
  std::optional<size_t> topLogProbs;
  /// What the text is held to; null: nothing. The service's thread asks it.
  std::shared_ptr<TokenConstraintSource> constraint;
  /// As GenerationOptions': the embedding of `prompt` comes with the end.
  std::optional<EmbeddingOptions> embedding;
  /// When it ends as if it were cancelled, queued or running.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

/// What is new of a text since the last look at it.
struct TextPiece {
  std::string text;         ///< valid UTF-8; without a tokenizer, none
  std::vector<int32_t> ids; ///< whose text may come later, or never
  /// Of the tokens whose text begins in this one, where they are wanted; at the
  /// end, of those without text, too. GenerationOptions::onLogProbs says which.
  std::vector<TextLogProbs> logProbs;
  /// With the last piece, once: how it ended, with the whole text. What was
  /// cancelled or late has StopReason::Cancelled and what there was by then.
  /// Errors are this text's own, and end no other one.
  std::optional<Result<GenerationResult>> end;

  bool isEmpty() const {
    return text.empty() && ids.empty() && logProbs.empty() && !end;
  }
};

class TextStream;

/// A text that was submitted. What nobody takes is kept, at most the text
/// itself with its log-probabilities; nobody waits for a slow reader. May
/// outlive the service. Any thread, one at a time; cancel() any number beside
/// it.
class TextHandle {
public:
  /// Cancels the text.
  ~TextHandle();
  TextHandle(const TextHandle &) = delete;
  TextHandle &operator=(const TextHandle &) = delete;

  /// What is new; never waits. Empty where there is nothing, and after the end.
  TextPiece take();
  /// The same, but waits until something is new, or `until`. After the end
  /// was taken it returns at once.
  TextPiece
  wait(std::optional<std::chrono::steady_clock::time_point> until = {});
  /// Ends the text. One that has not begun ends before this returns, and leaves
  /// the queue; one that runs ends after the step that runs, and nothing is
  /// computed for it from then on. After the end, nothing happens.
  void cancel();

private:
  friend class Service;
  explicit TextHandle(std::shared_ptr<TextStream> stream);

  std::shared_ptr<TextStream> stream;
};

enum class ServiceState {
  Loading,  ///< makes programs ready; what is submitted waits
  Ready,    ///< runs what is submitted
  Stopping, ///< refuses requests, and ends those that there are
  Stopped,  ///< all have ended, after stop()
  Failed    ///< programs could not be made ready: failure() says why
};
/// "loading", "ready", "stopping", "stopped", "failed".
std::string_view nameOf(ServiceState state);

struct ServiceOptions {
  /// Texts beside those that the engine runs at once; more are refused.
  int64_t mostQueued = 128;
  /// Whether programs are made ready before the first request is begun; else
  /// each when it is first needed.
  bool preparesPrograms = true;
};

/// What happened so far, and what is.
struct ServiceCounts {
  // At the moment.
  int64_t queued = 0;  ///< texts that wait to be begun
  int64_t waiting = 0; ///< that were begun, and wait for pages
  int64_t running = 0; ///< the others that were begun
  int64_t pagesUsed = 0, pagesCached = 0, pagesTotal = 0;

  // Texts that have ended.
  int64_t finished = 0;  ///< by a stop or a limit
  int64_t cancelled = 0; ///< or late
  int64_t failed = 0;
  int64_t refused = 0; ///< by submit(), for want of room in the queue

  // Tokens.
  int64_t promptTokens = 0;    ///< of prompts that were read
  int64_t cachedTokens = 0;    ///< of them, those that were in the cache
  int64_t generatedTokens = 0; ///< that were chosen

  int64_t preemptions = 0; ///< EngineCounts::preemptions
  int64_t steps = 0;       ///< EngineCounts::steps

  /// Seconds from submit() to a text's first token, and from each of its tokens
  /// to the next.
  Histogram firstToken, betweenTokens;
};

/// A text that has not ended.
struct TextState {
  uint64_t number = 0;   ///< of its submission, from 1 on
  bool isBegun = false;  ///< else it is queued
  int64_t prompt = 0;    ///< tokens
  int64_t generated = 0; ///< tokens
};

/// EngineOptions::longestStep of engines that people wait for, in seconds: a
/// text that runs is cancelled within that.
inline constexpr double kLongestServedStep = 0.25;

/// The thread that owns an engine's loop. All functions may be called by any
/// thread at any time, but for the destructor.
class Service {
public:
  /// Starts the thread. From now on until the destructor returns, `engine` and
  /// its model are this thread's alone; both, and `tokenizer`, which may be
  /// null for ids without text, must outlive the service. The engine has no
  /// sequences of others. Errors: no mostQueued, no thread.
  static Result<std::unique_ptr<Service>>
  create(Engine &engine, const Tokenizer *tokenizer,
         const ServiceOptions &options = {});
  /// stop() at once, and waits.
  ~Service();
  Service(const Service &) = delete;
  Service &operator=(const Service &) = delete;

  /// Asks for a text; never waits for one. Errors, at once:
  /// - Invalid: what is wrong with the request, a prompt that the context or
  ///   the cache can never have room for included;
  /// - Unavailable: there are mostTexts(); some time later there may be fewer;
  /// - Cancelled: the service is stopping or has stopped;
  /// - what failure() says.
  ///
  /// `onNews` is called when something is new after the last take() or wait()
  /// has left nothing, once until the next of these. It is called by the
  /// service's thread, which waits for it, without a lock: it may call the
  /// handle and the service, and must not block or throw. It is not called for
  /// what cancel() ends before it returns. A call may be going on when the
  /// handle is destroyed: what the function refers to, it has to own. It is
  /// destroyed by the thread that happens to be the last to know the text.
  Result<std::unique_ptr<TextHandle>> submit(TextRequest request,
                                             std::function<void()> onNews = {});

  ServiceState state() const;
  /// Why the state is Failed; else success.
  Status failure() const;
  ServiceCounts counts() const;
  /// Those that have not ended, in the order of arrival.
  std::vector<TextState> texts() const;
  /// Positions that a text has room for, prompt included: Engine::textLimit().
  int64_t contextLength() const;
  /// How many texts there may be that have not ended: those that the engine
  /// runs at once, and ServiceOptions::mostQueued more.
  int64_t mostTexts() const;

  /// Refuses requests from now on, and cancels what has not ended by `deadline`
  /// (the earliest of several calls'). Does not wait.
  void stop(std::chrono::steady_clock::time_point deadline =
                std::chrono::steady_clock::now());
  /// Waits until all texts have ended, after stop().
  void join();

private:
  class Loop;
  explicit Service(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_SERVICE_H
