//===- Tokenizer.h - Text to token ids and back -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte-level BPE as Hugging Face's tokenizer.json describes it: added tokens
// are found first, the rest is normalized, split by a pattern and merged, each
// byte being a token to start from. Text is bytes; where it is not UTF-8 the
// bytes are encoded as they are, so decode(encode(text)) gives text back.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_TOKENIZER_H
#define KF_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/Status.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Bpe.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PreTokenizer.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A tokenizer. Const functions may run on many threads at once.
class Tokenizer {
public:
  /// Reads a tokenizer.json. A part of it that would change ids and is not
  /// supported is an error that names it.
  static Result<Tokenizer> open(const std::string &path);
  /// The same from memory; `name` appears in errors.
  static Result<Tokenizer> fromJson(std::string_view json,
                                    const std::string &name);

  /// The token ids of `text`, any bytes. Special tokens written out in `text`
  /// become their ids. With `addSpecial` the post-processor's tokens
  /// (begin-of-text, mostly) are put around. Fails when the split pattern
  /// needs too many steps, or past 2^31 - 1 bytes.
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      bool addSpecial) const;

  /// The bytes of `ids`, UTF-8 or not (toValidUtf8 makes them so). Ids that
  /// are no token (a model may have more rows than its tokenizer) add nothing;
  /// nor do special tokens with `skipSpecial`.
  std::string decode(std::span<const int32_t> ids,
                     bool skipSpecial = true) const;

  /// The bytes of one token; empty if `id` is none. Valid as long as this.
  std::string_view bytesOf(int32_t id) const;
  /// The token as tokenizer.json writes it ("Ġthe"); nothing if `id` is none.
  std::optional<std::string> pieceOf(int32_t id) const;
  /// The inverse of pieceOf; looks through all tokens, so keep the result.
  std::optional<int32_t> idOf(std::string_view piece) const;
  bool isSpecial(int32_t id) const;
  /// One past the highest id.
  int64_t vocabSize() const { return int64_t(bpe.vocabulary.highestId()) + 1; }
  /// What `addSpecial` puts before and after.
  const std::vector<int32_t> &prefixIds() const { return prefix; }
  const std::vector<int32_t> &suffixIds() const { return suffix; }

private:
  friend class TokenizerLoader;
  Tokenizer() = default;

  /// Text between added tokens that are found before normalization.
  Status encodeRaw(std::string_view text, std::vector<int32_t> &ids,
                   Bpe::Workspace &workspace) const;
  /// Normalized, valid UTF-8.
  Status encodeNormalized(std::string_view text, std::vector<int32_t> &ids,
                          Bpe::Workspace &workspace) const;

  Bpe bpe;
  AddedTokens rawTokens;        ///< found before normalization
  AddedTokens normalizedTokens; ///< found after it
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  std::vector<int32_t> prefix, suffix;
};

/// Decodes ids one at a time into text that is fit to print at once: bytes
/// that end inside a character wait for the next id. The tokenizer must
/// outlive it. One thread.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial = true)
      : tokenizer(tokenizer), skipSpecial(skipSpecial) {}

  /// The valid UTF-8 that `id` completes, maybe none. Bytes that can no longer
  /// become a character come out as U+FFFD; all that was returned, and flush(),
  /// make toValidUtf8(decode(ids)).
  std::string push(int32_t id);
  /// What is left at the end: U+FFFD if a character was cut off, else nothing.
  std::string flush();

private:
  const Tokenizer &tokenizer;
  bool skipSpecial;
  std::string pending; ///< the start of a character, at most 3 bytes
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_TOKENIZER_H
