//===- SamplingDefaultsTest.cpp - What models recommend -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/SamplingDefaults.h"

#include "runtime/model/GgufConfig.h"
#include "test/runtime/GgufBuilder.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

constexpr const char *kConfig =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 172,
        "vocab_size": 307})";

ModelConfig parse(const std::string &generation) {
  auto config = parseModelConfig(kConfig, generation);
  EXPECT_TRUE(config.ok()) << config.message();
  return config.ok() ? config.take() : ModelConfig();
}

/// What a file without anything amiss says.
SamplingDefaults sound(const std::string &generation) {
  ModelConfig config = parse(generation);
  EXPECT_TRUE(config.warnings.empty()) << config.warnings.front();
  return config.sampling;
}

/// The only warning of a file whose value is then left out.
std::string warning(const std::string &generation) {
  ModelConfig config = parse(generation);
  EXPECT_EQ(config.sampling, SamplingDefaults()) << generation;
  EXPECT_EQ(config.warnings.size(), 1u) << generation;
  return config.warnings.empty() ? "" : config.warnings.front();
}

ModelConfig read(const GgufBuilder &builder) {
  const std::string image = builder.bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
  EXPECT_TRUE(gguf.ok()) << gguf.message();
  if (!gguf.ok())
    return {};
  ModelConfig config;
  config.sampling = readSamplingDefaults(**gguf, config.warnings);
  return config;
}

TEST(SamplingDefaults, OfAFolder) {
  SamplingDefaults all = sound(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.9,
          "min_p": 0.05, "repetition_penalty": 1.05, "max_length": 4096,
          "max_new_tokens": 300})");
  EXPECT_EQ(all.temperature, 0.6);
  EXPECT_EQ(all.topK, 20);
  EXPECT_EQ(all.topP, 0.9);
  EXPECT_EQ(all.minP, 0.05);
  EXPECT_EQ(all.repetitionPenalty, 1.05);
  EXPECT_FALSE(all.penaltyWindow);
  EXPECT_EQ(all.maxNewTokens, 300);
  EXPECT_EQ(sound("{}"), SamplingDefaults());
  EXPECT_EQ(sound(R"({"temperature": null})"), SamplingDefaults());
  // None is left out.
  EXPECT_EQ(sound(R"({"top_k": -1})").topK, 0);
  EXPECT_EQ(sound(R"({"temperature": 0})").temperature, 0);
}

TEST(SamplingDefaults, WhetherToDraw) {
  EXPECT_EQ(sound(R"({"do_sample": true})").temperature, 1);
  EXPECT_EQ(sound(R"({"top_p": 0.9})").temperature, 1);
  EXPECT_EQ(sound(R"({"temperature": 0.5})").temperature, 0.5);
  EXPECT_FALSE(sound(R"({"repetition_penalty": 1.1})").temperature);
  SamplingDefaults greedy =
      sound(R"({"do_sample": false, "temperature": 0.5, "top_p": 0.9})");
  EXPECT_FALSE(greedy.temperature);
  EXPECT_EQ(greedy.topP, 0.9);
}

TEST(SamplingDefaults, NamesValuesOfNoUse) {
  EXPECT_EQ(warning(R"({"temperature": -1})"),
            "generation_config.json: 'temperature' is -1, but a number from 0 "
            "to 1e+06 is expected; it is not used");
  EXPECT_EQ(warning(R"({"temperature": "hot"})"),
            "generation_config.json: 'temperature' is \"hot\", but a number "
            "from 0 to 1e+06 is expected; it is not used");
  EXPECT_EQ(warning(R"({"top_p": 0})"),
            "generation_config.json: 'top_p' is 0, but a number above 0 and "
            "at most 1 is expected; it is not used");
  EXPECT_EQ(warning(R"({"top_k": 1e300})"),
            "generation_config.json: 'top_k' is 1e+300, but an integer from "
            "-1 to 16777216 is expected; it is not used");
  EXPECT_EQ(warning(R"({"do_sample": 1})"),
            "generation_config.json: 'do_sample' is 1, but true or false is "
            "expected; it is not used");
  for (const char *text :
       {R"({"temperature": [1]})", R"({"temperature": 1e7})",
        R"({"top_k": 2.5})", R"({"top_k": -2})", R"({"top_k": true})",
        R"({"top_k": 18446744073709551615})", R"({"top_p": 1.5})",
        R"({"min_p": -0.1})", R"({"min_p": 1.1})",
        R"({"repetition_penalty": 0})", R"({"repetition_penalty": {}})",
        R"({"max_new_tokens": 0})", R"({"max_new_tokens": 1.5})"})
    EXPECT_NE(warning(text).find("; it is not used"), std::string::npos);
}

TEST(SamplingDefaults, NamesWhatIsNotSupported) {
  EXPECT_EQ(warning(R"({"typical_p": 0.9})"),
            "generation_config.json: 'typical_p' is 0.9, which is not "
            "supported; it is not used");
  EXPECT_EQ(warning(R"({"suppress_tokens": [7, 12]})"),
            "generation_config.json: 'suppress_tokens' is [7,12], which is not "
            "supported; it is not used; --logit-bias ID-inf leaves "
            "out a token");
  for (const char *text :
       {R"({"no_repeat_ngram_size": 3})", R"({"num_beams": 4})",
        R"({"mirostat": 2})", R"({"xtc_probability": 0.5})",
        R"({"bad_words_ids": [[1]]})", R"({"forced_eos_token_id": 2})",
        R"({"watermarking_config": {"bias": 2.5}})", R"({"num_beams": "4"})"})
    EXPECT_NE(warning(text).find(", which is not supported; it is not used"),
              std::string::npos);
  // What asks for nothing is fine.
  EXPECT_EQ(sound(
                R"({"typical_p": 1.0, "num_beams": 1, "no_repeat_ngram_size": 0,
              "epsilon_cutoff": 0.0, "diversity_penalty": 0.0,
              "xtc_probability": 0, "xtc_threshold": 0.1, "mirostat": 0,
              "mirostat_tau": 5.0, "suppress_tokens": [], "min_length": 0,
              "begin_suppress_tokens": null, "guidance_scale": null,
              "length_penalty": 1.0, "use_cache": true})"),
            SamplingDefaults());
}

TEST(SamplingDefaults, OfAGgufFile) {
  ModelConfig all =
      read(GgufBuilder()
               .f32("general.sampling.temp", 0.5)
               .entry("general.sampling.top_k", GgufValueType::I32, raw(20))
               .f32("general.sampling.top_p", 0.75)
               .f32("general.sampling.min_p", 0.25)
               .f32("general.sampling.penalty_repeat", 1.5)
               .entry("general.sampling.penalty_last_n", GgufValueType::I32,
                      raw(64)));
  EXPECT_TRUE(all.warnings.empty());
  EXPECT_EQ(all.sampling, (SamplingDefaults{0.5, 20, 0.75, 0.25, 1.5, 64}));
  EXPECT_EQ(read(GgufBuilder()).sampling, SamplingDefaults());
  EXPECT_EQ(read(GgufBuilder().f32("general.sampling.top_p", 0.5))
                .sampling.temperature,
            1);

  ModelConfig wrong = read(GgufBuilder()
                               .text("general.sampling.temp", "0.5")
                               .f32("general.sampling.top_p", NAN)
                               .entry("general.sampling.penalty_last_n",
                                      GgufValueType::I32, raw(-2)));
  EXPECT_EQ(wrong.sampling, SamplingDefaults());
  EXPECT_EQ(
      wrong.warnings,
      (std::vector<std::string>{
          "metadata 'general.sampling.temp' is of the type string, but a "
          "number from 0 to 1e+06 is expected; it is not used",
          "metadata 'general.sampling.top_p' is nan, but a number above 0 and "
          "at most 1 is expected; it is not used",
          "metadata 'general.sampling.penalty_last_n' is -2, but an integer "
          "from -1 to 16777216 is expected; it is not used"}));
}

TEST(SamplingDefaults, NamesWhatIsNotSupportedOfAGgufFile) {
  EXPECT_EQ(
      read(GgufBuilder()
               .f32("general.sampling.xtc_probability", 0.5)
               .f32("general.sampling.xtc_threshold", 0.1)
               .entry("general.sampling.mirostat", GgufValueType::I32, raw(2))
               .f32("general.sampling.mirostat_tau", 5)
               .text("general.sampling.sequence", "top_p;top_k")
               .f32("general.sampling.other", 0.25))
          .warnings,
      (std::vector<std::string>{
          "metadata 'general.sampling.xtc_probability' is 0.5, which is not "
          "supported; it is not used",
          "metadata 'general.sampling.mirostat' is 2, which is not supported; "
          "it is not used",
          "metadata 'general.sampling.sequence' is 'top_p;top_k', which is not "
          "supported; it is not used",
          "metadata 'general.sampling.other' is 0.25, which is not supported; "
          "it is not used"}));
  EXPECT_TRUE(
      read(GgufBuilder()
               .f32("general.sampling.xtc_probability", 0)
               .f32("general.sampling.mirostat_eta", 0.1)
               .entry("general.sampling.mirostat", GgufValueType::I32, raw(0)))
          .warnings.empty());
}

} // namespace
