//===- EmbeddingAnswerTest.cpp - The answer with embeddings ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/EmbeddingAnswer.h"

#include "test/runtime/engine/EngineFixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>

using namespace kf;
using namespace kf::test;
using nlohmann::json;

namespace {

/// The float whose bytes are these, the lowest first.
float ofBytes(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return std::bit_cast<float>(uint32_t(a) | uint32_t(b) << 8 |
                              uint32_t(c) << 16 | uint32_t(d) << 24);
}

TEST(EmbeddingAnswer, Base64) {
  const float manyBits = ofBytes('M', 'a', 'n', 'y'),
              light = ofBytes('l', 'i', 'g', 'h');
  EXPECT_EQ(base64Of({}), "");
  EXPECT_EQ(base64Of({{manyBits}}), "TWFueQ==");
  EXPECT_EQ(base64Of({{manyBits, light}}), "TWFueWxpZ2g=");
  EXPECT_EQ(base64Of({{manyBits, light, manyBits}}), "TWFueWxpZ2hNYW55");
  EXPECT_EQ(base64Of({{1.f}}), "AACAPw==");
  EXPECT_EQ(base64Of({{ofBytes(0xfb, 0xff, 0xfe, 0x3e)}}), "+//+Pg==");
}

/// Embeddings of a service, as a client gets them.
class EmbeddingAnswers : public testing::Test {
protected:
  EmbeddingAnswers() : fixture({.parallel = 2}) {
    service = Service::create(*fixture.engine, nullptr).take();
  }

  std::unique_ptr<EmbeddingAnswer>
  ask(const std::vector<std::vector<int32_t>> &texts, bool base64) {
    std::vector<std::unique_ptr<TextHandle>> handles;
    for (const std::vector<int32_t> &ids : texts) {
      TextRequest request;
      request.prompt = ids;
      request.embedding = {Pooling::Last, /*normalizes=*/false};
      handles.push_back(service->submit(std::move(request)).take());
    }
    return std::make_unique<EmbeddingAnswer>(
        std::move(handles),
        EmbeddingAnswer::Options{
            .model = "m", .base64 = base64, .onEnd = [this] { ++ends; }});
  }
  /// All pieces of an answer, which come at once.
  static HttpAnswer::Piece wholeOf(HttpAnswer &answer) {
    for (;;) {
      HttpAnswer::Piece piece = answer.take();
      EXPECT_EQ(piece.isLast, piece.head.has_value());
      EXPECT_EQ(piece.isLast, !piece.body.empty());
      if (piece.isLast) {
        EXPECT_FALSE(answer.take().isLast);
        return piece;
      }
    }
  }

  Fixture fixture;
  std::unique_ptr<Service> service; ///< goes first
  int ends = 0;
};

TEST_F(EmbeddingAnswers, AreInTheOrderOfTheTexts) {
  std::vector<std::vector<int32_t>> texts;
  for (size_t i = 0; i < 7; ++i)
    texts.push_back(tokens(60 - 8 * i, i));
  for (bool base64 : {false, true}) {
    const auto answer = ask(texts, base64);
    const HttpAnswer::Piece piece = wholeOf(*answer);
    EXPECT_EQ(piece.head->status, 200);
    const json body = json::parse(piece.body);
    EXPECT_EQ(body["object"], "list");
    EXPECT_EQ(body["model"], "m");
    ASSERT_EQ(body["data"].size(), texts.size());
    size_t count = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      const json &entry = body["data"][i];
      const auto row = fakeEmbedding(texts[i]);
      EXPECT_EQ(entry["index"], i);
      EXPECT_EQ(entry["object"], "embedding");
      EXPECT_EQ(entry.size(), 3u);
      if (base64)
        EXPECT_EQ(entry["embedding"], base64Of(row));
      else
        EXPECT_EQ(entry["embedding"].get<std::vector<float>>(),
                  std::vector<float>(row.begin(), row.end()));
      count += texts[i].size();
    }
    EXPECT_EQ(body["usage"],
              json({{"prompt_tokens", count}, {"total_tokens", count}}));
  }
  EXPECT_EQ(ends, 14);
}

TEST_F(EmbeddingAnswers, OneErrorIsTheAnswer) {
  fixture.device.behavior.poison = 9;
  const auto answer = ask({{1, 2}, {1, 9, 2}, {4, 5}}, false);
  const HttpAnswer::Piece piece = wholeOf(*answer);
  EXPECT_EQ(piece.head->status, 500);
  EXPECT_NE(json::parse(piece.body)["error"]["message"].get<std::string>().find(
                "not finite"),
            std::string::npos);
}

} // namespace
