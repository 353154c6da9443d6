//===- CountWorkTest.cpp - What kernels have to move and compute ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/CountWork.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using ::kf::KernelWork;
using ::kf::SizedCount;

namespace {

class CountWorkTest : public ::testing::Test {
protected:
  /// The kernel of `text`, which has one.
  mlir::kf::KernelOp parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module ? *module->getOps<mlir::kf::KernelOp>().begin()
                  : mlir::kf::KernelOp();
  }
  std::optional<KernelWork> workOf(const std::string &text) {
    const mlir::kf::KernelOp kernel = parse(text);
    return kernel ? mlir::kf::countWork(kernel) : std::nullopt;
  }

  static DialectRegistry registry() {
    DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    return registry;
  }

  MLIRContext context{registry(), MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
};

SizedCount count(uint64_t constant, uint64_t perRow) {
  SizedCount result;
  result.constant = constant;
  result.perSize[KF_SCALAR_N_TOKENS] = perRow;
  return result;
}

std::string product(const std::string &schedule) {
  return std::string(R"(
    kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<8x64x!kf.quant<q4_0>>) -> tensor<?x8xf32> )") +
         schedule + R"( {
      %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<8x64x!kf.quant<q4_0>>
      kf.yield %0 : tensor<?x8xf32>
    })";
}

TEST_F(CountWorkTest, OfAProductItsWeightsOnceAndItsRows) {
  const auto work = workOf(product(""));
  ASSERT_TRUE(work);
  // Blocks of 32 have 18 bytes; rows of 64 floats come, of 8 go.
  EXPECT_EQ(work->bytes, count(8 * 2 * 18, 4 * (64 + 8)));
  EXPECT_EQ(work->flops, count(0, 2 * 64 * 8));
  EXPECT_EQ(work->int8Ops, count(0, 0));
  EXPECT_FALSE(work->keys);
}

TEST_F(CountWorkTest, OfAProductInBytesOrTilesIsWhatTheScheduleSays) {
  auto workBy = [&](const std::string &dot) {
    return workOf(product("attributes {schedule = #kf.vector<workgroup = [1, "
                          "64], tile = [1, 16], lanes = 16, dot = " +
                          dot + ">}"));
  };
  const auto work = workBy("i8");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->flops, count(0, 0));
  EXPECT_EQ(work->int8Ops, count(0, 2 * 64 * 8));
  EXPECT_EQ(workBy("s8"), work);
  const auto floats = workBy("bf16");
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->bf16Flops, count(0, 2 * 64 * 8));
  EXPECT_EQ(floats->flops, count(0, 0));
  EXPECT_EQ(floats->int8Ops, count(0, 0));
}

TEST_F(CountWorkTest, OfANormIsAFewOperationsForEachElement) {
  const auto work = workOf(R"(
    kf.kernel @k(%x: tensor<3x64xf32>, %w: tensor<64xf32>) -> tensor<3x64xf32> {
      %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<3x64xf32>, tensor<64xf32>
      %1 = arith.addf %0, %x : tensor<3x64xf32>
      kf.yield %1 : tensor<3x64xf32>
    })");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->bytes, count(4 * (3 * 64 + 64 + 3 * 64), 0));
  EXPECT_EQ(work->flops, count((4 + 1) * 3 * 64, 0));
}

TEST_F(CountWorkTest, OfATableTheRowsThatAreTaken) {
  const auto work = workOf(R"(
    kf.kernel @k(%i: tensor<?xi32>, %w: tensor<50x4xf16>) -> tensor<?x4xf32> {
      %0 = kf.embedding %i, %w : tensor<?xi32>, tensor<50x4xf16>
      kf.yield %0 : tensor<?x4xf32>
    })");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->bytes, count(0, 4 + 4 * 2 + 4 * 4));
  EXPECT_EQ(work->flops, count(0, 0));
}

std::string attention(const char *window) {
  return std::string(R"(
    !cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 4, type = f16>
    kf.kernel @k(%q: tensor<?x4x4xf32>, %p: tensor<?xi32>, %c: !cache, %s: tensor<?xi32>, %t: tensor<1x16xi32>) -> tensor<?x4x4xf32> {
      %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32)") +
         window + R"(}
          : tensor<?x4x4xf32>, !cache, tensor<?xi32>, tensor<1x16xi32>
      kf.yield %0 : tensor<?x4x4xf32>
    })";
}

TEST_F(CountWorkTest, OfAttentionWhatTheRowsSee) {
  const auto work = workOf(attention(""));
  ASSERT_TRUE(work);
  EXPECT_EQ(work->bytes, count(16 * 4, 4 * (16 + 1 + 1 + 16)));
  ASSERT_TRUE(work->keys);
  // Operands 1 and 3; a key and a value of 2 heads; products with 4 heads'.
  EXPECT_EQ(*work->keys, (::kf::KeyWork{.positions = 1,
                                        .sequences = 3,
                                        .window = {},
                                        .bytesPerKey = 2 * 2 * 4 * 2,
                                        .flopsPerKey = 2 * 2 * 4 * 4}));
  EXPECT_EQ(workOf(attention(", window = 5 : i64"))->keys->window,
            ::kf::KeyWindow{5});
  EXPECT_EQ(workOf(attention(", window = 5 : i64, chunked"))->keys->window,
            (::kf::KeyWindow{5, true}));
}

TEST_F(CountWorkTest, OfAttentionByTilesProductsOfBF16) {
  std::string text = attention("");
  EXPECT_FALSE(workOf(text)->multipliesBF16());
  const std::string result = "tensor<?x4x4xf32> {";
  const size_t body = text.find(result);
  ASSERT_NE(body, std::string::npos);
  text.insert(body + result.size() - 1,
              "attributes {schedule = #kf.vector<dot = bf16>} ");
  const auto work = workOf(text);
  ASSERT_TRUE(work && work->keys);
  EXPECT_TRUE(work->keys->inBF16);
  EXPECT_TRUE(work->multipliesBF16());
}

TEST_F(CountWorkTest, OfStatesWhatTheSequencesHave) {
  auto workOfStates = [&](const std::string &states) {
    return workOf(R"(
    !cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>
    kf.kernel @k(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %c: !cache, %p: tensor<?xi32>, %s: )" +
                  states + R"() -> tensor<?x4x8xf32> {
      %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, )" +
                  states + R"(
      kf.yield %0 : tensor<?x4x8xf32>
    })");
  };
  const auto work = workOfStates("tensor<3xi32>");
  ASSERT_TRUE(work);
  // Rows of q, which is k here, v, a, a position and the result; three states.
  EXPECT_EQ(work->bytes, count(4 * (64 * 4 + 4 + 3) + 3 * 2 * 4 * 4 * 136,
                               4 * (16 + 32 + 4 + 1 + 32)));
  EXPECT_EQ(work->flops, count(0, 4 * (7 * 8 * 8 + 2 * 4 * 24)));
  SizedCount bytes = count(4 * (64 * 4 + 4), 4 * (16 + 32 + 4 + 1 + 32));
  bytes.perSize[KF_SCALAR_N_TOKENS] += 4 + 2 * 4 * 4 * 136;
  EXPECT_EQ(workOfStates("tensor<?xi32>")->bytes, bytes);
}

TEST_F(CountWorkTest, CountsNothingThatItDoesNotKnow) {
  const std::string text = R"(
    kf.kernel @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {grid = #kf.grid<tokens = [0, 0], counts = [1, 1]>} {
      kf.yield %x : tensor<4x4xf32>
    })";
  EXPECT_FALSE(workOf(text));
  EXPECT_EQ(mlir::kf::countBytes(parse(text), 1), 2 * 4 * 4 * 4);
}

TEST_F(CountWorkTest, BytesAreThoseOfSoManyRows) {
  EXPECT_EQ(mlir::kf::countBytes(parse(product("")), 10),
            8 * 2 * 18 + 10 * 4 * (64 + 8));
}

} // namespace
