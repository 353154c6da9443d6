//===- ByteAlphabet.cpp - GPT-2's letters for bytes -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/ByteAlphabet.h"

#include "runtime/text/Utf8.h"

#include <array>

using namespace kf;

namespace {

constexpr char32_t kFirstShifted = 0x100; ///< letter of byte 0
constexpr size_t kShiftedCount = 68;

constexpr bool standsForItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         byte >= 0xae;
}

/// Bytes that do not stand for themselves, in order.
constexpr std::array<uint8_t, kShiftedCount> kShifted = [] {
  std::array<uint8_t, kShiftedCount> bytes{};
  size_t count = 0;
  for (unsigned byte = 0; byte < 256; ++byte)
    if (!standsForItself(byte))
      bytes[count++] = static_cast<uint8_t>(byte);
  return bytes;
}();

constexpr std::array<char32_t, 256> kLetters = [] {
  std::array<char32_t, 256> letters{};
  for (unsigned byte = 0; byte < 256; ++byte)
    letters[byte] = byte;
  for (size_t i = 0; i < kShiftedCount; ++i)
    letters[kShifted[i]] = kFirstShifted + i;
  return letters;
}();

} // namespace

bool kf::lettersToBytes(std::string_view piece, std::string &out) {
  out.clear();
  while (!piece.empty()) {
    Utf8Step step = stepUtf8(piece);
    if (step.kind != Utf8Step::Kind::Character)
      return false;
    char32_t c = step.character;
    if (c < 0x100 && standsForItself(c))
      out += static_cast<char>(c);
    else if (c >= kFirstShifted && c < kFirstShifted + kShiftedCount)
      out += static_cast<char>(kShifted[c - kFirstShifted]);
    else
      return false;
    piece.remove_prefix(step.length);
  }
  return true;
}

std::string kf::bytesToLetters(std::string_view bytes) {
  std::string result;
  for (char byte : bytes)
    appendUtf8(result, kLetters[static_cast<uint8_t>(byte)]);
  return result;
}
