//===- OutputRolesTest.cpp - Tests of what outputs mean -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/OutputRoles.h"

#include "ParsedProgram.h"

#include <gtest/gtest.h>

using namespace mlir;
using ::kf::KernelOutput;

namespace {

/// Of a program that gives, as `outputs` says, results of a dispatch %0: f32
/// elements, outliers of these, and the rounded ones.
std::vector<KernelOutput> rolesOf(const std::string &outputs) {
  const std::string text = R"(
    kf.program @p(%x: tensor<?x16xf32>) -> ()" +
                           outputs.substr(outputs.find(':') + 1) +
                           R"() attributes {max_tokens = 4 : i64} {
      %0:3 = kf.dispatch @k(%x) : (tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf16>)
      kf.yield )" + outputs +
                           R"(
    }
    kf.kernel @k(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf16>) {
      %0 = arith.addf %x, %x : tensor<?x16xf32>
      %rounded, %outliers = kf.round_half %0 : tensor<?x16xf32>
      kf.yield %0, %outliers, %rounded : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf16>
    })";
  return askProgram(text, mlir::kf::getOutputRoles);
}

TEST(OutputRolesTest, OutliersOfRoundedElements) {
  EXPECT_EQ(rolesOf("%0#0, %0#1, %0#2 : tensor<?x16xf32>, tensor<?x16xf32>, "
                    "tensor<?x16xf16>"),
            (std::vector<KernelOutput>{{}, {.rounded = 2}, {}}));
  EXPECT_EQ(rolesOf("%0#2, %0#1 : tensor<?x16xf16>, tensor<?x16xf32>"),
            (std::vector<KernelOutput>{{}, {.rounded = 0}}));
}

/// Nobody could tell which of them are read.
TEST(OutputRolesTest, OutliersAlone) {
  EXPECT_EQ(rolesOf("%0#1, %0#0 : tensor<?x16xf32>, tensor<?x16xf32>"),
            std::vector<KernelOutput>(2));
}

} // namespace
