//===- NonFiniteTest.cpp - Weights that are no numbers --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/NonFinite.h"

#include "runtime/core/BlockFormat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace kf;

namespace {

/// What is found; "nothing" where nothing is.
std::string foundIn(const TensorView &view, ThreadPool *pool = nullptr) {
  const auto found = findNonFinite(view, pool, nullptr);
  EXPECT_TRUE(found.ok()) << found.message();
  return found.ok() ? found->value_or("nothing") : found.message();
}

/// `count` ones of `type`, and `bad` as number `at`.
std::string plainBits(DataType type, double bad) {
  const auto narrow = static_cast<float>(bad);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  switch (type) {
  case DataType::F64:
    return std::string(reinterpret_cast<const char *>(&bad), 8);
  case DataType::F32:
    return std::string(reinterpret_cast<const char *>(&bits), 4);
  case DataType::BF16:
    return std::string(reinterpret_cast<const char *>(&bits) + 2, 2);
  case DataType::F16:
    return std::isnan(bad)   ? std::string("\x01\x7c", 2)
           : std::isinf(bad) ? std::string("\x00\xfc", 2)
                             : std::string("\xff\x7b", 2);
  default: // f8E4M3FN has no infinities
    return std::isfinite(bad) ? "\x7e" : "\xff";
  }
}

TEST(NonFinite, FindsTheFirstOfAnyType) {
  constexpr size_t rows = 9, columns = 7;
  for (DataType type : {DataType::F64, DataType::F32, DataType::F16,
                        DataType::BF16, DataType::F8E4M3}) {
    SCOPED_TRACE(std::string(nameOf(type)));
    const size_t size = sizeOf(type);
    // The largest numbers are finite.
    std::string data;
    for (size_t i = 0; i < rows * columns; ++i)
      data += plainBits(type, 3e38);
    const TensorView view = {type, {9, 7}, data.data(), data.size()};
    EXPECT_EQ(foundIn(view), "nothing");
    data.replace(size * (5 * columns + 6), size, plainBits(type, -INFINITY));
    EXPECT_EQ(foundIn(view), type == DataType::F8E4M3 ? "a NaN in row 5"
                                                      : "an infinity in row 5");
    data.replace(size * (3 * columns), size, plainBits(type, NAN));
    EXPECT_EQ(foundIn(view), "a NaN in row 3");
  }
  // A double may be too large for the f32 that kernels get.
  const double large = 1e300;
  EXPECT_EQ(foundIn({DataType::F64, {1}, &large, 8}), "an infinity in row 0");
  const int32_t whole = -1;
  EXPECT_EQ(foundIn({DataType::I32, {1}, &whole, 4}), "nothing");
  EXPECT_EQ(foundIn({DataType::F32, {0, 4}, nullptr, 0}), "nothing");
}

/// A scale, or a minimum, makes its block so; codes never do.
TEST(NonFinite, LooksAtScalesOfBlocks) {
  for (const BlockFormat &format : kBlockFormats) {
    SCOPED_TRACE(std::string(nameOf(format.type)));
    constexpr size_t rows = 4, blocks = 3;
    std::vector<uint8_t> data(rows * blocks * format.bytes, 0xff);
    auto setHalf = [&](size_t block, int offset, uint16_t bits) {
      std::memcpy(&data[block * format.bytes + offset], &bits, 2);
    };
    const bool isHalf = format.scale == BlockScale::Half;
    for (size_t block = 0; block < rows * blocks; ++block) {
      storeScale(format, isHalf ? 65504.0f : 0x1p124f,
                 &data[block * format.bytes]);
      if (format.minOffset >= 0)
        setHalf(block, format.minOffset, 0x7bff);
    }
    const TensorView view = {format.type,
                             {4, int64_t(blocks) * format.elements},
                             data.data(),
                             data.size()};
    EXPECT_EQ(foundIn(view), "nothing");
    if (!isHalf) {
      storeScale(format, 0x1p125f, &data[(3 * blocks + 1) * format.bytes]);
      EXPECT_EQ(foundIn(view), "an infinity in row 3");
    }
    storeScale(format, NAN, &data[(2 * blocks + 1) * format.bytes]);
    EXPECT_EQ(foundIn(view), "a NaN in row 2");
    if (format.minOffset >= 0) {
      setHalf(blocks, format.minOffset, 0x7e00);
      EXPECT_EQ(foundIn(view), "a NaN in row 1");
    }
  }
}

/// By several threads: the first row all the same, each byte read once at most.
TEST(NonFinite, ReadsInStretches) {
  constexpr uint64_t rows = 3000, columns = 1000;
  std::vector<float> data(rows * columns, 1);
  const TensorView view = {
      DataType::F32, {3000, 1000}, data.data(), data.size() * 4};
  auto pool = ThreadPool::create(4).take();
  std::atomic<uint64_t> bytes = 0;
  auto found = findNonFinite(view, pool.get(), nullptr,
                             [&](uint64_t, uint64_t count) { bytes += count; });
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(*found);
  EXPECT_EQ(bytes, view.bytes);
  for (uint64_t row : {2999, 1500, 1499, 0}) {
    data[row * columns + 999] = NAN;
    EXPECT_EQ(foundIn(view, pool.get()), "a NaN in row " + std::to_string(row));
  }
  const std::atomic<bool> cancelled = true;
  EXPECT_TRUE(
      findNonFinite(view, pool.get(), &cancelled).status().isCancelled());
  EXPECT_TRUE(findNonFinite(view, nullptr, &cancelled).status().isCancelled());
}

} // namespace
