//===- RecommendationsTest.cpp - What models say of their use -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/ChatPrompts.h"
#include "runtime/session/SamplingChoice.h"
#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

TEST(SamplingChoice, TakesWhatTheUserLeavesOpen) {
  SamplingDefaults model;
  model.temperature = 0.6;
  model.topK = 0; // makes no difference
  model.topP = 0.9;
  PartialSamplerOptions said;
  said.topP = 0.5;
  ChosenSampling chosen = chooseSampling(said, model, ModelSampling::Always);
  EXPECT_EQ(chosen.options.temperature, 0.6);
  EXPECT_EQ(chosen.options.topP, 0.5);
  EXPECT_EQ(chosen.recommended.temperature, 0.6);
  EXPECT_FALSE(chosen.recommended.topK);
  EXPECT_FALSE(chosen.recommended.topP);

  chosen = chooseSampling({}, model, ModelSampling::WhenDrawing);
  EXPECT_EQ(chosen.options.temperature, 0);
  EXPECT_EQ(chosen.recommended, PartialSamplerOptions());
}

TEST(SamplingChoice, CountsPenaltiesThatPenalize) {
  SamplingDefaults model;
  model.penaltyWindow = 64;
  EXPECT_FALSE(chooseSampling({}, model, ModelSampling::Always)
                   .recommended.penaltyWindow);
  PartialSamplerOptions said;
  said.presencePenalty = 1;
  EXPECT_EQ(chooseSampling(said, model, ModelSampling::Always)
                .recommended.penaltyWindow,
            64);
}

TEST(ChatPrompts, NeedsATokenizerAndATemplate) {
  ModelFiles model;
  model.name = "a model";
  EXPECT_TRUE(failsWith(openPromptEncoder(model).status(), "has no tokenizer"));
  ASSERT_TRUE(succeeds(
      openTokenizer(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json", model)));
  EXPECT_TRUE(
      failsWith(openPromptEncoder(model).status(), "has no chat template"));
  EXPECT_TRUE(succeeds(
      openPromptEncoder(model, {.file = KF_SOURCE_DIR
                                "/models/kf-stories/chat_template.jinja"})
          .status()));
}

} // namespace
