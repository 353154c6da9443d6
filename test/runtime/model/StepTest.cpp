//===- StepTest.cpp - Names, shapes and sizes of steps --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Step.h"

#include "runtime/model/LayerCaches.h"

#include "gtest/gtest.h"

using namespace kf;

namespace {

ModelConfig modelOf(int64_t vocabulary) {
  ModelConfig config;
  config.vocabSize = vocabulary;
  config.hiddenSize = 12;
  config.maxPositions = 200;
  return config;
}

TEST(Step, Names) {
  EXPECT_EQ(nameOf(StepShape{}), "body_1");
  EXPECT_EQ(nameOf(StepShape{StepPart::Body, 512}), "body_512");
  EXPECT_EQ(nameOf(StepShape{StepPart::Head, 16}), "head_16");
  EXPECT_EQ(nameOf(StepShape{StepPart::Choose, 1}), "choose_1");
  EXPECT_EQ(nameOf(StepShape{StepPart::Embed, 64}), "embed_64");
}

TEST(Step, InputsAreNumberedInTheirParts) {
  size_t input = 0;
  for (StepPart part : {StepPart::Body, StepPart::Head, StepPart::Choose}) {
    EXPECT_EQ(firstInput(part), input);
    for (size_t number = 0; input < endOfInputs(part); ++input, ++number)
      EXPECT_EQ(numberOf(static_cast<StepInput>(input)), number);
  }
  EXPECT_EQ(input, size_t(kStepInputCount));
  EXPECT_EQ(firstInput(StepPart::Embed), firstInput(StepPart::Head));
  EXPECT_EQ(endOfInputs(StepPart::Embed), endOfInputs(StepPart::Head));
}

TEST(Step, WidestRowIsOfAnyLayer) {
  ModelConfig model = modelOf(50);
  model.layers = 2;
  model.heads = model.kvHeads = 2;
  model.headDim = 1;
  EXPECT_EQ(widestRow(model), 12); // hidden
  model.headDim = 3;
  EXPECT_EQ(widestRow(model), 18); // queries, keys and values
  model.gatedAttention = true;
  EXPECT_EQ(widestRow(model), 24);
  model.intermediateSize = 25;
  EXPECT_EQ(widestRow(model), 25);
  model.layerConfigs.resize(2);
  model.layerConfigs[1].intermediateSize = 26;
  EXPECT_EQ(widestRow(model), 26);
  model.layerConfigs[1].hasExperts = true; // in the block's place
  model.experts = {.count = 4, .chosen = 3, .width = 5};
  EXPECT_EQ(widestRow(model), 36); // of what each gives
  model.experts.width = 13;
  EXPECT_EQ(widestRow(model), 39);
  model.experts.sharedWidth = 40;
  EXPECT_EQ(widestRow(model), 40);
  model.layerConfigs[0].isLinear = true;
  model.linear = {
      .keyHeads = 1, .valueHeads = 2, .keyDim = 4, .valueDim = 8, .taps = 2};
  EXPECT_EQ(widestRow(model), 44); // q, k, v, z, and two numbers for each head
  model.latent = {.width = 20, .plainDim = 8, .turnedDim = 4, .valueDim = 8};
  EXPECT_EQ(widestRow(model), 48); // queries, as the cache has keys
  model.streams.count = 5;
  EXPECT_EQ(widestRow(model), 60);
}

TEST(Step, GatheredRowsAreBounded) {
  ModelConfig model = modelOf(50);
  model.hiddenSize = 8192;
  model.layers = 2;
  model.heads = 64;
  model.kvHeads = 8;
  model.headDim = 128;
  EXPECT_EQ(widestRow(model), 64 * 128 + 2 * 8 * 128);
  EXPECT_EQ(mostStepRows(model), 4096);
  model.contextRanks = 8;
  EXPECT_EQ(widestRow(model), 8 * 64 * 130);
  EXPECT_EQ(mostStepRows(model), 256); // 65 MiB
  model.contextRanks = 1024;
  EXPECT_EQ(mostStepRows(model), 64);
}

TEST(Step, HiddenRowsOfWideModelsFitABinding) {
  ModelConfig model = modelOf(50);
  auto mostOf = [&](int64_t hiddenSize) {
    model.hiddenSize = hiddenSize;
    const StepSignature head = stepSignature({StepPart::Head, 16}, model);
    EXPECT_EQ(head.sizes,
              (std::vector<SizeRange>{{"rows", 1, mostStepRows(model)}}));
    return mostStepRows(model);
  };
  EXPECT_EQ(mostOf(64), 8192);
  EXPECT_EQ(mostOf(4096), 8192);
  EXPECT_EQ(mostOf(4097), 4096);
  EXPECT_EQ(mostOf(8192), 4096);
  EXPECT_EQ(mostOf(16384), 2048);
  EXPECT_EQ(mostOf(int64_t(1) << 24), 64); // those that a step chooses
  constexpr int64_t bound = int64_t(128) << 20;
  for (int64_t hiddenSize : {4096, 5120, 6656, 8192, 12288, 16384, 18432})
    EXPECT_LE(mostOf(hiddenSize) * hiddenSize * 4, bound) << hiddenSize;
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

/// The program of `shape`, but for its code.
Executable programOf(const StepShape &shape, const ModelConfig &model) {
  const StepSignature signature = stepSignature(shape, model);
  Executable program;
  program.programName = nameOf(shape);
  program.maxTokens = shape.rows;
  program.inputs = signature.inputs;
  program.outputs = signature.outputs;
  program.namedSizes = signature.sizes;
  if (shape.part == StepPart::Body)
    program.caches = LayerCaches(model, DataType::F16).specs();
  return program;
}

/// A body has the caches of the model's layers, whatever their elements are.
TEST(Step, BodiesHaveTheModelsCaches) {
  ModelConfig model = modelOf(50);
  model.layers = 3;
  model.heads = model.kvHeads = 2;
  model.headDim = 32;
  model.layerConfigs.resize(3);
  const StepShape shape = {StepPart::Body, 8};
  const Executable equal = programOf(shape, model);
  EXPECT_TRUE(checkStep(equal, shape, model).ok());
  model.layerConfigs[1].headDim = 64;
  EXPECT_FALSE(checkStep(equal, shape, model).ok());
  Executable program = programOf(shape, model);
  ASSERT_EQ(program.caches.size(), 2u);
  for (CacheSpec &cache : program.caches) {
    cache.type = DataType::Q8_0;
    cache.keyBlock = 16;
  }
  EXPECT_TRUE(checkStep(program, shape, model).ok());
  ++program.caches[1].layers;
  EXPECT_FALSE(checkStep(program, shape, model).ok());
}

/// Layers with windows have page tables behind a body's other inputs.
TEST(Step, BodiesHavePageTablesOfWindows) {
  ModelConfig model = modelOf(50);
  model.maxPositions = 1000;
  model.layers = 9;
  model.heads = model.kvHeads = 2;
  model.headDim = 32;
  model.layerConfigs.resize(9);
  const StepShape shape = {StepPart::Body, 8};
  EXPECT_EQ(stepSignature(shape, model).inputs.size(), 4u);
  for (size_t i = 0; i < 8; ++i)
    model.layerConfigs[i].window = 100;
  for (int64_t adapters : {0, 2}) {
    model.adapters.count = adapters;
    const Executable program = programOf(shape, model);
    const size_t others = adapters ? 5 : 4;
    ASSERT_EQ(program.inputs.size(), others + 8);
    for (int64_t table = 1; table <= 8; ++table)
      EXPECT_EQ(numberOfWindow(table, model),
                others + static_cast<size_t>(table) - 1);
    EXPECT_EQ(program.inputs.back(), program.inputs[kStepPageTable]);
    EXPECT_EQ(program.caches[0].layers, 1);
    const Result<StepShape> told = stepShapeOf(program);
    ASSERT_TRUE(told.ok()) << told.message();
    EXPECT_EQ(*told, shape);
    EXPECT_TRUE(checkStep(program, shape, model).ok());
  }
  EXPECT_EQ(stepSignature({StepPart::Head, 8}, model).inputs.size(), 2u);
}

TEST(Step, ProgramsTellTheirShape) {
  const ModelConfig model = modelOf(50);
  for (StepPart part : kStepParts)
    for (int64_t rows : {1, 8}) {
      Executable program = programOf({part, rows}, model);
      const Result<StepShape> told = stepShapeOf(program);
      ASSERT_TRUE(told.ok()) << told.message();
      EXPECT_EQ(*told, (StepShape{part, rows}));
      EXPECT_EQ(checkStep(program, *told, model).message(), "");
      EXPECT_FALSE(checkStep(program, {part, rows + 1}, model).ok());
      program.inputs[0].type = DataType::BF16;
      EXPECT_FALSE(checkStep(program, *told, model).ok());
    }
}

/// A vocabulary as large as the hidden size makes no embedding of logits.
TEST(Step, LogitsMayBeAsWideAsHiddenRows) {
  const ModelConfig model = modelOf(12);
  for (StepPart part : {StepPart::Head, StepPart::Embed}) {
    const Executable program = programOf({part, 8}, model);
    const Result<StepShape> told = stepShapeOf(program);
    ASSERT_TRUE(told.ok()) << told.message();
    EXPECT_EQ(*told, (StepShape{part, 8}));
    EXPECT_EQ(checkStep(program, *told, model).message(), "");
  }
}

TEST(Step, OtherProgramsAreNoSteps) {
  Executable program;
  program.programName = "p";
  EXPECT_EQ(stepShapeOf(program).message(),
            "the program 'p' is no part of a model's step");
  program.inputs.resize(4);
  EXPECT_FALSE(stepShapeOf(program).ok());
  program.outputs.resize(1);
  EXPECT_TRUE(stepShapeOf(program).ok());
  program.maxTokens = 0;
  EXPECT_FALSE(stepShapeOf(program).ok());
}

TEST(Step, OneRowIsStatic) {
  const ModelConfig model = modelOf(50);
  const StepSignature body = stepSignature({StepPart::Body, 1}, model);
  EXPECT_TRUE(body.sizes.empty());
  const TensorSpec one = {DataType::I32, {1}};
  EXPECT_EQ(body.inputs,
            (std::vector<TensorSpec>{one, one, one, {DataType::I32, {1, 4}}}));
  EXPECT_EQ(body.outputs, (std::vector<TensorSpec>{{DataType::F32, {1, 12}}}));
  // Of a body with any number of rows.
  const StepSignature head = stepSignature({StepPart::Head, 1}, model);
  EXPECT_EQ(head.sizes, (std::vector<SizeRange>{{"rows", 1, 8192}}));
  EXPECT_EQ(
      head.inputs,
      (std::vector<TensorSpec>{
          {DataType::F32, {extentOfSlot(KF_SCALAR_NAMED_SIZES), 12}}, one}));
  EXPECT_EQ(head.outputs, (std::vector<TensorSpec>{{DataType::F32, {1, 50}}}));
}

TEST(Step, SizesHaveTheSlotsOfTheirOrder) {
  const ModelConfig model = modelOf(50);
  const int64_t own = extentOfSlot(KF_SCALAR_N_TOKENS),
                first = extentOfSlot(KF_SCALAR_NAMED_SIZES),
                second = extentOfSlot(KF_SCALAR_NAMED_SIZES + 1);
  const StepSignature body = stepSignature({StepPart::Body, 8}, model);
  EXPECT_EQ(body.sizes, (std::vector<SizeRange>{{"sequences", 1, 8}}));
  EXPECT_EQ(body.inputs[kStepPositions], (TensorSpec{DataType::I32, {own}}));
  EXPECT_EQ(body.inputs[kStepPageTable],
            (TensorSpec{DataType::I32, {first, 4}}));
  EXPECT_EQ(body.outputs,
            (std::vector<TensorSpec>{{DataType::F32, {own, 12}}}));
  // Slots of states, where there are any.
  EXPECT_EQ(body.inputs.size(), size_t(kStepStates));
  ModelConfig stateful = model;
  stateful.linear.keyHeads = 1;
  const StepSignature more = stepSignature({StepPart::Body, 8}, stateful);
  ASSERT_EQ(more.inputs.size(), kStepStates + 1u);
  EXPECT_EQ(more.inputs[kStepStates], (TensorSpec{DataType::I32, {first}}));
  // Rows' adapters, likewise, behind these.
  ModelConfig adapted = model;
  adapted.adapters.count = 2;
  const StepSignature last = stepSignature({StepPart::Body, 8}, adapted);
  ASSERT_EQ(last.inputs.size(), kStepStates + 1u);
  EXPECT_EQ(last.inputs.back(), (TensorSpec{DataType::I32, {own, 1}}));
  EXPECT_EQ(numberOf(kStepAdapters, adapted), size_t(kStepStates));
  adapted.linear.keyHeads = 1;
  EXPECT_EQ(stepSignature({StepPart::Body, 8}, adapted).inputs.size(),
            kStepStates + 2u);
  EXPECT_EQ(numberOf(kStepAdapters, adapted), size_t(kStepAdapters));
  const StepSignature head = stepSignature({StepPart::Head, 4}, model);
  EXPECT_EQ(head.inputs[numberOf(kStepHidden)],
            (TensorSpec{DataType::F32, {first, 12}}));
  EXPECT_EQ(head.outputs,
            (std::vector<TensorSpec>{{DataType::F32, {own, 50}}}));
  const StepSignature embed = stepSignature({StepPart::Embed, 4}, model);
  EXPECT_EQ(embed.inputs, head.inputs);
  EXPECT_EQ(embed.sizes, head.sizes);
  EXPECT_EQ(embed.outputs, body.outputs);
  const StepSignature choose = stepSignature({StepPart::Choose, 4}, model);
  EXPECT_EQ(choose.sizes,
            (std::vector<SizeRange>{{"adjustments", 0, 200}, {"masks", 0, 4}}));
  EXPECT_EQ(choose.inputs[numberOf(kStepLogits)], head.outputs[0]);
  EXPECT_EQ(choose.inputs[numberOf(kStepSeed)],
            (TensorSpec{DataType::I64, {own}}));
  EXPECT_EQ(choose.inputs[numberOf(kStepBias)],
            (TensorSpec{DataType::F32, {first}}));
  EXPECT_EQ(choose.inputs[numberOf(kStepMask)],
            (TensorSpec{DataType::I32, {second, 2}}));
  EXPECT_EQ(choose.outputs, (std::vector<TensorSpec>{{DataType::I32, {own}}}));
}

TEST(Step, CountsGoToTheirSlots) {
  StepCounts counts;
  counts.tokens = 7;
  counts.sequences = 3;
  counts.wanted = 2;
  counts.adjustments = 5;
  counts.masks = 1;
  using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;
  EXPECT_EQ(stepScalars({StepPart::Body, 8}, counts), (Scalars{7, 0, 3}));
  EXPECT_EQ(stepScalars({StepPart::Head, 4}, counts), (Scalars{2, 0, 7}));
  EXPECT_EQ(stepScalars({StepPart::Choose, 4}, counts), (Scalars{2, 0, 5, 1}));
  EXPECT_EQ(stepScalars({StepPart::Embed, 4}, counts), (Scalars{2, 0, 7}));
  counts.tokens = counts.wanted = 1;
  EXPECT_EQ(stepScalars({StepPart::Body, 1}, counts), (Scalars{1}));
  EXPECT_EQ(stepScalars({StepPart::Head, 1}, counts), (Scalars{1, 0, 1}));
}

} // namespace
