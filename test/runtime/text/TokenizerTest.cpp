//===- TokenizerTest.cpp - Against Hugging Face, and against hostility ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Tokenizer.h"

#include "runtime/core/MappedFile.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <map>
#include <random>
#include <thread>

using namespace kf;
using nlohmann::json;
using Ids = std::vector<int32_t>;

namespace {

const char kModelFolder[] = KF_SOURCE_DIR "/models/kf-stories/";

const Tokenizer &stories() {
  static Tokenizer tokenizer =
      Tokenizer::open(std::string(kModelFolder) + "tokenizer.json").take();
  return tokenizer;
}

const json &reference() {
  static json document = [] {
    auto file =
        MappedFile::open(std::string(kModelFolder) + "reference.json").take();
    return json::parse(file.text());
  }();
  return document;
}

Ids encode(const Tokenizer &tokenizer, std::string_view text,
           bool addSpecial = false) {
  auto ids = tokenizer.encode(text, addSpecial);
  EXPECT_TRUE(ids.ok()) << ids.message();
  return ids.ok() ? ids.take() : Ids();
}

//===----------------------------------------------------------------------===//
// kf-stories
//===----------------------------------------------------------------------===//

TEST(Tokenizer, EncodesAsHuggingFaceDoes) {
  for (const json &item : reference()["tokenize"]) {
    std::string text = item["text"];
    EXPECT_EQ(encode(stories(), text), item["ids"].get<Ids>()) << text;
    EXPECT_EQ(stories().decode(item["ids"].get<Ids>(), false), text);
  }
  for (const json &item : reference()["greedy"]) {
    std::string prompt = item["prompt"];
    EXPECT_EQ(encode(stories(), prompt, true), item["prompt_ids"].get<Ids>());
    EXPECT_EQ(stories().decode(item["ids"].get<Ids>()),
              item["text"].get<std::string>());
  }
  for (const json &item : reference()["chat"]) {
    std::string prompt = item["prompt"];
    EXPECT_EQ(encode(stories(), prompt), item["prompt_ids"].get<Ids>());
    EXPECT_EQ(stories().decode(item["ids"].get<Ids>()),
              item["text"].get<std::string>());
  }
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer &t = stories();
  EXPECT_EQ(t.vocabSize(), 1477);
  EXPECT_EQ(t.prefixIds(), Ids{1472});
  EXPECT_TRUE(t.suffixIds().empty());
  EXPECT_EQ(encode(t, "", true), Ids{1472});
  EXPECT_EQ(encode(t, ""), Ids{});
  EXPECT_EQ(t.idOf("<|eot_id|>"), 1476);
  EXPECT_EQ(t.pieceOf(1476), "<|eot_id|>");
  EXPECT_TRUE(t.isSpecial(1476));
  EXPECT_FALSE(t.isSpecial(0));
  EXPECT_EQ(t.idOf("Ġa"), 256);
  EXPECT_EQ(t.pieceOf(256), "Ġa");
  EXPECT_EQ(t.bytesOf(256), " a");
  EXPECT_EQ(t.idOf("no such token"), std::nullopt);
  for (int32_t id : {-1, 1477, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(t.pieceOf(id), std::nullopt);
    EXPECT_EQ(t.bytesOf(id), "");
    EXPECT_EQ(t.decode(Ids{id}), "");
    EXPECT_FALSE(t.isSpecial(id));
  }
  EXPECT_EQ(t.decode(Ids{1472, 256, 1476}), " a");
  EXPECT_EQ(t.decode(Ids{1472, 256, 1476}, false),
            "<|begin_of_text|> a<|eot_id|>");
}

/// Bytes of a few kinds that often stand beside one another.
std::string randomBytes(std::mt19937_64 &random) {
  static const std::vector<std::string> parts = {
      " ",        "  ",
      "\n",       "a",
      "The",      "é",
      "你",       "🙂",
      "\xff",     "\xc3",
      "\xe4\xbd", "\xf0\x9f\x99",
      "\x80",     "\xed\xa0\x80",
      "\xc0\x80", "123",
      "'s",       "<|eot_id|>",
      "<|eot_id", "\xe2\x80\x83",
      "\r\n",     std::string(1, '\0')};
  std::string text;
  for (uint64_t count = random() % 40; count > 0; --count) {
    if (random() % 4 == 0)
      text += static_cast<char>(random());
    else
      text += parts[random() % parts.size()];
  }
  return text;
}

TEST(Tokenizer, RoundTripsAnyBytes) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text = randomBytes(random);
    EXPECT_EQ(stories().decode(encode(stories(), text), false), text);
  }
  for (int byte = 0; byte < 256; ++byte) {
    std::string text(1, static_cast<char>(byte));
    EXPECT_EQ(encode(stories(), text).size(), 1u) << byte;
    EXPECT_EQ(stories().decode(encode(stories(), text)), text);
  }
}

TEST(Tokenizer, StreamsWholeCharacters) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::string text = randomBytes(random);
    for (bool skip : {false, true}) {
      Ids ids = encode(stories(), text);
      StreamDecoder decoder(stories(), skip);
      std::string streamed;
      for (int32_t id : ids) {
        std::string part = decoder.push(id);
        EXPECT_EQ(validUtf8Prefix(part), part.size());
        streamed += part;
      }
      streamed += decoder.flush();
      EXPECT_EQ(streamed, toValidUtf8(stories().decode(ids, skip)));
    }
  }
  // The four bytes of one character, token by token.
  StreamDecoder decoder(stories());
  Ids bytes = encode(stories(), "🙂");
  ASSERT_GT(bytes.size(), 1u);
  for (size_t i = 0; i + 1 < bytes.size(); ++i)
    EXPECT_EQ(decoder.push(bytes[i]), "");
  EXPECT_EQ(decoder.push(bytes.back()), "🙂");
  EXPECT_EQ(decoder.push(bytes[0]), "");
  EXPECT_EQ(decoder.flush(), "\ufffd");
  EXPECT_EQ(decoder.flush(), "");
}

TEST(Tokenizer, IsFastOnLongWords) {
  // Quadratic merging would take minutes.
  for (std::string unit : {"a", " ", "he", "\xff", "\n"}) {
    std::string text;
    while (text.size() < 1'000'000)
      text += unit;
    // Of the processor's time, which waiting for it is no part of.
    const std::clock_t start = std::clock();
    Ids ids = encode(stories(), text);
    const std::clock_t used = std::clock() - start;
    EXPECT_EQ(stories().decode(ids), text);
    EXPECT_LT(used / CLOCKS_PER_SEC, 30) << unit;
  }
}

TEST(Tokenizer, EndsWhenItIsTold) {
  // One long word, and many words.
  std::string word(size_t(8) << 20, 'a'), words;
  while (words.size() < word.size())
    words += "Once upon a time ";
  for (const char *name : {"gpt2.json", "llama.model", "unigram-bytes.model",
                           "llama-metaspace.json", "qwen2.gguf"}) {
    auto tokenizer = Tokenizer::open(
        std::string(KF_SOURCE_DIR "/test/runtime/text/data/") + name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.message();
    for (const std::string *text : {&word, &words}) {
      // Where the other thread gets no time before the end: once more.
      Status status;
      for (int i = 0; i < 20 && !status.isCancelled(); ++i) {
        std::atomic<bool> cancelled = false;
        std::thread other([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          cancelled = true;
        });
        status = tokenizer->encode(*text, {.cancelled = &cancelled}).status();
        other.join();
      }
      EXPECT_TRUE(status.isCancelled()) << name << status.message();
    }
  }
}

TEST(Tokenizer, IsMissing) {
  EXPECT_EQ(Tokenizer::open("no/tokenizer.json").message(),
            "cannot open 'no/tokenizer.json': No such file or directory");
}

//===----------------------------------------------------------------------===//
// Made-up tokenizers
//===----------------------------------------------------------------------===//

/// A tokenizer.json of all bytes, the given merges, and what `patch` changes.
std::string makeJson(const std::vector<std::pair<std::string, std::string>>
                         &merges = {{"a", "b"}, {"ab", "c"}, {"Ġ", "a"}},
                     const json &patch = json::object()) {
  json vocab = json::object();
  int32_t next = 0;
  for (int32_t byte = 0; byte < 256; ++byte)
    vocab[*stories().pieceOf(encode(
        stories(), std::string(1, static_cast<char>(byte)))[0])] = next++;
  json pairs = json::array();
  for (const auto &[left, right] : merges) {
    pairs.push_back({left, right});
    if (!vocab.contains(left + right))
      vocab[left + right] = next++;
  }
  json document = {
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", pairs}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"added_tokens", json::array()}};
  if (!patch.is_null())
    document.merge_patch(patch);
  return document.dump();
}

Tokenizer make(const json &patch) {
  auto tokenizer = Tokenizer::fromJson(
      makeJson({{"a", "b"}, {"ab", "c"}, {"Ġ", "a"}}, patch), "test");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.message();
  return tokenizer.take();
}

/// Pieces of the encoding, joined by '|'.
std::string pieces(const Tokenizer &tokenizer, std::string_view text,
                   bool addSpecial = false) {
  std::string result;
  for (int32_t id : encode(tokenizer, text, addSpecial))
    result += (result.empty() ? "" : "|") + *tokenizer.pieceOf(id);
  return result;
}

std::string errorOf(const json &patch) {
  return Tokenizer::fromJson(
             makeJson({{"a", "b"}, {"ab", "c"}, {"Ġ", "a"}}, patch), "test")
      .message();
}

json split(const json &pattern, const std::string &behavior,
           bool invert = false) {
  return {{"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", pattern},
               {"behavior", behavior},
               {"invert", invert}},
              {{"type", "ByteLevel"},
               {"add_prefix_space", false},
               {"use_regex", false}}}}}}};
}

TEST(TokenizerJson, MergesByRankThenLeftmost) {
  EXPECT_EQ(pieces(make({}), "abcabab"), "abc|ab|ab");
  // GPT-2's pattern keeps the space with the word.
  EXPECT_EQ(pieces(make({}), "ab abc"), "ab|Ġ|abc");
  EXPECT_EQ(pieces(make({}), "c a"), "c|Ġa");
  auto tokenizer = Tokenizer::fromJson(
      makeJson({{"a", "a"}, {"aa", "aa"}, {"aa", "a"}}), "test");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.message();
  EXPECT_EQ(pieces(*tokenizer, "aaaaaaa"), "aaaa|aaa");
}

TEST(TokenizerJson, ReadsMergesAsStringsAndOlderModels) {
  std::string text = makeJson();
  json document = json::parse(text);
  for (json &merge : document["model"]["merges"])
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  document["model"].erase("type");
  auto tokenizer = Tokenizer::fromJson(document.dump(), "test");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.message();
  EXPECT_EQ(pieces(*tokenizer, "abc"), "abc");
}

TEST(TokenizerJson, IgnoresMergesForWholeWords) {
  json patch = {
      {"model", {{"ignore_merges", true}, {"merges", json::array()}}}};
  EXPECT_EQ(pieces(make(patch), "abc"), "abc");
  EXPECT_EQ(pieces(make(patch), "abcab"), "a|b|c|a|b");
}

TEST(TokenizerJson, SplitsByEveryBehavior) {
  json literal = {{"String", "b"}};
  // "ab" would merge, were "b" not split off.
  EXPECT_EQ(pieces(make(split(literal, "Isolated")), "abcab"), "a|b|c|a|b");
  EXPECT_EQ(pieces(make(split(literal, "Removed")), "abcab"), "a|c|a");
  EXPECT_EQ(pieces(make(split(literal, "MergedWithPrevious")), "abcab"),
            "ab|c|ab");
  EXPECT_EQ(pieces(make(split(literal, "MergedWithNext")), "abcab"),
            "a|b|c|a|b");
  json spaces = {{"Regex", " "}};
  EXPECT_EQ(pieces(make(split(spaces, "MergedWithNext")), "ab a  a"),
            "ab|Ġa|Ġ|Ġa");
  EXPECT_EQ(pieces(make(split({{"Regex", "[ab]"}}, "Contiguous")), "abcab"),
            "ab|c|ab");
  EXPECT_EQ(
      pieces(make(split({{"Regex", "[ab]+"}}, "Removed", true)), "abc ab"),
      "ab|ab");
}

TEST(TokenizerJson, AddsPrefixSpaces) {
  json patch = {{"pre_tokenizer", {{"add_prefix_space", true}}}};
  EXPECT_EQ(pieces(make(patch), "a a"), "Ġa|Ġa");
  EXPECT_EQ(pieces(make(patch), " a"), "Ġa");
}

TEST(TokenizerJson, FindsAddedTokens) {
  auto token = [](const std::string &content, int32_t id, json extra = {}) {
    json result = {{"content", content}, {"id", id}};
    result.update(extra.is_null() ? json::object() : extra);
    return result;
  };
  Tokenizer t =
      make({{"added_tokens",
             {token("<x>", 300), token("<x>y", 301, {{"special", true}}),
              token("<l>", 310, {{"lstrip", true}}),
              token("<r>", 311, {{"rstrip", true}}),
              token("<n>", 312, {{"normalized", true}}), token("abc", 257)}}});
  EXPECT_EQ(pieces(t, "a<x>a<x>y<x"), "a|<x>|a|<x>y|<|x");
  EXPECT_EQ(pieces(t, "a \u2003<l> a"), "a|<l>|Ġa");
  EXPECT_EQ(pieces(t, "a <r>\n a"), "a|Ġ|<r>|a");
  EXPECT_EQ(pieces(t, "a<r> <l>a"), "a|<r>|<l>|a");
  EXPECT_EQ(pieces(t, "a<n>a"), "a|<n>|a");
  EXPECT_EQ(pieces(t, "xabcx"), "x|abc|x");
  EXPECT_TRUE(t.isSpecial(301));
  EXPECT_FALSE(t.isSpecial(300));
  EXPECT_EQ(t.vocabSize(), 313);
  EXPECT_EQ(t.bytesOf(305), "");
}

TEST(TokenizerJson, PutsTemplatesAround) {
  json patch = {
      {"added_tokens",
       {{{"content", "<s>"}, {"id", 300}}, {{"content", "</s>"}, {"id", 301}}}},
      {"post_processor",
       {{"type", "Sequence"},
        {"processors",
         {{{"type", "ByteLevel"}},
          {{"type", "TemplateProcessing"},
           {"single",
            {{{"SpecialToken", {{"id", "<s>"}}}},
             {{"Sequence", {{"id", "A"}}}},
             {{"SpecialToken", {{"id", "</s>"}}}}}},
           {"special_tokens",
            {{"<s>", {{"ids", {300}}}}, {"</s>", {{"ids", {301}}}}}}}}}}}};
  EXPECT_EQ(pieces(make(patch), "ab", true), "<s>|ab|</s>");
  EXPECT_EQ(pieces(make(patch), "ab", false), "ab");
  patch["post_processor"]["processors"][1]["special_tokens"].erase("<s>");
  EXPECT_NE(errorOf(patch).find("no ids of special token '<s>'"),
            std::string::npos);
}

TEST(TokenizerJson, NormalizesToNfc) {
  json patch = {{"normalizer", {{"type", "NFC"}}}};
  EXPECT_EQ(make(patch).decode(encode(make(patch), "e\u0301\xff")), "é\xff");
  EXPECT_EQ(make({}).decode(encode(make({}), "e\u0301\xff")), "e\u0301\xff");
}

TEST(TokenizerJson, NamesWhatItDoesNotSupport) {
  auto expect = [](const json &patch, const std::string &message) {
    EXPECT_EQ(errorOf(patch), "test: " + message);
  };
  expect({{"model", {{"type", "Unigram"}}}},
         "model: type 'Unigram' is not supported");
  expect({{"model", {{"dropout", 0.1}}}}, "model: dropout is not supported");
  expect({{"model", {{"end_of_word_suffix", "</w>"}}}},
         "model: end_of_word_suffix is not supported");
  expect({{"model", {{"ignore_merges", 1}}}},
         "model: 'ignore_merges' is not true or false");
  expect({{"normalizer", {{"type", "Lowercase"}}}},
         "normalizer: type 'Lowercase' is not supported");
  expect({{"normalizer",
           {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}}}},
         "normalizer: type 'NFKC' is not supported");
  expect({{"normalizer", 1}}, "normalizer: not an object with a 'type'");
  expect({{"pre_tokenizer", {{"type", "UnicodeScripts"}}}},
         "pre_tokenizer: type 'UnicodeScripts' is not supported");
  expect({{"pre_tokenizer", {{"type", "Metaspace"}}}},
         "pre_tokenizer: Metaspace: no text 'replacement'");
  expect({{"pre_tokenizer", nullptr}},
         "decoder: ByteLevel without its pre-tokenizer is not supported");
  expect({{"decoder", {{"type", "ByteFallback"}}}},
         "decoder: a ByteLevel pre-tokenizer without its decoder is not "
         "supported");
  expect({{"decoder", nullptr}},
         "decoder: a tokenizer without one is not supported");
  expect(split({{"String", "a"}}, "Sideways"),
         "pre_tokenizer: Split: behavior 'Sideways' is not supported");
  expect(split({{"String", ""}}, "Isolated"),
         "pre_tokenizer: Split: 'pattern' is neither {Regex} nor {String}");
  expect(split({{"Regex", "(?<n>a)"}}, "Isolated"),
         "pre_tokenizer: Split: regular expression '(?<n>a)': group '(?<n' at "
         "byte "
         "0 is not supported");
  expect({{"post_processor", {{"type", "BertProcessing"}}}},
         "post_processor: type 'BertProcessing' is not supported");
  expect({{"decoder", {{"type", "WordPiece"}}}},
         "decoder: type 'WordPiece' is not supported");
}

TEST(TokenizerJson, RejectsContradictions) {
  auto expect = [](const json &patch, const std::string &message) {
    EXPECT_EQ(errorOf(patch), "test: " + message);
  };
  expect({{"added_tokens", {{{"content", "<x>"}, {"id", 256}}}}},
         "tokens 'ab' and '<x>' share id 256");
  expect({{"added_tokens", {{{"content", "abc"}, {"id", 999}}}}},
         "added token 'abc' has id 999, but the model's vocabulary gives it "
         "257");
  expect({{"added_tokens",
           {{{"content", "<x>"}, {"id", 300}},
            {{"content", "<x>"}, {"id", 301}}}}},
         "token '<x>' appears twice");
  expect({{"added_tokens", {{{"content", ""}, {"id", 300}}}}},
         "added_tokens: a token with empty 'content'");
  expect({{"added_tokens", {{{"content", "x"}, {"id", -1}}}}},
         "added_tokens: a token id is not a number from 0 to 2147483647");
  expect({{"added_tokens", {{"id", 1}}}}, "added_tokens: not an array");
  expect({{"model", {{"vocab", {{"zz", 33}}}}}},
         "tokens '!' and 'zz' share id 33");
  expect({{"model", {{"vocab", {{"~", nullptr}}}, {"unk_token", "<unk>"}}}},
         "model: unk_token '<unk>' is not in the vocabulary");
  expect({{"model", {{"merges", json::array({json::array({"a", "z"})})}}}},
         "model: merge 0 of 'a' and 'z' needs a token that the vocabulary "
         "lacks");
  expect({{"model", {{"merges", {"a b c"}}}}},
         "merge 'a b c' is not two pieces and a space");
  expect({{"model", {{"merges", {{"a"}}}}}}, "a merge is not a pair");
  expect({{"model", {{"merges", {{"a", "b", "c"}}}}}}, "a merge is not a pair");
  expect({{"model", {{"merges", {1}}}}},
         "model.merges is not an array of pairs");
  expect({{"model", {{"vocab", {{"zz", "x"}}}}}},
         "model.vocab is not an object of token ids");
  expect({{"model", {{"vocab", {{"zz", 4000000000u}}}}}},
         "token 'zz' has id 4000000000, past 2147483647");
}

TEST(TokenizerJson, SurvivesDamage) {
  EXPECT_EQ(Tokenizer::fromJson("", "test").message(),
            "test: not valid JSON at byte 1");
  EXPECT_EQ(Tokenizer::fromJson("[]", "test").message(),
            "test: not a JSON object");
  EXPECT_EQ(Tokenizer::fromJson("{}", "test").message(),
            "test: model: there is none");
  std::string whole = makeJson();
  for (size_t size = 0; size < whole.size(); size += 7)
    EXPECT_FALSE(Tokenizer::fromJson(whole.substr(0, size), "test").ok());
}

} // namespace
