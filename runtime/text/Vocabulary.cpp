//===- Vocabulary.cpp - Token ids and their bytes -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Vocabulary.h"

#include "runtime/io/Quote.h"
#include "runtime/text/ByteAlphabet.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <tuple>

using namespace kf;

Status Vocabulary::append(std::string_view bytes, Token token) {
  if (pool.size() + bytes.size() > UINT32_MAX)
    return Status::error("the vocabulary's text exceeds 4 GiB");
  token.offset = static_cast<uint32_t>(pool.size());
  token.length = static_cast<uint32_t>(bytes.size());
  pool += bytes;
  tokens.push_back(token);
  return Status();
}

Status Vocabulary::add(std::string_view piece, int32_t id) {
  std::string bytes;
  if (lettersToBytes(piece, bytes))
    return append(bytes, {id, 0, 0, /*literal=*/false});
  return append(piece, {id, 0, 0, /*literal=*/true});
}

Status Vocabulary::addLiteral(std::string_view content, int32_t id,
                              bool special) {
  return append(content, {id, 0, 0, /*literal=*/true, special});
}

Status Vocabulary::finish() {
  // Where the model and the added tokens share an id, the model's comes first.
  std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
    return std::tie(a.id, a.literal, a.offset) <
           std::tie(b.id, b.literal, b.offset);
  });
  KF_RETURN_IF_ERROR(mergeSameIds());
  KF_RETURN_IF_ERROR(indexBytes());
  return checkLiterals();
}

Status Vocabulary::mergeSameIds() {
  size_t kept = 0;
  for (const Token &token : tokens) {
    if (kept == 0 || tokens[kept - 1].id != token.id) {
      tokens[kept++] = token;
      continue;
    }
    Token &before = tokens[kept - 1];
    if (!token.literal || bytesOf(before) != bytesOf(token))
      return Status::error("tokens " + inQuotes(bytesOf(before)) + " and " +
                           inQuotes(bytesOf(token)) + " share id " +
                           std::to_string(token.id));
    before.special |= token.special;
  }
  tokens.resize(kept);
  return Status();
}

size_t Vocabulary::slotOf(std::string_view bytes) const {
  size_t mask = slots.size() - 1;
  size_t slot = std::hash<std::string_view>()(bytes) & mask;
  while (slots[slot] != 0 && bytesOf(tokens[slots[slot] - 1]) != bytes)
    slot = (slot + 1) & mask;
  return slot;
}

Status Vocabulary::indexBytes() {
  slots.assign(std::bit_ceil(2 * tokens.size() + 1), 0);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].literal)
      continue;
    uint32_t &slot = slots[slotOf(bytesOf(tokens[i]))];
    if (slot != 0)
      return Status::error("token " + inQuotes(bytesOf(tokens[i])) +
                           " appears twice");
    slot = static_cast<uint32_t>(i + 1);
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    char c = static_cast<char>(byte);
    std::optional<int32_t> id = idOfBytes({&c, 1});
    if (!id)
      return Status::error("the vocabulary has no token for byte " +
                           std::to_string(byte) +
                           "; only complete byte-level BPE is supported");
    byteIds[byte] = *id;
  }
  return Status();
}

/// A literal token's text must not be another token's too.
Status Vocabulary::checkLiterals() {
  std::vector<std::string_view> texts;
  std::string bytes;
  for (const Token &token : tokens) {
    if (!token.literal)
      continue;
    std::string_view text = bytesOf(token);
    texts.push_back(text);
    std::optional<int32_t> model;
    if (lettersToBytes(text, bytes))
      model = idOfBytes(bytes);
    if (model && *model != token.id)
      return Status::error("added token " + inQuotes(text) + " has id " +
                           std::to_string(token.id) +
                           ", but the model's vocabulary gives it " +
                           std::to_string(*model));
  }
  std::sort(texts.begin(), texts.end());
  auto twice = std::adjacent_find(texts.begin(), texts.end());
  if (twice != texts.end())
    return Status::error("token " + inQuotes(*twice) + " appears twice");
  return Status();
}

const Vocabulary::Token *Vocabulary::find(int32_t id) const {
  // Ids without holes are their own index.
  if (id >= 0 && static_cast<size_t>(id) < tokens.size() && tokens[id].id == id)
    return &tokens[id];
  auto it = std::lower_bound(
      tokens.begin(), tokens.end(), id,
      [](const Token &token, int32_t wanted) { return token.id < wanted; });
  return it != tokens.end() && it->id == id ? &*it : nullptr;
}

std::optional<int32_t> Vocabulary::idOfBytes(std::string_view bytes) const {
  uint32_t index = slots[slotOf(bytes)];
  if (index == 0)
    return std::nullopt;
  return tokens[index - 1].id;
}

std::optional<int32_t> Vocabulary::idOfPiece(std::string_view piece) const {
  std::string bytes;
  if (lettersToBytes(piece, bytes))
    if (std::optional<int32_t> id = idOfBytes(bytes))
      return id;
  for (const Token &token : tokens)
    if (token.literal && bytesOf(token) == piece)
      return token.id;
  return std::nullopt;
}
