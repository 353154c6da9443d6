//===- PoolingConfigTest.cpp - How a model's embeddings are made ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/PoolingConfig.h"

#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

/// A module of sentence-transformers.
std::string module(const std::string &kind, const std::string &path) {
  return R"({"idx": 0, "name": "0", "path": ")" + path +
         R"(", "type": "sentence_transformers.models.)" + kind + R"("})";
}

/// What a folder with these files says.
PoolingConfig read(const std::string &modules, const std::string &pooling) {
  TempFolder folder;
  folder.write("modules.json", modules);
  std::filesystem::create_directory(folder.path() + "/1_Pooling");
  folder.write("1_Pooling/config.json", pooling);
  return loadPoolingConfig(folder.path());
}

const std::string kTransformer = module("Transformer", "");
const std::string kPooling = module("Pooling", "1_Pooling");
const std::string kNormalize = module("Normalize", "2_Normalize");
const std::string kWithPooling = "[" + kTransformer + "," + kPooling + "]";
constexpr const char *kLast = R"({"word_embedding_dimension": 8,
    "pooling_mode_cls_token": false, "pooling_mode_lasttoken": true})";
constexpr const char *kAdvice =
    "; --pooling mean, cls or last takes rows of the last layer instead";

TEST(PoolingConfig, Names) {
  for (Pooling pooling :
       {Pooling::None, Pooling::Mean, Pooling::Cls, Pooling::Last})
    EXPECT_EQ(poolingOfName(nameOf(pooling)), pooling);
  EXPECT_EQ(nameOf(Pooling::Cls), "cls");
  EXPECT_EQ(poolingOfName("rank"), std::nullopt);
  EXPECT_EQ(poolingOfName(""), std::nullopt);
}

TEST(PoolingConfig, ReadsSentenceTransformers) {
  for (const auto &[field, pooling] :
       {std::pair("pooling_mode_mean_tokens", Pooling::Mean),
        std::pair("pooling_mode_cls_token", Pooling::Cls),
        std::pair("pooling_mode_lasttoken", Pooling::Last)}) {
    const PoolingConfig config =
        read(kWithPooling, std::string("{\"") + field + R"(": true,
             "pooling_mode_max_tokens": false, "include_prompt": true})");
    EXPECT_EQ(config.unsupported.message(), "");
    EXPECT_EQ(config.pooling, pooling);
    EXPECT_EQ(config.normalizes, false);
  }
  const PoolingConfig config =
      read("[" + kTransformer + "," + kPooling + "," +
               module("Dropout", "3_Dropout") + "," + kNormalize + "]",
           R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(config.unsupported.message(), "");
  EXPECT_EQ(config.pooling, Pooling::Last);
  EXPECT_EQ(config.normalizes, true);
}

TEST(PoolingConfig, MayBeUnsaid) {
  TempFolder folder;
  const PoolingConfig config = loadPoolingConfig(folder.path());
  EXPECT_TRUE(config.unsupported.ok());
  EXPECT_EQ(config.pooling, std::nullopt);
  EXPECT_EQ(config.normalizes, std::nullopt);
}

TEST(PoolingConfig, NamesWhatThereIsNoCodeFor) {
  auto expect = [](const PoolingConfig &config, const std::string &message) {
    EXPECT_EQ(config.unsupported.message(), message + kAdvice);
    EXPECT_EQ(config.unsupported.code(), StatusCode::Unsupported);
    EXPECT_EQ(config.pooling, std::nullopt);
    EXPECT_EQ(config.normalizes, std::nullopt);
  };
  const std::string file = "'1_Pooling/config.json': ";
  expect(read(kWithPooling, R"({"pooling_mode_max_tokens": true})"),
         file + "'pooling_mode_max_tokens' is not supported");
  expect(read(kWithPooling, R"({"pooling_mode": "weightedmean"})"),
         file + "'pooling_mode_weightedmean_tokens' is not supported");
  expect(read(kWithPooling, R"({"pooling_mode": "odd"})"),
         file + "'pooling_mode' is 'odd', which is not supported");
  expect(read(kWithPooling, R"({"pooling_mode_mean_tokens": true,
              "pooling_mode_cls_token": true})"),
         file + "it asks for 'pooling_mode_cls_token' and "
                "'pooling_mode_mean_tokens' at once, which are not joined "
                "here");
  expect(read(kWithPooling, "{}"),
         file + "it asks for no pooling that is known");
  expect(read("[" + kTransformer + "," + kPooling + "," +
                  module("Dense", "2_Dense") + "]",
              kLast),
         "'modules.json': it has a module 'Dense', which is not supported");
  expect(read("[" + kTransformer + "]", kLast),
         "'modules.json': it has no Pooling module");
}

TEST(PoolingConfig, NamesWhatIsWrong) {
  auto message = [](const std::string &modules, const std::string &pooling) {
    const PoolingConfig config = read(modules, pooling);
    EXPECT_EQ(config.pooling, std::nullopt);
    EXPECT_EQ(config.normalizes, std::nullopt);
    return config.unsupported.message();
  };
  EXPECT_EQ(message("{}", kLast),
            "'modules.json' holds no JSON array of at most 16 modules");
  std::string many = kTransformer;
  for (int i = 0; i < 16; ++i)
    many += "," + kTransformer;
  EXPECT_EQ(message("[" + many + "]", kLast),
            "'modules.json' holds no JSON array of at most 16 modules");
  EXPECT_EQ(message("[3]", kLast),
            "'modules.json' has a module that is no object");
  EXPECT_EQ(message(R"([{"path": ""}])", kLast),
            "'modules.json': 'type' is missing");
  EXPECT_TRUE(message("[", kLast).starts_with("'modules.json': "));
  EXPECT_EQ(message(std::string(70000, ' '), kLast),
            "'modules.json' has 70000 bytes; at most 65536 are read");
  // No file elsewhere is read.
  for (const char *path : {"", ".", "..", "../other", "/etc", "a/b", "a\\\\b"})
    EXPECT_TRUE(
        message("[" + kTransformer + "," + module("Pooling", path) + "]", kLast)
            .ends_with("which is no folder inside the model's"))
        << path;
  EXPECT_EQ(
      message("[" + kTransformer + "," + module("Pooling", "2") + "]", kLast),
      "'2/config.json' cannot be opened");
  EXPECT_EQ(message(kWithPooling, "3"),
            "'1_Pooling/config.json' holds no JSON object");
  EXPECT_EQ(message(kWithPooling, R"({"pooling_mode_lasttoken": 1})"),
            "'1_Pooling/config.json': 'pooling_mode_lasttoken' is 1, but true "
            "or false is expected");
  EXPECT_EQ(message(kWithPooling, R"({"pooling_mode": []})"),
            "'1_Pooling/config.json': 'pooling_mode' is [], but a string is "
            "expected");
}

TEST(PoolingConfig, ReadsGguf) {
  auto read = [](GgufBuilder builder) {
    TempFolder folder;
    const std::string path =
        folder.write("m.gguf", builder.tensor("x", {2}).bytes());
    return readPoolingConfig(**Gguf::open(path));
  };
  auto of = [&](uint32_t type) {
    return read(GgufBuilder()
                    .text("general.architecture", "qwen3")
                    .u32("qwen3.pooling_type", type));
  };
  EXPECT_EQ(read({}).pooling, std::nullopt);
  EXPECT_EQ(read({}).unsupported.message(), "");
  EXPECT_EQ(of(0).pooling, std::nullopt);
  EXPECT_EQ(of(0).unsupported.message(), "");
  EXPECT_EQ(of(1).pooling, Pooling::Mean);
  EXPECT_EQ(of(2).pooling, Pooling::Cls);
  EXPECT_EQ(of(3).pooling, Pooling::Last);
  EXPECT_EQ(of(3).normalizes, std::nullopt);
  EXPECT_EQ(of(4).pooling, std::nullopt);
  EXPECT_EQ(of(4).unsupported.message(),
            std::string("metadata 'qwen3.pooling_type' is 4, rank: scores of "
                        "pairs of texts are not supported") +
                kAdvice);
  EXPECT_EQ(of(5).unsupported.message(),
            std::string("metadata 'qwen3.pooling_type' is 5, which is not "
                        "known") +
                kAdvice);
  EXPECT_NE(read(GgufBuilder()
                     .text("general.architecture", "qwen3")
                     .text("qwen3.pooling_type", "mean"))
                .unsupported.message()
                .find("'qwen3.pooling_type'"),
            std::string::npos);
}

} // namespace
