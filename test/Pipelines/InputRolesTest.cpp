//===- InputRolesTest.cpp - Tests of what inputs mean ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/InputRoles.h"

#include "ParsedProgram.h"

#include <gtest/gtest.h>

using namespace mlir;
using ::kf::KernelInput;
using Role = ::kf::KernelInput::Role;

namespace {

std::vector<KernelInput> rolesOf(const char *text) {
  return askProgram(text, mlir::kf::getInputRoles);
}

TEST(InputRolesTest, PlacesOfRows) {
  const auto roles = rolesOf(R"(
    !cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 4, type = f16>
    kf.program @p(%c: !cache, %x: tensor<?x16xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x16xi32>) -> tensor<?x4x4xf32> attributes {max_tokens = 4 : i64} {
      %0 = kf.dispatch @k(%x, %p, %c, %s, %t) : (tensor<?x16xf32>, tensor<?xi32>, !cache, tensor<?xi32>, tensor<1x16xi32>) -> tensor<?x4x4xf32>
      kf.yield %0 : tensor<?x4x4xf32>
    }
    kf.kernel @k(%x: tensor<?x16xf32>, %p: tensor<?xi32>, %c: !cache, %s: tensor<?xi32>, %t: tensor<1x16xi32>) -> tensor<?x4x4xf32> {
      %c0 = arith.constant 0 : index
      %d = tensor.dim %x, %c0 : tensor<?x16xf32>
      %q = tensor.expand_shape %x [[0], [1, 2]] output_shape [%d, 4, 4] : tensor<?x16xf32> into tensor<?x4x4xf32>
      %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32}
          : tensor<?x4x4xf32>, !cache, tensor<?xi32>, tensor<1x16xi32>
      kf.yield %0 : tensor<?x4x4xf32>
    })");
  ASSERT_EQ(roles.size(), 4u);
  EXPECT_EQ(roles[0], KernelInput());
  EXPECT_EQ(roles[1].role, Role::Positions);
  EXPECT_EQ(roles[2].role, Role::Sequences);
  EXPECT_EQ(roles[3].role, Role::PageTable);
}

TEST(InputRolesTest, SlotsOfSequences) {
  const auto roles = rolesOf(R"(
    !cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>
    kf.program @p(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2xi32>) -> tensor<?x4x8xf32> attributes {max_tokens = 4 : i64} {
      %0 = kf.dispatch @k(%q, %v, %a, %w, %d, %c, %p, %s, %t) : (tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<2xi32>) -> tensor<?x4x8xf32>
      kf.yield %0 : tensor<?x4x8xf32>
    }
    kf.kernel @k(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2xi32>) -> tensor<?x4x8xf32> {
      %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %s, %t {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<2xi32>
      kf.yield %0 : tensor<?x4x8xf32>
    })");
  ASSERT_EQ(roles.size(), 8u);
  EXPECT_EQ(roles[0].role, Role::Numbers);
  EXPECT_EQ(roles[5].role, Role::Positions);
  EXPECT_EQ(roles[6].role, Role::Sequences);
  EXPECT_EQ(roles[7].role, Role::Slots);
}

TEST(InputRolesTest, RowsOfCodesAndTheirSums) {
  const auto roles = rolesOf(R"(
    kf.program @p(%s: tensor<?x2xf32>, %u: tensor<?x2xi32>, %x: tensor<?x64xi8>) -> tensor<?x8xf32> attributes {max_tokens = 4 : i64} {
      %w = kf.weight ["w"] : tensor<8x64x!kf.quant<q4_0>>
      %0 = kf.dispatch @k(%x, %w, %s, %u) : (tensor<?x64xi8>, tensor<8x64x!kf.quant<q4_0>>, tensor<?x2xf32>, tensor<?x2xi32>) -> tensor<?x8xf32>
      kf.yield %0 : tensor<?x8xf32>
    }
    kf.kernel @k(%x: tensor<?x64xi8>, %w: tensor<8x64x!kf.quant<q4_0>>, %s: tensor<?x2xf32>, %u: tensor<?x2xi32>) -> tensor<?x8xf32> {
      %0 = kf.matmul %x scales(%s : tensor<?x2xf32>) sums(%u : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<8x64x!kf.quant<q4_0>>
      kf.yield %0 : tensor<?x8xf32>
    })");
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_EQ(roles[0].role, Role::Numbers);
  EXPECT_GT(roles[0].low, 0);
  EXPECT_EQ(roles[1].role, Role::CodeSums);
  EXPECT_EQ(roles[1].codes, 2u);
}

TEST(InputRolesTest, ExpertsOfRows) {
  const auto roles = rolesOf(R"(
    kf.program @p(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x8xf32> attributes {max_tokens = 4 : i64} {
      %w = kf.weight ["a", "b", "c"] {stacked} : tensor<1x3x8x64xf32>
      %0 = kf.dispatch @k(%x, %e, %w) : (tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x3x8x64xf32>) -> tensor<?x2x8xf32>
      kf.yield %0 : tensor<?x2x8xf32>
    }
    kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x3x8x64xf32>) -> tensor<?x2x8xf32> {
      %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x3x8x64xf32>
      kf.yield %0 : tensor<?x2x8xf32>
    })");
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles[0], KernelInput());
  EXPECT_EQ(roles[1], (KernelInput{Role::Numbers, 0, 3, 0}));
}

TEST(InputRolesTest, RowsOfTables) {
  const auto roles = rolesOf(R"(
    kf.program @p(%i: tensor<?xi32>, %j: tensor<?xi32>, %x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) attributes {max_tokens = 4 : i64} {
      %w = kf.weight ["w"] : tensor<50x4xf32>
      %0:2 = kf.dispatch @k(%i, %w, %j, %x) : (tensor<?xi32>, tensor<50x4xf32>, tensor<?xi32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
      kf.yield %0#0, %0#1 : tensor<?x4xf32>, tensor<?x4xf32>
    }
    kf.kernel @k(%i: tensor<?xi32>, %w: tensor<50x4xf32>, %j: tensor<?xi32>, %x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
      %0 = kf.embedding %i, %w : tensor<?xi32>, tensor<50x4xf32>
      %1 = kf.embedding %j, %x : tensor<?xi32>, tensor<?x4xf32>
      kf.yield %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
    })");
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_EQ(roles[0], (KernelInput{Role::Numbers, 0, 50, 0}));
  EXPECT_EQ(roles[1], (KernelInput{Role::Numbers, 0, 1, 0}));
}

TEST(InputRolesTest, SettingsOfSampling) {
  const auto roles = rolesOf(R"(
    kf.program @p(%x: tensor<2x40xf32>, %f: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf32>, %m: tensor<2xf32>, %s: tensor<2xi64>, %c: tensor<2xi32>) -> tensor<2xi32> attributes {max_tokens = 4 : i64} {
      %0 = kf.dispatch @k(%x, %f, %k, %p, %m, %s, %c) : (tensor<2x40xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>, tensor<2xi32>) -> tensor<2xi32>
      kf.yield %0 : tensor<2xi32>
    }
    kf.kernel @k(%x: tensor<2x40xf32>, %f: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf32>, %m: tensor<2xf32>, %s: tensor<2xi64>, %c: tensor<2xi32>) -> tensor<2xi32> {
      %0 = kf.sample %x temperature(%f) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
          : (tensor<2x40xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>, tensor<2xi32>)
      kf.yield %0 : tensor<2xi32>
    })");
  ASSERT_EQ(roles.size(), 7u);
  // None is out of its range, which would choose no token.
  EXPECT_GE(roles[1].low, 0);
  EXPECT_GE(roles[2].low, 0);
  EXPECT_GT(roles[3].low, 0);
  EXPECT_LE(roles[3].high, 1);
  EXPECT_GE(roles[4].low, 0);
  EXPECT_LE(roles[4].high, 1);
}

} // namespace
