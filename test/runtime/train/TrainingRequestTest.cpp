//===- TrainingRequestTest.cpp - What a training is asked for -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingRequest.h"

#include "../StatusAssertions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace kf;
using namespace kf::test;

namespace {

TrainingRequest adapter() {
  TrainingRequest request;
  request.run.data = "data.jsonl";
  request.run.output = "out";
  request.rank = 4;
  return request;
}

TEST(TrainingRequestTest, WhatIsLeftOut) {
  TrainingRequest request = adapter();
  ASSERT_TRUE(succeeds(request.complete()));
  ASSERT_TRUE(request.lora);
  EXPECT_EQ(request.lora->rank, 4);
  EXPECT_EQ(request.lora->alpha, 8);
  EXPECT_EQ(request.lora->targets,
            std::vector<std::string>{std::string(kAllLinear)});
  EXPECT_EQ(request.run.learningRate.peak, 2e-4);
  EXPECT_EQ(request.run.learningRate.decay, LearningRate::Decay::Linear);
  EXPECT_EQ(request.optimizer.weightDecay, 0);
  EXPECT_FALSE(request.run.fullModel);
  EXPECT_EQ(request.run.modelOptions.at("--lora"), "4");
  EXPECT_EQ(request.lora->dropout, 0);
  EXPECT_FALSE(request.run.modelOptions.contains("--lora-dropout"));
  EXPECT_EQ(request.recompute, Recompute::Layers);

  request = adapter();
  request.dropout = 0.1;
  ASSERT_TRUE(succeeds(request.complete()));
  EXPECT_EQ(request.lora->dropout, 0.1);
  EXPECT_EQ(request.run.modelOptions.at("--lora-dropout"), "0.1");

  // A checkpoint goes on with either.
  request = adapter();
  request.recomputeName = "cheap";
  ASSERT_TRUE(succeeds(request.complete()));
  EXPECT_EQ(request.recompute, Recompute::Cheap);
  EXPECT_FALSE(request.run.modelOptions.contains("--recompute"));

  request = adapter();
  request.rank.reset();
  request.full = true;
  request.model.path = "model";
  ASSERT_TRUE(succeeds(request.complete()));
  EXPECT_FALSE(request.lora);
  EXPECT_EQ(request.run.learningRate.peak, 2e-5);
  EXPECT_EQ(request.run.fullModel, "model");
}

TEST(TrainingRequestTest, Errors) {
  using Change = std::function<void(TrainingRequest &)>;
  for (const auto &[change, error] :
       std::vector<std::pair<Change, std::string>>{
           {[](auto &r) { r.run.data.clear(); }, "--data is missing"},
           {[](auto &r) { r.full = true; }, "--lora and --full exclude"},
           {[](auto &r) { r.rank.reset(); }, "give --lora RANK"},
           {[](auto &r) { r.targets = {""}; }, "--lora-targets has an empty"},
           {[](auto &r) { r.dropout = 1; }, "--lora-dropout is 1; a number"},
           {[](auto &r) { r.dropout = 0.99999999; },
            "--lora-dropout is 0.99999999, which is 1 as f32; a number"},
           {[](auto &r) { r.momentum = 0.5; }, "--momentum is for --optimizer"},
           {[](auto &r) { r.beta1 = 1; }, "--beta1 is 1; a number"},
           {[](auto &r) { r.rate = NAN; }, "--learning-rate is nan; a finite"},
           {[](auto &r) { r.rate = -1; }, "--learning-rate is -1; a finite"},
           {[](auto &r) { r.minimumRate = 1; }, "--min-learning-rate is more"},
           {[](auto &r) { r.schedule = "step"; },
            "--schedule is 'step'; one of constant, linear, cosine"},
           {[](auto &r) { r.optimizerName = "lion"; }, "--optimizer is 'lion'"},
           {[](auto &r) { r.longName = ""; }, "--long is ''; one of cut, drop"},
           {[](auto &r) { r.recomputeName = "all"; },
            "--recompute is 'all'; one of layers, cheap"},
           {[](auto &r) { r.run.evalEvery = 1; }, "--eval-every needs"}}) {
    TrainingRequest request = adapter();
    change(request);
    EXPECT_TRUE(failsWith(request.complete(), error));
  }
}

} // namespace
