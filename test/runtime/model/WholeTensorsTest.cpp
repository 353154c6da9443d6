//===- WholeTensorsTest.cpp - Where parts of a model have theirs from -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/WholeTensors.h"

#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

ModelConfig llama(bool isTied) {
  auto config = parseModelConfig(
      R"({"model_type": "llama", "hidden_size": 64, "rms_norm_eps": 1e-5,
          "intermediate_size": 96, "vocab_size": 77, "num_hidden_layers": 2,
          "max_position_embeddings": 64, "num_attention_heads": 4,
          "tie_word_embeddings": )" +
      std::string(isTied ? "true" : "false") + "}");
  EXPECT_TRUE(succeeds(config.status()));
  return *config;
}

TEST(WholeTensors, AreFoundByKey) {
  for (const bool isTied : {false, true}) {
    const ModelConfig config = llama(isTied);
    const WholeTensors whole(config, listTensors(config));
    for (const ListedTensor &tensor : whole.all()) {
      auto found = whole.find(tensor.key);
      ASSERT_TRUE(succeeds(found.status()));
      EXPECT_EQ(*found, &tensor);
    }
    // The table is the output matrix, too, where the two are tied.
    auto head = whole.find("lm_head.weight");
    ASSERT_TRUE(succeeds(head.status()));
    EXPECT_EQ((*head)->key, isTied ? "embed_tokens.weight" : "lm_head.weight");
  }
}

TEST(WholeTensors, NothingStandsInForAnother) {
  for (const bool isTied : {false, true}) {
    const ModelConfig config = llama(isTied);
    const WholeTensors whole(config, listTensors(config));
    EXPECT_EQ(whole.find("layers.2.mlp.up_proj.weight").status().message(),
              "a rank's part of the model has the tensor "
              "'layers.2.mlp.up_proj.weight', which the whole model has not");
  }
}

} // namespace
