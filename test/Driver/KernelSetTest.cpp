//===- KernelSetTest.cpp - Tests of the kernels of a program --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/Compiler.h"

#include "gtest/gtest.h"

using namespace kf;

namespace {

/// Gate and up of a block on NVIDIA's matrix units: its rounded rows come with
/// outliers, which is all that is special of its results.
TEST(KernelSetTest, SaysWhichOutputsAreOutliers) {
  auto module = CompilerModule::parseText(R"(
    func.func @f(%x: tensor<?x64xf16>) -> tensor<?x64xf32> {
      %w = kf.weight ["w"] : tensor<2x128x64xf16>
      %d = kf.weight ["d"] : tensor<64x128xf16>
      %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x64xf16>, tensor<2x128x64xf16>
      %1 = kf.matmul %0, %d : tensor<?x128xf32>, tensor<64x128xf16>
      return %1 : tensor<?x64xf32>
    })",
                                          "text", "", /*single=*/true);
  ASSERT_TRUE(module.ok()) << module.message();
  CompilerOptions options;
  options.target = "cuda";
  options.targetCpu = "sm_90a";
  options.maxTokens = 64;
  auto kernels = module->kernels(options);
  ASSERT_TRUE(kernels.ok()) << kernels.message();
  const std::vector<KernelInfo> &list = kernels->list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "matmul_round_half_0");
  EXPECT_EQ(list[0].outputs, (std::vector<KernelOutput>{{}, {.rounded = 0}}));
  EXPECT_EQ(list[1].outputs, std::vector<KernelOutput>(1));
}

} // namespace
