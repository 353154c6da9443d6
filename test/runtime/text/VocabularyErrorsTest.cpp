//===- VocabularyErrorsTest.cpp - Models and GGUF files that are wrong ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/MappedFile.h"
#include "runtime/io/Gguf.h"
#include "runtime/text/Tokenizer.h"

#include "test/runtime/GgufBuilder.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

using namespace kf;
using namespace kf::test;

namespace {

//===----------------------------------------------------------------------===//
// tokenizer.model
//===----------------------------------------------------------------------===//

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field(uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string field(uint32_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string piece(std::string_view text, float score = 0, uint64_t kind = 1) {
  return field(1, field(1, text) + varint(2 << 3 | 5) + raw(score) +
                      field(3, kind));
}

std::string errorOf(const std::string &model) {
  auto tokenizer = Tokenizer::fromSentencePiece(model, "test");
  return tokenizer.ok() ? "" : tokenizer.message();
}

TEST(SentencePieceErrors, AreNamed) {
  const std::string good = piece("<unk>", 0, 2) + piece("a") + piece("b");
  EXPECT_EQ(errorOf(good), "");
  EXPECT_EQ(errorOf(""), "test: no SentencePiece model: it has no pieces");
  EXPECT_EQ(errorOf(good + "\x07"),
            "test: no SentencePiece model: a field without a number at byte " +
                std::to_string(good.size() + 1));
  EXPECT_EQ(errorOf(good + "\x0a\x7f"),
            "test: no SentencePiece model: a field that the end cuts off at "
            "byte " +
                std::to_string(good.size() + 2));
  EXPECT_EQ(errorOf(good + std::string(11, '\xff')),
            "test: no SentencePiece model: a number without an end at byte " +
                std::to_string(good.size()));
  EXPECT_EQ(errorOf(good + field(1, uint64_t(5))),
            "test: field 1 has the wrong type");
  EXPECT_EQ(errorOf(good + piece("")), "test: piece 3 has no text");
  EXPECT_EQ(errorOf(good + piece("a")), "test: token 'a' appears twice");
  EXPECT_EQ(errorOf(good + piece("c", 0, 9)),
            "test: piece 3 has the unknown type 9");
  EXPECT_EQ(errorOf(good + piece("c", std::numeric_limits<float>::quiet_NaN())),
            "test: piece 3 has a score that is not finite");
  EXPECT_EQ(errorOf(good + piece("<u>", 0, 2)),
            "test: there are 2 unknown pieces where one is needed");
  EXPECT_EQ(errorOf(good + piece("x", 0, 6)),
            "test: piece 'x' is no byte, as its type says");
  EXPECT_EQ(errorOf(good + piece("<0x0A>", 0, 6)),
            "test: there are 1 byte pieces, and byte_fallback is off");
  EXPECT_EQ(errorOf(good + field(2, field(35, 1))),
            "test: there are 0 byte pieces, and byte_fallback is on");
  EXPECT_EQ(errorOf(good + field(2, field(3, 4))),
            "test: a model of type WORD or CHAR is not supported; BPE and "
            "unigram are");
  EXPECT_EQ(errorOf(good + field(2, field(3, 7))),
            "test: the model type 7 is unknown");
  EXPECT_EQ(errorOf(good + field(5, field(2, "x"))),
            "test: a denormalizer is not supported");
  EXPECT_EQ(errorOf(good + piece(std::string(5000, 'x'))),
            "test: piece 3 has 5000 bytes; the limit is 4096");
  EXPECT_EQ(errorOf(good + field(3, field(2, "ab"))),
            "test: the normalization rules are cut off");
  EXPECT_EQ(errorOf(good + field(3, field(2, raw<uint32_t>(8) + "abcd"))),
            "test: the normalization rules have a trie of 8 bytes in 4");
  EXPECT_EQ(errorOf(good + field(3, field(2, raw<uint32_t>(4) + "abcd" +
                                                 std::string(300, 'x')))),
            "test: a normalization rule makes 300 bytes; the limit is 256");
}

TEST(SentencePieceErrors, DamageDoesNoHarm) {
  for (const char *name : {"bpe-rules", "unigram-rules"}) {
    auto file = MappedFile::open(std::string(KF_SOURCE_DIR) +
                                 "/test/runtime/text/data/" + name + ".model");
    ASSERT_TRUE(file.ok()) << file.message();
    const std::string whole(file->text());
    for (size_t size = 0; size < whole.size(); size += 37)
      (void)errorOf(whole.substr(0, size));
    for (size_t at = 0; at < whole.size(); at += 11) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x81);
      auto tokenizer = Tokenizer::fromSentencePiece(damaged, "test");
      if (!tokenizer.ok())
        continue;
      auto ids = tokenizer->encode("\xef\xbc\xa1\t the  12 \xff", true);
      ASSERT_TRUE(ids.ok()) << ids.message();
      (void)tokenizer->decode(*ids);
    }
  }
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

/// What a vocabulary may have.
struct Parts {
  std::optional<std::string> model = "llama", pre = {};
  std::vector<std::string> tokens = {"<unk>", "<s>", "a", "b", "ab"};
  std::optional<std::vector<int32_t>> types = {{2, 3, 1, 1, 1}};
  std::optional<std::vector<float>> scores = {{0, 0, -1, -2, -3}};
  std::optional<std::vector<std::string>> merges = {};
  std::optional<uint32_t> begin = {};
  std::optional<bool> addEnd = {}, removeExtra = {};
};

std::string errorOf(const Parts &parts) {
  GgufBuilder builder;
  const std::string prefix = "tokenizer.ggml.";
  if (parts.model)
    builder.text(prefix + "model", *parts.model);
  if (parts.pre)
    builder.text(prefix + "pre", *parts.pre);
  builder.strings(prefix + "tokens", parts.tokens);
  if (parts.types)
    builder.i32s(prefix + "token_type", *parts.types);
  if (parts.scores) {
    std::string elements;
    for (float score : *parts.scores)
      elements += raw(score);
    builder.entry(prefix + "scores", GgufValueType::Array,
                  ggufArray(static_cast<uint32_t>(GgufValueType::F32),
                            parts.scores->size(), elements));
  }
  if (parts.merges)
    builder.strings(prefix + "merges", *parts.merges);
  if (parts.begin)
    builder.u32(prefix + "bos_token_id", *parts.begin);
  if (parts.addEnd)
    builder.boolean(prefix + "add_eos_token", *parts.addEnd);
  if (parts.removeExtra)
    builder.boolean(prefix + "remove_extra_whitespaces", *parts.removeExtra);
  const std::string bytes = builder.bytes();
  auto file = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
  EXPECT_TRUE(file.ok()) << file.message();
  if (!file.ok())
    return "";
  auto tokenizer = Tokenizer::fromGguf(**file);
  return tokenizer.ok() ? "" : tokenizer.message();
}

TEST(GgufVocabularyErrors, OfScores) {
  EXPECT_EQ(errorOf(Parts()), "");
  EXPECT_EQ(errorOf(Parts{.model = "rwkv"}),
            "test: the tokenizer kind 'rwkv' (tokenizer.ggml.model; 'llama' "
            "and 'gpt2' are) is not supported");
  for (const char *none : {"none", "no_vocab"})
    EXPECT_EQ(errorOf(Parts{.model = none}),
              "test: the file has no tokenizer; give token ids, or the "
              "tokenizer of the model it was made from");
  EXPECT_EQ(errorOf(Parts{.types = {{1, 1}}}),
            "test: there are 5 tokens and 2 types of them");
  EXPECT_EQ(errorOf(Parts{.types = {{2, 3, 1, 1, 7}}}),
            "test: token 4 has the unknown type 7");
  EXPECT_EQ(errorOf(Parts{.types = {{2, 3, 1, 1, 6}}}),
            "test: token 'ab' is no byte, as its type says");
  EXPECT_EQ(errorOf(Parts{.scores = {{0, 0}}}),
            "test: there are 5 tokens and 2 scores");
  EXPECT_EQ(
      errorOf(Parts{
          .scores = {{0, 0, 0, std::numeric_limits<float>::infinity(), 0}}}),
      "test: token 3 has a score that is not finite");
  EXPECT_NE(errorOf(Parts{.scores = {}}).find("tokenizer.ggml.scores"),
            std::string::npos);
  EXPECT_EQ(errorOf(Parts{.tokens = {"<unk>", "<s>", "a", "a", "ab"}}),
            "test: token 'a' appears twice");
  EXPECT_EQ(errorOf(Parts{.tokens = {"<unk>", "<s>", "", "", "ab"}}), "");
  EXPECT_EQ(errorOf(Parts{.begin = 5}),
            "test: tokenizer.ggml.bos_token_id is 5, past the last of 5 "
            "tokens");
  EXPECT_EQ(errorOf(Parts{.addEnd = true}),
            "test: tokenizer.ggml.add_eos_token is on, and there is no "
            "tokenizer.ggml.eos_token_id");
  EXPECT_EQ(errorOf(Parts{.removeExtra = true}),
            "test: tokenizer.ggml.remove_extra_whitespaces of kind 'llama' is "
            "not supported");
}

TEST(GgufVocabularyErrors, OfMerges) {
  Parts parts{.model = "gpt2", .merges = {{"a b"}}};
  EXPECT_EQ(errorOf(parts), "");
  parts.merges = {{"ab"}};
  EXPECT_EQ(errorOf(parts), "test: merge 'ab' is not two tokens and a space");
  parts.merges = {{"a b c"}};
  EXPECT_EQ(errorOf(parts),
            "test: merge 'a b c' is not two tokens and a space");
  parts.merges = {{"b a"}};
  EXPECT_EQ(errorOf(parts),
            "test: merge 0 of 'b' and 'a' needs a token that the vocabulary "
            "lacks");
  parts.merges.reset();
  EXPECT_NE(errorOf(parts).find("tokenizer.ggml.merges"), std::string::npos);
  parts.pre = "gpt-99";
  EXPECT_EQ(errorOf(parts).substr(0, 89),
            "test: tokenizer.ggml.pre: the pre-tokenizer 'gpt-99' is not "
            "supported; these are: default");
}

} // namespace
