//===- ResultComparisonTest.cpp - Tests of comparing results --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/ResultComparison.h"

#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;
using test::failsWith;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

HostTensor floats(std::vector<float> values, DataType type = DataType::F32) {
  HostTensor tensor =
      HostTensor::zeros(type, {static_cast<int64_t>(values.size())}).take();
  EXPECT_TRUE(
      convertFromFloat(type, values.data(), values.size(), tensor.bytes.data())
          .ok());
  return tensor;
}

template <typename T>
HostTensor integers(DataType type, std::vector<T> values) {
  HostTensor tensor =
      HostTensor::zeros(type, {static_cast<int64_t>(values.size())}).take();
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

ResultDifference compare(const HostTensor &found, const HostTensor &expected,
                         const ResultTolerance &tolerance = {}) {
  auto difference = compareResults({&found, 1}, {&expected, 1}, tolerance);
  EXPECT_TRUE(difference.ok()) << difference.message();
  return difference.ok() ? difference.take() : ResultDifference();
}

TEST(ResultComparisonTest, Numbers) {
  const ResultDifference same = compare(floats({3, 4}), floats({3, 4}));
  EXPECT_TRUE(same.agrees);
  EXPECT_EQ(same.largest, 0);
  EXPECT_DOUBLE_EQ(same.cosine, 1);

  const ResultDifference other = compare(floats({3, 5}), floats({3, 4}));
  EXPECT_FALSE(other.agrees);
  EXPECT_EQ(other.complaint, "result 0, element 1 is 5 instead of 4");
  EXPECT_DOUBLE_EQ(other.largest, 1);
  EXPECT_DOUBLE_EQ(other.mean, 0.5);
  EXPECT_DOUBLE_EQ(other.relative, 0.2);
  EXPECT_DOUBLE_EQ(other.cosine, 29 / (5 * std::sqrt(34.0)));
  EXPECT_EQ(compare(floats({0, 0}), floats({0, 4})).cosine, 0);
  EXPECT_DOUBLE_EQ(compare(floats({0, 0}), floats({0, 0})).cosine, 1);
}

TEST(ResultComparisonTest, Tolerances) {
  EXPECT_TRUE(compare(floats({1.00001f}), floats({1})).agrees);
  EXPECT_FALSE(compare(floats({1.0001f}), floats({1})).agrees);
  EXPECT_TRUE(compare(floats({1.00004f}), floats({1}), {.scale = 2}).agrees);
  const auto half = [](float value) { return floats({value}, DataType::F16); };
  EXPECT_TRUE(compare(half(1.001f), half(1)).agrees);
  EXPECT_FALSE(compare(half(1.01f), half(1)).agrees);
  // Of the largest element.
  const ResultTolerance rows = {.roundsRows = true};
  EXPECT_TRUE(compare(floats({100, 1}), floats({100, 2}), rows).agrees);
  EXPECT_FALSE(compare(floats({100, -2}), floats({100, 2}), rows).agrees);
  const ResultTolerance pairs = {.roundsPairs = true};
  EXPECT_TRUE(compare(floats({100, 1.1f}), floats({100, 2}), pairs).agrees);
  EXPECT_FALSE(compare(floats({100, 0.9f}), floats({100, 2}), pairs).agrees);
  const ResultTolerance blocks = {.roundsBlocks = true};
  EXPECT_TRUE(compare(floats({100, 1.9f}), floats({100, 2}), blocks).agrees);
  EXPECT_FALSE(compare(floats({100, 1.8f}), floats({100, 2}), blocks).agrees);
}

TEST(ResultComparisonTest, NotFinite) {
  const HostTensor expected = floats({kInfinity, -kInfinity, kNaN, 1});
  EXPECT_TRUE(compare(expected, expected).agrees);
  EXPECT_EQ(compare(floats({kInfinity, 3, kNaN, 1}), expected).complaint,
            "result 0, element 1 is 3 instead of -inf");
  EXPECT_FALSE(compare(floats({kInfinity, -kInfinity, 3, 1}), expected).agrees);
  EXPECT_FALSE(
      compare(floats({kInfinity, -kInfinity, kNaN, kNaN}), expected).agrees);
  const HostTensor lost = floats({kNaN, -kInfinity, kNaN, 1});
  EXPECT_FALSE(compare(lost, expected).agrees);
  EXPECT_TRUE(compare(lost, expected, {.roundsRows = true}).agrees);
}

TEST(ResultComparisonTest, Integers) {
  const auto ids = [](std::vector<int32_t> values) {
    return integers(DataType::I32, std::move(values));
  };
  EXPECT_TRUE(compare(ids({7, -1}), ids({7, -1})).agrees);
  EXPECT_FALSE(compare(ids({7, -2}), ids({7, -1})).agrees);
  const int64_t large = int64_t(1) << 60;
  EXPECT_FALSE(compare(integers<int64_t>(DataType::I64, {large + 1}),
                       integers<int64_t>(DataType::I64, {large}))
                   .agrees);

  // Codes of a row, of which few may be the next ones.
  const ResultTolerance rounded = {.roundsIntegers = true};
  std::vector<int8_t> expected(200, 5), found = expected;
  const auto codes = [](const std::vector<int8_t> &values) {
    return integers(DataType::I8, values);
  };
  found[3] = 6;
  EXPECT_FALSE(compare(codes(found), codes(expected)).agrees);
  EXPECT_TRUE(compare(codes(found), codes(expected), rounded).agrees);
  found[4] = found[5] = 4;
  EXPECT_EQ(compare(codes(found), codes(expected), rounded).complaint,
            "result 0 has 3 of 200 integers that differ");
  found = expected;
  found[0] = 7;
  EXPECT_FALSE(compare(codes(found), codes(expected), rounded).agrees);
}

/// They are read where the reference's rounded element is infinite, and nowhere
/// else.
TEST(ResultComparisonTest, Outliers) {
  const std::vector<HostTensor> expected = {
      floats({1, kInfinity, -kInfinity, kNaN}, DataType::F16),
      floats({1e30f, 70016, -kInfinity, kNaN})};
  const std::vector<KernelOutput> outputs = {{}, {.rounded = 0}};
  auto compareOutliers = [&](std::vector<float> outliers) {
    auto difference =
        compareResults(std::vector{expected[0], floats(std::move(outliers))},
                       expected, {}, outputs);
    EXPECT_TRUE(difference.ok()) << difference.message();
    return difference.ok() ? difference.take() : ResultDifference();
  };
  const ResultDifference right =
      compareOutliers({kNaN, 70016, -kInfinity, 12345});
  EXPECT_TRUE(right.agrees) << right.complaint;
  EXPECT_EQ(right.largest, 0);
  EXPECT_DOUBLE_EQ(right.cosine, 1);
  // Either may have no more bits than f16 has.
  EXPECT_TRUE(compareOutliers({0, 70000, -kInfinity, 0}).agrees);
  const ResultDifference other = compareOutliers({0, 69000, -kInfinity, 0});
  EXPECT_EQ(other.complaint, "result 1, element 1 is 69000 instead of 70016");
  EXPECT_EQ(other.largest, 1016);
  EXPECT_FALSE(compareOutliers({0, kNaN, -kInfinity, 0}).agrees);
  EXPECT_FALSE(compareOutliers({0, 70016, kInfinity, 0}).agrees);
}

TEST(ResultComparisonTest, OutliersOfNothing) {
  const std::vector<HostTensor> results = {floats({1}, DataType::F16),
                                           floats({1, 2})};
  for (size_t rounded : {0, 2}) {
    const std::vector<KernelOutput> outputs = {{}, {.rounded = rounded}};
    EXPECT_TRUE(failsWith(
        compareResults(results, results, {}, outputs).status(),
        "result 1 has the outliers of result " + std::to_string(rounded) +
            ", which is not there in the same shape"));
  }
}

TEST(ResultComparisonTest, OtherShapes) {
  EXPECT_EQ(compare(floats({1}), floats({1, 2})).complaint,
            "result 0 is 1xf32 instead of 2xf32");
  EXPECT_FALSE(compare(floats({1}, DataType::F16), floats({1})).agrees);
  const HostTensor one = floats({1});
  auto fewer = compareResults({}, {&one, 1}, {});
  ASSERT_TRUE(fewer.ok());
  EXPECT_EQ(fewer->complaint, "there are 0 results instead of 1");
}

} // namespace
