//===- ChatConfigTest.cpp - Where chat templates are found ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ChatConfig.h"

#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

TEST(ChatConfig, ReadsTokenizerConfigs) {
  Result<ChatConfig> config = parseChatConfig(
      R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
          "chat_template": "{{ x }}"})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->chatTemplate, "{{ x }}");
  EXPECT_EQ(config->templateOrigin, "chat_template");
  EXPECT_EQ(config->bosToken, "<s>");
  EXPECT_EQ(config->eosToken, "</s>");

  config = parseChatConfig(R"({"bos_token": null, "chat_template": [
      {"name": "rag", "template": "a"}, {"name": "default", "template": "b"}]})");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->chatTemplate, "b");
  EXPECT_EQ(config->bosToken, "");
}

TEST(ChatConfig, NamesWhatIsWrong) {
  EXPECT_EQ(parseChatConfig("[]").message(), "a JSON object is expected");
  EXPECT_EQ(parseChatConfig(R"({"bos_token": 3})").message(),
            "'bos_token' is 3, but a string or an object with \"content\" is "
            "expected");
  EXPECT_EQ(parseChatConfig(R"({"eos_token": {"content": 3}})").message(),
            "'eos_token' is {\"content\":3}, but a string or an object with "
            "\"content\" is expected");
  for (const char *text : {"3", "[3]", R"([{"name": 1, "template": "x"}])",
                           R"([{"name": "default"}])"})
    EXPECT_NE(parseChatConfig(R"({"chat_template": )" + std::string(text) + "}")
                  .message()
                  .find("but a string or a list of {\"name\", \"template\"}"),
              std::string::npos)
        << text;
}

TEST(ChatConfig, TheTemplatesOwnFileGoesFirst) {
  TempFolder folder;
  EXPECT_EQ(loadChatConfig(folder.path())->chatTemplate, "");
  EXPECT_EQ(loadChatConfig(folder.path())->templateOrigin, "");
  const std::string config = folder.write(
      "tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "a"})");
  EXPECT_EQ(loadChatConfig(folder.path())->chatTemplate, "a");
  EXPECT_EQ(loadChatConfig(folder.path())->templateOrigin,
            config + ", 'chat_template'");
  folder.write("chat_template.jinja", "b");
  Result<ChatConfig> both = loadChatConfig(folder.path());
  ASSERT_TRUE(both.ok()) << both.message();
  EXPECT_EQ(both->chatTemplate, "b");
  EXPECT_EQ(both->templateOrigin, folder.path("chat_template.jinja"));
  EXPECT_EQ(both->bosToken, "<s>");
  folder.write("special_tokens_map.json",
               R"({"bos_token": "other", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(loadChatConfig(folder.path())->bosToken, "<s>");
  EXPECT_EQ(loadChatConfig(folder.path())->eosToken, "</s>");
  folder.write("tokenizer_config.json", "{");
  EXPECT_TRUE(
      loadChatConfig(folder.path()).message().starts_with(config + ": "))
      << loadChatConfig(folder.path()).message();
}

TEST(ChatConfig, KfStoriesSaysTheSameInBothForms) {
  Result<ChatConfig> folder =
      loadChatConfig(KF_SOURCE_DIR "/models/kf-stories");
  ASSERT_TRUE(folder.ok()) << folder.message();
  EXPECT_TRUE(folder->chatTemplate.starts_with("{{ bos_token }}"));
  auto gguf =
      Gguf::open(KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q8_0.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  Result<ChatConfig> file = readChatConfig(**gguf);
  ASSERT_TRUE(file.ok()) << file.message();
  EXPECT_EQ(file->chatTemplate, folder->chatTemplate);
  EXPECT_EQ(file->templateOrigin,
            (*gguf)->source() + ", metadata 'tokenizer.chat_template'");
  EXPECT_EQ(file->bosToken, "<|begin_of_text|>");
  EXPECT_EQ(file->eosToken, "<|end_of_text|>");
  EXPECT_EQ(folder->bosToken, file->bosToken);
  EXPECT_EQ(folder->eosToken, file->eosToken);
}

TEST(ChatConfig, GgufTokensOutsideTheVocabulary) {
  std::string bytes = GgufBuilder()
                          .strings("tokenizer.ggml.tokens", {"a", "b"})
                          .u32("tokenizer.ggml.bos_token_id", 2)
                          .bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  EXPECT_EQ(readChatConfig(**gguf).message(),
            "test: metadata 'tokenizer.ggml.bos_token_id' is 2, but the "
            "vocabulary has 2 tokens");
  bytes = GgufBuilder().text("general.name", "x").bytes();
  gguf = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
  EXPECT_EQ(readChatConfig(**gguf)->bosToken, "");
}

} // namespace
