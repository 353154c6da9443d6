//===- Normalizer.cpp - What is done to text before it is split -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Normalizer.h"

#include "runtime/text/Nfc.h"
#include "runtime/text/SentencePieceNormalizer.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;

/// Bytes that a text of so many may become. Real normalizers make three of one.
static size_t limitOf(size_t bytes) {
  return std::min<size_t>(std::max<size_t>(32 * bytes, 1 << 20), INT32_MAX);
}

static Status checkSize(size_t bytes, size_t limit) {
  if (bytes <= limit)
    return Status();
  return Status::error("the normalized text exceeds " + std::to_string(limit) +
                       " bytes, far more than the text has");
}

/// Applies `change` to what is UTF-8 in `text` and keeps the rest.
template <typename Change>
static Status onValidRuns(std::string_view text, std::string &out,
                          Change change) {
  while (!text.empty()) {
    size_t valid = validUtf8Prefix(text);
    if (valid > 0)
      KF_RETURN_IF_ERROR(change(text.substr(0, valid)));
    text.remove_prefix(valid);
    if (text.empty())
      break;
    size_t invalid = stepUtf8(text).length;
    out += text.substr(0, invalid);
    text.remove_prefix(invalid);
  }
  return Status();
}

static Status apply(const NfcStep &, std::string_view text, std::string &out,
                    size_t, CancelFlag) {
  return onValidRuns(text, out, [&](std::string_view run) {
    out += toNfc(run);
    return Status();
  });
}

static Status apply(const PrependStep &step, std::string_view text,
                    std::string &out, size_t, CancelFlag) {
  if (!text.empty())
    out = step.text;
  out += text;
  return Status();
}

static Status apply(const ReplaceStep &step, std::string_view text,
                    std::string &out, size_t limit, CancelFlag cancelled) {
  return onValidRuns(text, out, [&](std::string_view run) {
    KF_ASSIGN_OR_RETURN(std::vector<Regex::Match> matches,
                        step.pattern.findAll(run, cancelled));
    size_t done = 0;
    for (const Regex::Match &match : matches) {
      KF_RETURN_IF_ERROR(checkSize(out.size(), limit));
      out += run.substr(done, match.begin - done);
      out += step.by;
      done = match.end;
    }
    out += run.substr(done);
    return Status();
  });
}

static Status apply(const StripStep &step, std::string_view text,
                    std::string &out, size_t, CancelFlag) {
  if (step.left)
    text = trimLeft(text);
  if (step.right)
    text = trimRight(text);
  out = text;
  return Status();
}

static Status apply(const SentencePieceStep &step, std::string_view text,
                    std::string &out, size_t, CancelFlag) {
  out = step->normalize(text);
  return Status();
}

Result<std::string> Normalizer::normalize(std::string_view text,
                                          CancelFlag cancelled) const {
  const size_t limit = limitOf(text.size());
  std::string result(text);
  for (const Step &step : steps) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    std::string out;
    out.reserve(result.size());
    KF_RETURN_IF_ERROR(std::visit(
        [&](const auto &kind) {
          return apply(kind, result, out, limit, cancelled);
        },
        step));
    KF_RETURN_IF_ERROR(checkSize(out.size(), limit));
    result = std::move(out);
  }
  return result;
}
