//===- PreTokenizer.cpp - Cutting text into words -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/PreTokenizer.h"

#include <algorithm>

using namespace kf;

namespace {

/// A stretch of text, and whether the pattern matched it.
struct Stretch {
  size_t begin, end;
  bool matched;
};

Result<std::vector<Regex::Match>> findMatches(const SplitStep &step,
                                              std::string_view text) {
  if (step.regex)
    return step.regex->findAll(text);
  std::vector<Regex::Match> matches;
  for (size_t at = 0;
       (at = text.find(step.literal, at)) != std::string_view::npos;
       at += step.literal.size())
    matches.push_back({at, at + step.literal.size()});
  return matches;
}

/// Matches and what lies between them, in order, covering `text`.
Result<std::vector<Stretch>> findStretches(const SplitStep &step,
                                           std::string_view text) {
  KF_ASSIGN_OR_RETURN(std::vector<Regex::Match> matches,
                      findMatches(step, text));
  std::vector<Stretch> stretches;
  stretches.reserve(2 * matches.size() + 1);
  size_t done = 0;
  for (const Regex::Match &match : matches) {
    if (done != match.begin)
      stretches.push_back({done, match.begin, step.invert});
    stretches.push_back({match.begin, match.end, !step.invert});
    done = match.end;
  }
  if (done != text.size())
    stretches.push_back({done, text.size(), step.invert});
  return stretches;
}

/// Joins or drops stretches as `behavior` says; what is left are words.
void applyBehavior(SplitStep::Behavior behavior,
                   std::vector<Stretch> &stretches) {
  using Behavior = SplitStep::Behavior;
  std::vector<Stretch> words;
  bool previousMatched = false;
  switch (behavior) {
  case Behavior::Isolated:
    return;
  case Behavior::Removed:
    std::erase_if(stretches, [](const Stretch &s) { return s.matched; });
    return;
  case Behavior::Contiguous:
    for (const Stretch &stretch : stretches) {
      if (!words.empty() && words.back().matched == stretch.matched)
        words.back().end = stretch.end;
      else
        words.push_back(stretch);
    }
    break;
  case Behavior::MergedWithPrevious:
    // The second of two matches in a row is a word of its own.
    for (const Stretch &stretch : stretches) {
      if (stretch.matched && !previousMatched && !words.empty())
        words.back().end = stretch.end;
      else
        words.push_back(stretch);
      previousMatched = stretch.matched;
    }
    break;
  case Behavior::MergedWithNext:
    for (size_t i = stretches.size(); i-- > 0;) {
      const Stretch &stretch = stretches[i];
      if (stretch.matched && !previousMatched && !words.empty())
        words.back().begin = stretch.begin;
      else
        words.push_back(stretch);
      previousMatched = stretch.matched;
    }
    std::reverse(words.begin(), words.end());
    break;
  }
  stretches = std::move(words);
}

using Words = std::vector<std::string_view>;

Status splitInto(const SplitStep &step, std::string_view text, Words &words) {
  KF_ASSIGN_OR_RETURN(std::vector<Stretch> stretches,
                      findStretches(step, text));
  applyBehavior(step.behavior, stretches);
  for (const Stretch &stretch : stretches)
    if (stretch.begin != stretch.end)
      words.push_back(text.substr(stretch.begin, stretch.end - stretch.begin));
  return Status();
}

} // namespace

std::string_view kf::gpt2SplitPattern() {
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

Status
PreTokenizer::run(std::string_view text,
                  const std::function<void(std::string_view)> &emit) const {
  if (text.empty())
    return Status();
  Words words = {text};
  for (const SplitStep &step : steps) {
    Words finer;
    for (std::string_view word : words)
      KF_RETURN_IF_ERROR(splitInto(step, word, finer));
    words = std::move(finer);
  }

  std::string prefixed;
  for (std::string_view word : words) {
    if (addPrefixSpace && !word.starts_with(' ')) {
      prefixed = " ";
      prefixed += word;
      word = prefixed;
    }
    if (!byteLevelSplit) {
      emit(word);
      continue;
    }
    Words finer;
    KF_RETURN_IF_ERROR(splitInto(*byteLevelSplit, word, finer));
    for (std::string_view part : finer)
      emit(part);
  }
  return Status();
}
