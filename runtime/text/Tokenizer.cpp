//===- Tokenizer.cpp - Text to token ids and back -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Utf8.h"

using namespace kf;

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               bool addSpecial) const {
  if (text.size() > INT32_MAX)
    return Status::error("a text of " + std::to_string(text.size()) +
                         " bytes is too long to tokenize at once");
  std::vector<int32_t> ids;
  if (addSpecial)
    ids = prefix;
  Bpe::Workspace workspace;
  for (const AddedTokens::Piece &piece : rawTokens.split(text)) {
    if (piece.id >= 0)
      ids.push_back(piece.id);
    else
      KF_RETURN_IF_ERROR(encodeRaw(
          text.substr(piece.begin, piece.end - piece.begin), ids, workspace));
  }
  if (addSpecial)
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
}

Status Tokenizer::encodeRaw(std::string_view text, std::vector<int32_t> &ids,
                            Bpe::Workspace &workspace) const {
  while (!text.empty()) {
    size_t valid = validUtf8Prefix(text);
    std::string_view run = text.substr(0, valid);
    if (normalizer.isIdentity())
      KF_RETURN_IF_ERROR(encodeNormalized(run, ids, workspace));
    else
      KF_RETURN_IF_ERROR(
          encodeNormalized(normalizer.normalize(run), ids, workspace));
    text.remove_prefix(valid);

    // Bytes that are no UTF-8 are a word of their own.
    size_t invalid = 0;
    while (invalid < text.size()) {
      Utf8Step step = stepUtf8(text.substr(invalid));
      if (step.kind == Utf8Step::Kind::Character)
        break;
      invalid += step.length;
    }
    bpe.encode(text.substr(0, invalid), ids, workspace);
    text.remove_prefix(invalid);
  }
  return Status();
}

Status Tokenizer::encodeNormalized(std::string_view text,
                                   std::vector<int32_t> &ids,
                                   Bpe::Workspace &workspace) const {
  for (const AddedTokens::Piece &piece : normalizedTokens.split(text)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    KF_RETURN_IF_ERROR(preTokenizer.run(
        text.substr(piece.begin, piece.end - piece.begin),
        [&](std::string_view word) { bpe.encode(word, ids, workspace); }));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

std::string_view Tokenizer::bytesOf(int32_t id) const {
  const Vocabulary::Token *token = bpe.vocabulary.find(id);
  return token ? bpe.vocabulary.bytesOf(*token) : std::string_view();
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecial) const {
  std::string result;
  for (int32_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      result += bytesOf(id);
  return result;
}

std::optional<std::string> Tokenizer::pieceOf(int32_t id) const {
  const Vocabulary::Token *token = bpe.vocabulary.find(id);
  if (!token)
    return std::nullopt;
  std::string_view bytes = bpe.vocabulary.bytesOf(*token);
  return token->literal ? std::string(bytes) : bytesToLetters(bytes);
}

std::optional<int32_t> Tokenizer::idOf(std::string_view piece) const {
  return bpe.vocabulary.idOfPiece(piece);
}

bool Tokenizer::isSpecial(int32_t id) const {
  const Vocabulary::Token *token = bpe.vocabulary.find(id);
  return token && token->special;
}

std::string StreamDecoder::push(int32_t id) {
  if (skipSpecial && tokenizer.isSpecial(id))
    return std::string();
  pending += tokenizer.bytesOf(id);
  // Keep the start of a character that the end cuts off; only the last three
  // bytes can be one.
  size_t complete = pending.size();
  size_t from = pending.size() > 3 ? pending.size() - 3 : 0;
  for (size_t i = from; i < pending.size(); ++i) {
    std::string_view tail = std::string_view(pending).substr(i);
    Utf8Step step = stepUtf8(tail);
    if (step.kind == Utf8Step::Kind::Incomplete && step.length == tail.size()) {
      complete = i;
      break;
    }
  }
  std::string result =
      toValidUtf8(std::string_view(pending).substr(0, complete));
  pending.erase(0, complete);
  return result;
}

std::string StreamDecoder::flush() {
  std::string result = toValidUtf8(pending);
  pending.clear();
  return result;
}
