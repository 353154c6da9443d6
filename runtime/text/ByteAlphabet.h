//===- ByteAlphabet.h - GPT-2's letters for bytes ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte-level BPE writes each byte as one printable letter, so that a vocabulary
// can be text: bytes that Latin-1 prints stand for themselves, the other 68 are
// U+0100 onwards (a space is U+0120).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_BYTEALPHABET_H
#define KF_RUNTIME_TEXT_BYTEALPHABET_H

#include <string>
#include <string_view>

namespace kf {

/// Replaces `out` by the bytes that the letters of `piece` stand for. False,
/// `out` unspecified, if a character is no letter of the alphabet.
bool lettersToBytes(std::string_view piece, std::string &out);

/// The letters of `bytes`.
std::string bytesToLetters(std::string_view bytes);

} // namespace kf

#endif // KF_RUNTIME_TEXT_BYTEALPHABET_H
