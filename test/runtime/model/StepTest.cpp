//===- StepTest.cpp - Names, shapes and sizes of steps --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Step.h"

#include "gtest/gtest.h"

using namespace kf;

namespace {

ModelConfig modelOf(int64_t vocabulary) {
  ModelConfig config;
  config.vocabSize = vocabulary;
  config.maxPositions = 200;
  return config;
}

TEST(Step, Names) {
  EXPECT_EQ(nameOf(StepShape{}), "step_1");
  EXPECT_EQ(nameOf(StepShape{512, 16}), "step_512_16");
  EXPECT_EQ(nameOf(StepShape{512, 1, StepOutput::Logits}), "step_512_logits");
  EXPECT_EQ(nameOf(StepShape{16, 16, StepOutput::Logits}), "step_16_16_logits");
}

TEST(Step, EveryTokenOfOneRowCanBeAdjusted) {
  EXPECT_EQ(mostAdjustments(1000, 1), 1000);
  EXPECT_EQ(mostAdjustments(1000, 4), 4000);
  EXPECT_EQ(mostAdjustments(1000, 512), 65536);
  EXPECT_EQ(mostAdjustments(65536, 1), 65536);
  EXPECT_EQ(mostAdjustments(152064, 16), 152064);
  EXPECT_EQ(mostAdjustments(int64_t(1) << 31, int64_t(1) << 24), int64_t(1)
                                                                     << 31);
}

TEST(Step, ProgramsTellTheirShape) {
  const ModelConfig model = modelOf(50);
  for (const StepShape &shape : {StepShape{}, StepShape{8, 1}, StepShape{8, 4},
                                 StepShape{1, 1, StepOutput::Logits},
                                 StepShape{8, 8, StepOutput::Logits}}) {
    StepSignature signature = stepSignature(shape, model);
    Executable program;
    program.programName = "p";
    program.maxTokens = shape.tokens;
    program.inputs = signature.inputs;
    program.outputs = signature.outputs;
    program.namedSizes = signature.sizes;
    program.caches = {{DataType::F16, model.layers, model.kvHeads,
                       model.headDim, 1, kCachePage}};
    Result<StepShape> told = stepShapeOf(program);
    ASSERT_TRUE(told.ok()) << told.message();
    EXPECT_EQ(*told, shape);
    EXPECT_EQ(checkStep(program, *told, model).message(), "");
    program.inputs[0].type = DataType::F32;
    EXPECT_FALSE(checkStep(program, *told, model).ok());
  }
}

TEST(Step, OtherProgramsAreNoSteps) {
  Executable program;
  program.programName = "p";
  EXPECT_EQ(stepShapeOf(program).message(),
            "the program 'p' is no step of a model");
  program.inputs.resize(kStepInputCount);
  program.outputs.resize(1);
  EXPECT_FALSE(stepShapeOf(program).ok());
  program.outputs[0].shape = {0};
  EXPECT_FALSE(stepShapeOf(program).ok());
  program.outputs[0].shape = {1};
  EXPECT_TRUE(stepShapeOf(program).ok());
}

TEST(Step, OneTokenIsStatic) {
  const StepSignature step =
      stepSignature({1, 1, StepOutput::Logits}, modelOf(50));
  EXPECT_TRUE(step.sizes.empty());
  const TensorSpec one = {DataType::I32, {1}};
  EXPECT_EQ(step.inputs, (std::vector<TensorSpec>{
                             one, one, one, {DataType::I32, {1, 4}}, one}));
  EXPECT_EQ(step.outputs, (std::vector<TensorSpec>{{DataType::F32, {1, 50}}}));
}

TEST(Step, SizesHaveTheSlotsOfTheirOrder) {
  const StepSignature step = stepSignature({8, 4}, modelOf(50));
  EXPECT_EQ(step.sizes, (std::vector<SizeRange>{{"sequences", 1, 8},
                                                {"wanted", 0, 4},
                                                {"adjustments", 0, 200},
                                                {"masks", 0, 4}}));
  ASSERT_EQ(step.inputs.size(), size_t(kStepInputCount));
  const int64_t first = KF_SCALAR_NAMED_SIZES;
  EXPECT_EQ(step.inputs[kStepPositions].shape,
            std::vector{extentOfSlot(KF_SCALAR_N_TOKENS)});
  EXPECT_EQ(step.inputs[kStepPageTable].shape,
            (std::vector<int64_t>{extentOfSlot(first), 4}));
  EXPECT_EQ(step.inputs[kStepSeed],
            (TensorSpec{DataType::I64, {extentOfSlot(first + 1)}}));
  EXPECT_EQ(step.inputs[kStepBias],
            (TensorSpec{DataType::F32, {extentOfSlot(first + 2)}}));
  EXPECT_EQ(step.inputs[kStepMask],
            (TensorSpec{DataType::I32, {extentOfSlot(first + 3), 2}}));
  EXPECT_EQ(step.outputs, (std::vector<TensorSpec>{
                              {DataType::I32, {extentOfSlot(first + 1)}}}));
  // Where fewer sizes are dynamic, the others move up.
  const StepSignature prompt = stepSignature({8, 1}, modelOf(50));
  EXPECT_EQ(prompt.inputs[kStepBias].shape,
            std::vector{extentOfSlot(first + 1)});
}

TEST(Step, CountsGoToTheirSlots) {
  StepCounts counts;
  counts.tokens = 7;
  counts.sequences = 3;
  counts.wanted = 2;
  counts.adjustments = 5;
  counts.masks = 1;
  using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;
  EXPECT_EQ(stepScalars({8, 4}, counts), (Scalars{7, 0, 3, 2, 5, 1}));
  EXPECT_EQ(stepScalars({8, 1}, counts), (Scalars{7, 0, 3, 5, 1}));
  EXPECT_EQ(stepScalars({8, 4, StepOutput::Logits}, counts),
            (Scalars{7, 0, 3, 2}));
  EXPECT_EQ(stepScalars({}, counts), (Scalars{7, 0, 5, 1}));
}

} // namespace
