//===- ReferenceTestUtils.h - Tensors for tests -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_REFERENCE_REFERENCETESTUTILS_H
#define KF_TEST_RUNTIME_DEVICES_REFERENCE_REFERENCETESTUTILS_H

#include "runtime/devices/Reference/ReferenceTensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace kf::reference {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

/// A tensor of f32, f16 or bf16 elements, or of a block format's zeros.
inline Tensor makeTensor(std::vector<int64_t> shape,
                         const std::vector<float> &values,
                         DataType type = DataType::F32) {
  Tensor tensor = Tensor::zeros(DataType::F32, std::move(shape)).take();
  EXPECT_EQ(tensor.bytes.size(), values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), tensor.floats());
  return roundTo(std::move(tensor), type).take();
}

/// A vector of i32.
inline Tensor makeInts(const std::vector<int32_t> &values) {
  Tensor tensor =
      Tensor::zeros(DataType::I32, {static_cast<int64_t>(values.size())})
          .take();
  std::copy(values.begin(), values.end(), tensor.ints());
  return tensor;
}

/// Values in [-1, 1) that look random.
inline std::vector<float> randomFloats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>(generator() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

inline void expectShape(const Result<Tensor> &result,
                        const std::vector<int64_t> &shape) {
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->shape, shape);
}

/// Elements, widened, within `tolerance`; NaN equals NaN.
inline void expectFloats(const Result<Tensor> &result,
                         const std::vector<float> &expected,
                         float tolerance = 0) {
  ASSERT_TRUE(result.ok()) << result.message();
  std::vector<float> values = widen(result->view()).take();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i;
    else if (std::isinf(expected[i]))
      EXPECT_EQ(values[i], expected[i]) << "element " << i;
    else
      EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
  }
}

inline void expectInts(const Result<Tensor> &result,
                       const std::vector<int32_t> &expected) {
  ASSERT_TRUE(result.ok()) << result.message();
  Result<std::vector<int32_t>> values = readInts(result->view(), "results");
  ASSERT_TRUE(values.ok()) << values.message();
  EXPECT_EQ(*values, expected);
}

/// An error, on one line, that has `part` in it.
inline void expectError(const Status &status, const std::string &part) {
  ASSERT_FALSE(status.ok()) << "no error; expected: " << part;
  EXPECT_NE(status.message().find(part), std::string::npos)
      << "the error is: " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}
template <typename T>
void expectError(const Result<T> &result, const std::string &part) {
  ASSERT_FALSE(result.ok()) << "no error; expected: " << part;
  expectError(result.status(), part);
}

} // namespace kf::reference

#endif // KF_TEST_RUNTIME_DEVICES_REFERENCE_REFERENCETESTUTILS_H
