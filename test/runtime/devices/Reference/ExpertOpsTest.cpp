//===- ExpertOpsTest.cpp - Feed-forward blocks of several experts ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "ReferenceTestUtils.h"

namespace kf::reference {
namespace {

/// What route() makes of `logits`, whose experts have to be `experts`.
std::vector<float> expectRoutes(const Tensor &logits, int64_t top,
                                bool normalized,
                                const std::vector<int32_t> &experts) {
  Result<std::vector<Tensor>> routes =
      route(logits.view(), {.top = top, .normalized = normalized});
  EXPECT_TRUE(routes.ok()) << routes.message();
  if (!routes.ok())
    return {};
  EXPECT_EQ(routes->size(), 2u);
  const int64_t rows = logits.shape[0];
  for (const Tensor &part : *routes)
    EXPECT_EQ(part.shape, (std::vector<int64_t>{rows, top}));
  Tensor &chosen = (*routes)[0];
  EXPECT_EQ(std::vector<int32_t>(chosen.ints(), chosen.ints() + rows * top),
            experts);
  const float *weights = (*routes)[1].floats();
  return {weights, weights + rows * top};
}

void expectNear(const std::vector<float> &found,
                const std::vector<float> &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6) << "at " << i;
}

TEST(Route, ChoosesTheLargest) {
  // exp: 1, 4, 2, 1 of 8, and the other way.
  const float log2 = std::log(2.0f), log4 = std::log(4.0f);
  Tensor logits = makeTensor({2, 4}, {0, log4, log2, 0, 0, log2, log4, 0});
  expectNear(expectRoutes(logits, 2, false, {1, 2, 2, 1}),
             {0.5, 0.25, 0.5, 0.25});
  expectNear(expectRoutes(logits, 2, true, {1, 2, 2, 1}),
             {2 / 3.0f, 1 / 3.0f, 2 / 3.0f, 1 / 3.0f});
}

TEST(Route, ScalesMultiplyTheWeightsOfTheirExperts) {
  Tensor logits = makeTensor({2, 3}, {5, 5, 0, 0, 1, 1});
  Tensor scales = makeTensor({3}, {2, 4, 8});
  const TensorView view = scales.view();
  auto routes = route(logits.view(), {.top = 2, .normalized = true}, &view);
  ASSERT_TRUE(routes.ok()) << routes.message();
  const float *weights = (*routes)[1].floats();
  expectNear({weights, weights + 4}, {1, 2, 2, 4});
  Tensor few = makeTensor({2}, {1, 1});
  const TensorView wrong = few.view();
  EXPECT_EQ(route(logits.view(), {.top = 2}, &wrong).message(),
            "kf.route C4: scales are 2xf32, not [3] of float elements");
}

TEST(Route, OfEqualsTheFirstIsLarger) {
  Tensor logits = makeTensor({1, 5}, {1, 7, 7, 1, 7});
  expectNear(expectRoutes(logits, 4, true, {1, 2, 4, 0}),
             {0.333058f, 0.333058f, 0.333058f, 0.000826f});
}

TEST(Route, LargeLogitsDoNotOverflow) {
  Tensor logits = makeTensor({1, 3}, {-1e30f, 1e30f, 88});
  expectNear(expectRoutes(logits, 2, false, {1, 2}), {1, 0});
}

TEST(Route, NaNIsSmall) {
  Tensor logits = makeTensor({1, 4}, {kNan, -1, kNan, 2});
  expectNear(expectRoutes(logits, 2, true, {3, 1}), {0.952574f, 0.047426f});
  for (float weight : expectRoutes(logits, 2, false, {3, 1}))
    EXPECT_TRUE(std::isnan(weight));
  Tensor all = makeTensor({1, 2}, {kNan, kNan});
  for (float weight : expectRoutes(all, 1, true, {0}))
    EXPECT_TRUE(std::isnan(weight));
}

TEST(Route, SigmoidsStandAlone) {
  const float log3 = std::log(3.0f);
  Tensor logits = makeTensor({1, 4}, {0, log3, kNan, -log3});
  auto weightsOf = [&](const RouteOptions &options) -> std::vector<float> {
    auto routes = route(logits.view(), options);
    EXPECT_TRUE(routes.ok()) << routes.message();
    const float *weights = (*routes)[1].floats();
    return {weights, weights + options.top};
  };
  expectNear(weightsOf({.top = 3, .sigmoid = true}), {0.75f, 0.5f, 0.25f});
  expectNear(weightsOf({.top = 2, .sigmoid = true, .normalized = true}),
             {0.6f, 0.4f});
  EXPECT_TRUE(std::isnan(weightsOf({.top = 4, .sigmoid = true}).back()));
  // A sum has it.
  for (float weight :
       weightsOf({.top = 4, .sigmoid = true, .normalized = true}))
    EXPECT_TRUE(std::isnan(weight));
  // Nothing is divided by 0.
  logits = makeTensor({1, 2}, {-200, -300});
  expectNear(weightsOf({.top = 1, .sigmoid = true, .normalized = true}), {0});
}

TEST(Route, BiasesChooseWithoutCounting) {
  const float log3 = std::log(3.0f);
  Tensor logits = makeTensor({2, 4}, {0, log3, -log3, 0, log3, 0, 0, -log3});
  Tensor offsets = makeTensor({4}, {0, -1, 0.5f, 0});
  const TensorView bias = offsets.view();
  auto routes =
      route(logits.view(), {.top = 2, .sigmoid = true}, nullptr, &bias);
  ASSERT_TRUE(routes.ok()) << routes.message();
  // Sums are 0.5, -0.25, 0.75, 0.5, and 0.75, -0.5, 1, 0.25.
  const int32_t *experts = (*routes)[0].ints();
  EXPECT_EQ(std::vector<int32_t>(experts, experts + 4),
            (std::vector<int32_t>{2, 0, 2, 0}));
  const float *weights = (*routes)[1].floats();
  expectNear({weights, weights + 4}, {0.25f, 0.5f, 0.5f, 0.75f});
}

TEST(Route, GroupsOfTheLargestSumsAreKept) {
  // The largest expert is alone in its group, and the group that is kept has
  // the largest two.
  const float log3 = std::log(3.0f);
  Tensor logits = makeTensor({1, 6}, {9, -9, -9, log3, log3, 0});
  Tensor zeros = makeTensor({6}, std::vector<float>(6, 0));
  const TensorView bias = zeros.view();
  RouteOptions options = {
      .top = 2, .sigmoid = true, .groups = 2, .keptGroups = 1};
  auto routes = route(logits.view(), options, nullptr, &bias);
  ASSERT_TRUE(routes.ok()) << routes.message();
  const int32_t *experts = (*routes)[0].ints();
  EXPECT_EQ(std::vector<int32_t>(experts, experts + 2),
            (std::vector<int32_t>{3, 4}));
  options.keptGroups = 2;
  routes = route(logits.view(), options, nullptr, &bias);
  ASSERT_TRUE(routes.ok()) << routes.message();
  EXPECT_EQ((*routes)[0].ints()[0], 0);
  for (auto [groups, kept] :
       {std::pair(6, 2), std::pair(4, 2), std::pair(2, 0), std::pair(2, 3)}) {
    options.groups = groups;
    options.keptGroups = kept;
    EXPECT_NE(route(logits.view(), options, nullptr, &bias)
                  .message()
                  .find("kf.route C5"),
              std::string::npos);
  }
  EXPECT_NE(route(logits.view(), {}, nullptr, &bias)
                .message()
                .find("kf.route C5: bias needs sigmoid"),
            std::string::npos);
}

/// Where the groups that are kept have too few numbers.
TEST(Route, OfEqualsInGroupsTheFirstIsLarger) {
  Tensor logits = makeTensor({1, 6}, {-9, -9, -9, 3, 2, kNan});
  Tensor zeros = makeTensor({6}, std::vector<float>(6, 0));
  const TensorView bias = zeros.view();
  auto routes = route(logits.view(),
                      {.top = 3, .sigmoid = true, .groups = 2, .keptGroups = 1},
                      nullptr, &bias);
  ASSERT_TRUE(routes.ok()) << routes.message();
  const int32_t *experts = (*routes)[0].ints();
  EXPECT_EQ(std::vector<int32_t>(experts, experts + 3),
            (std::vector<int32_t>{3, 4, 0}));
}

TEST(Route, RejectsWrongOperands) {
  Tensor row = makeTensor({2}, {1, 2}), logits = makeTensor({1, 2}, {1, 2});
  EXPECT_NE(route(row.view(), {.top = 1}).message().find("kf.route C1"),
            std::string::npos);
  for (int64_t top : {0, 3})
    EXPECT_NE(route(logits.view(), {.top = top}).message().find("kf.route C2"),
              std::string::npos);
}

/// Rows of i32.
Tensor makeExperts(std::vector<int64_t> shape,
                   const std::vector<int32_t> &values) {
  Tensor tensor = makeInts(values);
  tensor.shape = std::move(shape);
  return tensor;
}

TEST(ExpertMatmul, EachRowHasItsExperts) {
  Tensor x = makeTensor({2, 2}, {1, 2, 3, 4});
  Tensor w = makeTensor({1, 3, 1, 2}, {1, 0, 0, 1, 1, 1});
  Tensor experts = makeExperts({2, 2}, {0, 2, 1, 1});
  Result<Tensor> product =
      expertMatmul(x.view(), experts.view(), w.view(), nullptr, std::nullopt);
  expectShape(product, {2, 2, 1});
  expectFloats(product, {1, 3, 4, 4});
  // A row for each of them.
  Tensor each = makeTensor({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  expectFloats(expertMatmul(each.view(), experts.view(), w.view(), nullptr,
                            std::nullopt),
               {1, 7, 6, 8});
}

TEST(ExpertMatmul, GatesAndBiases) {
  Tensor x = makeTensor({1, 1}, {2});
  // Gates 1, -1; ups 3, 5.
  Tensor w = makeTensor({2, 2, 1, 1}, {1, -1, 3, 5});
  Tensor offsets = makeTensor({2, 2, 1}, {0, 5, 1, 0});
  TensorView bias = offsets.view();
  Tensor experts = makeExperts({1, 2}, {0, 1});
  expectFloats(expertMatmul(x.view(), experts.view(), w.view(), nullptr,
                            Glu{Activation::Relu}),
               {2 * 6, 0});
  expectFloats(expertMatmul(x.view(), experts.view(), w.view(), &bias,
                            Glu{Activation::Relu}),
               {2 * 7, 3 * 10});
}

TEST(ExpertMatmul, BoundsGates) {
  Tensor x = makeTensor({1, 1}, {1});
  Tensor w = makeTensor({2, 4, 1, 1}, {5, -5, 1, kNan, 9, -9, 1, 0});
  Tensor experts = makeExperts({1, 4}, {0, 1, 2, 3});
  const Glu glu = {Activation::Silu, GluClamp{.limit = 2, .alpha = 2}};
  Result<Tensor> product =
      expertMatmul(x.view(), experts.view(), w.view(), nullptr, glu);
  ASSERT_TRUE(product.ok()) << product.message();
  // 2 and 2, -5 and -2, 1 and 1: g / (1 + exp(-2 g)) * (u + 1).
  EXPECT_NEAR(product->floats()[0], 5.892083f, 1e-5);
  EXPECT_NEAR(product->floats()[1], 0.000226989f, 1e-7);
  EXPECT_NEAR(product->floats()[2], 1.761594f, 1e-5);
  EXPECT_TRUE(std::isnan(product->floats()[3]));
}

TEST(ExpertMatmul, TakesTheNearestExpert) {
  Tensor x = makeTensor({1, 1}, {1});
  Tensor w = makeTensor({1, 2, 1, 1}, {3, 5});
  Tensor experts = makeExperts({1, 4}, {-1, INT32_MIN, 2, INT32_MAX});
  expectFloats(
      expertMatmul(x.view(), experts.view(), w.view(), nullptr, std::nullopt),
      {3, 3, 5, 5});
}

TEST(ExpertMatmul, RejectsWrongOperands) {
  Tensor x = makeTensor({2, 2}, {1, 2, 3, 4});
  Tensor w = makeTensor({1, 1, 1, 2}, {1, 2});
  Tensor experts = makeExperts({2, 1}, {0, 0});
  auto product = [&](const Tensor &rows, const Tensor &chosen,
                     const Tensor &weight, const TensorView *bias,
                     std::optional<Glu> glu) {
    return expertMatmul(rows.view(), chosen.view(), weight.view(), bias, glu);
  };
  Tensor vector = makeTensor({2}, {1, 2}), wide = makeTensor({2, 1}, {1, 2});
  TensorView bias = vector.view();
  expectError(product(vector, experts, w, nullptr, {}), "kf.expert_matmul C1");
  expectError(product(x, makeExperts({1, 2}, {0, 0}), w, nullptr, {}),
              "kf.expert_matmul C2");
  expectError(product(x, wide, w, nullptr, {}), "kf.expert_matmul C2");
  expectError(product(x, experts, x, nullptr, {}), "kf.expert_matmul C3");
  expectError(product(x, experts, w, nullptr, Glu{}), "kf.expert_matmul C3");
  expectError(product(wide, experts, w, nullptr, {}), "kf.expert_matmul C4");
  expectError(product(x, experts, w, &bias, {}), "kf.expert_matmul C5");
}

} // namespace
} // namespace kf::reference
