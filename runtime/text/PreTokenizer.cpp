//===- PreTokenizer.cpp - Cutting text into words -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/PreTokenizer.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <deque>

using namespace kf;

Result<std::vector<Regex::Match>>
TextPattern::findAll(std::string_view text, CancelFlag cancelled) const {
  if (regex)
    return regex->findAll(text, cancelled);
  std::vector<Regex::Match> matches;
  for (size_t at = 0; (at = text.find(literal, at)) != std::string_view::npos;
       at += literal.size()) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    matches.push_back({at, at + literal.size()});
  }
  return matches;
}

namespace {

/// A stretch of text, and whether the pattern matched it.
struct Stretch {
  size_t begin, end;
  bool matched;
};

/// Matches and what lies between them, in order, covering `text`.
Result<std::vector<Stretch>> findStretches(const SplitStep &step,
                                           std::string_view text,
                                           CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(std::vector<Regex::Match> matches,
                      step.pattern.findAll(text, cancelled));
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

struct Word {
  std::string_view text;
  bool first;         ///< it starts what is encoded
  bool fixed = false; ///< no UTF-8, so that no step touches it
};
using Words = std::vector<Word>;

/// Text that steps made.
using Storage = std::deque<std::string>;

Status apply(const SplitStep &step, const Word &word, Words &words, Storage &,
             CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(std::vector<Stretch> stretches,
                      findStretches(step, word.text, cancelled));
  applyBehavior(step.behavior, stretches);
  for (const Stretch &stretch : stretches)
    if (stretch.begin != stretch.end)
      words.push_back(
          {word.text.substr(stretch.begin, stretch.end - stretch.begin),
           word.first && stretch.begin == 0});
  return Status();
}

Status apply(const PrefixSpaceStep &, const Word &word, Words &words,
             Storage &storage, CancelFlag) {
  words.push_back(word);
  if (!word.text.starts_with(' '))
    words.back().text = storage.emplace_back(' ' + std::string(word.text));
  return Status();
}

Status apply(const MetaspaceStep &step, const Word &word, Words &words,
             Storage &storage, CancelFlag cancelled) {
  using Prepend = MetaspaceStep::Prepend;
  std::string marked;
  marked.reserve(word.text.size() + step.mark.size());
  for (char c : word.text) {
    if (c == ' ')
      marked += step.mark;
    else
      marked += c;
  }
  if (!marked.starts_with(step.mark) &&
      (step.prepend == Prepend::Always ||
       (step.prepend == Prepend::First && word.first)))
    marked.insert(0, step.mark);
  std::string_view rest = storage.emplace_back(std::move(marked));
  if (!step.split) {
    words.push_back({rest, word.first});
    return Status();
  }
  for (bool first = word.first; !rest.empty(); first = false) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    size_t end = std::min(rest.find(step.mark, 1), rest.size());
    words.push_back({rest.substr(0, end), first});
    rest.remove_prefix(end);
  }
  return Status();
}

/// Cuts `text` where UTF-8 begins and ends.
Words cutInvalid(std::string_view text, bool first) {
  Words words;
  for (; !text.empty(); first = false) {
    size_t end = validUtf8Prefix(text);
    bool fixed = end == 0;
    while (fixed && end < text.size()) {
      Utf8Step step = stepUtf8(text.substr(end));
      if (step.kind == Utf8Step::Kind::Character)
        break;
      end += step.length;
    }
    words.push_back({text.substr(0, end), first, fixed});
    text.remove_prefix(end);
  }
  return words;
}

} // namespace

std::string_view kf::gpt2SplitPattern() {
  return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
}

Status PreTokenizer::run(std::string_view text, bool first,
                         const std::function<Status(std::string_view)> &emit,
                         CancelFlag cancelled) const {
  if (text.empty())
    return Status();
  bool splits = std::ranges::any_of(steps, [](const Step &step) {
    return std::holds_alternative<SplitStep>(step);
  });
  Words words = splits ? cutInvalid(text, first) : Words{{text, first}};
  Storage storage;
  for (const Step &step : steps) {
    Words finer;
    for (const Word &word : words) {
      if (isCancelled(cancelled))
        return Status::cancelled();
      if (word.fixed)
        finer.push_back(word);
      else
        KF_RETURN_IF_ERROR(std::visit(
            [&](const auto &kind) {
              return apply(kind, word, finer, storage, cancelled);
            },
            step));
    }
    words = std::move(finer);
  }
  for (const Word &word : words) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    KF_RETURN_IF_ERROR(emit(word.text));
  }
  return Status();
}
