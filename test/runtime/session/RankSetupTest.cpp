//===- RankSetupTest.cpp - What a rank needs to open its part -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/RankSetup.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

RankSetup example() {
  return {.model = {.path = "model.gguf",
                    .dummy = {.seed = "",
                              .weightType = "q4_0",
                              .tokenizer = "folder"},
                    .float8 = Float8Weights::KeptIfAny},
          .device = {.device = "cpu", .threads = 3},
          .context = 4096,
          .parallelism = Parallelism::Pipeline};
}

TEST(RankSetup, ArrivesWhole) {
  const RankSetup sent = example();
  const Result<RankSetup> arrived = decodeSetup(encode(sent));
  ASSERT_TRUE(arrived.ok()) << arrived.message();
  EXPECT_EQ(arrived->model.path, sent.model.path);
  EXPECT_EQ(arrived->model.dummy.seed, sent.model.dummy.seed);
  EXPECT_EQ(arrived->model.dummy.weightType, sent.model.dummy.weightType);
  EXPECT_EQ(arrived->model.dummy.tokenizer, sent.model.dummy.tokenizer);
  EXPECT_EQ(arrived->model.float8, sent.model.float8);
  EXPECT_EQ(arrived->device.device, sent.device.device);
  EXPECT_EQ(arrived->device.threads, sent.device.threads);
  EXPECT_EQ(arrived->context, sent.context);
  EXPECT_EQ(arrived->parallelism, sent.parallelism);
  EXPECT_EQ(decodeSetup(encode(RankSetup()))->model.dummy.seed, std::nullopt);
}

TEST(RankSetup, IsNothingElse) {
  const std::string whole = encode(example());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(decodeSetup(std::string_view(whole).substr(0, length)).message(),
              "the leading rank begins with what says no model");
  EXPECT_FALSE(decodeSetup(whole + "x").ok());
  EXPECT_FALSE(decodeSetup(whole.substr(0, whole.size() - 1) + "\x03").ok());
}

} // namespace
