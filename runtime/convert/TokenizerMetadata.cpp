//===- TokenizerMetadata.cpp - Tokenizers as GGUF metadata ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TokenizerMetadata.h"

#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/text/SentencePieceFile.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

using namespace kf;
using nlohmann::json;

namespace {

/// tokenizer.ggml.token_type.
enum TokenType : int32_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

/// A pre-tokenizer that has a name in GGUF: the steps of tokenizer.json as
/// describe() spells them.
struct KnownPreTokenizer {
  std::string_view name, steps;
};
constexpr KnownPreTokenizer kPreTokenizers[] = {
    {"llama-bpe",
     R"(Split((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+);ByteLevel;)"},
    {"qwen2",
     R"(Split((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+);ByteLevel;)"},
    {"tekken",
     R"(Split([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+);ByteLevel;)"},
    {"gpt-4o",
     R"(Split([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+);ByteLevel;)"},
    {"gpt-2", "ByteLevel(words);"},
    {"smollm", "Digits;ByteLevel(words);"},
};

/// The value of `key` as text; empty if it is none.
std::string textOf(const json &object, const char *key) {
  if (!object.is_object())
    return "";
  auto value = object.find(key);
  return value != object.end() && value->is_string() ? value->get<std::string>()
                                                     : "";
}

bool flagOf(const json &object, const char *key, bool fallback) {
  auto value = object.find(key);
  return value != object.end() && value->is_boolean() ? value->get<bool>()
                                                      : fallback;
}

/// The member of `object`; null if it has none.
const json &memberOf(const json &object, const char *key) {
  static const json none;
  if (!object.is_object())
    return none;
  auto value = object.find(key);
  return value != object.end() ? *value : none;
}

/// The steps of a Sequence, nested ones too, or the one step that `node` is.
void flatten(const json &node, const char *list,
             std::vector<const json *> &steps) {
  if (textOf(node, "type") != "Sequence") {
    if (node.is_object())
      steps.push_back(&node);
    return;
  }
  const json &members = memberOf(node, list);
  if (members.is_array())
    for (const json &member : members)
      flatten(member, list, steps);
}

std::vector<const json *> stepsOf(const json &node, const char *list) {
  std::vector<const json *> steps;
  flatten(node, list, steps);
  return steps;
}

/// A step of a pre-tokenizer, in as many words as tell known ones apart.
std::string describe(const json &step) {
  const std::string type = textOf(step, "type");
  if (type == "ByteLevel")
    return flagOf(step, "use_regex", true) ? "ByteLevel(words);" : "ByteLevel;";
  if (type == "Digits" && flagOf(step, "individual_digits", false))
    return "Digits;";
  if (type == "Split" && textOf(step, "behavior") == "Isolated" &&
      !flagOf(step, "invert", false))
    return "Split(" + textOf(memberOf(step, "pattern"), "Regex") + ");";
  return type + "(?);";
}

/// Whether a step of a normalizer or of a pre-tokenizer looks for spaces.
bool isOfSpaces(const json &step) {
  return textOf(memberOf(step, "pattern"), "String") == " ";
}

/// The bytes of "<0x41>", as the vocabularies of byte fallback write them.
bool isByteToken(std::string_view text) {
  auto isHex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
  };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' &&
         isHex(text[3]) && isHex(text[4]);
}

/// What stands for a row of the model that has no token.
std::string paddingToken(size_t id) {
  return "[PAD" + std::to_string(id) + "]";
}

/// Adds a token's id, if the model has a row for it.
void addId(const char *key, int64_t id, const ModelConfig &config,
           GgufMetadata &metadata) {
  if (id >= 0 && id < config.vocabSize)
    metadata.addU32(key, static_cast<uint32_t>(id));
}

/// Reads one tokenizer.json and adds it.
class TokenizerReader {
public:
  TokenizerReader(const json &document, const ModelConfig &config,
                  GgufMetadata &metadata, std::vector<std::string> &notes)
      : document(document), model(memberOf(document, "model")), config(config),
        metadata(metadata), notes(notes) {}

  Status read() {
    if (textOf(model, "type") != "BPE")
      return Status::error("the tokenizer's model is " +
                           inQuotes(textOf(model, "type")) +
                           ", which GGUF files cannot hold (supported: BPE)");
    const std::vector<const json *> steps =
        stepsOf(memberOf(document, "pre_tokenizer"), "pretokenizers");
    const bool byteLevel = std::ranges::any_of(steps, [](const json *step) {
      return textOf(*step, "type") == "ByteLevel";
    });
    KF_RETURN_IF_ERROR(readTokens());
    KF_RETURN_IF_ERROR(readMerges());
    KF_RETURN_IF_ERROR(byteLevel ? addByteLevel(steps) : addScored(steps));
    addSpecialTokens();
    return Status();
  }

private:
  /// Enters the token of `id`, which has to be a row of the model.
  Status enter(const std::string &text, const json &id, TokenType type) {
    if (!id.is_number_integer() || id < 0 || id >= config.vocabSize)
      return Status::error("token " + inQuotes(text) + " has the id " +
                           id.dump() + ", but the model has " +
                           std::to_string(config.vocabSize) + " rows");
    const size_t index = id.get<size_t>();
    tokens[index] = text;
    types[index] = type;
    return Status();
  }

  Status readTokens() {
    const size_t count = static_cast<size_t>(config.vocabSize);
    tokens.resize(count);
    types.assign(count, Unused);
    const json &vocabulary = memberOf(model, "vocab");
    if (!vocabulary.is_object())
      return Status::error("'model.vocab' is no object");
    const bool fallback = flagOf(model, "byte_fallback", false);
    const std::string unknown = textOf(model, "unk_token");
    for (const auto &[text, id] : vocabulary.items())
      KF_RETURN_IF_ERROR(enter(text, id,
                               fallback && isByteToken(text)         ? Byte
                               : !unknown.empty() && text == unknown ? Unknown
                                                                     : Normal));
    const json &added = memberOf(document, "added_tokens");
    size_t choosy = 0;
    if (added.is_array())
      for (const json &token : added) {
        for (const char *rule : {"single_word", "lstrip", "rstrip"})
          if (token.is_object() && flagOf(token, rule, false)) {
            ++choosy;
            break;
          }
        const bool special =
            token.is_object() && flagOf(token, "special", false);
        const std::string text = textOf(token, "content");
        KF_RETURN_IF_ERROR(enter(text, memberOf(token, "id"),
                                 text == unknown && !unknown.empty() ? Unknown
                                 : special ? Control
                                           : UserDefined));
      }
    if (choosy > 0)
      notes.push_back("GGUF cannot say that added tokens match whole words "
                      "only or take spaces in (" +
                      std::to_string(choosy) + " of the tokenizer do)");
    for (size_t i = 0; i < count; ++i)
      if (types[i] == Unused)
        tokens[i] = paddingToken(i);
    return Status();
  }

  Status readMerges() {
    const json &list = memberOf(model, "merges");
    if (!list.is_array())
      return Status::error("'model.merges' is no list");
    for (const json &merge : list) {
      // "a b", or ["a", "b"] in newer files.
      std::string left, right;
      if (merge.is_string()) {
        const std::string text = merge.get<std::string>();
        const size_t space = text.find(' ');
        if (space != std::string::npos) {
          left = text.substr(0, space);
          right = text.substr(space + 1);
        }
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      }
      if (left.empty() || right.empty())
        return Status::error("merge " + std::to_string(merges.size()) +
                             " is no pair of tokens");
      merges.emplace_back(std::move(left), std::move(right));
    }
    return Status();
  }

  Status addByteLevel(const std::vector<const json *> &steps) {
    std::string described;
    bool spaceFirst = false;
    for (const json *step : steps) {
      described += describe(*step);
      spaceFirst |= textOf(*step, "type") == "ByteLevel" &&
                    flagOf(*step, "add_prefix_space", false);
    }
    const KnownPreTokenizer *known =
        std::ranges::find(kPreTokenizers, described, &KnownPreTokenizer::steps);
    if (known == std::end(kPreTokenizers))
      return Status::error(
          "the pre-tokenizer is none that GGUF has a name for "
          "(llama-bpe, qwen2, gpt-2, gpt-4o, smollm, tekken): " +
          inQuotes(described));
    for (const json *step :
         stepsOf(memberOf(document, "normalizer"), "normalizers"))
      // The name qwen2 implies it.
      if (textOf(*step, "type") != "NFC" || known->name != "qwen2")
        notes.push_back("GGUF cannot say that the tokenizer normalizes text (" +
                        textOf(*step, "type") + ")");
    metadata.addText("tokenizer.ggml.model", "gpt2");
    metadata.addText("tokenizer.ggml.pre", known->name);
    metadata.addTexts("tokenizer.ggml.tokens", tokens);
    metadata.addI32s("tokenizer.ggml.token_type", types);
    std::vector<std::string> joined;
    for (const auto &[left, right] : merges) {
      if (left.find(' ') != std::string::npos ||
          right.find(' ') != std::string::npos)
        return Status::error("the merge of " + inQuotes(left) + " and " +
                             inQuotes(right) + " has a space in it");
      joined.push_back(left + " " + right);
    }
    metadata.addTexts("tokenizer.ggml.merges", joined);
    if (spaceFirst)
      metadata.addBool("tokenizer.ggml.add_space_prefix", true);
    return Status();
  }

  /// Spaces as U+2581, by a Metaspace or by normalizers.
  Status addScored(const std::vector<const json *> &steps) {
    bool spaceFirst = false, byMetaspace = false;
    const std::vector<const json *> normalizers =
        stepsOf(memberOf(document, "normalizer"), "normalizers");
    auto replacesSpaces = [](const json *step) {
      return textOf(*step, "type") == "Replace" && isOfSpaces(*step);
    };
    const bool noneIsLeft = std::ranges::any_of(normalizers, replacesSpaces);
    for (const json *step : steps) {
      // Gemma splits where a space was.
      if (noneIsLeft && textOf(*step, "type") == "Split" && isOfSpaces(*step))
        continue;
      if (textOf(*step, "type") != "Metaspace")
        return Status::error("the pre-tokenizer " +
                             inQuotes(textOf(*step, "type")) +
                             " has no place in a GGUF file");
      const std::string scheme = textOf(*step, "prepend_scheme");
      spaceFirst |= scheme.empty() ? flagOf(*step, "add_prefix_space", true)
                                   : scheme != "never";
      byMetaspace |= spaceFirst;
    }
    for (const json *step : normalizers) {
      const std::string type = textOf(*step, "type");
      spaceFirst |= type == "Prepend";
      if (type != "Prepend" && !replacesSpaces(step))
        notes.push_back("GGUF cannot say that the tokenizer normalizes text (" +
                        type + ")");
    }
    if (byMetaspace)
      notes.push_back("GGUF has a space put before every text, the tokenizer "
                      "only before those without");
    if (!flagOf(model, "byte_fallback", false))
      return Status::error("the tokenizer is neither byte-level nor has byte "
                           "fallback, which is all that GGUF files hold");
    metadata.addText("tokenizer.ggml.model", "llama");
    metadata.addText("tokenizer.ggml.pre", "default");
    metadata.addTexts("tokenizer.ggml.tokens", tokens);
    metadata.addF32s("tokenizer.ggml.scores", scores());
    metadata.addI32s("tokenizer.ggml.token_type", types);
    metadata.addBool("tokenizer.ggml.add_space_prefix", spaceFirst);
    return Status();
  }

  /// The lower the rank of the first merge that makes a token, the higher its
  /// score. Tokens that no merge makes come last, as SentencePiece has them;
  /// special ones and bytes take no part.
  std::vector<float> scores() const {
    std::unordered_map<std::string, size_t> ranks;
    for (const auto &[left, right] : merges)
      ranks.emplace(left + right, ranks.size());
    std::vector<float> result(tokens.size(), 0.0f);
    size_t last = ranks.size();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (types[i] != Normal && types[i] != UserDefined)
        continue;
      auto found = ranks.find(tokens[i]);
      result[i] =
          -static_cast<float>(found != ranks.end() ? found->second : last++);
    }
    return result;
  }

  void addSpecialTokens() {
    // What the post-processor puts around a text.
    std::optional<int64_t> before, after;
    for (const json *step :
         stepsOf(memberOf(document, "post_processor"), "processors"))
      readTemplate(*step, before, after);
    const std::optional<int64_t> begin = config.bosId ? config.bosId : before;
    if (!config.bosId && before)
      addId("tokenizer.ggml.bos_token_id", *before, config, metadata);
    addSpecialIds(config, tokens, metadata, notes);
    for (size_t i = 0; i < types.size(); ++i)
      if (types[i] == Unknown)
        addId("tokenizer.ggml.unknown_token_id", static_cast<int64_t>(i),
              config, metadata);
    metadata.addBool("tokenizer.ggml.add_bos_token", before && before == begin);
    if (after)
      metadata.addBool("tokenizer.ggml.add_eos_token", true);
    if (before && before != begin)
      notes.push_back("GGUF cannot say that the tokenizer puts token " +
                      std::to_string(*before) + " before the text");
  }

  void readTemplate(const json &step, std::optional<int64_t> &before,
                    std::optional<int64_t> &after) const {
    if (textOf(step, "type") != "TemplateProcessing")
      return;
    const json &single = memberOf(step, "single");
    if (!single.is_array())
      return;
    bool text = false;
    for (const json &piece : single) {
      const json &special = memberOf(piece, "SpecialToken");
      if (!special.is_object()) {
        text = true;
        continue;
      }
      const json &ids = memberOf(memberOf(memberOf(step, "special_tokens"),
                                          textOf(special, "id").c_str()),
                                 "ids");
      if (ids.is_array() && ids.size() == 1 && ids[0].is_number_integer())
        (text ? after : before) = ids[0].get<int64_t>();
    }
  }

  const json &document, &model;
  const ModelConfig &config;
  GgufMetadata &metadata;
  std::vector<std::string> &notes;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::pair<std::string, std::string>> merges;
};

} // namespace

void kf::addSpecialIds(const ModelConfig &config,
                       std::span<const std::string> tokens,
                       GgufMetadata &metadata,
                       std::vector<std::string> &notes) {
  if (config.bosId)
    addId("tokenizer.ggml.bos_token_id", *config.bosId, config, metadata);
  std::vector<int64_t> rest = config.eosIds;
  auto place = [&](const char *key, std::vector<int64_t>::iterator which) {
    if (which == rest.end())
      return;
    addId(key, *which, config, metadata);
    rest.erase(which);
  };
  place("tokenizer.ggml.eos_token_id", rest.begin());
  place("tokenizer.ggml.eom_token_id",
        std::ranges::find_if(rest, [&](int64_t id) {
          return static_cast<uint64_t>(id) < tokens.size() &&
                 tokens[static_cast<size_t>(id)] == "<|eom_id|>";
        }));
  place("tokenizer.ggml.eot_token_id", rest.begin());
  if (!metadata.contains("tokenizer.ggml.eom_token_id"))
    place("tokenizer.ggml.eom_token_id", rest.begin());
  for (int64_t id : rest)
    notes.push_back("GGUF has no place for a fourth end token, " +
                    std::to_string(id));
}

Status kf::addSentencePieceMetadata(std::string_view tokenizerModel,
                                    const ModelConfig &config,
                                    GgufMetadata &metadata,
                                    std::vector<std::string> &notes) {
  KF_ASSIGN_OR_RETURN(SentencePieceFile file,
                      SentencePieceFile::parse(tokenizerModel));
  if (file.model != SentencePieceFile::Model::Bpe || !file.byteFallback)
    return Status::error("the tokenizer.model is not of the kind that GGUF "
                         "files hold, BPE with byte fallback");
  if (file.removeExtraWhitespaces || !file.charsMap.empty())
    return Status::error("the tokenizer.model normalizes text, which GGUF "
                         "files cannot say");
  const size_t count = static_cast<size_t>(config.vocabSize);
  if (file.pieces.size() > count)
    return Status::error(
        "the tokenizer.model has " + std::to_string(file.pieces.size()) +
        " pieces, but the model has " + std::to_string(count) + " rows");
  std::vector<std::string> tokens(count);
  std::vector<float> scores(count);
  std::vector<int32_t> types(count, Unused);
  for (size_t i = 0; i < count; ++i) {
    if (i >= file.pieces.size()) {
      tokens[i] = paddingToken(i);
      continue;
    }
    tokens[i] = file.pieces[i].text;
    scores[i] = file.pieces[i].score;
    types[i] = static_cast<int32_t>(file.pieces[i].kind);
  }
  metadata.addText("tokenizer.ggml.model", "llama");
  metadata.addText("tokenizer.ggml.pre", "default");
  metadata.addTexts("tokenizer.ggml.tokens", tokens);
  metadata.addF32s("tokenizer.ggml.scores", scores);
  metadata.addI32s("tokenizer.ggml.token_type", types);
  metadata.addBool("tokenizer.ggml.add_space_prefix", file.addDummyPrefix);
  addSpecialIds(config, tokens, metadata, notes);
  metadata.addBool("tokenizer.ggml.add_bos_token", config.bosId.has_value());
  return Status();
}

Status kf::addTokenizerMetadata(std::string_view tokenizerJson,
                                const ModelConfig &config,
                                GgufMetadata &metadata,
                                std::vector<std::string> &notes) {
  KF_ASSIGN_OR_RETURN(JsonDocument document, parseJson(tokenizerJson));
  return TokenizerReader(*document, config, metadata, notes).read();
}
