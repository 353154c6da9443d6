//===- GgufVocabulary.cpp - Tokenizers of GGUF files ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GGUF file carries the tokenizer as metadata: tokens, their types, and
// scores ("llama", SentencePiece's BPE) or merges ("gpt2", byte-level BPE).
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/io/Gguf.h"
#include "runtime/text/Bpe.h"
#include "runtime/text/GgufPreTokenizers.h"
#include "runtime/text/ScoreBpe.h"
#include "runtime/text/Tokenizer.h"

#include <cmath>

using namespace kf;

namespace kf {

/// Fills a Tokenizer from a GGUF file's metadata.
class GgufVocabularyLoader {
public:
  explicit GgufVocabularyLoader(const Gguf &file) : file(file) {}

  Result<Tokenizer> load();

private:
  Status readTokens();
  Status loadLlama();
  Status loadGpt2();
  Result<MergeTable> readMerges() const;
  Status makeVocabulary();
  Status readAround(bool addBegin, std::optional<int32_t> begin);
  Result<std::optional<int32_t>> readId(const char *key) const;

  const Gguf &file;
  std::vector<std::string_view> texts; ///< by id
  std::vector<TokenKind> kinds;        ///< by id
  Tokenizer result;
};

} // namespace kf

static Status unsupported(const std::string &what) {
  return Status::error(what + " is not supported", StatusCode::Unsupported);
}

Status GgufVocabularyLoader::readTokens() {
  KF_ASSIGN_OR_RETURN(texts, file.getStrings("tokenizer.ggml.tokens"));
  if (texts.empty() || texts.size() > INT32_MAX)
    return Status::error("there are " + std::to_string(texts.size()) +
                         " tokens");
  kinds.assign(texts.size(), TokenKind::Normal);
  if (!file.contains("tokenizer.ggml.token_type"))
    return Status();
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> types,
                      file.getIntegers("tokenizer.ggml.token_type"));
  if (types.size() != texts.size())
    return Status::error("there are " + std::to_string(texts.size()) +
                         " tokens and " + std::to_string(types.size()) +
                         " types of them");
  for (size_t id = 0; id < types.size(); ++id) {
    if (types[id] < 0 || types[id] > 6)
      return Status::error("token " + std::to_string(id) +
                           " has the unknown type " +
                           std::to_string(types[id]));
    // 0 is "undefined": no text makes it.
    kinds[id] =
        types[id] == 0 ? TokenKind::Unused : static_cast<TokenKind>(types[id]);
    if (kinds[id] == TokenKind::Byte && !parseBytePiece(texts[id]))
      return Status::error("token " + inQuotes(texts[id]) +
                           " is no byte, as its type says");
  }
  return Status();
}

/// Adds the tokens, and those that are found in text before all else.
Status GgufVocabularyLoader::makeVocabulary() {
  auto vocabulary = std::make_shared<Vocabulary>();
  for (size_t i = 0; i < texts.size(); ++i) {
    int32_t id = static_cast<int32_t>(i);
    if (texts[i].empty()) {
      KF_RETURN_IF_ERROR(vocabulary->add("[EMPTY_" + std::to_string(id) + "]",
                                         id, TokenKind::Unused));
      continue;
    }
    bool special =
        kinds[i] == TokenKind::Control || kinds[i] == TokenKind::Unknown;
    if (special || kinds[i] == TokenKind::UserDefined)
      result.rawTokens.add(texts[i], {id, special});
    KF_RETURN_IF_ERROR(vocabulary->add(texts[i], id, kinds[i], special));
  }
  KF_RETURN_IF_ERROR(vocabulary->finish(
      [&](const Vocabulary::Token &token, std::string_view text) {
        return result.decoder.bytesOf(token, text);
      }));
  result.vocabulary = std::move(vocabulary);
  return Status();
}

Status GgufVocabularyLoader::loadLlama() {
  if (const GgufValue *map = file.lookUp("tokenizer.ggml.precompiled_charsmap");
      map && map->size() > 0)
    return unsupported("tokenizer.ggml.precompiled_charsmap of kind 'llama'");
  KF_ASSIGN_OR_RETURN(
      bool removeExtra,
      file.getBool("tokenizer.ggml.remove_extra_whitespaces", false));
  if (removeExtra)
    return unsupported(
        "tokenizer.ggml.remove_extra_whitespaces of kind 'llama'");
  KF_ASSIGN_OR_RETURN(bool addSpace,
                      file.getBool("tokenizer.ggml.add_space_prefix", true));
  KF_ASSIGN_OR_RETURN(std::vector<float> scores,
                      file.getFloats("tokenizer.ggml.scores"));
  if (scores.size() != texts.size())
    return Status::error("there are " + std::to_string(texts.size()) +
                         " tokens and " + std::to_string(scores.size()) +
                         " scores");
  for (size_t id = 0; id < scores.size(); ++id)
    if (!std::isfinite(scores[id]))
      return Status::error("token " + std::to_string(id) +
                           " has a score that is not finite");

  PieceDecoder &decoder = result.decoder;
  if (addSpace) {
    result.normalizer.steps.push_back(PrependStep{decoder.mark});
    decoder.lead = PieceDecoder::Lead::Spaces;
    decoder.leadSpaces = 1;
  }
  ReplaceStep spaces;
  spaces.pattern.literal = " ";
  spaces.by = decoder.mark;
  result.normalizer.steps.push_back(std::move(spaces));
  decoder.replacements.emplace_back(decoder.mark, " ");
  KF_RETURN_IF_ERROR(makeVocabulary());
  result.model = std::make_shared<ScoreBpe>(
      ScoredPieces(result.vocabulary, std::move(scores)));
  const Vocabulary::Token *begin = result.vocabulary->find(1);
  return readAround(true, begin ? std::optional(begin->id) : std::nullopt);
}

Result<MergeTable> GgufVocabularyLoader::readMerges() const {
  KF_ASSIGN_OR_RETURN(std::vector<std::string_view> lines,
                      file.getStrings("tokenizer.ggml.merges"));
  MergeTable merges;
  merges.reset(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    size_t space = lines[i].find(' ');
    if (space == std::string_view::npos ||
        lines[i].find(' ', space + 1) != std::string_view::npos)
      return Status::error("merge " + inQuotes(lines[i]) +
                           " is not two tokens and a space");
    std::string_view left = lines[i].substr(0, space);
    std::string_view right = lines[i].substr(space + 1);
    const Vocabulary::Token *leftToken = result.vocabulary->find(left);
    const Vocabulary::Token *rightToken = result.vocabulary->find(right);
    const Vocabulary::Token *merged =
        result.vocabulary->find(std::string(left) + std::string(right));
    if (!leftToken || !rightToken || !merged)
      return Status::error("merge " + std::to_string(i) + " of " +
                           inQuotes(left) + " and " + inQuotes(right) +
                           " needs a token that the vocabulary lacks");
    merges.add(leftToken->id, rightToken->id,
               {static_cast<uint32_t>(i), merged->id});
  }
  return merges;
}

Status GgufVocabularyLoader::loadGpt2() {
  KF_ASSIGN_OR_RETURN(std::string_view pre,
                      file.getString("tokenizer.ggml.pre", "default"));
  Result<GgufPreTokenizer> found = findGgufPreTokenizer(pre);
  if (!found.ok())
    return found.status().in("tokenizer.ggml.pre");
  KF_ASSIGN_OR_RETURN(bool addSpace,
                      file.getBool("tokenizer.ggml.add_space_prefix", false));
  result.preTokenizer = std::move(found->preTokenizer);
  if (addSpace)
    result.preTokenizer.steps.insert(result.preTokenizer.steps.begin(),
                                     PrefixSpaceStep());
  if (found->nfc)
    result.normalizer.steps.push_back(NfcStep());
  result.decoder.byteLevel = true;
  KF_RETURN_IF_ERROR(makeVocabulary());
  KF_ASSIGN_OR_RETURN(MergeTable merges, readMerges());
  BpeOptions options;
  options.byteLevel = true;
  options.ignoreMerges = found->ignoreMerges;
  result.model =
      std::make_shared<Bpe>(result.vocabulary, std::move(merges), options);
  return readAround(found->addBegin, std::nullopt);
}

Result<std::optional<int32_t>>
GgufVocabularyLoader::readId(const char *key) const {
  KF_ASSIGN_OR_RETURN(std::optional<uint64_t> id, file.findUnsigned(key));
  if (!id)
    return std::optional<int32_t>();
  if (*id >= texts.size())
    return Status::error(std::string(key) + " is " + std::to_string(*id) +
                         ", past the last of " + std::to_string(texts.size()) +
                         " tokens");
  return std::optional(static_cast<int32_t>(*id));
}

/// Reads what goes around a text; `addBegin` and `begin` are what the file may
/// leave out.
Status GgufVocabularyLoader::readAround(bool addBegin,
                                        std::optional<int32_t> begin) {
  KF_ASSIGN_OR_RETURN(addBegin,
                      file.getBool("tokenizer.ggml.add_bos_token", addBegin));
  KF_ASSIGN_OR_RETURN(bool addEnd,
                      file.getBool("tokenizer.ggml.add_eos_token", false));
  KF_ASSIGN_OR_RETURN(std::optional<int32_t> ownBegin,
                      readId("tokenizer.ggml.bos_token_id"));
  KF_ASSIGN_OR_RETURN(std::optional<int32_t> end,
                      readId("tokenizer.ggml.eos_token_id"));
  if (ownBegin)
    begin = ownBegin;
  if (addBegin && begin)
    result.prefix.push_back(*begin);
  if (addEnd && !end)
    return Status::error("tokenizer.ggml.add_eos_token is on, and there is no "
                         "tokenizer.ggml.eos_token_id");
  if (addEnd)
    result.suffix.push_back(*end);
  return Status();
}

Result<Tokenizer> GgufVocabularyLoader::load() {
  if (file.contains("tokenizer.ggml.model") && !Tokenizer::isIn(file))
    return Status::error("the file has no tokenizer; give token ids, or the "
                         "tokenizer of the model it was made from");
  KF_ASSIGN_OR_RETURN(std::string_view kind,
                      file.getString("tokenizer.ggml.model"));
  KF_RETURN_IF_ERROR(readTokens());
  if (kind == "llama")
    KF_RETURN_IF_ERROR(loadLlama());
  else if (kind == "gpt2")
    KF_RETURN_IF_ERROR(loadGpt2());
  else
    return unsupported("the tokenizer kind " + inQuotes(kind) +
                       " (tokenizer.ggml.model; 'llama' and 'gpt2' are)");
  return std::move(result);
}

bool Tokenizer::isIn(const Gguf &file) {
  const GgufValue *kind = file.lookUp("tokenizer.ggml.model");
  if (!kind)
    return false;
  std::optional<std::string_view> name = kind->toString();
  return !name || (*name != "none" && *name != "no_vocab");
}

Result<Tokenizer> Tokenizer::fromGguf(const Gguf &file) try {
  Result<Tokenizer> tokenizer = GgufVocabularyLoader(file).load();
  // Errors about one key name the file already.
  if (!tokenizer.ok() &&
      !std::string_view(tokenizer.message()).starts_with(file.source()))
    return tokenizer.status().in(file.source());
  return tokenizer;
} catch (...) {
  return statusOfException();
}
