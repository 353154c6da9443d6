//===- PieceDecoder.cpp - From tokens to the text they stand for ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/PieceDecoder.h"

#include "runtime/text/ByteAlphabet.h"

using namespace kf;

/// `text` with every `from`, not empty, replaced.
static std::string replaceAll(std::string_view text, std::string_view from,
                              std::string_view to) {
  std::string result;
  for (;;) {
    size_t at = text.find(from);
    result += text.substr(0, at);
    if (at == std::string_view::npos)
      return result;
    result += to;
    text.remove_prefix(at + from.size());
  }
}

std::string PieceDecoder::bytesOf(const Vocabulary::Token &token,
                                  std::string_view text) const {
  if (byteLevel) {
    // Added tokens are written as they are.
    std::string bytes;
    return token.inModel && token.kind == TokenKind::Normal &&
                   lettersToBytes(text, bytes)
               ? bytes
               : std::string(text);
  }
  if (token.kind == TokenKind::Byte || byteFallback)
    if (std::optional<uint8_t> byte = parseBytePiece(text))
      return std::string(1, static_cast<char>(*byte));
  if (token.kind == TokenKind::Unknown && !unknownText.empty())
    return unknownText;
  std::string result(text);
  for (const auto &[from, to] : replacements)
    result = replaceAll(result, from, to);
  return result;
}

void PieceDecoder::append(const Vocabulary &vocabulary,
                          const Vocabulary::Token &token, State &state,
                          std::string &out) const {
  std::string_view bytes = vocabulary.bytesOf(token);
  bool isFirst = !std::exchange(state.hasToken, true);
  switch (lead) {
  case Lead::Keep:
    break;
  case Lead::Spaces:
    while (!state.hasText && state.spacesDropped < leadSpaces &&
           bytes.starts_with(' ')) {
      bytes.remove_prefix(1);
      ++state.spacesDropped;
    }
    break;
  case Lead::FirstToken:
    if (isFirst) {
      out += replaceAll(vocabulary.textOf(token), mark, "");
      return;
    }
    break;
  case Lead::OneMark:
  case Lead::MarkPerPiece:
    if (token.kind == TokenKind::Byte || token.kind == TokenKind::Unknown ||
        token.kind == TokenKind::Control || state.hasText || state.sawMark)
      break;
    if (vocabulary.textOf(token).starts_with(mark)) {
      bytes.remove_prefix(1);
      state.sawMark = lead == Lead::OneMark;
    }
    break;
  }
  state.hasText |= !bytes.empty();
  out += bytes;
}
