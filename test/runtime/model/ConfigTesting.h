//===- ConfigTesting.h - Configurations for tests ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_MODEL_CONFIGTESTING_H
#define KF_TEST_RUNTIME_MODEL_CONFIGTESTING_H

#include "runtime/model/ModelConfig.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace kf::test {

using nlohmann::json;

inline Result<ModelConfig> golden(const std::string &name) {
  return loadModelConfig(KF_SOURCE_DIR "/test/golden/" + name);
}

inline json smallLlama() {
  return {{"model_type", "llama"},    {"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},        {"num_hidden_layers", 4},
          {"num_attention_heads", 4}, {"intermediate_size", 172},
          {"vocab_size", 307}};
}

/// `config` with its fields replaced by those of `changes`.
inline json with(json config, const json &changes) {
  config.update(changes);
  return config;
}

inline Result<ModelConfig> parse(const json &config) {
  return parseModelConfig(config.dump());
}

/// The error of the small LLaMA with `changes`.
inline std::string errorOf(const json &changes) {
  Result<ModelConfig> result = parse(with(smallLlama(), changes));
  EXPECT_FALSE(result.ok()) << changes;
  EXPECT_EQ(result.message().find('\n'), std::string::npos);
  return result.message();
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "in: " << text;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_MODEL_CONFIGTESTING_H
