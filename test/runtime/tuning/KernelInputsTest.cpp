//===- KernelInputsTest.cpp - Tests of a kernel's inputs ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelInputs.h"

#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <set>

using namespace kf;
using Role = KernelInput::Role;

namespace {

constexpr int64_t kSequences = extentOfSlot(KF_SCALAR_NAMED_SIZES);

/// Rows of up to 8 tokens in up to 4 sequences of up to 5 pages of 4 positions.
Executable pagedProgram() {
  Executable program;
  program.programName = "kernel";
  program.maxTokens = 8;
  program.namedSizes = {{"sequences", 1, 4}};
  program.caches = {{DataType::F32, 1, 1, 2, 1, 4}};
  program.inputs = {{DataType::F32, {-1, 3}},
                    {DataType::I32, {-1}},
                    {DataType::I32, {-1}},
                    {DataType::I32, {kSequences, 5}}};
  return program;
}

KernelCase pagedCase() {
  KernelCase result;
  result.tokens = 6;
  result.inputs = {{}, {Role::Positions}, {Role::Sequences}, {Role::PageTable}};
  return result;
}

std::vector<int32_t> ints(const HostTensor &tensor) {
  return {tensor.data<int32_t>(),
          tensor.data<int32_t>() + tensor.elementCount()};
}

std::vector<HostTensor> makeInputs(const Executable &program,
                                   const KernelCase &kernelCase,
                                   int64_t tokens = 0) {
  auto scalars = kernelScalars(program, kernelCase);
  EXPECT_TRUE(scalars.ok()) << scalars.message();
  if (tokens)
    (*scalars)[KF_SCALAR_N_TOKENS] = tokens;
  auto inputs = makeKernelInputs(program, kernelCase, *scalars);
  EXPECT_TRUE(inputs.ok()) << inputs.message();
  return inputs.take();
}

TEST(KernelInputsTest, OneSequence) {
  KernelCase kernelCase = pagedCase();
  kernelCase.depth = 9;
  auto scalars = kernelScalars(pagedProgram(), kernelCase);
  ASSERT_TRUE(scalars.ok()) << scalars.message();
  EXPECT_EQ((*scalars)[KF_SCALAR_N_TOKENS], 6);
  EXPECT_EQ((*scalars)[KF_SCALAR_NAMED_SIZES], 1);
  // 9 + 6 positions.
  EXPECT_EQ((*scalars)[KF_SCALAR_CACHE_PAGES], 4);
  const auto inputs = makeInputs(pagedProgram(), kernelCase);
  EXPECT_EQ(inputs[0].shape, (std::vector<int64_t>{6, 3}));
  for (int i = 0; i < 18; ++i)
    EXPECT_LE(std::abs(inputs[0].data<float>()[i]), 1);
  EXPECT_EQ(ints(inputs[1]), (std::vector<int32_t>{9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(ints(inputs[2]), std::vector<int32_t>(6, 0));
  std::vector<int32_t> pages = ints(inputs[3]);
  EXPECT_EQ(pages.size(), 5u);
  std::sort(pages.begin(), pages.end() - 1);
  EXPECT_EQ(pages, (std::vector<int32_t>{0, 1, 2, 3, 0}));
}

TEST(KernelInputsTest, ManySequences) {
  KernelCase kernelCase = pagedCase();
  kernelCase.sizes["sequences"] = 3;
  kernelCase.depth = 3;
  const auto inputs = makeInputs(pagedProgram(), kernelCase);
  EXPECT_EQ(ints(inputs[1]), (std::vector<int32_t>{3, 4, 3, 4, 3, 4}));
  EXPECT_EQ(ints(inputs[2]), (std::vector<int32_t>{0, 0, 1, 1, 2, 2}));
  ASSERT_EQ(inputs[3].shape, (std::vector<int64_t>{3, 5}));
  std::set<int32_t> used;
  for (int row = 0; row < 3; ++row)
    for (int page = 0; page < 2; ++page)
      used.insert(inputs[3].data<int32_t>()[row * 5 + page]);
  EXPECT_EQ(used, (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(KernelInputsTest, FewerRowsAreTheFirstOnes) {
  const KernelCase kernelCase = pagedCase();
  const auto all = makeInputs(pagedProgram(), kernelCase),
             few = makeInputs(pagedProgram(), kernelCase, 2);
  EXPECT_EQ(few[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(std::equal(few[0].bytes.begin(), few[0].bytes.end(),
                         all[0].bytes.begin()));
  EXPECT_EQ(few[3].bytes, all[3].bytes);
}

TEST(KernelInputsTest, DepthStaysWithinTheTable) {
  KernelCase kernelCase = pagedCase();
  kernelCase.depth = 1000;
  const auto inputs = makeInputs(pagedProgram(), kernelCase);
  EXPECT_EQ(ints(inputs[1]).back(), 19);
}

/// What kf.gated_delta reads: rows, positions, sequences and slots.
Executable statesProgram() {
  Executable program = pagedProgram();
  program.caches = {CacheSpec::ofStates(1, 1, 8, 32)};
  program.inputs.back() = {DataType::I32, {kSequences}};
  return program;
}

KernelCase statesCase(int64_t sequences) {
  KernelCase result = pagedCase();
  result.inputs.back() = {Role::Slots};
  result.sizes["sequences"] = sequences;
  return result;
}

TEST(KernelInputsTest, EachSequenceHasASlot) {
  for (const int64_t sequences : {1, 3}) {
    KernelCase kernelCase = statesCase(sequences);
    kernelCase.depth = 1000;
    const Executable program = statesProgram();
    const auto inputs = makeInputs(program, kernelCase);
    const auto pages =
        (*kernelScalars(program, kernelCase))[KF_SCALAR_CACHE_PAGES];
    EXPECT_EQ(program.caches[0].slots(pages), sequences);
    EXPECT_EQ(inputs[3].shape, std::vector<int64_t>{sequences});
    EXPECT_EQ(ints(inputs[3]), sequences == 1
                                   ? std::vector<int32_t>({0})
                                   : std::vector<int32_t>({2, 1, 0}));
    EXPECT_EQ(ints(inputs[2]), sequences == 1
                                   ? std::vector<int32_t>(6, 0)
                                   : std::vector<int32_t>({0, 0, 1, 1, 2, 2}));
    EXPECT_EQ(ints(inputs[1]).front(), 1000);
  }
}

TEST(KernelInputsTest, SlotsAreOfThePageTablesSequences) {
  Executable program = statesProgram();
  program.inputs.push_back({DataType::I32, {2, 5}});
  KernelCase kernelCase = statesCase(3);
  kernelCase.inputs.push_back({Role::PageTable});
  EXPECT_EQ(kernelScalars(program, kernelCase).message(),
            "there are slots of 3 sequences, and pages of 2");
}

TEST(KernelInputsTest, Numbers) {
  Executable program;
  program.inputs = {{DataType::I32, {50}},  {DataType::F16, {50}},
                    {DataType::I8, {2, 8}}, {DataType::I32, {2, 2}},
                    {DataType::I32, {3}},   {DataType::I64, {2}}};
  KernelCase kernelCase;
  kernelCase.inputs = {{Role::Numbers, 3, 6},
                       {Role::Numbers, 0.5, 2},
                       {},
                       {.role = Role::CodeSums, .codes = 2}};
  const auto inputs = makeInputs(program, kernelCase);
  std::vector<int32_t> ids = ints(inputs[0]);
  EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()),
            (std::set<int32_t>{3, 4, 5}));
  for (int i = 0; i < 50; ++i) {
    EXPECT_GE(halfToFloat(inputs[1].data<uint16_t>()[i]), 0.5f);
    EXPECT_LE(halfToFloat(inputs[1].data<uint16_t>()[i]), 2.0f);
  }
  const int8_t *codes = inputs[2].data<int8_t>();
  for (int part = 0; part < 4; ++part)
    EXPECT_EQ(ints(inputs[3])[part], codes[part * 4] + codes[part * 4 + 1] +
                                         codes[part * 4 + 2] +
                                         codes[part * 4 + 3]);
  // Nobody said what these are.
  EXPECT_EQ(ints(inputs[4]), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(inputs[5].data<int64_t>()[1], 1);
}

TEST(KernelInputsTest, SeedsDiffer) {
  KernelCase kernelCase = pagedCase();
  const auto one = makeInputs(pagedProgram(), kernelCase),
             again = makeInputs(pagedProgram(), kernelCase);
  kernelCase.seed = 1;
  const auto other = makeInputs(pagedProgram(), kernelCase);
  EXPECT_EQ(one[0].bytes, again[0].bytes);
  EXPECT_NE(one[0].bytes, other[0].bytes);
}

TEST(KernelInputsTest, Errors) {
  KernelCase kernelCase = pagedCase();
  kernelCase.tokens = 9;
  EXPECT_TRUE(
      test::failsWith(kernelScalars(pagedProgram(), kernelCase).status(), "9"));
  kernelCase = pagedCase();
  kernelCase.inputs[0].role = Role::Positions;
  auto scalars = kernelScalars(pagedProgram(), kernelCase);
  ASSERT_TRUE(scalars.ok());
  EXPECT_TRUE(test::failsWith(
      makeKernelInputs(pagedProgram(), kernelCase, *scalars).status(),
      "input 0: it is no i32 tensor of rank 1"));
  kernelCase = pagedCase();
  kernelCase.inputs[3] = {.role = Role::CodeSums, .codes = 0};
  EXPECT_TRUE(test::failsWith(
      makeKernelInputs(pagedProgram(), kernelCase, *scalars).status(),
      "input 3: its codes have another shape"));
  kernelCase.inputs[3].codes = 3;
  EXPECT_TRUE(test::failsWith(
      makeKernelInputs(pagedProgram(), kernelCase, *scalars).status(),
      "input 3: its codes come after it"));
}

TEST(KernelInputsTest, NoRowLiesBeyondThePageTable) {
  Executable program = pagedProgram();
  program.inputs[3].shape = {kSequences, 1}; // 4 positions for each sequence
  KernelCase kernelCase = pagedCase();
  EXPECT_TRUE(test::failsWith(kernelScalars(program, kernelCase).status(),
                              "6 rows in 1 sequences need more than the 4 "
                              "positions that the page table has room for"));
  kernelCase.sizes["sequences"] = 2;
  kernelCase.depth = 9;
  EXPECT_EQ(ints(makeInputs(program, kernelCase)[1]),
            (std::vector<int32_t>{1, 2, 3, 1, 2, 3}));
  kernelCase.depth = -1;
  EXPECT_TRUE(test::failsWith(kernelScalars(program, kernelCase).status(),
                              "pages of 4 positions behind -1 are not"));
  kernelCase.depth = 0;
  program.inputs.push_back({DataType::I32, {kSequences, 5}});
  kernelCase.inputs.push_back({Role::PageTable});
  EXPECT_TRUE(test::failsWith(kernelScalars(program, kernelCase).status(),
                              "page tables have different shapes"));
}

} // namespace
