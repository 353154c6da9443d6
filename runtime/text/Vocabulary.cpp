//===- Vocabulary.cpp - Token ids and their bytes -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Vocabulary.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <tuple>

using namespace kf;

Status Vocabulary::append(std::string_view text, Token token) {
  if (pool.size() + text.size() > UINT32_MAX)
    return Status::error("the vocabulary's text exceeds 4 GiB");
  token.textOffset = static_cast<uint32_t>(pool.size());
  token.textLength = static_cast<uint32_t>(text.size());
  pool += text;
  tokens.push_back(token);
  return Status();
}

Status Vocabulary::add(std::string_view text, int32_t id, TokenKind kind,
                       bool special) {
  Token token{id, 0, 0};
  token.kind = kind;
  token.special = special;
  return append(text, token);
}

Status Vocabulary::addAdded(std::string_view text, int32_t id, bool special) {
  Token token{id, 0, 0};
  token.kind = special ? TokenKind::Control : TokenKind::UserDefined;
  token.inModel = false;
  token.special = special;
  return append(text, token);
}

Status Vocabulary::finish(const BytesOf &bytesOf) {
  // Where the model and the added tokens share an id, the model's comes first.
  std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
    return std::tuple(a.id, !a.inModel, a.textOffset) <
           std::tuple(b.id, !b.inModel, b.textOffset);
  });
  KF_RETURN_IF_ERROR(mergeSameIds());
  KF_RETURN_IF_ERROR(indexTexts());
  for (Token &token : tokens) {
    std::string_view text = textOf(token);
    std::string bytes = bytesOf(token, text);
    if (bytes == text) {
      token.bytesOffset = token.textOffset;
      token.bytesLength = token.textLength;
      continue;
    }
    if (pool.size() + bytes.size() > UINT32_MAX)
      return Status::error("the vocabulary's text exceeds 4 GiB");
    token.bytesOffset = static_cast<uint32_t>(pool.size());
    token.bytesLength = static_cast<uint32_t>(bytes.size());
    pool += bytes;
  }
  return Status();
}

Status Vocabulary::mergeSameIds() {
  size_t kept = 0;
  for (const Token &token : tokens) {
    if (kept == 0 || tokens[kept - 1].id != token.id) {
      tokens[kept++] = token;
      continue;
    }
    Token &before = tokens[kept - 1];
    if (token.inModel || textOf(before) != textOf(token))
      return Status::error("tokens " + inQuotes(textOf(before)) + " and " +
                           inQuotes(textOf(token)) + " share id " +
                           std::to_string(token.id));
    before.special |= token.special;
  }
  tokens.resize(kept);
  return Status();
}

size_t Vocabulary::slotOf(std::string_view text) const {
  size_t mask = slots.size() - 1;
  size_t slot = std::hash<std::string_view>()(text) & mask;
  while (slots[slot] != 0 && textOf(tokens[slots[slot] - 1]) != text)
    slot = (slot + 1) & mask;
  return slot;
}

Status Vocabulary::indexTexts() {
  slots.assign(std::bit_ceil(2 * tokens.size() + 1), 0);
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string_view text = textOf(tokens[i]);
    uint32_t &slot = slots[slotOf(text)];
    if (slot == 0) {
      slot = static_cast<uint32_t>(i + 1);
      continue;
    }
    const Token &before = tokens[slot - 1];
    if (before.inModel == tokens[i].inModel)
      return Status::error("token " + inQuotes(text) + " appears twice");
    const Token &model = before.inModel ? before : tokens[i];
    const Token &added = before.inModel ? tokens[i] : before;
    return Status::error("added token " + inQuotes(text) + " has id " +
                         std::to_string(added.id) +
                         ", but the model's vocabulary gives it " +
                         std::to_string(model.id));
  }
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

const Vocabulary::Token *Vocabulary::find(std::string_view text) const {
  uint32_t index = slots[slotOf(text)];
  return index == 0 ? nullptr : &tokens[index - 1];
}

std::optional<uint8_t> kf::parseBytePiece(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return std::nullopt;
  uint8_t byte = 0;
  auto [end, code] = std::from_chars(&text[3], &text[3] + 2, byte, 16);
  if (code != std::errc() || end != &text[3] + 2)
    return std::nullopt;
  return byte;
}

std::string kf::bytePiece(uint8_t byte) {
  constexpr char digits[] = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + '>';
}
