//===- TokenizerMetadataTest.cpp - Tokenizers as GGUF metadata ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TokenizerMetadata.h"

#include "runtime/core/MappedFile.h"
#include "runtime/text/Tokenizer.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kf;
using kf::test::TempFolder;
using nlohmann::json;

namespace {

const std::string kData = KF_SOURCE_DIR "/test/runtime/text/data/";

std::string contentOf(const std::string &path) {
  auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok()) << file.message();
  return file.ok() ? std::string(file->text()) : "";
}

/// A file with that metadata alone.
std::unique_ptr<Gguf> writeAndOpen(const TempFolder &folder,
                                   const GgufMetadata &metadata) {
  const std::string path = folder.path("x.gguf");
  auto writer = GgufWriter::create(path, metadata, {}, true);
  EXPECT_TRUE(writer.ok()) << writer.message();
  EXPECT_TRUE((*writer)->finish().ok());
  auto gguf = Gguf::open(path);
  EXPECT_TRUE(gguf.ok()) << gguf.message();
  return gguf.take();
}

/// A tokenizer of the data folder.
struct Case {
  const char *file;
  const char *model, *pre; ///< in GGUF
  /// Where GGUF cannot say everything: what is noted, and that only ordinary
  /// text gives the same ids.
  size_t notes = 0;
};

class TokenizerMetadata : public testing::TestWithParam<Case> {};

TEST_P(TokenizerMetadata, GivesTheSameIds) {
  const auto [name, model, pre, noted] = GetParam();
  const std::string path = kData + name;
  Result<Tokenizer> original = Tokenizer::open(path);
  ASSERT_TRUE(original.ok()) << original.message();
  ModelConfig config;
  // More rows than tokens, as models have them.
  config.vocabSize = original->vocabSize() + 3;
  if (!original->prefixIds().empty())
    config.bosId = original->prefixIds().front();
  config.eosIds = {2};
  GgufMetadata metadata;
  std::vector<std::string> notes;
  const std::string text = contentOf(path);
  const Status added =
      path.ends_with(".json")
          ? addTokenizerMetadata(text, config, metadata, notes)
          : addSentencePieceMetadata(text, config, metadata, notes);
  ASSERT_TRUE(added.ok()) << added.message();
  EXPECT_EQ(notes.size(), noted) << (notes.empty() ? "" : notes[0]);

  TempFolder folder;
  auto gguf = writeAndOpen(folder, metadata);
  EXPECT_EQ(*gguf->getString("tokenizer.ggml.model"), model);
  EXPECT_EQ(*gguf->getString("tokenizer.ggml.pre"), pre);
  EXPECT_EQ(*gguf->getUnsigned("tokenizer.ggml.eos_token_id"), 2u);
  const auto tokens = *gguf->getStrings("tokenizer.ggml.tokens");
  EXPECT_EQ(int64_t(tokens.size()), config.vocabSize);
  EXPECT_EQ(tokens.back(), "[PAD" + std::to_string(config.vocabSize - 1) + "]");
  Result<Tokenizer> converted = Tokenizer::fromGguf(*gguf);
  ASSERT_TRUE(converted.ok()) << converted.message();
  const json texts = noted ? json::array({"the little girl", "Hello, world! 42",
                                          "na\u00efve  two\n\nlines "})
                           : json::parse(contentOf(kData + "texts.json"));
  for (const json &item : texts) {
    const std::string sample = item.get<std::string>();
    EXPECT_EQ(*converted->encode(sample, false),
              *original->encode(sample, false))
        << item.dump();
    EXPECT_EQ(*converted->encode(sample, true), *original->encode(sample, true))
        << item.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, TokenizerMetadata,
    testing::Values(Case{"gpt2.json", "gpt2", "gpt-2"},
                    Case{"llama3.json", "gpt2", "llama-bpe"},
                    Case{"qwen2.json", "gpt2", "qwen2"},
                    Case{"smollm.json", "gpt2", "smollm"},
                    Case{"tekken.json", "gpt2", "tekken"},
                    Case{"llama-prepend.json", "llama", "default"},
                    Case{"llama-metaspace.json", "llama", "default", 2},
                    Case{"llama.model", "llama", "default"}),
    [](const testing::TestParamInfo<Case> &info) {
      std::string name = info.param.file;
      for (char &c : name)
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return name;
    });

/// What only parts of a tokenizer of the data folder say otherwise.
TEST(TokenizerMetadataEntries, GiveTheSameIdsWithOtherSteps) {
  json gemma = json::parse(contentOf(kData + "llama-prepend.json"));
  gemma["normalizer"] = {{"type", "Replace"},
                         {"pattern", {{"String", " "}}},
                         {"content", "\u2581"}};
  gemma["pre_tokenizer"] = {{"type", "Split"},
                            {"pattern", {{"String", " "}}},
                            {"behavior", "MergedWithPrevious"},
                            {"invert", false}};
  json phi4 = json::parse(contentOf(kData + "llama3.json"));
  phi4["model"]["ignore_merges"] = false;
  phi4["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
      R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  for (const auto &[document, pre] :
       {std::pair(gemma, "default"), std::pair(phi4, "gpt-4o")}) {
    SCOPED_TRACE(pre);
    TempFolder folder;
    const std::string text = document.dump();
    Result<Tokenizer> original =
        Tokenizer::open(folder.write("tokenizer.json", text));
    ASSERT_TRUE(original.ok()) << original.message();
    ModelConfig config;
    config.vocabSize = original->vocabSize();
    GgufMetadata metadata;
    std::vector<std::string> notes;
    const Status added = addTokenizerMetadata(text, config, metadata, notes);
    ASSERT_TRUE(added.ok()) << added.message();
    EXPECT_EQ(notes, std::vector<std::string>());
    auto gguf = writeAndOpen(folder, metadata);
    EXPECT_EQ(*gguf->getString("tokenizer.ggml.pre"), pre);
    Result<Tokenizer> converted = Tokenizer::fromGguf(*gguf);
    ASSERT_TRUE(converted.ok()) << converted.message();
    for (const json &item : json::parse(contentOf(kData + "texts.json"))) {
      const std::string sample = item.get<std::string>();
      EXPECT_EQ(*converted->encode(sample, false),
                *original->encode(sample, false))
          << item.dump();
    }
  }
  // Where spaces are still there, it splits.
  gemma["normalizer"] = nullptr;
  GgufMetadata metadata;
  std::vector<std::string> notes;
  ModelConfig config;
  config.vocabSize = 1 << 20;
  EXPECT_EQ(
      addTokenizerMetadata(gemma.dump(), config, metadata, notes).message(),
      "the pre-tokenizer 'Split' has no place in a GGUF file");
}

/// A small byte-level tokenizer.
json smallTokenizer() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 3, "content": "<s>", "special": true},
      {"id": 4, "content": "<|eom_id|>", "special": true},
      {"id": 5, "content": "<tool>", "special": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
                      "use_regex": true},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
              "merges": ["a b"]}})");
}

ModelConfig smallConfig() {
  ModelConfig config;
  config.vocabSize = 7;
  config.bosId = 3;
  config.eosIds = {5, 4, 2, 1};
  return config;
}

TEST(TokenizerMetadataEntries, AreThoseOfTheTokenizer) {
  GgufMetadata metadata;
  std::vector<std::string> notes;
  Status added = addTokenizerMetadata(smallTokenizer().dump(), smallConfig(),
                                      metadata, notes);
  ASSERT_TRUE(added.ok()) << added.message();
  TempFolder folder;
  auto gguf = writeAndOpen(folder, metadata);
  EXPECT_EQ(*gguf->getStrings("tokenizer.ggml.tokens"),
            (std::vector<std::string_view>{"a", "b", "ab", "<s>", "<|eom_id|>",
                                           "<tool>", "[PAD6]"}));
  EXPECT_EQ(*gguf->getIntegers("tokenizer.ggml.token_type"),
            (std::vector<int64_t>{1, 1, 1, 3, 3, 4, 5}));
  EXPECT_EQ(*gguf->getStrings("tokenizer.ggml.merges"),
            (std::vector<std::string_view>{"a b"}));
  EXPECT_EQ(*gguf->getUnsigned("tokenizer.ggml.bos_token_id"), 3u);
  EXPECT_TRUE(*gguf->getBool("tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(*gguf->getUnsigned("tokenizer.ggml.eos_token_id"), 5u);
  EXPECT_EQ(*gguf->getUnsigned("tokenizer.ggml.eom_token_id"), 4u);
  EXPECT_EQ(*gguf->getUnsigned("tokenizer.ggml.eot_token_id"), 2u);
  EXPECT_EQ(notes, std::vector<std::string>{
                       "GGUF has no place for a fourth end token, 1"});
}

TEST(TokenizerMetadataEntries, NameWhatGgufCannotSay) {
  auto errorOf = [](auto change) {
    json document = smallTokenizer();
    change(document);
    GgufMetadata metadata;
    std::vector<std::string> notes;
    return addTokenizerMetadata(document.dump(), smallConfig(), metadata, notes)
        .message();
  };
  EXPECT_EQ(errorOf([](json &) {}), "");
  EXPECT_EQ(errorOf([](json &j) { j["model"]["type"] = "WordPiece"; }),
            "the tokenizer's model is 'WordPiece', which GGUF files cannot "
            "hold (supported: BPE)");
  EXPECT_EQ(errorOf([](json &j) { j["model"]["vocab"]["c"] = 7; }),
            "token 'c' has the id 7, but the model has 7 rows");
  EXPECT_EQ(errorOf([](json &j) { j["model"]["vocab"]["c"] = "x"; }),
            "token 'c' has the id \"x\", but the model has 7 rows");
  EXPECT_EQ(errorOf([](json &j) { j["model"]["merges"][0] = "ab"; }),
            "merge 0 is no pair of tokens");
  EXPECT_EQ(errorOf([](json &j) { j["model"]["merges"] = 3; }),
            "'model.merges' is no list");
  EXPECT_EQ(errorOf([](json &j) { j["model"].erase("vocab"); }),
            "'model.vocab' is no object");
  EXPECT_EQ(errorOf([](json &j) {
              j["pre_tokenizer"] = json::parse(
                  R"({"type": "Sequence", "pretokenizers": [
                      {"type": "Whitespace"}, {"type": "ByteLevel"}]})");
            }),
            "the pre-tokenizer is none that GGUF has a name for (llama-bpe, "
            "qwen2, gpt-2, gpt-4o, smollm, tekken): "
            "'Whitespace(?);ByteLevel(words);'");
  EXPECT_EQ(errorOf([](json &j) { j["pre_tokenizer"] = nullptr; }),
            "the tokenizer is neither byte-level nor has byte fallback, which "
            "is all that GGUF files hold");
  // Of unexpected types everywhere.
  for (const char *key : {"added_tokens", "normalizer", "pre_tokenizer",
                          "post_processor", "model"})
    for (json value : {json(1), json("x"), json::array({1, "x", nullptr}),
                       json::object({{"type", 3}}), json(nullptr)})
      errorOf([&](json &j) { j[key] = value; });
}

} // namespace
