//===- Tokenizer.h - Text to token ids and back -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Encoding finds added tokens first, normalizes the rest, splits it into words,
// and gives every word to a model: BPE by merges or by scores, or unigram.
// Decoding joins what the tokens stand for. What the parts are comes from a
// tokenizer.json, a SentencePiece tokenizer.model, or a GGUF file.
//
// Text is bytes. Byte-level models and those with a token for each byte encode
// what is no UTF-8 as it is; with byte-level models that do not normalize,
// decode(encode(text)) gives text back. A tokenizer.model reads such bytes as
// U+FFFD, as SentencePiece does.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_TOKENIZER_H
#define KF_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/core/Status.h"
#include "runtime/text/AddedTokens.h"
#include "runtime/text/Normalizer.h"
#include "runtime/text/PieceDecoder.h"
#include "runtime/text/PreTokenizer.h"
#include "runtime/text/TokenModel.h"
#include "runtime/text/Vocabulary.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

class Gguf;

struct EncodeOptions {
  /// Puts the tokens around that the model expects (begin-of-text, mostly).
  bool addSpecial = false;
  /// Special tokens written out in the text become their ids. Text from users
  /// is to be encoded without.
  bool parseSpecial = true;
  /// Stretches of the text, in order and apart, that no special token may reach
  /// into, whatever they spell: text from users inside a prompt.
  std::span<const AddedTokens::Range> literal = {};
  /// Ends it, with Status::cancelled(), when it is set.
  CancelFlag cancelled = nullptr;
};

/// A tokenizer. Const functions may run on many threads at once.
class Tokenizer {
public:
  /// Reads `path`: a tokenizer.json, a tokenizer.model, a GGUF file, which may
  /// be without tensors, or a folder with one of the first two. A part that
  /// would change ids and is not supported is an error that names it.
  static Result<Tokenizer> open(const std::string &path);
  /// The same from a tokenizer.json in memory; `name` appears in errors.
  static Result<Tokenizer> fromJson(std::string_view json,
                                    const std::string &name);
  /// From a tokenizer.model, BPE or unigram, in memory.
  static Result<Tokenizer> fromSentencePiece(std::string_view model,
                                             const std::string &name);
  /// From the metadata of a GGUF file, of kind "llama" or "gpt2".
  static Result<Tokenizer> fromGguf(const Gguf &file);
  /// Whether a GGUF file says that it has a tokenizer, of whatever kind; "none"
  /// and "no_vocab" say that it has not.
  static bool isIn(const Gguf &file);

  /// The token ids of `text`, any bytes. Fails when a pattern needs too many
  /// steps, or past 2^31 - 1 bytes.
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      const EncodeOptions &options) const;
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      bool addSpecial) const {
    return encode(text, EncodeOptions{addSpecial});
  }

  /// The bytes of `ids`, UTF-8 or not (toValidUtf8 makes them so), as a text
  /// of their own: the space that encoding put before a text is taken away.
  /// Ids that are no token (a model may have more rows than its tokenizer) add
  /// nothing; nor do special tokens with `skipSpecial`.
  std::string decode(std::span<const int32_t> ids,
                     bool skipSpecial = true) const;

  /// The bytes of one token inside a text; empty if `id` is none. Valid as
  /// long as this.
  std::string_view bytesOf(int32_t id) const;
  /// The token as its file writes it ("Ġthe", "▁the"); nothing if `id` is
  /// none.
  std::optional<std::string> pieceOf(int32_t id) const;
  /// The inverse of pieceOf.
  std::optional<int32_t> idOf(std::string_view piece) const;
  bool isSpecial(int32_t id) const;
  /// One past the highest id.
  int64_t vocabSize() const { return int64_t(vocabulary->highestId()) + 1; }
  /// What `addSpecial` puts before and after.
  const std::vector<int32_t> &prefixIds() const { return prefix; }
  const std::vector<int32_t> &suffixIds() const { return suffix; }

private:
  friend class StreamDecoder;
  friend class TokenizerLoader;
  friend class SentencePieceLoader;
  friend class GgufVocabularyLoader;
  Tokenizer() = default;

  static Result<Tokenizer> openFolder(const std::string &folder);
  /// Text between added tokens that are found before normalization; `first`
  /// says that it starts what is encoded.
  Status encodePiece(std::string_view text, bool first, bool parseSpecial,
                     CancelFlag cancelled, std::vector<int32_t> &ids) const;
  /// Appends what `id` adds to a text that is at `state`.
  void decodeInto(int32_t id, bool skipSpecial, PieceDecoder::State &state,
                  std::string &out) const;

  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const TokenModel> model;
  AddedTokens rawTokens;        ///< found before normalization
  AddedTokens normalizedTokens; ///< found after it
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  PieceDecoder decoder;
  std::vector<int32_t> prefix, suffix;
  std::optional<int32_t> endId; ///< of a tokenizer.model's end-of-text piece
};

/// Decodes ids one at a time into text that is fit to print at once: bytes
/// that end inside a character wait for the next id. The tokenizer must
/// outlive it. One thread.
class StreamDecoder {
public:
  /// The ids continue those in `before`, if there are any.
  explicit StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial = true,
                         std::span<const int32_t> before = {});

  /// The valid UTF-8 that `id` completes, maybe none. Bytes that can no longer
  /// become a character come out as U+FFFD; all that was returned, and flush(),
  /// make toValidUtf8(decode(ids)) if there was nothing before.
  std::string push(int32_t id);
  /// What is left at the end: U+FFFD if a character was cut off, else nothing.
  std::string flush();

private:
  const Tokenizer &tokenizer;
  bool skipSpecial;
  PieceDecoder::State state;
  std::string pending; ///< the start of a character, at most 3 bytes
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_TOKENIZER_H
