//===- ReferenceTest.cpp - Against the packages that made the files -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// data/README.md says where the files come from.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/MappedFile.h"
#include "runtime/io/Gguf.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kf;
using nlohmann::json;
using Ids = std::vector<int32_t>;

namespace {

const char kData[] = KF_SOURCE_DIR "/test/runtime/text/data/";
const char kModels[] = KF_SOURCE_DIR "/models/";

json readJson(const std::string &path) {
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << file.message();
  return file.ok() ? json::parse(file->text()) : json();
}

const std::vector<std::string> &texts() {
  static const auto all = readJson(std::string(kData) + "texts.json")
                              .get<std::vector<std::string>>();
  return all;
}

/// A file of the data folder, and the expectation that goes with it.
struct Case {
  const char *file, *expected;
};

class Reference : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    auto opened = Tokenizer::open(std::string(kData) + GetParam().file);
    ASSERT_TRUE(opened.ok()) << opened.message();
    tokenizer = opened.take();
    expected =
        readJson(std::string(kData) + GetParam().expected + ".expected.json");
  }

  Ids encode(std::string_view text, const EncodeOptions &options) {
    auto ids = tokenizer->encode(text, options);
    EXPECT_TRUE(ids.ok()) << ids.message();
    return ids.ok() ? ids.take() : Ids();
  }

  std::optional<Tokenizer> tokenizer;
  json expected;
};

TEST_P(Reference, Encodes) {
  for (size_t i = 0; i < texts().size(); ++i) {
    SCOPED_TRACE(json(texts()[i]).dump());
    if (expected.contains("ids"))
      EXPECT_EQ(encode(texts()[i], {}), expected["ids"][i].get<Ids>());
    EXPECT_EQ(encode(texts()[i], {.parseSpecial = false}),
              expected["plain"][i].get<Ids>());
  }
  if (expected.contains("around"))
    EXPECT_EQ(encode("Hello", {.addSpecial = true}),
              expected["around"].get<Ids>());
}

TEST_P(Reference, Decodes) {
  const json &ids = expected[expected.contains("ids") ? "ids" : "plain"];
  for (size_t i = 0; i < texts().size(); ++i)
    EXPECT_EQ(toValidUtf8(tokenizer->decode(ids[i].get<Ids>())),
              expected["decoded"][i].get<std::string>());
  // SentencePiece never shows control pieces.
  bool skip = std::string_view(GetParam().file).ends_with(".model");
  for (size_t i = 0; i < expected["sequences"].size(); ++i) {
    SCOPED_TRACE(expected["sequences"][i].dump());
    Ids sequence = expected["sequences"][i].get<Ids>();
    std::string text = expected["sequences_decoded"][i].get<std::string>();
    EXPECT_EQ(toValidUtf8(tokenizer->decode(sequence, skip)), text);
    StreamDecoder decoder(*tokenizer, skip);
    std::string streamed;
    for (int32_t id : sequence)
      streamed += decoder.push(id);
    EXPECT_EQ(streamed + decoder.flush(), text);
  }
}

TEST_P(Reference, TakesBytesThatAreNoText) {
  if (expected.contains("invalid")) {
    for (size_t i = 0; i < expected["invalid"].size(); ++i) {
      std::string hex = expected["invalid"][i], bytes;
      for (size_t at = 0; at < hex.size(); at += 2)
        bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
      EXPECT_EQ(encode(bytes, {.parseSpecial = false}),
                expected["invalid_ids"][i].get<Ids>())
          << hex;
    }
    return;
  }
  // No package takes them; with a token for every byte they come back.
  for (std::string text : {"\xff", "a\xff b", "\xc3", "x\xe4\xbd",
                           "\xed\xa0\x80", "\xf0\x9f\x99 x", "\xc0\x80 z"}) {
    std::string back = tokenizer->decode(encode(text, {}));
    if (std::string_view(GetParam().expected) == "metaspace")
      EXPECT_EQ(validUtf8Prefix(back), back.size());
    else
      EXPECT_EQ(back, text);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, Reference,
    testing::Values(Case{"llama-prepend.json", "llama-prepend"},
                    Case{"llama-metaspace.json", "llama-metaspace"},
                    Case{"metaspace.json", "metaspace"},
                    Case{"gpt2.json", "gpt2"}, Case{"llama3.json", "llama3"},
                    Case{"qwen2.json", "qwen2"}, Case{"smollm.json", "smollm"},
                    Case{"tekken.json", "tekken"}, Case{"llama.model", "llama"},
                    Case{"bpe-rules.model", "bpe-rules"},
                    Case{"unigram-rules.model", "unigram-rules"},
                    Case{"unigram-bytes.model", "unigram-bytes"},
                    Case{"llama-prepend.gguf", "llama-prepend"},
                    Case{"gpt2.gguf", "gpt2"}, Case{"llama3.gguf", "llama3"},
                    Case{"qwen2.gguf", "qwen2"}, Case{"smollm.gguf", "smollm"},
                    Case{"tekken.gguf", "tekken"},
                    Case{"pre-default.gguf", "pre-default"},
                    Case{"pre-gpt-4o.gguf", "pre-gpt-4o"},
                    Case{"pre-deepseek-v3.gguf", "pre-deepseek-v3"},
                    Case{"pre-deepseek-coder.gguf", "pre-deepseek-coder"},
                    Case{"pre-falcon.gguf", "pre-falcon"}),
    [](const auto &info) {
      std::string name = info.param.file;
      for (char &c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)))
          c = '_';
      return name;
    });

/// The GGUF files of kf-stories have its tokenizer.
TEST(GgufVocabulary, IsKfStories) {
  json reference = readJson(std::string(kModels) + "kf-stories/reference.json");
  for (const char *type : {"Q4_0", "Q4_K_M", "Q8_0"}) {
    auto tokenizer = Tokenizer::open(
        std::string(kModels) + "kf-stories-gguf/kf-stories-" + type + ".gguf");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.message();
    for (const json &item : reference["tokenize"]) {
      std::string text = item["text"];
      auto ids = tokenizer->encode(text, false);
      ASSERT_TRUE(ids.ok()) << ids.message();
      EXPECT_EQ(*ids, item["ids"].get<Ids>()) << text;
      EXPECT_EQ(tokenizer->decode(*ids, false), text);
    }
    for (const json &item : reference["greedy"]) {
      auto ids = tokenizer->encode(item["prompt"].get<std::string>(), true);
      ASSERT_TRUE(ids.ok()) << ids.message();
      EXPECT_EQ(*ids, item["prompt_ids"].get<Ids>());
      EXPECT_EQ(tokenizer->decode(item["ids"].get<Ids>()),
                item["text"].get<std::string>());
    }
  }
}

} // namespace
