//===- Tokenizer.cpp - Text to token ids and back -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"

#include "runtime/core/Exceptions.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

Result<std::vector<int32_t>>
Tokenizer::encode(std::string_view text, const EncodeOptions &options) const
    try {
  if (text.size() > INT32_MAX)
    return Status::error("a text of " + std::to_string(text.size()) +
                         " bytes is too long to tokenize at once");
  std::vector<int32_t> ids;
  if (options.addSpecial)
    ids = prefix;
  for (const AddedTokens::Piece &piece :
       rawTokens.split(text, options.parseSpecial, options.literal)) {
    if (piece.id >= 0) {
      ids.push_back(piece.id);
      continue;
    }
    // Normalization moves what is literal, so all of such a piece is.
    const bool literal = std::ranges::any_of(
        options.literal, [&](const AddedTokens::Range &range) {
          return range.begin < piece.end && range.end > piece.begin;
        });
    KF_RETURN_IF_ERROR(encodePiece(
        text.substr(piece.begin, piece.end - piece.begin), piece.begin == 0,
        options.parseSpecial && !literal, options.cancelled, ids));
  }
  if (options.addSpecial)
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  return ids;
} catch (...) {
  return statusOfException();
}

Status Tokenizer::encodePiece(std::string_view text, bool first,
                              bool parseSpecial, CancelFlag cancelled,
                              std::vector<int32_t> &ids) const {
  std::string normalized;
  if (!normalizer.isIdentity()) {
    KF_ASSIGN_OR_RETURN(normalized, normalizer.normalize(text, cancelled));
    text = normalized;
  }
  for (const AddedTokens::Piece &piece :
       normalizedTokens.split(text, parseSpecial)) {
    if (piece.id >= 0)
      ids.push_back(piece.id);
    else
      KF_RETURN_IF_ERROR(preTokenizer.run(
          text.substr(piece.begin, piece.end - piece.begin),
          first && piece.begin == 0,
          [&](std::string_view word) {
            return model->encode(word, ids, cancelled);
          },
          cancelled));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

void Tokenizer::decodeInto(int32_t id, bool skipSpecial,
                           PieceDecoder::State &state, std::string &out) const {
  const Vocabulary::Token *token = vocabulary->find(id);
  if (token && !(skipSpecial && token->special))
    decoder.append(*vocabulary, *token, state, out);
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecial) const {
  std::string result;
  PieceDecoder::State state;
  for (int32_t id : ids)
    decodeInto(id, skipSpecial, state, result);
  return result;
}

std::string_view Tokenizer::bytesOf(int32_t id) const {
  const Vocabulary::Token *token = vocabulary->find(id);
  return token ? vocabulary->bytesOf(*token) : std::string_view();
}

std::optional<std::string> Tokenizer::pieceOf(int32_t id) const {
  const Vocabulary::Token *token = vocabulary->find(id);
  if (!token)
    return std::nullopt;
  return std::string(vocabulary->textOf(*token));
}

std::optional<int32_t> Tokenizer::idOf(std::string_view piece) const {
  const Vocabulary::Token *token = vocabulary->find(piece);
  if (!token)
    return std::nullopt;
  return token->id;
}

bool Tokenizer::isSpecial(int32_t id) const {
  const Vocabulary::Token *token = vocabulary->find(id);
  return token && token->special;
}

StreamDecoder::StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial,
                             std::span<const int32_t> before)
    : tokenizer(tokenizer), skipSpecial(skipSpecial) {
  std::string text;
  for (int32_t id : before)
    tokenizer.decodeInto(id, skipSpecial, state, text);
}

std::string StreamDecoder::push(int32_t id) {
  tokenizer.decodeInto(id, skipSpecial, state, pending);
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
