//===- NumbersTextTest.cpp - Numbers in messages --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/NumbersText.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

std::string text(const std::vector<int64_t> &numbers) {
  return numbersText(numbers);
}

TEST(NumbersText, ListsNumbers) {
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text({7}), "7");
  EXPECT_EQ(text({1, 2}), "1 and 2");
  EXPECT_EQ(text({1, 2, 4}), "1, 2 and 4");
}

TEST(NumbersText, ShortensNeighbours) {
  EXPECT_EQ(text({1, 2, 3}), "1 to 3");
  EXPECT_EQ(text({1, 2, 3, 6, 9, 10}), "1 to 3, 6, 9 and 10");
  EXPECT_EQ(text({1, 4, 5, 6, 7}), "1 and 4 to 7");
}

} // namespace
