//===- Generation.cpp - Tokens out of tokens ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Generation.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

using namespace kf;

/// Where steps run ahead, one has begun that reads the last token alone, and is
/// thrown away with those that could have followed it: so few tokens would be
/// chosen in the meantime.
static constexpr size_t kFewestSkippedAhead = 4;

std::string_view kf::nameOf(StopReason reason) {
  switch (reason) {
  case StopReason::StopToken:
    return "stop token";
  case StopReason::StopText:
    return "stop text";
  case StopReason::Complete:
    return "complete";
  case StopReason::MaxTokens:
    return "token limit";
  case StopReason::ContextFull:
    return "context full";
  case StopReason::Cancelled:
    return "cancelled";
  }
  return "";
}

std::string_view kf::finishReasonOf(StopReason reason) {
  switch (reason) {
  case StopReason::StopToken:
  case StopReason::StopText:
  case StopReason::Complete:
    return "stop";
  case StopReason::MaxTokens:
  case StopReason::ContextFull:
    return "length";
  case StopReason::Cancelled:
    return "cancelled";
  }
  return "";
}

/// What a Generation does. Readings hold it while they last, for a callback may
/// destroy the Generation.
class Generation::Text : public std::enable_shared_from_this<Text> {
public:
  Text(Sequence &sequence, Sampler &sampler, const Tokenizer *tokenizer,
       GenerationOptions options)
      : sequence(sequence), sampler(sampler), tokenizer(tokenizer),
        options(std::move(options)) {}

  Status start(std::span<const int32_t> prompt);
  /// Nobody is called any more. The sequence, the sampler and the tokenizer may
  /// be gone when this has returned.
  void abandon();
  bool isDone() const { return end.has_value(); }
  Result<GenerationResult> take();

private:
  Status read(std::vector<int32_t> ids);
  Status readForEmbedding(std::span<const int32_t> prompt);
  void onRead(const Reading::Outcome &outcome);
  Status goOn(std::optional<int32_t> id);
  bool draftsNext() const;
  Result<bool> takeDrafts();
  Status accept(int32_t id);
  Result<std::vector<int32_t>> takeForced(int64_t position);
  std::optional<StopReason> reasonBehind(std::span<const int32_t> ids);
  void finish(StopReason reason);
  double readied() const { return sequence.engine().timings().total(); }

  // What was generated. Callbacks may abandon the text.
  std::optional<StopReason> push(int32_t id);
  bool pushLast();
  bool emit(const std::string &piece);
  size_t commonEnd(std::string_view stop) const;
  void release(size_t count);
  bool hasText(int32_t id) const;
  void giveLogProbs(size_t end);

  /// Of a token whose text is not out.
  struct HeldLogProbs {
    size_t begin = 0; ///< of its text, in bytes
    TextLogProbs logProbs;
  };

  Sequence &sequence;
  Sampler &sampler;
  const Tokenizer *tokenizer;
  GenerationOptions options;
  GenerationResult result;
  /// That are read with the prompt.
  std::vector<int32_t> first;
  int64_t beingRead = 0; ///< tokens
  bool hasStarted = false;
  bool isTold = false;                 ///< by the engine, at the moment
  bool isAbandoned = false;            ///< nobody wants to know any more
  std::optional<NgramDrafter> drafter; ///< where n-grams draft tokens
  bool hasDraftModel = false;          ///< where a model does
  int64_t draftsBegin = 0;             ///< position of the first one
  bool isAhead = false; ///< the step that reads the last token may have begun
  std::optional<StreamDecoder> decoder; ///< none: no text
  std::optional<Pooler> pooler;         ///< where an embedding is wanted
  std::string held;                     ///< may begin a stop text
  bool stopped = false;                 ///< there was a stop text
  int64_t characters = 0;               ///< of the text, with what is held
  ChosenLogProbs logProbs;              ///< of the token that was chosen last
  std::deque<HeldLogProbs> heldLogProbs;
  int64_t promptCount = 0;
  // Since the start, and from when the prompt was read since then.
  Stopwatch watch;
  double readiedBefore = 0;  ///< seconds, what the engine had spent in it
  std::optional<Status> end; ///< success, or what ended it
};

//===----------------------------------------------------------------------===//
// Text of tokens
//===----------------------------------------------------------------------===//

/// Appends `id`; returns why it ends the text, if it does.
std::optional<StopReason> Generation::Text::push(int32_t id) {
  result.ids.push_back(id);
  const bool isStop =
      std::ranges::find(options.stopIds, id) != options.stopIds.end();
  if (options.onLogProbs && (!isStop || hasText(id)))
    heldLogProbs.push_back(
        {result.text.size() + held.size(), {{logProbs}, characters}});
  if (options.onToken)
    options.onToken(id);
  if (isAbandoned)
    return std::nullopt;
  if (!decoder)
    giveLogProbs(SIZE_MAX);
  else if (emit(decoder->push(id)))
    return StopReason::StopText;
  if (isStop)
    return StopReason::StopToken;
  return std::nullopt;
}

bool Generation::Text::hasText(int32_t id) const {
  return tokenizer && !tokenizer->isSpecial(id) &&
         !tokenizer->bytesOf(id).empty();
}

/// What was held back, when no more tokens come; true as for emit().
bool Generation::Text::pushLast() {
  if (!decoder || emit(decoder->flush()))
    return decoder.has_value();
  release(held.size());
  return false;
}

/// Lets `piece` out but for what may be the beginning of a stop text; returns
/// whether there was a whole one, from which on there is no text.
bool Generation::Text::emit(const std::string &piece) {
  if (stopped)
    return true;
  held += piece;
  characters += std::ranges::count_if(
      piece, [](char byte) { return (byte & 0xc0) != 0x80; }); // first bytes
  size_t first = std::string::npos;
  for (const std::string &stop : options.stopTexts)
    first = std::min(first, held.find(stop));
  if (first != std::string::npos) {
    release(first);
    held.clear();
    stopped = true;
    return true;
  }
  size_t kept = 0;
  for (const std::string &stop : options.stopTexts)
    kept = std::max(kept, commonEnd(stop));
  release(held.size() - kept);
  return false;
}

/// How many bytes at the end of `held` a proper beginning of `stop` is.
size_t Generation::Text::commonEnd(std::string_view stop) const {
  for (size_t n = std::min(held.size(), stop.size() - 1); n > 0; --n)
    if (held.ends_with(stop.substr(0, n)))
      return n;
  return 0;
}

void Generation::Text::release(size_t count) {
  const std::string piece = held.substr(0, count);
  held.erase(0, count);
  result.text += piece;
  giveLogProbs(result.text.size());
  if (options.onText && !piece.empty() && !isAbandoned)
    options.onText(piece);
}

/// Of the tokens that begin before `end` bytes.
void Generation::Text::giveLogProbs(size_t end) {
  while (!isAbandoned && !heldLogProbs.empty() &&
         heldLogProbs.front().begin < end) {
    const HeldLogProbs next = std::move(heldLogProbs.front());
    heldLogProbs.pop_front();
    options.onLogProbs(next.logProbs);
  }
}

//===----------------------------------------------------------------------===//
// Readings
//===----------------------------------------------------------------------===//

Status Generation::Text::start(std::span<const int32_t> prompt) try {
  watch = Stopwatch();
  readiedBefore = readied();
  promptCount = static_cast<int64_t>(prompt.size());
  if (options.embedding && !prompt.empty()) {
    KF_RETURN_IF_ERROR(readForEmbedding(prompt));
    hasStarted = true;
    return Status();
  }
  if (tokenizer)
    decoder.emplace(*tokenizer, /*skipSpecial=*/true, prompt);
  for (int32_t id : prompt)
    sampler.acceptPrompt(id);
  if (!options.constraint && !options.onLogProbs &&
      !sampler.dependsOnTokens()) {
    hasDraftModel = sequence.engine().draftEngine() != nullptr;
    if (const auto &ngrams = sequence.engine().ngrams())
      drafter.emplace(*ngrams);
  }
  if (drafter)
    for (int32_t id : prompt)
      drafter->accept(id);
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  if (promptCount > 0) {
    KF_ASSIGN_OR_RETURN(first, takeForced(sequence.position() + promptCount));
  }
  ids.insert(ids.end(), first.begin(), first.end());
  KF_RETURN_IF_ERROR(read(std::move(ids)));
  hasStarted = true;
  return Status();
} catch (...) {
  return statusOfException();
}

void Generation::Text::abandon() {
  isAbandoned = true;
  // From a callback of its own, there is nothing to read.
  if (hasStarted && !isDone() && !isTold)
    sequence.cancel();
}

/// Reads `ids`, and has a token chosen behind them if there can be one.
Status Generation::Text::read(std::vector<int32_t> ids) {
  const bool choose = options.maxTokens > 0 &&
                      !(options.constraint && options.constraint->isComplete());
  Reading reading;
  reading.ids = std::move(ids);
  reading.sampler = choose ? &sampler : nullptr;
  reading.constraint = choose ? options.constraint.get() : nullptr;
  beingRead = static_cast<int64_t>(reading.ids.size());
  const int64_t last = sequence.position() + beingRead;
  const int64_t room =
      std::min(options.maxTokens -
                   static_cast<int64_t>(result.ids.size() + first.size()) - 1,
               sequence.contextLength() - last);
  // Where a step may have begun that reads the last token alone, nothing is
  // drafted; where something can be, none begins before the next one.
  const bool mayDraft = choose && hasStarted && room > 0 &&
                        !(isAhead && sequence.engine().runsAhead());
  reading.draftsNext = choose && room > 0 && draftsNext();
  reading.goesOn = choose && room > 0 && !reading.draftsNext;
  isAhead = reading.goesOn;
  draftsBegin = last;
  if (mayDraft && drafter) {
    const std::span<const int32_t> drafts =
        drafter->draft(static_cast<size_t>(room));
    reading.ids.insert(reading.ids.end(), drafts.begin(), drafts.end());
    reading.drafted = drafts.size();
  } else if (mayDraft && hasDraftModel) {
    reading.mostDrafts = static_cast<size_t>(room);
  }
  if (choose && options.onLogProbs) {
    reading.topLogProbs = options.topLogProbs;
    reading.onLogProbs = [self =
                              shared_from_this()](const ChosenLogProbs &given) {
      self->logProbs = given;
    };
  }
  reading.done = [self = shared_from_this()](const Reading::Outcome &outcome) {
    self->onRead(outcome);
  };
  return sequence.read(std::move(reading));
}

/// Whether tokens may be drafted behind the one that is chosen next.
bool Generation::Text::draftsNext() const {
  return drafter ? drafter->hasDrafts()
                 : hasDraftModel && !sequence.restsFromDrafts();
}

/// Up to the last token whose row is needed: none depends on those behind it.
Status Generation::Text::readForEmbedding(std::span<const int32_t> prompt) {
  const int64_t width = sequence.engine().model().config().hiddenSize;
  if (const int64_t wanted = options.embedding->dimensions;
      wanted < 0 || wanted > width)
    return Status::error("embeddings of " + std::to_string(wanted) +
                         " dimensions are not possible; the model's have " +
                         std::to_string(width));
  pooler.emplace(*options.embedding, prompt.size(), static_cast<size_t>(width));
  const std::span<const int32_t> needed = prompt.first(pooler->end());
  Reading reading;
  reading.ids.assign(needed.begin(), needed.end());
  reading.firstEmbedding = pooler->first();
  reading.onEmbedding =
      [self = shared_from_this()](size_t, std::span<const float> row) {
        self->pooler->add(row);
        return Status();
      };
  reading.done = [self = shared_from_this()](const Reading::Outcome &outcome) {
    self->onRead(outcome);
  };
  return sequence.read(std::move(reading));
}

void Generation::Text::onRead(const Reading::Outcome &outcome) {
  if (isAbandoned)
    return;
  isTold = true;
  Status status = catchExceptions([&]() -> Status {
    KF_RETURN_IF_ERROR(outcome.status());
    return goOn(*outcome);
  });
  // Before the reading, or within a callback, which kept it from reading on.
  if (status.isCancelled() && !isAbandoned)
    finish(StopReason::Cancelled);
  else if (!status.ok())
    end = std::move(status);
  isTold = false;
}

/// What was to be read is read, and `id` follows it, if one was wanted.
Status Generation::Text::goOn(std::optional<int32_t> id) {
  std::vector<int32_t> ids = std::move(first);
  first.clear();
  if (result.promptTokens == 0) {
    result.promptTokens = promptCount;
    result.reusedTokens = std::min(sequence.reusedTokens(), promptCount);
    result.prefillSeconds = watch.seconds();
    result.prefillReadying = readied() - readiedBefore;
    watch = Stopwatch();
    readiedBefore = readied();
  } else {
    result.decodedTokens += beingRead;
  }
  if (sequence.draftedTokens() > 0) {
    KF_ASSIGN_OR_RETURN(const bool goesOn, takeDrafts());
    if (!goesOn)
      return Status();
  }
  if (pooler) {
    KF_ASSIGN_OR_RETURN(result.embedding, pooler->take());
    finish(StopReason::Complete);
    return Status();
  }
  if (id) {
    KF_RETURN_IF_ERROR(accept(*id));
    ids.push_back(*id);
  } else if (ids.empty()) {
    finish(StopReason::MaxTokens);
    return Status();
  }
  std::optional<StopReason> reason = reasonBehind(ids);
  if (reason || isAbandoned) {
    if (reason)
      finish(*reason);
    return Status();
  }
  KF_ASSIGN_OR_RETURN(const std::vector<int32_t> forced,
                      takeForced(sequence.position() + 1));
  reason = reasonBehind(forced);
  if (reason)
    finish(*reason);
  if (reason || isAbandoned)
    return Status();
  ids = {*id};
  ids.insert(ids.end(), forced.begin(), forced.end());
  return read(std::move(ids));
}

/// What was drafted and is read belongs to the text. Returns whether that goes
/// on: where it ends, its last token is not read, as that of any other one.
Result<bool> Generation::Text::takeDrafts() {
  const std::span<const int32_t> read =
      sequence.tokens().subspan(static_cast<size_t>(draftsBegin));
  const std::vector<int32_t> accepted(read.begin(), read.end());
  if (drafter)
    drafter->learn(accepted.size());
  result.draftTokens += static_cast<int64_t>(sequence.draftedTokens());
  result.acceptedDraftTokens += static_cast<int64_t>(accepted.size());
  for (size_t i = 0; i < accepted.size(); ++i) {
    KF_RETURN_IF_ERROR(accept(accepted[i]));
    const std::optional<StopReason> reason = push(accepted[i]);
    if (isAbandoned)
      return false;
    if (reason) {
      KF_RETURN_IF_ERROR(
          sequence.rewind(draftsBegin + static_cast<int64_t>(i)));
      finish(*reason);
      return false;
    }
    ++result.decodedTokens;
  }
  return true;
}

/// `id` belongs to the text; nobody is told yet.
Status Generation::Text::accept(int32_t id) {
  sampler.accept(id);
  if (drafter)
    drafter->accept(id);
  return options.constraint ? options.constraint->accept(id) : Status();
}

/// Accepts the tokens that come next whatever is chosen, as many as there is
/// room for behind `position` and in front of one that is chosen, if their
/// steps are saved so.
Result<std::vector<int32_t>> Generation::Text::takeForced(int64_t position) {
  std::vector<int32_t> taken;
  // Who wants to know how likely tokens are has each chosen.
  if (!options.constraint || options.onLogProbs)
    return taken;
  const int64_t room =
      std::min(options.maxTokens - static_cast<int64_t>(result.ids.size()) - 1,
               sequence.contextLength() - position);
  KF_ASSIGN_OR_RETURN(const std::span<const int32_t> forced,
                      options.constraint->forced());
  for (int32_t id : forced) {
    // What excludes the token is an error of the step that chooses it.
    if (static_cast<int64_t>(taken.size()) >= room || sampler.excludes(id))
      break;
    taken.push_back(id);
  }
  if (hasStarted && sequence.engine().runsAhead() &&
      taken.size() < kFewestSkippedAhead)
    taken.clear();
  for (int32_t id : taken)
    KF_RETURN_IF_ERROR(accept(id));
  return taken;
}

/// Adds accepted tokens to the text; returns why it ends behind them, if it
/// does.
std::optional<StopReason>
Generation::Text::reasonBehind(std::span<const int32_t> ids) {
  for (int32_t id : ids) {
    const std::optional<StopReason> reason = push(id);
    if (reason || isAbandoned)
      return reason;
  }
  if (options.constraint && options.constraint->isComplete())
    return StopReason::Complete;
  if (static_cast<int64_t>(result.ids.size()) >= options.maxTokens)
    return StopReason::MaxTokens;
  if (sequence.position() >= sequence.contextLength())
    return StopReason::ContextFull;
  return std::nullopt;
}

void Generation::Text::finish(StopReason reason) {
  if (result.promptTokens) {
    result.decodeSeconds = watch.seconds();
    result.decodeReadying = readied() - readiedBefore;
  }
  // The last bytes of a text may complete a stop text.
  end = catchExceptions([&] {
    result.reason = pushLast() ? StopReason::StopText : reason;
    if (result.reason == StopReason::StopText)
      heldLogProbs.clear();
    giveLogProbs(SIZE_MAX);
    return Status();
  });
}

Result<GenerationResult> Generation::Text::take() {
  assert(isDone() && "there is no result yet");
  if (!end->ok())
    return *end;
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

Generation::Generation(Sequence &sequence, Sampler &sampler,
                       const Tokenizer *tokenizer, GenerationOptions options)
    : text(std::make_shared<Text>(sequence, sampler, tokenizer,
                                  std::move(options))) {}

Generation::~Generation() { text->abandon(); }

Status Generation::start(std::span<const int32_t> prompt) {
  return text->start(prompt);
}

bool Generation::isDone() const { return text->isDone(); }

Result<GenerationResult> Generation::take() { return text->take(); }

Result<GenerationResult> kf::generate(Sequence &sequence, Sampler &sampler,
                                      const Tokenizer *tokenizer,
                                      std::span<const int32_t> prompt,
                                      GenerationOptions options) try {
  Generation generation(sequence, sampler, tokenizer, std::move(options));
  KF_RETURN_IF_ERROR(generation.start(prompt));
  while (!generation.isDone())
    sequence.engine().step();
  return generation.take();
} catch (...) {
  return statusOfException();
}
