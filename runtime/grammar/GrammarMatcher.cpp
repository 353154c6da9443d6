//===- GrammarMatcher.cpp - Which tokens a grammar allows next ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GrammarMatcher.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/grammar/MatchCache.h"

#include <algorithm>
#include <bit>

using namespace kf;
using namespace kf::grammar;

/// Runs what may change the cache: where an allocation fails in it, the cache
/// is of no use any more, and where it is too large, it is made anew and `fn`
/// runs once more.
template <typename Fn> auto GrammarMatcher::run(Fn &&fn) -> decltype(fn()) {
  if (cache->broken)
    return Status::outOfMemory();
  const auto once = [&]() -> decltype(fn()) {
    try {
      return catchFailure(fn);
    } catch (...) {
      cache->broken = true;
      return statusOfException();
    }
  };
  if (cache->grown() > limits.maxBytes)
    KF_RETURN_IF_ERROR(renewCache());
  decltype(fn()) result = once();
  const Status *failure;
  if constexpr (std::is_same_v<decltype(fn()), Status>)
    failure = &result;
  else
    failure = result.ok() ? nullptr : &result.status();
  if (!failure || failure->code() != StatusCode::OutOfMemory || cache->broken)
    return result;
  KF_RETURN_IF_ERROR(renewCache());
  return once();
}

/// Leaves the cache to others that have it, for one that knows this text alone.
Status GrammarMatcher::renewCache() {
  return catchExceptions([&] {
    return catchFailure([&] {
      Fuel fuel(limits.maxSteps, limits.cancelled);
      auto renewed = std::make_shared<MatchCache>(
          cache->rules(), cache->sharedVocabulary(), limits.maxBytes, fuel);
      Place place = now;
      std::vector<Past> before = past;
      std::vector<Place *> places{&place};
      for (Past &one : before)
        places.push_back(&one.place);
      renewed->copyPlaces(*cache, places, fuel);
      if (renewed->grown() > limits.maxBytes)
        return Status::error("the text takes more memory than the limit of " +
                                 std::to_string(limits.maxBytes) + " bytes",
                             StatusCode::OutOfMemory);
      cache = std::move(renewed);
      now = std::move(place);
      past = std::move(before);
      return Status();
    });
  });
}

Result<GrammarMatcher>
GrammarMatcher::create(const Grammar &grammar,
                       std::shared_ptr<const GrammarVocabulary> vocabulary,
                       const MatchLimits &limits) {
  using Made = Result<GrammarMatcher>;
  return catchExceptions([&]() -> Made {
    return catchFailure([&]() -> Made {
      Fuel fuel(limits.maxSteps, limits.cancelled);
      GrammarMatcher matcher;
      matcher.limits = limits;
      matcher.cache = std::make_shared<MatchCache>(
          grammar.rules, std::move(vocabulary), limits.maxBytes, fuel);
      matcher.now = matcher.cache->begin();
      return matcher;
    });
  });
}

size_t Grammar::bytes() const { return rules->memory(); }

bool GrammarMatcher::hasRoom() const {
  return !cache->broken && cache->grown() <= limits.maxBytes;
}

Status GrammarMatcher::fillMask(std::span<uint32_t> mask) {
  return catchExceptions([&]() -> Status {
    const size_t words = cache->vocabulary().maskWords();
    if (mask.size() != words)
      return Status::error("a mask of " + std::to_string(mask.size()) +
                           " words; the vocabulary has " +
                           std::to_string(words));
    if (finished)
      return Status::error("the text is finished; no token may come");
    return run([&] {
      Fuel fuel(limits.maxSteps, limits.cancelled);
      cache->fillMask(now, mask, fuel);
      if (std::ranges::any_of(mask, [](uint32_t word) { return word != 0; }))
        return Status();
      return Status::error(
          "no token of the vocabulary continues the text as the grammar wants, "
          "after " +
          std::to_string(accepted) + " tokens");
    });
  });
}

Result<bool> GrammarMatcher::allows(int32_t id) {
  return catchExceptions([&]() -> Result<bool> {
    const GrammarVocabulary &vocabulary = cache->vocabulary();
    if (id < 0 || size_t(id) >= vocabulary.size())
      return Status::error("token " + std::to_string(id) +
                           " is not in the vocabulary of " +
                           std::to_string(vocabulary.size()) + " tokens");
    if (finished)
      return false;
    if (vocabulary.isEnd(id))
      return now.mayEnd;
    if (vocabulary.bytes(id).empty())
      return false;
    return run([&]() -> Result<bool> {
      Fuel fuel(limits.maxSteps, limits.cancelled);
      Place place = now;
      for (char c : vocabulary.bytes(id))
        place = cache->step(place, static_cast<uint8_t>(c), fuel);
      return !place.threads.empty() || place.mayEnd;
    });
  });
}

Status GrammarMatcher::accept(int32_t id) {
  return catchExceptions([&]() -> Status {
    KF_ASSIGN_OR_RETURN(const bool isAllowed, allows(id));
    if (!isAllowed)
      return Status::error(
          "token " + std::to_string(id) + ", " +
          (cache->vocabulary().isEnd(id)
               ? std::string("which ends the text,")
               : inQuotes(cache->vocabulary().bytes(id)) + ",") +
          " is not allowed by the grammar after " + std::to_string(accepted) +
          " tokens");
    return run([&] {
      Fuel fuel(limits.maxSteps, limits.cancelled);
      Place place = now;
      const bool isEnd = cache->vocabulary().isEnd(id);
      for (char c : cache->vocabulary().bytes(id))
        place = cache->step(place, static_cast<uint8_t>(c), fuel);
      if (isEnd)
        place = Place{};
      past.push_back({std::move(now), finished});
      if (past.size() > limits.maxRollback)
        past.erase(past.begin());
      now = std::move(place);
      finished = isEnd;
      ++accepted;
      return Status();
    });
  });
}

Status GrammarMatcher::rollback(size_t tokens) {
  return catchExceptions([&]() -> Status {
    if (tokens > past.size())
      return Status::error("cannot take " + std::to_string(tokens) +
                           " tokens back; " + std::to_string(past.size()) +
                           " are kept");
    for (; tokens; --tokens) {
      now = std::move(past.back().place);
      finished = past.back().finished;
      past.pop_back();
      --accepted;
    }
    return Status();
  });
}

Result<std::string> GrammarMatcher::forcedBytes(size_t most) {
  return run([&]() -> Result<std::string> {
    Fuel fuel(limits.maxSteps, limits.cancelled);
    std::string bytes;
    Place place = now;
    while (bytes.size() < most) {
      const int byte = cache->forcedByte(place, fuel);
      if (byte < 0)
        break;
      bytes += static_cast<char>(byte);
      place = cache->step(place, static_cast<uint8_t>(byte), fuel);
    }
    return bytes;
  });
}

Result<std::optional<int32_t>> GrammarMatcher::forcedToken() {
  using Token = std::optional<int32_t>;
  return catchExceptions([&]() -> Result<Token> {
    std::vector<uint32_t> mask(cache->vocabulary().maskWords());
    KF_RETURN_IF_ERROR(fillMask(mask));
    Token token;
    for (size_t word = 0; word < mask.size(); ++word) {
      if (!mask[word])
        continue;
      if (token || std::popcount(mask[word]) > 1)
        return Token();
      token = static_cast<int32_t>(word * 32 + std::countr_zero(mask[word]));
    }
    return token;
  });
}
