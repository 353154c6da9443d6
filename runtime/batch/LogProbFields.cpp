//===- LogProbFields.cpp - Log-probabilities in requests and answers ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/LogProbFields.h"

#include "runtime/core/JsonText.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <string_view>
#include <vector>

using namespace kf;

//===----------------------------------------------------------------------===//
// What is wanted
//===----------------------------------------------------------------------===//

Result<std::optional<size_t>> kf::readChatLogProbs(const ConfigReader &reader) {
  KF_ASSIGN_OR_RETURN(const bool isWanted, reader.boolean("logprobs", false));
  KF_ASSIGN_OR_RETURN(const int64_t count,
                      reader.integer("top_logprobs", 0, kMostTopLogProbs, 0));
  if (!isWanted && count > 0)
    return Status::error("'top_logprobs' needs \"logprobs\": true");
  std::optional<size_t> wanted;
  if (isWanted)
    wanted = static_cast<size_t>(count);
  return wanted;
}

Result<std::optional<size_t>>
kf::readCompletionLogProbs(const ConfigReader &reader) {
  std::optional<size_t> wanted;
  const nlohmann::json *value = reader.find("logprobs");
  if (value && *value != false) {
    KF_ASSIGN_OR_RETURN(const int64_t count,
                        reader.integer("logprobs", 0, kMostTopLogProbs));
    wanted = static_cast<size_t>(count);
  }
  return wanted;
}

Result<std::optional<size_t>>
kf::readLlamaLogProbs(const ConfigReader &reader) {
  KF_ASSIGN_OR_RETURN(const int64_t count,
                      reader.integer("n_probs", 0, kMostTopLogProbs, 0));
  std::optional<size_t> wanted;
  if (count > 0)
    wanted = static_cast<size_t>(count);
  return wanted;
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {

/// JSON has no infinity: what OpenAI's API says instead.
std::string numberText(const LogProb &token) {
  return jsonText(std::max(static_cast<double>(token.value), -9999.0));
}

/// Bytes as a text, with those that are none written out.
std::string writtenOut(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  while (!bytes.empty()) {
    const Utf8Step step = stepUtf8(bytes);
    for (char byte : bytes.substr(0, step.length))
      if (step.kind == Utf8Step::Kind::Character) {
        out += byte;
      } else {
        const auto value = static_cast<unsigned char>(byte);
        out += "\\x";
        out += digits[value >> 4];
        out += digits[value & 15];
      }
    bytes.remove_prefix(step.length);
  }
  return out;
}

/// The same where nothing else tells them apart from a text.
std::string keyOf(std::string_view bytes) {
  const bool isText = validUtf8Prefix(bytes) == bytes.size();
  return isText ? std::string(bytes) : "bytes:" + writtenOut(bytes);
}

/// What the forms with an object for each token share.
std::vector<JsonMember> membersOf(const LogProb &token,
                                  const Tokenizer &tokenizer, bool withId) {
  const std::string_view bytes = tokenizer.bytesOf(token.id);
  std::vector<JsonMember> members;
  if (withId)
    members.emplace_back("id", jsonText(token.id));
  members.emplace_back("token", jsonText(writtenOut(bytes)));
  members.emplace_back("logprob", numberText(token));
  members.emplace_back("bytes", jsonArray(bytes, [](char byte) {
                         return jsonText(int{static_cast<unsigned char>(byte)});
                       }));
  return members;
}

std::string listOf(std::span<const TextLogProbs> logProbs,
                   const Tokenizer &tokenizer, bool withIds) {
  return jsonArray(logProbs, [&](const TextLogProbs &token) {
    std::vector<JsonMember> members =
        membersOf(token.chosen, tokenizer, withIds);
    members.emplace_back(
        "top_logprobs", jsonArray(token.top, [&](const LogProb &other) {
          return jsonObject(membersOf(other, tokenizer, withIds));
        }));
    return jsonObject(members);
  });
}

/// From what tokens are written as to how likely they are.
std::string topOf(const TextLogProbs &token, const Tokenizer &tokenizer) {
  std::vector<LogProb> tokens = token.top;
  if (std::ranges::find(tokens, token.chosen.id, &LogProb::id) == tokens.end())
    tokens.push_back(token.chosen);
  std::vector<std::string> keys;
  std::string out = "{";
  for (const LogProb &other : tokens) {
    std::string key = jsonText(keyOf(tokenizer.bytesOf(other.id)));
    if (std::ranges::find(keys, key) != keys.end())
      continue;
    out += (keys.empty() ? "" : ",") + key + ":" + numberText(other);
    keys.push_back(std::move(key));
  }
  return out + "}";
}

} // namespace

std::string kf::chatLogProbs(std::span<const TextLogProbs> logProbs,
                             const Tokenizer &tokenizer) {
  return jsonObject(
      {{"content", listOf(logProbs, tokenizer, false)}, {"refusal", "null"}});
}

std::string kf::completionLogProbs(std::span<const TextLogProbs> logProbs,
                                   const Tokenizer &tokenizer) {
  auto list = [&](auto toText) { return jsonArray(logProbs, toText); };
  return jsonObject({{"tokens", list([&](const TextLogProbs &token) {
                        return jsonText(
                            keyOf(tokenizer.bytesOf(token.chosen.id)));
                      })},
                     {"token_logprobs", list([](const TextLogProbs &token) {
                        return numberText(token.chosen);
                      })},
                     {"top_logprobs", list([&](const TextLogProbs &token) {
                        return topOf(token, tokenizer);
                      })},
                     {"text_offset", list([](const TextLogProbs &token) {
                        return jsonText(token.offset);
                      })}});
}

std::string kf::llamaLogProbs(std::span<const TextLogProbs> logProbs,
                              const Tokenizer &tokenizer) {
  return listOf(logProbs, tokenizer, true);
}
