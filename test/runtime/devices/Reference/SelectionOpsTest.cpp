//===- SelectionOpsTest.cpp - Argmax and sampling ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "runtime/core/SamplingMath.h"

#include "ReferenceTestUtils.h"

#include <limits>
#include <numeric>
#include <set>

namespace kf::reference {
namespace {

TEST(Argmax, TakesTheLowestOfEquals) {
  Tensor logits =
      makeTensor({4, 3}, {1, 5, 5, 2, 2, 2, -3, -2, -1, 0, 0, -0.0f});
  Result<Tensor> result = argmax(logits.view());
  expectShape(result, {4});
  expectInts(result, {1, 0, 2, 0});
}

TEST(Argmax, RanksNanLast) {
  Tensor logits =
      makeTensor({4, 2}, {kNan, 1, 1, kNan, kNan, kNan, kNan, -kInf});
  expectInts(argmax(logits.view()), {1, 0, 0, 1});
}

TEST(Argmax, RejectsWrongOperands) {
  expectError(argmax(makeTensor({2}, {1, 2}).view()), "kf.argmax C1");
  expectError(argmax(makeTensor({2, 0}, {}).view()), "kf.argmax C1");
  expectError(argmax(makeInts({2}).view()), "kf.argmax C1");
}

/// Settings of one row of kf.sample, and operands made of them.
struct Row {
  float temperature = 1;
  int32_t topK = 0;
  float topP = 1, minP = 0;
  uint64_t seed = 0;
  int32_t counter = 0;
};

Tensor makeLongs(const std::vector<uint64_t> &values) {
  Tensor tensor =
      Tensor::zeros(DataType::I64, {static_cast<int64_t>(values.size())})
          .take();
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

/// Tensors of settings, and views of them.
struct Operands {
  explicit Operands(const std::vector<Row> &rows) {
    std::vector<float> floats[3];
    std::vector<int32_t> ints[2];
    std::vector<uint64_t> seeds;
    for (const Row &row : rows) {
      floats[0].push_back(row.temperature);
      floats[1].push_back(row.topP);
      floats[2].push_back(row.minP);
      ints[0].push_back(row.topK);
      ints[1].push_back(row.counter);
      seeds.push_back(row.seed);
    }
    const int64_t count = static_cast<int64_t>(rows.size());
    tensors = {makeTensor({count}, floats[0]),
               makeInts(ints[0]),
               makeTensor({count}, floats[1]),
               makeTensor({count}, floats[2]),
               makeLongs(seeds),
               makeInts(ints[1])};
    for (const Tensor &tensor : tensors)
      views.push_back(tensor.view());
  }
  SampleOperands get() const {
    return {&views[0], &views[1], &views[2], &views[3], &views[4], &views[5]};
  }

  std::vector<Tensor> tensors;
  std::vector<TensorView> views;
};

/// Which tokens are drawn from one row of logits, in 500 draws.
std::set<int32_t> drawn(const std::vector<float> &logits, Row row) {
  std::vector<Row> rows(500, row);
  std::vector<float> repeated;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].counter = static_cast<int32_t>(i);
    repeated.insert(repeated.end(), logits.begin(), logits.end());
  }
  Tensor tensor = makeTensor(
      {static_cast<int64_t>(rows.size()), static_cast<int64_t>(logits.size())},
      repeated);
  Result<Tensor> result = sample(tensor.view(), Operands(rows).get());
  EXPECT_TRUE(result.ok()) << result.message();
  if (!result.ok())
    return {};
  return {result->ints(), result->ints() + rows.size()};
}

using Set = std::set<int32_t>;
/// Probabilities 0.1, 0.4, 0.2, 0.3 at temperature 1.
const std::vector<float> kFour = {std::log(1.0f), std::log(4.0f),
                                  std::log(2.0f), std::log(3.0f)};

TEST(Sample, InvertsTheCumulativeDistribution) {
  // In order of ids, borders are at 0.1, 0.5 and 0.7.
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const double u = std::ldexp(static_cast<double>(randomBits(seed, 9)), -64);
    Tensor logits = makeTensor({1, 4}, kFour);
    expectInts(
        sample(logits.view(), Operands({{.seed = seed, .counter = 9}}).get()),
        {u < 0.1   ? 0
         : u < 0.5 ? 1
         : u < 0.7 ? 2
                   : 3});
  }
}

TEST(Sample, KeepsTheLikeliest) {
  EXPECT_EQ(drawn(kFour, {}), (Set{0, 1, 2, 3}));
  EXPECT_EQ(drawn(kFour, {.topK = 2}), (Set{1, 3}));
  EXPECT_EQ(drawn(kFour, {.topK = 1}), Set{1});
  EXPECT_EQ(drawn(kFour, {.topK = 99}), (Set{0, 1, 2, 3}));
  // 0.4 alone does not reach 0.5; with 0.3 it does.
  EXPECT_EQ(drawn(kFour, {.topP = 0.5f}), (Set{1, 3}));
  EXPECT_EQ(drawn(kFour, {.topP = 0.39f}), Set{1});
  EXPECT_EQ(drawn(kFour, {.topP = 1e-40f}), Set{1});
  EXPECT_EQ(drawn(kFour, {.topP = 0.8f}), (Set{1, 2, 3}));
  EXPECT_EQ(drawn(kFour, {.minP = 0.6f}), (Set{1, 3}));
  EXPECT_EQ(drawn(kFour, {.minP = 1}), Set{1});
  // top_p counts among those that top_k left: 4/7 reaches 0.55; min_p after
  // both.
  EXPECT_EQ(drawn(kFour, {.topK = 2, .topP = 0.55f}), Set{1});
  EXPECT_EQ(drawn(kFour, {.topK = 3, .topP = 0.9f, .minP = 0.7f}), (Set{1, 3}));
  // Of equals the lower ids stay.
  EXPECT_EQ(drawn({2, 3, 2, 3, 2}, {.topK = 3}), (Set{0, 1, 3}));
  EXPECT_EQ(drawn({1, 1, 1, 1}, {.topP = 0.5f}), (Set{0, 1}));
}

TEST(Sample, DividesByTheTemperature) {
  // At 0.5 the probabilities are 1, 16, 4, 9 of 30.
  EXPECT_EQ(drawn(kFour, {.temperature = 0.5f, .topP = 0.52f}), Set{1});
  EXPECT_EQ(drawn(kFour, {.temperature = 0.5f, .topP = 0.54f}), (Set{1, 3}));
  EXPECT_EQ(drawn(kFour, {.temperature = 0.01f}), Set{1});
  EXPECT_EQ(drawn({1, 5, 5, 2}, {.temperature = 0}), Set{1});
  EXPECT_EQ(drawn({-1e30f, 1e30f}, {.temperature = 3e38f}), (Set{0, 1}));
  EXPECT_EQ(drawn({1, 1.0000001f}, {.temperature = 1e-45f}), Set{1});
}

TEST(Sample, RefusesRowsThatAreNoLogits) {
  Tensor logits = makeTensor({5, 3}, {2, kNan, 2, kInf, 0, -kInf, -kInf, -kInf,
                                      -kInf, -kInf, 1, -kInf, -kNan, 1, 1});
  for (float temperature : {0.0f, 1.0f})
    expectInts(
        sample(
            logits.view(),
            Operands(std::vector<Row>(5, {.temperature = temperature})).get()),
        {-1, -1, -1, 1, -1});
}

TEST(Sample, RefusesSettingsOutOfRange) {
  const std::vector<Row> rows = {
      {},           {.temperature = -1}, {.temperature = kNan},
      {.topK = -1}, {.topP = 0},         {.temperature = 0, .topP = 1.5f},
      {.minP = -1}};
  Tensor logits = makeTensor({7, 1}, std::vector<float>(7, 1));
  expectInts(sample(logits.view(), Operands(rows).get()),
             {0, -1, -1, -1, -1, -1, -1});
}

/// Adjustments of two rows: entries [0, 2) and [2, 5) of five.
struct Adjustments {
  Tensor first = makeInts({0, 2}), count = makeInts({2, 3});
  Tensor ids = makeInts({1, 0, 2, 2, 9}), seen = makeInts({2, 0, 1, 1, 1});
  Tensor bias = makeTensor({5}, {0, 1, 0, 0, 50});
  Tensor repetition = makeTensor({2}, {2, 1}),
         presence = makeTensor({2}, {1, 2}),
         frequency = makeTensor({2}, {0.5f, 0});

  Result<Tensor> sampleFrom(const Tensor &logits) {
    Operands operands({{.temperature = 0}, {.temperature = 0}});
    SampleOperands all = operands.get();
    TensorView views[] = {first.view(),    count.view(),    ids.view(),
                          seen.view(),     bias.view(),     repetition.view(),
                          presence.view(), frequency.view()};
    all.adjustments = {&views[0], &views[1], &views[2], &views[3],
                       &views[4], &views[5], &views[6], &views[7]};
    return sample(logits.view(), all);
  }
};

TEST(Sample, AdjustsLogitsOfItsRow) {
  // Row 0: 1 + 1, 6 / 2 - 0.5 * 2 - 1, 1.5. Row 1: token 2 twice less 2, and
  // no token 9.
  Tensor logits = makeTensor({2, 3}, {1, 6, 1.5f, 0, 1, 4.5f});
  Adjustments adjustments;
  expectInts(adjustments.sampleFrom(logits), {0, 1});
  // Entries outside of the lists do not exist; a row without any is plain.
  adjustments.first = makeInts({-1, INT32_MAX});
  adjustments.count = makeInts({2, INT32_MAX});
  expectInts(adjustments.sampleFrom(logits), {2, 2}); // 1, 1, 1.5
  adjustments.count = makeInts({-5, 0});
  expectInts(adjustments.sampleFrom(logits), {1, 2});
}

TEST(Sample, RefusesPenaltiesOutOfRange) {
  Tensor logits = makeTensor({2, 3}, {1, 6, 1.5f, 0, 1, 4.5f});
  Adjustments adjustments;
  adjustments.repetition = makeTensor({2}, {0, 1});
  expectInts(adjustments.sampleFrom(logits), {-1, 1});
  adjustments.frequency = makeTensor({2}, {0, kNan});
  expectInts(adjustments.sampleFrom(logits), {-1, -1});
  // A bias that is no number spoils its row alone; -inf excludes its token.
  adjustments = {};
  adjustments.bias = makeTensor({5}, {-kInf, kInf, 0, 0, kNan});
  expectInts(adjustments.sampleFrom(logits), {-1, 1});
  adjustments.bias = makeTensor({5}, {0, -kInf, -kInf, 0, 0});
  expectInts(adjustments.sampleFrom(logits), {2, 1});
}

TEST(Sample, ChoosesOfTokensThatTheMaskAllows) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const Row greedy = {.temperature = 0};
  // Of 33 tokens the last one, in a word of its own, is the likeliest, and
  // token 3 has no logit.
  std::vector<float> row(33);
  std::iota(row.begin(), row.end(), 0.0f);
  row[3] = nan;
  std::vector<float> values;
  for (int i = 0; i < 6; ++i)
    values.insert(values.end(), row.begin(), row.end());
  Tensor logits = makeTensor({6, 33}, values);
  // Tokens 1 and 2; the last one; token 3; none.
  Tensor mask = makeInts({6, 0, 0, 1, 8, 0, 0, 0});
  mask.shape = {4, 2};
  Tensor masked = makeInts({0, 1, 2, 3, -1, 4});
  const TensorView maskView = mask.view(), maskedView = masked.view();
  Operands rows(std::vector<Row>(6, greedy));
  SampleOperands operands = rows.get();
  operands.mask = {&maskedView, &maskView};
  expectInts(sample(logits.view(), operands), {2, 32, -1, -1, -1, -1});

  Tensor narrow = makeInts({1, 2, 3, 4});
  narrow.shape = {4, 1};
  const TensorView narrowView = narrow.view();
  operands.mask = {&maskedView, &narrowView};
  expectError(sample(logits.view(), operands), "kf.sample C6: mask");
  operands.mask = {&maskView, &maskView};
  expectError(sample(logits.view(), operands), "kf.sample C6: masked");
}

TEST(Sample, RejectsWrongOperands) {
  Tensor logits = makeTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor half = makeTensor({2}, {0, 0}, DataType::F16);
  Operands two({{}, {}}), three({{}, {}, {}});
  expectError(sample(half.view(), two.get()), "kf.sample C1");
  expectError(sample(logits.view(), three.get()), "kf.sample C2: temperature");
  TensorView wrong = half.view();
  SampleOperands operands = two.get();
  operands.minP = &wrong;
  expectError(sample(logits.view(), operands), "kf.sample C2: min_p");
  operands = two.get();
  operands.seed = operands.counter;
  expectError(sample(logits.view(), operands), "kf.sample C2: seed");
  Adjustments adjustments;
  adjustments.count = makeInts({1});
  expectError(adjustments.sampleFrom(logits), "kf.sample C3: count");
  adjustments = {};
  adjustments.presence = makeTensor({2}, {0, 0}, DataType::BF16);
  expectError(adjustments.sampleFrom(logits), "kf.sample C3: presence");
  adjustments = {};
  adjustments.seen = makeInts({1});
  expectError(adjustments.sampleFrom(logits), "kf.sample C4: seen");
  adjustments.ids = makeTensor({1, 1}, {0});
  expectError(adjustments.sampleFrom(logits), "kf.sample C4: ids");
}

} // namespace
} // namespace kf::reference
