//===- NgramDrafterTest.cpp - Drafts from what a text has said ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/NgramDrafter.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

using Ids = std::vector<int32_t>;

void acceptAll(NgramDrafter &drafter, const Ids &ids) {
  for (int32_t id : ids)
    drafter.accept(id);
}

Ids draft(NgramDrafter &drafter, size_t most) {
  const std::span<const int32_t> ids = drafter.draft(most);
  return Ids(ids.begin(), ids.end());
}

TEST(NgramDrafter, WhatFollowedTheLastTokens) {
  NgramDrafter drafter({.longest = 3, .shortest = 2, .most = 8});
  EXPECT_EQ(draft(drafter, 8), Ids());
  acceptAll(drafter, {1, 2, 3, 4, 5, 6, 9});
  EXPECT_EQ(draft(drafter, 8), Ids()); // 9 is new
  acceptAll(drafter, {2, 3});
  EXPECT_EQ(draft(drafter, 3), Ids({4, 5, 6}));
  EXPECT_EQ(draft(drafter, 0), Ids());
  // As if the text went on with what is drafted.
  EXPECT_EQ(draft(drafter, 8), Ids({4, 5, 6, 9, 2, 3, 4, 5}));
}

TEST(NgramDrafter, TheLongestAndTheLastOfThem) {
  NgramDrafter drafter({.longest = 3, .shortest = 1, .most = 1});
  acceptAll(drafter, {7, 1, 2, 5, 8, 1, 2, 6, 7, 1, 2});
  EXPECT_EQ(draft(drafter, 1), Ids({5})); // behind 7 1 2, not behind 1 2
  NgramDrafter shorter({.longest = 2, .shortest = 1, .most = 1});
  acceptAll(shorter, {7, 1, 2, 5, 8, 1, 2, 6, 7, 1, 2});
  EXPECT_EQ(draft(shorter, 1), Ids({6})); // where it stood last
  NgramDrafter one({.longest = 1, .shortest = 2, .most = 4});
  acceptAll(one, {3, 3});
  EXPECT_EQ(draft(one, 8), Ids({3, 3, 3, 3}));
}

TEST(NgramDrafter, DraftsAsManyAsWereAccepted) {
  NgramDrafter drafter({.longest = 2, .shortest = 2, .most = 8});
  acceptAll(drafter, {1, 2, 1, 2, 1, 2});
  EXPECT_EQ(draft(drafter, 20).size(), 8u);
  drafter.learn(2);
  EXPECT_EQ(draft(drafter, 20).size(), 3u);
  drafter.learn(3);
  EXPECT_EQ(draft(drafter, 20).size(), 6u);
  drafter.learn(6);
  EXPECT_EQ(draft(drafter, 20).size(), 8u);
}

/// What is wrong again and again is drafted less often, but never for good.
TEST(NgramDrafter, RestsBehindRejectedDrafts) {
  NgramDrafter drafter({.longest = 1, .shortest = 1, .most = 4});
  size_t drafts = 0;
  for (int i = 0; i < 1000; ++i) {
    drafter.accept(i % 2);
    if (!drafter.draft(4).empty()) {
      ++drafts;
      drafter.learn(0);
    }
  }
  EXPECT_GT(drafts, 1000u / 32);
  EXPECT_LT(drafts, 1000u / 20);
  // One that comes true, and nothing rests.
  while (drafter.draft(4).empty())
    drafter.accept(0);
  drafter.learn(1);
  drafter.accept(0);
  EXPECT_FALSE(drafter.draft(4).empty());
}

} // namespace
