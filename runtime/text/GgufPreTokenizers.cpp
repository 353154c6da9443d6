//===- GgufPreTokenizers.cpp - Splits by their name in GGUF files ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/GgufPreTokenizers.h"

#include "runtime/core/Quote.h"

#include <algorithm>

using namespace kf;

namespace {

//===----------------------------------------------------------------------===//
// Patterns, as the models' own tokenizer.json have them
//===----------------------------------------------------------------------===//

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
    R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
    R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";

/// What names have in common.
struct Rule {
  std::string_view names;                 ///< with a space between
  std::vector<std::string_view> patterns; ///< one split after the other
  bool nfc = false, ignoreMerges = false, addBegin = false;
};

/// Every name that is known. A file without one is of the time before there
/// were any, and split as "default".
const std::vector<Rule> &rules() {
  static const std::vector<Rule> table = {
      {"default",
       {R"([\p{P}\$\+<=>\^~\|]+)", gpt2SplitPattern(), R"(\p{N}+)",
        "[0-9][0-9][0-9]"}},
      {"gpt-2 phi-2 mpt olmo jais trillion exaone4 gigachat granite-docling",
       {gpt2SplitPattern()}},
      {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
       {kLlama3},
       /*nfc=*/false,
       /*ignoreMerges=*/true,
       /*addBegin=*/true},
      {"dbrx smaug-bpe glm4 chatglm-bpe", {kLlama3}},
      {"qwen2", {kQwen2}, /*nfc=*/true},
      {"deepseek-r1-qwen stablelm2 megrez hunyuan grok-2", {kQwen2}},
      {"qwen35", {kQwen35}, /*nfc=*/true},
      {"smollm starcoder refact command-r codeshell exaone minerva-7b",
       {kDigit, gpt2SplitPattern()}},
      {"tekken",
       {kTekken},
       /*nfc=*/false,
       /*ignoreMerges=*/true,
       /*addBegin=*/true},
      {"gpt-4o llama4 kanana2", {kGpt4o}},
      {"deepseek-coder",
       {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
        R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)", kDigit}},
      {"deepseek-v3 hunyuan-dense joyai-llm",
       {R"(\p{N}{1,3})", R"([\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+)",
        kDeepSeek3}},
      {"falcon",
       {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2SplitPattern(), "[0-9][0-9][0-9]"}},
  };
  return table;
}

/// Calls `visit` with each of the names; returns whether one returned true.
template <typename Visit> bool anyName(const Rule &rule, Visit visit) {
  for (std::string_view rest = rule.names; !rest.empty();) {
    size_t end = std::min(rest.find(' '), rest.size());
    if (visit(rest.substr(0, end)))
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

Result<GgufPreTokenizer> make(const Rule &rule) {
  GgufPreTokenizer result;
  for (std::string_view pattern : rule.patterns) {
    SplitStep split;
    KF_ASSIGN_OR_RETURN(split.pattern.regex, Regex::compile(pattern));
    result.preTokenizer.steps.push_back(std::move(split));
  }
  result.nfc = rule.nfc;
  result.ignoreMerges = rule.ignoreMerges;
  result.addBegin = rule.addBegin;
  return result;
}

} // namespace

Result<GgufPreTokenizer> kf::findGgufPreTokenizer(std::string_view name) {
  std::string known;
  for (const Rule &rule : rules()) {
    if (anyName(rule, [&](std::string_view one) { return one == name; }))
      return make(rule);
    known += (known.empty() ? "" : " ") + std::string(rule.names);
  }
  return Status::error("the pre-tokenizer " + inQuotes(name) +
                       " is not supported; these are: " + known);
}
