//===- LogProbFieldsTest.cpp - Log-probabilities in answers ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/LogProbFields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>

using namespace kf;
using Json = nlohmann::json;

namespace {

/// Of "a", " b" and the bytes c3 and a9, which are a character together.
Tokenizer makeTokenizer() {
  Result<Tokenizer> tokenizer = Tokenizer::fromJson(
      R"({"model": {"type": "BPE", "merges": [["Ġ", "b"]], "vocab":
            {"a": 0, "Ġb": 1, "Ã": 2, "©": 3, "Ġ": 4, "b": 5}},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "decoder": {"type": "ByteLevel"}, "added_tokens": []})",
      "test");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.message();
  return tokenizer.take();
}

const std::vector<TextLogProbs> kLogProbs = {
    {{{0, -0.5F}, {{0, -0.5F}, {1, -1}}}, 0},
    {{{2, -2}, {{1, -0.25F}, {3, -std::numeric_limits<float>::infinity()}}}, 1},
    {{{3, -4}, {}}, 1}};

TEST(LogProbFields, Chats) {
  const Tokenizer tokenizer = makeTokenizer();
  EXPECT_EQ(Json::parse(chatLogProbs(kLogProbs, tokenizer)), Json::parse(R"(
    {"content": [
      {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [
        {"token": "a", "logprob": -0.5, "bytes": [97]},
        {"token": " b", "logprob": -1.0, "bytes": [32, 98]}]},
      {"token": "\\xc3", "logprob": -2.0, "bytes": [195], "top_logprobs": [
        {"token": " b", "logprob": -0.25, "bytes": [32, 98]},
        {"token": "\\xa9", "logprob": -9999.0, "bytes": [169]}]},
      {"token": "\\xa9", "logprob": -4.0, "bytes": [169], "top_logprobs": []}],
     "refusal": null})"));
  EXPECT_EQ(Json::parse(chatLogProbs({}, tokenizer))["content"], Json::array());
}

TEST(LogProbFields, Completions) {
  const Tokenizer tokenizer = makeTokenizer();
  EXPECT_EQ(Json::parse(completionLogProbs(kLogProbs, tokenizer)),
            Json::parse(R"(
    {"tokens": ["a", "bytes:\\xc3", "bytes:\\xa9"],
     "token_logprobs": [-0.5, -2.0, -4.0],
     "top_logprobs": [{"a": -0.5, " b": -1.0},
                      {" b": -0.25, "bytes:\\xa9": -9999.0,
                       "bytes:\\xc3": -2.0},
                      {"bytes:\\xa9": -4.0}],
     "text_offset": [0, 1, 1]})"));
  // Tokens that are none are written alike: the likeliest is there.
  const std::string text = completionLogProbs(
      std::vector<TextLogProbs>{{{{7, -3}, {{8, -1}, {9, -2}}}, 0}}, tokenizer);
  EXPECT_NE(text.find(R"("top_logprobs":[{"":-1.0}])"), std::string::npos)
      << text;
}

TEST(LogProbFields, LlamaCpp) {
  const Tokenizer tokenizer = makeTokenizer();
  const Json list = Json::parse(llamaLogProbs(kLogProbs, tokenizer));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0], Json::parse(R"({"id": 0, "token": "a", "logprob": -0.5,
    "bytes": [97], "top_logprobs": [
      {"id": 0, "token": "a", "logprob": -0.5, "bytes": [97]},
      {"id": 1, "token": " b", "logprob": -1.0, "bytes": [32, 98]}]})"));
}

} // namespace
