//===- PagePoolTest.cpp - Sharing, copying, keeping and evicting pages ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PagePool.h"

#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <optional>

using namespace kf;
using namespace kf::test;

namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<PagePool> makePool(int64_t pages,
                                   const CacheWindows &windows = {}) {
  auto pool = PagePool::create(pages, /*slots=*/0, /*kinds=*/1, windows);
  EXPECT_TRUE(succeeds(pool.status()));
  return pool.take();
}

/// first, first + 1, ...: `count` tokens.
Ids range(int32_t first, int64_t count) {
  Ids ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Ids join(Ids ids, const Ids &more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

Ids pagesOf(const PagedSequence &sequence) {
  return Ids(sequence.pages().begin(), sequence.pages().end());
}

Ids idsOf(const PagedSequence &sequence) {
  return Ids(sequence.ids().begin(), sequence.ids().end());
}

/// One step that succeeds. Returns what had to be copied.
std::vector<PageCopy> append(PagedSequence &sequence, const Ids &ids) {
  std::vector<PageCopy> copies;
  EXPECT_TRUE(succeeds(sequence.reserve(ids.size(), copies)));
  sequence.commit(ids);
  return copies;
}

/// A sequence of `ids`, of which it finds what there is.
PagedSequence compute(PagePool &pool, const Ids &ids) {
  PagedSequence sequence(pool);
  auto reused = sequence.reusePrefix(ids);
  EXPECT_TRUE(succeeds(reused.status()));
  append(sequence, Ids(ids.begin() + *reused, ids.end()));
  return sequence;
}

/// How many of `ids` another sequence would find.
int64_t findable(PagePool &pool, const Ids &ids) {
  PagedSequence sequence(pool);
  return *sequence.reusePrefix(join(ids, {-1}));
}

template <typename... Sequences>
testing::AssertionResult isSound(const PagePool &pool,
                                 const Sequences &...living) {
  const std::vector<const PagedSequence *> all = {&living...};
  return succeeds(pool.check(all));
}

} // namespace

TEST(PagePool, SizesThatNoPoolHas) {
  for (int64_t pages :
       {std::numeric_limits<int64_t>::min(), int64_t(-1), int64_t(0),
        int64_t(std::numeric_limits<int32_t>::max()),
        std::numeric_limits<int64_t>::max()})
    EXPECT_TRUE(failsWith(PagePool::create(pages).status(),
                          "a KV cache of " + std::to_string(pages) + " pages"));
}

TEST(PagePool, PagesComeAndAreKept) {
  const auto pool = makePool(4);
  EXPECT_EQ(pool->free(), 4);
  {
    PagedSequence sequence(*pool);
    EXPECT_EQ(sequence.length(), 0);
    EXPECT_EQ(append(sequence, range(0, 64)).size(), 0u);
    EXPECT_EQ(sequence.pages().size(), 1u);
    EXPECT_EQ(append(sequence, {64}).size(), 0u);
    ASSERT_EQ(sequence.pages().size(), 2u);
    EXPECT_NE(sequence.pages()[0], sequence.pages()[1]);
    EXPECT_EQ(idsOf(sequence), range(0, 65));
    EXPECT_EQ(pool->used(), 2);
    EXPECT_EQ(pool->free(), 2);
    EXPECT_TRUE(isSound(*pool, sequence));
  }
  EXPECT_EQ(pool->used(), 0);
  EXPECT_EQ(pool->cached(), 2);
  EXPECT_EQ(pool->available(), 4);
  EXPECT_TRUE(isSound(*pool));
}

/// Those of three ranks: all that is found, copied and given back is by pages
/// of 192 positions.
TEST(PagePool, PagesMayHavePositionsOfSeveralRanks) {
  const auto pool =
      PagePool::create(6, /*slots=*/0, /*kinds=*/1, {}, 3 * 64).take();
  EXPECT_EQ(pool->pagePositions(), 192);
  PagedSequence sequence(*pool);
  EXPECT_EQ(append(sequence, range(0, 192)).size(), 0u);
  EXPECT_EQ(sequence.pages().size(), 1u);
  EXPECT_EQ(sequence.pagesFor(192), 1);
  EXPECT_EQ(sequence.pagesFor(193), 2);
  append(sequence, range(192, 200));
  ASSERT_EQ(sequence.pages().size(), 3u);
  EXPECT_EQ(findable(*pool, range(0, 600)), 392);
  EXPECT_EQ(findable(*pool, range(0, 300)), 300);
  EXPECT_TRUE(isSound(*pool, sequence));
  // Another one that goes on in the midst of a page copies it.
  PagedSequence other(*pool);
  ASSERT_EQ(*other.reusePrefix(range(0, 301)), 300);
  EXPECT_EQ(other.pages().size(), 2u);
  const std::vector<PageCopy> copies = append(other, {7, 8});
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, sequence.pages()[1]);
  EXPECT_EQ(copies[0].to, other.pages()[1]);
  EXPECT_EQ(pool->used(), 4);
  sequence.truncate(192);
  EXPECT_EQ(sequence.pages().size(), 1u);
  std::vector<PageCopy> none;
  EXPECT_EQ(sequence.reserve(6 * 192, none).message(),
            "the KV cache is full: 2 of its 6 pages of 192 positions are in "
            "use, and a sequence needs 6 more; give the cache more memory or "
            "run fewer sequences");
  EXPECT_TRUE(none.empty());
}

TEST(PagePool, OnlyCommittedTokensAreFound) {
  const auto pool = makePool(4);
  PagedSequence sequence(*pool);
  std::vector<PageCopy> copies;
  ASSERT_TRUE(succeeds(sequence.reserve(100, copies)));
  EXPECT_EQ(sequence.pages().size(), 2u);
  EXPECT_EQ(findable(*pool, range(0, 100)), 0);
  // The step failed; the next one is for fewer tokens, and not all are kept.
  ASSERT_TRUE(succeeds(sequence.reserve(80, copies)));
  EXPECT_TRUE(isSound(*pool, sequence));
  sequence.commit(range(0, 70));
  EXPECT_EQ(sequence.length(), 70);
  EXPECT_EQ(findable(*pool, range(0, 100)), 70);
  EXPECT_TRUE(copies.empty());
  // What was never written is not kept.
  ASSERT_TRUE(succeeds(sequence.reserve(100, copies)));
  sequence = PagedSequence(*pool);
  EXPECT_EQ(pool->cached(), 2);
  EXPECT_EQ(pool->free(), 2);
  EXPECT_TRUE(isSound(*pool, sequence));
}

TEST(PagePool, ReservedPagesAreGivenBack) {
  const auto pool = makePool(4);
  PagedSequence sequence = compute(*pool, range(0, 10));
  std::vector<PageCopy> copies;
  ASSERT_TRUE(succeeds(sequence.reserve(200, copies)));
  EXPECT_EQ(pool->used(), 4);
  sequence.truncate(10);
  EXPECT_EQ(pool->used(), 1);
  EXPECT_EQ(pool->free(), 3);
  // By what takes their place, too.
  PagedSequence other(*pool);
  ASSERT_TRUE(succeeds(other.reserve(192, copies)));
  EXPECT_EQ(*other.reusePrefix(range(0, 9)), 8);
  EXPECT_EQ(pool->used(), 1);
  EXPECT_TRUE(isSound(*pool, sequence, other));
}

TEST(PagePool, ACommonBeginningIsShared) {
  const auto pool = makePool(8);
  PagedSequence first = compute(*pool, range(0, 140));
  PagedSequence second(*pool);
  EXPECT_EQ(*second.reusePrefix(join(range(0, 135), range(500, 60))), 135);
  EXPECT_EQ(idsOf(second), range(0, 135));
  EXPECT_EQ(pool->used(), 3);
  EXPECT_EQ(pagesOf(second), pagesOf(first));

  // The last page is shared in part: it is copied before it is written.
  EXPECT_EQ(second.pagesFor(57), 1);
  const auto copies = append(second, range(500, 57));
  ASSERT_EQ(second.pages().size(), 3u);
  EXPECT_EQ(copies,
            (std::vector<PageCopy>{{first.pages()[2], second.pages()[2]}}));
  EXPECT_NE(first.pages()[2], second.pages()[2]);
  EXPECT_EQ(second.pages()[1], first.pages()[1]);
  EXPECT_TRUE(append(first, range(140, 1)).empty());
  EXPECT_EQ(findable(*pool, range(0, 141)), 141);
  EXPECT_EQ(findable(*pool, join(range(0, 135), range(500, 57))), 192);
  EXPECT_TRUE(isSound(*pool, first, second));
}

TEST(PagePool, TheLastTokenIsReadAgain) {
  const auto pool = makePool(8);
  const PagedSequence first = compute(*pool, range(0, 128));
  for (int64_t length : {0, 1, 2, 64, 65, 128}) {
    PagedSequence second(*pool);
    EXPECT_EQ(*second.reusePrefix(range(0, length)),
              std::max<int64_t>(length - 1, 0));
    EXPECT_TRUE(isSound(*pool, first, second));
  }
}

TEST(PagePool, AnEndedSequenceIsReused) {
  const auto pool = makePool(8);
  Ids pages;
  {
    const PagedSequence first = compute(*pool, range(0, 140));
    pages = pagesOf(first);
  }
  EXPECT_EQ(pool->cached(), 3);
  PagedSequence second(*pool);
  EXPECT_EQ(*second.reusePrefix(range(0, 134)), 133);
  EXPECT_EQ(pagesOf(second), pages);
  EXPECT_EQ(pool->cached(), 0);
  // There is room: what is kept in the last page stays.
  EXPECT_EQ(second.pagesFor(1), 0);
  EXPECT_EQ(append(second, {-2}),
            (std::vector<PageCopy>{{pages[2], second.pages()[2]}}));
  EXPECT_EQ(pool->cached(), 1);
  EXPECT_EQ(findable(*pool, range(0, 140)), 140);
  EXPECT_EQ(findable(*pool, join(range(0, 133), {-2})), 134);
  EXPECT_TRUE(isSound(*pool, second));
}

TEST(PagePool, WithoutRoomAKeptPageIsWrittenTo) {
  const auto pool = makePool(3);
  compute(*pool, range(0, 140));
  PagedSequence second(*pool);
  EXPECT_EQ(*second.reusePrefix(range(0, 134)), 133);
  EXPECT_EQ(pool->available(), 0);
  const int32_t last = second.pages()[2];
  EXPECT_TRUE(append(second, {-2}).empty());
  EXPECT_EQ(second.pages()[2], last);
  EXPECT_EQ(findable(*pool, range(0, 140)), 133);
  EXPECT_EQ(findable(*pool, join(range(0, 133), {-2})), 134);
  EXPECT_TRUE(isSound(*pool, second));
}

TEST(PagePool, WhatFollowsAnOverwrittenPageIsDropped) {
  const auto pool = makePool(3);
  compute(*pool, range(0, 192));
  PagedSequence second(*pool);
  EXPECT_EQ(*second.reusePrefix(join(range(0, 70), {-2})), 70);
  EXPECT_EQ(pool->cached(), 1);
  // A copy would evict the page that follows; one page is left after it.
  EXPECT_EQ(append(second, {-2}).size(), 1u);
  EXPECT_EQ(findable(*pool, range(0, 192)), 128);
  EXPECT_TRUE(isSound(*pool, second));
  // Now the last page is the sequence's own.
  EXPECT_TRUE(append(second, {-3}).empty());
  EXPECT_EQ(idsOf(second), join(range(0, 70), {-2, -3}));
  EXPECT_TRUE(isSound(*pool, second));
}

TEST(PagePool, AFullPoolIsAnErrorForOneSequence) {
  const auto pool = makePool(4);
  PagedSequence first = compute(*pool, range(0, 120));
  PagedSequence second = compute(*pool, range(1000, 60));
  PagedSequence third = first.fork().take();
  EXPECT_EQ(pool->used(), 3);
  std::vector<PageCopy> copies = {{7, 8}};
  // A copy of the shared page and another page.
  EXPECT_EQ(third.pagesFor(9), 2);
  const Ids before = pagesOf(third);
  EXPECT_TRUE(failsWith(
      third.reserve(9, copies),
      "the KV cache is full: 3 of its 4 pages of 64 positions are in use, and "
      "a sequence needs 2 more; give the cache more memory or run fewer "
      "sequences"));
  EXPECT_EQ(copies, (std::vector<PageCopy>{{7, 8}}));
  EXPECT_EQ(pagesOf(third), before);
  EXPECT_EQ(pool->used(), 3);
  EXPECT_TRUE(isSound(*pool, first, second, third));
  EXPECT_TRUE(failsWith(
      second.reserve(std::numeric_limits<int64_t>::max(), copies), "is full"));

  EXPECT_TRUE(append(second, range(1060, 68)).empty());
  EXPECT_EQ(pool->available(), 0);
  EXPECT_TRUE(failsWith(first.reserve(1, copies), "needs 1 more"));
  EXPECT_EQ(first.reserve(1, copies).code(), StatusCode::OutOfMemory);
  EXPECT_TRUE(succeeds(first.reserve(0, copies)));
  EXPECT_EQ(copies.size(), 1u);
  // Who is alone needs no copy.
  third = PagedSequence(*pool);
  EXPECT_TRUE(append(first, range(120, 8)).empty());
  EXPECT_TRUE(failsWith(first.reserve(1, copies), "4 of its 4 pages"));
  second = PagedSequence(*pool);
  EXPECT_TRUE(append(first, range(128, 1)).empty());
  EXPECT_TRUE(isSound(*pool, first, second, third));
}

TEST(PagePool, TheLeastRecentlyUsedIsEvictedFirst) {
  const auto pool = makePool(6);
  compute(*pool, range(1000, 128));
  compute(*pool, range(2000, 128));
  compute(*pool, range(3000, 128));
  EXPECT_EQ(pool->cached(), 6);
  EXPECT_EQ(findable(*pool, range(1000, 128)), 128); // uses it
  // From the second one's end on: what follows goes before what it follows.
  PagedSequence sequence = compute(*pool, range(4000, 64));
  EXPECT_TRUE(isSound(*pool, sequence));
  EXPECT_EQ(pool->cached(), 5);
  append(sequence, range(4064, 128)); // one more of it, one of the third
  EXPECT_TRUE(isSound(*pool, sequence));
  EXPECT_EQ(findable(*pool, range(2000, 128)), 0);
  EXPECT_EQ(findable(*pool, range(3000, 128)), 64);
  EXPECT_EQ(findable(*pool, range(1000, 128)), 128);
}

TEST(PagePool, AnEvictedEndLeavesTheBeginning) {
  const auto pool = makePool(3);
  compute(*pool, range(0, 192));
  const PagedSequence sequence = compute(*pool, range(500, 64));
  EXPECT_EQ(findable(*pool, range(0, 192)), 128);
  EXPECT_TRUE(isSound(*pool, sequence));
}

TEST(PagePool, WhoeverWritesFirstCopies) {
  for (bool forkFirst : {false, true}) {
    const auto pool = makePool(8);
    PagedSequence first = compute(*pool, range(0, 100));
    PagedSequence second = first.fork().take();
    EXPECT_EQ(pagesOf(first), pagesOf(second));
    EXPECT_EQ(pool->used(), 2);
    PagedSequence &writer = forkFirst ? second : first;
    PagedSequence &other = forkFirst ? first : second;
    const int32_t shared = other.pages()[1];
    const auto copies = append(writer, {-1});
    EXPECT_EQ(copies, (std::vector<PageCopy>{{shared, writer.pages()[1]}}));
    EXPECT_EQ(other.pages()[1], shared);
    EXPECT_TRUE(append(other, {-2}).empty());
    EXPECT_EQ(other.pages()[1], shared);
    EXPECT_EQ(idsOf(writer), join(range(0, 100), {-1}));
    EXPECT_EQ(idsOf(other), join(range(0, 100), {-2}));
    EXPECT_EQ(findable(*pool, idsOf(first)), 101);
    EXPECT_EQ(findable(*pool, idsOf(second)), 101);
    EXPECT_TRUE(isSound(*pool, first, second));
  }
}

TEST(PagePool, AForkSharesNothingThatIsReserved) {
  const auto pool = makePool(8);
  PagedSequence first = compute(*pool, range(0, 60));
  std::vector<PageCopy> copies;
  ASSERT_TRUE(succeeds(first.reserve(10, copies)));
  PagedSequence second = first.fork().take();
  EXPECT_EQ(second.pages().size(), 1u);
  // Its copy has what is committed alone.
  EXPECT_EQ(append(second, {-1}).size(), 1u);
  first.commit(range(60, 10));
  EXPECT_TRUE(isSound(*pool, first, second));
  EXPECT_EQ(findable(*pool, range(0, 70)), 70);
}

TEST(PagePool, AForkThatGoesBackCopies) {
  const auto pool = makePool(8);
  PagedSequence first = compute(*pool, range(0, 150));
  PagedSequence second = first.fork().take();
  second.truncate(70);
  EXPECT_EQ(second.pages().size(), 2u);
  EXPECT_EQ(append(second, {-1}),
            (std::vector<PageCopy>{{first.pages()[1], second.pages()[1]}}));
  EXPECT_EQ(findable(*pool, range(0, 150)), 150);
  EXPECT_EQ(findable(*pool, join(range(0, 70), {-1})), 71);
  second.truncate(64);
  EXPECT_TRUE(append(second, {-2}).empty());
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_TRUE(isSound(*pool, first, second));
}

TEST(PagePool, GoingBackKeepsWhatIsNotOverwritten) {
  const auto pool = makePool(8);
  PagedSequence first = compute(*pool, range(0, 192));
  first.truncate(70);
  EXPECT_EQ(pool->used(), 2);
  EXPECT_EQ(pool->cached(), 1);
  EXPECT_EQ(findable(*pool, range(0, 192)), 192);
  // Its own page: no copy, and what followed is no longer true.
  EXPECT_TRUE(append(first, {-1}).empty());
  EXPECT_EQ(pool->cached(), 0);
  EXPECT_EQ(findable(*pool, range(0, 192)), 70);
  EXPECT_EQ(findable(*pool, join(range(0, 70), {-1})), 71);
  EXPECT_TRUE(isSound(*pool, first));
  first.truncate(0);
  EXPECT_EQ(pool->used(), 0);
  EXPECT_EQ(pool->cached(), 2);
  EXPECT_TRUE(isSound(*pool, first));
}

TEST(PagePool, OfEqualPagesTheOneThatLeadsFurthestIsTaken) {
  for (bool swap : {false, true}) {
    const auto pool = makePool(16);
    PagedSequence first(*pool), second(*pool);
    for (PagedSequence *sequence : {&first, &second})
      append(*sequence, range(0, 64));
    if (swap)
      std::swap(first, second);
    append(first, range(100, 64));
    append(second, range(200, 64));
    append(second, range(300, 30));
    EXPECT_EQ(pool->used(), 5);
    PagedSequence third(*pool), fourth(*pool);
    EXPECT_EQ(*third.reusePrefix(join(range(0, 64), range(100, 65))), 128);
    EXPECT_EQ(pagesOf(third), pagesOf(first));
    EXPECT_EQ(*fourth.reusePrefix(
                  join(join(range(0, 64), range(200, 64)), range(300, 9))),
              136);
    EXPECT_EQ(pagesOf(fourth), pagesOf(second));
    EXPECT_TRUE(isSound(*pool, first, second, third, fourth));
  }
}

TEST(PagePool, ForgottenPagesAreNotFound) {
  const auto pool = makePool(16);
  const PagedSequence healthy = compute(*pool, range(0, 100));
  // Shares a page, copies one and computes two.
  PagedSequence sick = compute(*pool, join(range(0, 70), range(500, 140)));
  const Ids sickIds = idsOf(sick);
  PagedSequence before = sick.fork().take();
  EXPECT_EQ(findable(*pool, sickIds), 210);
  // Two that use its pages: one of them goes on behind them.
  PagedSequence follower = compute(*pool, join(sickIds, range(900, 100)));
  sick.forget();
  EXPECT_EQ(findable(*pool, sickIds), 70);
  EXPECT_EQ(findable(*pool, range(0, 100)), 100);
  EXPECT_TRUE(isSound(*pool, healthy, sick, before, follower));

  // Nor is what they compute from there on.
  PagedSequence after = sick.fork().take();
  append(sick, range(600, 200));
  append(before, range(700, 200));
  append(after, range(800, 100));
  EXPECT_EQ(findable(*pool, idsOf(sick)), 70);
  EXPECT_EQ(findable(*pool, idsOf(before)), 70);
  EXPECT_EQ(findable(*pool, idsOf(after)), 70);
  EXPECT_EQ(findable(*pool, idsOf(follower)), 70);
  EXPECT_TRUE(isSound(*pool, healthy, sick, before, follower, after));
  for (PagedSequence *sequence : {&sick, &before, &after, &follower})
    *sequence = PagedSequence(*pool);
  EXPECT_EQ(pool->cached(), 0);
  EXPECT_EQ(pool->used(), 2);
}

TEST(PagePool, AForkKnowsWhatWasFound) {
  const auto pool = makePool(8);
  compute(*pool, range(0, 64));
  const PagedSequence first = compute(*pool, range(0, 100));
  PagedSequence second = first.fork().take();
  second.forget();
  EXPECT_EQ(findable(*pool, range(0, 100)), 64);
  EXPECT_TRUE(isSound(*pool, first, second));
}

TEST(PagePool, ForgottenTokensInAFirstPage) {
  // Nothing comes before them that others could have.
  const auto pool = makePool(8);
  PagedSequence sick = compute(*pool, range(0, 30));
  PagedSequence before = sick.fork().take();
  sick.forget();
  append(before, range(30, 10)); // a copy
  append(sick, range(30, 10));   // in place
  sick.truncate(20);
  append(sick, range(20, 10));
  EXPECT_EQ(findable(*pool, range(0, 40)), 0);
  EXPECT_TRUE(isSound(*pool, sick, before));
  // The sequence may read what others have, but what it writes stays its own.
  sick.truncate(0);
  before.truncate(0);
  EXPECT_EQ(pool->free(), 8);
  append(before, range(0, 40));
  before = PagedSequence(*pool);
  EXPECT_EQ(*sick.reusePrefix(range(0, 35)), 34);
  PagedSequence all(*pool);
  append(all, range(2000, 7 * 64));
  EXPECT_TRUE(append(sick, range(500, 1)).empty());
  EXPECT_EQ(findable(*pool, range(0, 40)), 0);
  EXPECT_TRUE(isSound(*pool, sick, before, all));
}

TEST(PagePool, SequencesMove) {
  const auto pool = makePool(4);
  std::optional<PagedSequence> first = compute(*pool, range(0, 70));
  const Ids pages = pagesOf(*first);
  PagedSequence second(std::move(*first));
  first.reset();
  EXPECT_EQ(pagesOf(second), pages);
  EXPECT_EQ(pool->used(), 2);
  PagedSequence third = compute(*pool, range(100, 70));
  EXPECT_EQ(pool->used(), 4);
  third = std::move(second);
  EXPECT_EQ(pool->used(), 2);
  EXPECT_EQ(pagesOf(third), pages);
  EXPECT_EQ(idsOf(third), range(0, 70));
  EXPECT_TRUE(isSound(*pool, third));
}

bool nobodyIsBusy(const PagedSequence &) { return false; }
bool allAreBusy(const PagedSequence &) { return true; }

TEST(PagePool, SlotsAreThoseOfTheLastToken) {
  auto pool = PagePool::create(8, /*slots=*/2).take();
  EXPECT_EQ(pool->slots(), 2);
  PagedSequence first(*pool), second(*pool), third(*pool);
  EXPECT_EQ(first.slot(), -1);
  ASSERT_TRUE(first.takeSlot(allAreBusy) && second.takeSlot(allAreBusy));
  EXPECT_EQ(first.slot() + second.slot(), 1);
  append(first, range(0, 70));
  append(second, range(0, 70));
  EXPECT_FALSE(third.takeSlot(allAreBusy));
  EXPECT_TRUE(isSound(*pool, first, second, third));
  // Going back, by no token at all.
  first.truncate(70);
  EXPECT_GE(first.slot(), 0);
  EXPECT_FALSE(first.lacksState());
  first.truncate(69);
  EXPECT_EQ(first.slot(), -1);
  EXPECT_TRUE(first.lacksState());
  ASSERT_TRUE(third.takeSlot(allAreBusy));
  // A step may have written there.
  std::vector<PageCopy> copies;
  ASSERT_TRUE(succeeds(second.reserve(1, copies)));
  second.truncate(70);
  EXPECT_TRUE(second.lacksState());
  // A fork has none.
  append(third, range(0, 3));
  PagedSequence fork = third.fork().take();
  EXPECT_TRUE(fork.lacksState());
  EXPECT_FALSE(third.lacksState());
  EXPECT_TRUE(isSound(*pool, first, second, third, fork));
}

TEST(PagePool, SlotsOfThoseThatAreNotBusyAreTaken) {
  auto pool = PagePool::create(8, /*slots=*/1).take();
  PagedSequence first(*pool);
  ASSERT_TRUE(first.takeSlot(allAreBusy));
  append(first, range(0, 3));
  PagedSequence moved = std::move(first);
  EXPECT_EQ(moved.slot(), 0);
  {
    PagedSequence second(*pool);
    EXPECT_FALSE(second.takeSlot(allAreBusy));
    ASSERT_TRUE(second.takeSlot(nobodyIsBusy));
    EXPECT_EQ(second.slot(), 0);
    EXPECT_TRUE(moved.lacksState());
    EXPECT_TRUE(isSound(*pool, moved, second));
  }
  PagedSequence third(*pool);
  EXPECT_TRUE(third.takeSlot(allAreBusy));
  // Without slots, nobody needs one.
  auto plain = makePool(2);
  PagedSequence other(*plain);
  EXPECT_TRUE(other.takeSlot(allAreBusy));
  append(other, range(0, 3));
  EXPECT_FALSE(other.lacksState());
}

TEST(PagePool, TheSlotThatWasUsedLeastRecentlyIsTaken) {
  auto pool = PagePool::create(8, /*slots=*/3).take();
  PagedSequence first(*pool), second(*pool), third(*pool), fourth(*pool);
  for (PagedSequence *sequence : {&first, &second, &third}) {
    ASSERT_TRUE(sequence->takeSlot(allAreBusy));
    append(*sequence, range(0, 3));
  }
  append(first, range(3, 4));
  // It is busy, and was moved, which is no use.
  PagedSequence moved = std::move(second);
  auto isSecond = [&](const PagedSequence &owner) { return &owner == &moved; };
  EXPECT_FALSE(fourth.canTakeSlot(allAreBusy));
  EXPECT_TRUE(fourth.canTakeSlot(isSecond));
  EXPECT_FALSE(third.lacksState());
  ASSERT_TRUE(fourth.takeSlot(isSecond));
  EXPECT_TRUE(third.lacksState());
  EXPECT_FALSE(first.lacksState() || moved.lacksState());
  EXPECT_TRUE(isSound(*pool, first, moved, third, fourth));
  PagedSequence fifth(*pool);
  ASSERT_TRUE(fifth.takeSlot(nobodyIsBusy));
  EXPECT_TRUE(moved.lacksState());
  EXPECT_FALSE(first.lacksState());
}

/// Pages without the state behind their tokens are of no use to anybody.
TEST(PagePool, PagesAreGivenBackWithTheSlot) {
  auto pool = PagePool::create(8, /*slots=*/1).take();
  PagedSequence first(*pool), second(*pool);
  ASSERT_TRUE(first.takeSlot(allAreBusy));
  append(first, range(0, 200));
  EXPECT_EQ(pool->used(), 4);
  {
    const PagedSequence fork = first.fork().take();
    EXPECT_EQ(fork.length(), 200);
    EXPECT_TRUE(fork.pages().empty());
    EXPECT_EQ(fork.fork().take().length(), 200);
  }
  // Another one takes its slot.
  ASSERT_TRUE(second.takeSlot(nobodyIsBusy));
  EXPECT_EQ(pool->used(), 0);
  EXPECT_EQ(first.length(), 200);
  EXPECT_TRUE(first.pages().empty());
  first.truncate(150);
  EXPECT_EQ(idsOf(first), range(0, 150));
  // It goes back, or a step fails.
  append(second, range(0, 200));
  second.truncate(130);
  EXPECT_EQ(pool->used(), 0);
  first.truncate(0);
  ASSERT_TRUE(first.takeSlot(allAreBusy));
  append(first, range(0, 200));
  first.revoke(130);
  first.revoke(100);
  EXPECT_EQ(pool->used(), 0);
  EXPECT_EQ(idsOf(first), range(0, 100));
  EXPECT_TRUE(isSound(*pool, first, second));
}

TEST(PagePool, ChecksOwnersOfSlots) {
  auto pool = PagePool::create(8, /*slots=*/1).take();
  PagedSequence first(*pool), second(*pool);
  ASSERT_TRUE(first.takeSlot(allAreBusy));
  EXPECT_TRUE(isSound(*pool, first, second));
  // It is not told of the owner.
  const PagedSequence *others[] = {&second};
  EXPECT_EQ(pool->check(others).message(), "slot 0: its owner does not live");
}

TEST(PagePool, LongPathsAreDroppedWithoutRecursion) {
  const int64_t pages = 100'000;
  const auto pool = makePool(pages);
  PagedSequence sequence = compute(*pool, range(0, pages * kCachePage));
  sequence.forget();
  EXPECT_TRUE(isSound(*pool, sequence));
  sequence.truncate(0);
  EXPECT_EQ(pool->free(), pages);
}

//===----------------------------------------------------------------------===//
// Pages of windows
//===----------------------------------------------------------------------===//

namespace {

/// Of two groups of layers; a sequence keeps those of 100 positions and of a
/// page behind them.
constexpr CacheWindows kWindows = {.tables = 2, .positions = 100};

/// In the cache.
int64_t pagesHeld(const PagePool &pool, const PagedSequence &sequence) {
  int64_t count = 0;
  sequence.forEachPage([&](int32_t page) { count += pool.isInCache(page); });
  return count;
}

} // namespace

TEST(PagePool, WindowsPagesAreGivenBack) {
  const auto pool = makePool(100, kWindows);
  PagedSequence sequence(*pool);
  EXPECT_EQ(sequence.pagesFor(1), 3);
  append(sequence, range(0, 64));
  EXPECT_EQ(pool->used(), 3);
  ASSERT_EQ(sequence.windowPages().size(), 2u);
  EXPECT_EQ(sequence.windowPages()[1].size(), 1u);
  append(sequence, range(64, 64 * 9));
  // The next row sees the last two, and a row 64 before it two more.
  EXPECT_EQ(pool->used(), 10 + 2 * 3);
  EXPECT_EQ(pool->cached(), 2 * 7);
  EXPECT_EQ(pagesHeld(*pool, sequence), pool->used());
  EXPECT_TRUE(isSound(*pool, sequence));
  // A step needs all of its pages; many steps need few of windows.
  EXPECT_EQ(sequence.pagesFor(64 * 20), 3 * 20);
  EXPECT_EQ(sequence.pagesToRead(64 * 20), 20 + 2 * 2);
  EXPECT_EQ(sequence.pagesToRead(64), 3);
}

TEST(PagePool, WindowsPagesAreFoundUntilTheyAreNeeded) {
  const auto pool = makePool(10 + 2 * 10 + 3, kWindows);
  const Ids ids = range(0, 640);
  {
    PagedSequence sequence = compute(*pool, ids);
    // Another text that begins alike, and has what windows see where it begins
    // to differ: cached pages.
    const PagedSequence other = compute(*pool, join(range(0, 256), {9999}));
    EXPECT_EQ(findable(*pool, range(0, 256)), 256);
    EXPECT_TRUE(isSound(*pool, sequence, other));
  }
  EXPECT_EQ(pool->used(), 0);
  EXPECT_EQ(findable(*pool, ids), 640);
  // The oldest cached pages of windows go first.
  PagedSequence third = compute(*pool, range(5000, 64));
  EXPECT_EQ(findable(*pool, ids), 640);
  EXPECT_LT(findable(*pool, range(0, 100)), 100);
  EXPECT_TRUE(isSound(*pool, third));
}

/// A long text needs no more of what others had than it has itself.
TEST(PagePool, WindowsPagesThatATextPassedGoBeforeWhatOthersHad) {
  const auto pool = makePool(12 + 2 * 5 + 20 + 2 * 8, kWindows);
  const Ids chat = range(0, 640);
  compute(*pool, chat);
  PagedSequence sequence(*pool);
  for (int32_t page = 0; page < 20; ++page) {
    append(sequence, range(5000 + 64 * page, 64));
    ASSERT_TRUE(isSound(*pool, sequence));
  }
  EXPECT_EQ(pool->free(), 0);
  EXPECT_EQ(findable(*pool, chat), 640);
  // The oldest of them first.
  sequence.truncate(18 * 64);
  EXPECT_FALSE(sequence.lacksState());
  EXPECT_TRUE(isSound(*pool, sequence));
}

/// What it has computed since is not to be found, either.
TEST(PagePool, AForkOfAForgottenTextWithoutPagesIsNotFound) {
  const auto pool = makePool(10 + 2 * 10, kWindows);
  PagedSequence sequence = compute(*pool, range(0, 640));
  sequence.forget();
  sequence.truncate(200);
  ASSERT_TRUE(sequence.lacksState());
  PagedSequence fork = sequence.fork().take();
  fork.truncate(0);
  append(fork, range(0, 200));
  EXPECT_EQ(findable(*pool, range(0, 200)), 0);
  EXPECT_TRUE(isSound(*pool, sequence, fork));
}

TEST(PagePool, AWindowThatIsGoneLosesAllPages) {
  for (const bool isGone : {false, true}) {
    const auto pool = makePool(10 + 2 * 10, kWindows);
    PagedSequence sequence = compute(*pool, range(0, 640));
    PagedSequence other(*pool);
    if (isGone)
      append(other, range(5000, 64 * 4));
    // Back by a page, and no further: what windows see there is kept.
    sequence.truncate(640 - 64);
    EXPECT_FALSE(sequence.lacksState());
    EXPECT_TRUE(isSound(*pool, sequence, other));
    sequence.truncate(200);
    EXPECT_EQ(sequence.lacksState(), isGone);
    EXPECT_EQ(sequence.length(), 200);
    EXPECT_EQ(sequence.pages().empty(), isGone);
    EXPECT_TRUE(isSound(*pool, sequence, other));
    if (!isGone)
      continue;
    const PagedSequence fork = sequence.fork().take();
    EXPECT_TRUE(fork.lacksState());
    EXPECT_EQ(fork.length(), 200);
    sequence.truncate(0);
    EXPECT_FALSE(sequence.lacksState());
  }
}

TEST(PagePool, WindowsPagesAreCopiedWithTheOthers) {
  const auto pool = makePool(20, kWindows);
  PagedSequence sequence = compute(*pool, range(0, 70));
  PagedSequence fork = sequence.fork().take();
  EXPECT_EQ(pool->used(), 6);
  EXPECT_EQ(fork.pagesFor(1), 3);
  const Ids before = {sequence.pages()[1], sequence.windowPages()[0][1],
                      sequence.windowPages()[1][1]};
  const std::vector<PageCopy> copies = append(fork, {7});
  ASSERT_EQ(copies.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(copies[i].from, before[i]);
  EXPECT_EQ(copies[0].to, fork.pages()[1]);
  EXPECT_EQ(copies[1].to, fork.windowPages()[0][1]);
  EXPECT_EQ(copies[2].to, fork.windowPages()[1][1]);
  EXPECT_TRUE(isSound(*pool, sequence, fork));
}

/// Nobody finds them.
TEST(PagePool, WindowsPagesThatAreForgottenAreFree) {
  const auto pool = makePool(40, kWindows);
  PagedSequence sequence = compute(*pool, range(0, 640));
  EXPECT_EQ(pool->cached(), 2 * 7);
  sequence.forget();
  EXPECT_EQ(pool->cached(), 0);
  append(sequence, range(640, 128));
  EXPECT_EQ(pool->cached(), 0);
  EXPECT_EQ(pool->used(), 12 + 2 * 3);
  EXPECT_TRUE(isSound(*pool, sequence));
}

/// The same where all layers have windows: nothing else is in the cache.
constexpr CacheWindows kAllWindows = {
    .tables = 1, .positions = 100, .areAll = true};

TEST(PagePool, WhereAllHaveWindowsTheyAreAllThereIs) {
  const auto pool = makePool(20, kAllWindows);
  PagedSequence sequence(*pool);
  EXPECT_EQ(sequence.pagesFor(1), 1);
  append(sequence, range(0, 640));
  EXPECT_EQ(pool->used(), 3);
  EXPECT_EQ(pool->cached(), 7);
  EXPECT_EQ(pagesHeld(*pool, sequence), 3);
  EXPECT_EQ(sequence.pages().size(), 10u);
  EXPECT_TRUE(sequence.windowPages().empty());
  EXPECT_TRUE(isSound(*pool, sequence));
  EXPECT_EQ(sequence.pagesFor(64 * 20), 20);
  EXPECT_EQ(sequence.pagesToRead(64 * 20), 2);
  // Of many more positions than the cache has.
  for (int32_t page = 10; page < 100; ++page)
    append(sequence, range(64 * page, 64));
  EXPECT_EQ(pool->used(), 3);
  EXPECT_EQ(pool->free(), 0);
  EXPECT_TRUE(isSound(*pool, sequence));
  // An end is found, of which a cache has what windows see, and nothing before.
  {
    const PagedSequence ended = std::move(sequence);
  }
  EXPECT_EQ(findable(*pool, range(0, 6400)), 6400);
  EXPECT_EQ(findable(*pool, join(range(0, 640), {-2})), 0);
  PagedSequence other(*pool);
  ASSERT_EQ(*other.reusePrefix(range(0, 6401)), 6400);
  EXPECT_EQ(pool->used(), 3);
  for (const int32_t page : other.pages())
    EXPECT_TRUE(pool->isInCache(page));
  append(other, range(6400, 1));
  EXPECT_TRUE(isSound(*pool, other));
}

TEST(PagePool, WhereAllHaveWindowsTheirPagesAreCopied) {
  const auto pool = makePool(20, kAllWindows);
  PagedSequence sequence = compute(*pool, range(0, 70));
  PagedSequence fork = sequence.fork().take();
  EXPECT_EQ(pool->used(), 2);
  EXPECT_EQ(fork.pagesFor(1), 1);
  const int32_t before = sequence.pages()[1];
  const std::vector<PageCopy> copies = append(fork, {7});
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].from, before);
  EXPECT_EQ(copies[0].to, fork.pages()[1]);
  EXPECT_EQ(sequence.pages()[1], before);
  EXPECT_TRUE(isSound(*pool, sequence, fork));
}

/// What stands for the positions of texts of which nothing is left in the cache
/// stands for others.
TEST(PagePool, WhereAllHaveWindowsNothingIsLeftOfWhatIsNotThere) {
  const auto pool = makePool(8, kAllWindows);
  int64_t most = 0;
  for (int32_t text = 0; text < 50; ++text) {
    PagedSequence sequence(*pool);
    for (int32_t page = 0; page < 20; ++page)
      append(sequence, range(10'000 * text + 64 * page, 64));
    ASSERT_TRUE(isSound(*pool, sequence));
    // Those of this text, and of two before of which some pages are left.
    most = std::max(most, pool->standIns());
  }
  EXPECT_LE(most, 3 * 20);
  // All have ended, and the pages are of no more texts than before.
  EXPECT_TRUE(isSound(*pool));
  EXPECT_EQ(pool->used(), 0);
  EXPECT_GT(pool->standIns(), 0);
  EXPECT_LE(pool->standIns(), most);
  // One that needs all pages leaves nothing of the others.
  PagedSequence sequence(*pool);
  std::vector<PageCopy> copies;
  ASSERT_TRUE(succeeds(sequence.reserve(8 * 64, copies)));
  EXPECT_EQ(pool->used(), 8);
  EXPECT_EQ(pool->standIns(), 8);
  EXPECT_TRUE(isSound(*pool, sequence));
}

//===----------------------------------------------------------------------===//
// Against a pool whose pages say what was written to them
//===----------------------------------------------------------------------===//

namespace {

/// What stands for the keys and values of a position: a hash of all tokens up
/// to there, or of something else in a sequence that went wrong.
using Content = uint64_t;

Content hash(Content before, uint64_t token) {
  uint64_t x = before * 0x9e3779b97f4a7c15u + token + 1;
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9u;
  return x ^ x >> 29;
}

struct Random {
  uint64_t state;
  /// 0 to `count` - 1.
  int64_t operator()(int64_t count) {
    state = hash(state, 1);
    return static_cast<int64_t>((state >> 8) % count);
  }
  bool percent(int64_t chance) { return (*this)(100) < chance; }
};

/// Texts of few words that begin alike for a while, so that much is found.
int32_t wordAt(int64_t text, int64_t position) {
  constexpr int64_t common[] = {0, 30, 64, 100, 128, 200, 400};
  const int64_t source = position < common[text % 7] ? 0 : text;
  return static_cast<int32_t>(hash(hash(7, source), position) % 3);
}

/// A sequence, what its positions have to hold, and a step in flight.
struct Modelled {
  PagedSequence sequence;
  std::vector<Content> expected;
  int64_t text = 0;
  bool sick = false;
  Ids pending;
  std::vector<Content> pendingContent;
};

class RandomPool {
public:
  RandomPool(int64_t pages, uint64_t seed, bool sickness,
             const CacheWindows &windows)
      : pool(makePool(pages, windows)), memory(pages * kCachePage),
        random{seed}, sickness(sickness), windows(windows) {}

  void run(int64_t operations) {
    for (int64_t i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(i);
      operate();
      verify();
    }
    living.clear();
    EXPECT_TRUE(succeeds(pool->check({})));
    EXPECT_EQ(pool->used(), 0);
    EXPECT_EQ(pool->free() + pool->cached(), pool->total());
  }

  int64_t reused = 0, full = 0, copied = 0, evicting = 0, lost = 0;

private:
  Modelled &any() { return *living[random(living.size())]; }

  void operate() {
    const int64_t choice = random(100);
    if (living.empty() || (choice < 12 && living.size() < 7))
      return begin();
    if (choice < 45)
      return step();
    if (choice < 75)
      return commit(any());
    if (choice < 85)
      return goBack(any());
    if (choice < 91 && living.size() < 7)
      return fork();
    if (choice < 93 && sickness)
      return sicken(any());
    if (choice < 97)
      living.erase(living.begin() + random(living.size()));
  }

  /// A sequence with a prompt, of which it reads what is not found.
  void begin() {
    auto added = std::make_unique<Modelled>(PagedSequence(*pool));
    added->text = random(12);
    Ids prompt;
    for (int64_t i = random(300); i > 0; --i)
      prompt.push_back(wordAt(added->text, prompt.size()));
    if (!prompt.empty() && random.percent(20))
      prompt[random(prompt.size())] = 5;

    // What living sequences have is there to be found.
    int64_t least = 0;
    for (const auto &other : living) {
      const auto ids = other->sequence.ids();
      const int64_t most =
          std::min<int64_t>(ids.size(), std::ssize(prompt) - 1);
      int64_t equal = 0;
      while (equal < most && ids[equal] == prompt[equal])
        ++equal;
      least = std::max(least, equal);
    }
    auto count = added->sequence.reusePrefix(prompt);
    ASSERT_TRUE(succeeds(count.status()));
    EXPECT_EQ(*count, added->sequence.length());
    EXPECT_LE(*count, std::max<int64_t>(std::ssize(prompt) - 1, 0));
    if (!sickness && windows.tables == 0)
      EXPECT_GE(*count, least);
    ASSERT_TRUE(std::equal(added->sequence.ids().begin(),
                           added->sequence.ids().end(), prompt.begin()));
    Content content = 0;
    for (int64_t i = 0; i < *count; ++i)
      added->expected.push_back(content = hash(content, prompt[i]));
    reused += *count;
    living.push_back(std::move(added));
  }

  /// A step of some sequences. What it writes is committed later, or never.
  void step() {
    std::vector<PageCopy> copies;
    std::vector<std::pair<Modelled *, int64_t>> members;
    for (auto &member : living) {
      if (random.percent(50))
        continue;
      PagedSequence &sequence = member->sequence;
      const int64_t count = random.percent(60) ? 1 : random(150);
      const int64_t needed = sequence.pagesFor(count);
      const int64_t available = pool->available(), free = pool->free();
      const Ids before = pagesOf(sequence);
      const size_t copiesBefore = copies.size();
      const Status status = sequence.reserve(count, copies);
      ASSERT_EQ(status.ok(), needed <= available) << status.message();
      if (!status.ok()) {
        ++full;
        EXPECT_EQ(pagesOf(sequence), before);
        EXPECT_EQ(copies.size(), copiesBefore);
        EXPECT_EQ(pool->available(), available);
        EXPECT_EQ(pool->free(), free);
        continue;
      }
      evicting += needed > free;
      ASSERT_LE(sequence.length() + count,
                std::ssize(sequence.pages()) * kCachePage);
      member->pending.clear();
      members.push_back({member.get(), count});
    }
    copied += copies.size();
    for (const PageCopy &copy : copies) {
      ASSERT_NE(copy.from, copy.to);
      std::copy_n(memory.begin() + copy.from * kCachePage, kCachePage,
                  memory.begin() + copy.to * kCachePage);
    }
    for (auto [member, count] : members)
      write(*member, count);
    // Who runs the steps would end a sequence, too.
    if (members.empty() && random.percent(50))
      living.erase(living.begin() + random(living.size()));
  }

  void write(Modelled &member, int64_t count) {
    const bool fails = random.percent(10);
    int64_t position = member.sequence.length();
    Content content = position == 0 ? 0 : member.expected.back();
    member.pendingContent.clear();
    for (; count > 0; --count, ++position) {
      const int32_t id = random.percent(2) ? 5 : wordAt(member.text, position);
      content = hash(content, id);
      if (member.sick || fails)
        content = hash(content, 1000 + random(1000));
      write(member.sequence, position, content);
      if (fails)
        continue;
      member.pending.push_back(id);
      member.pendingContent.push_back(content);
    }
  }

  void commit(Modelled &member) {
    size_t count = member.pending.size();
    if (count != 0 && random.percent(20))
      count = random(count);
    member.sequence.commit(std::span(member.pending).first(count));
    member.expected.insert(member.expected.end(), member.pendingContent.begin(),
                           member.pendingContent.begin() + count);
    member.pending.clear();
  }

  void goBack(Modelled &member) {
    const int64_t length = member.sequence.length();
    int64_t to = random(length + 1);
    if (random.percent(50))
      to = std::max<int64_t>(length - random(6), 0);
    else if (random.percent(30))
      to -= to % kCachePage;
    member.sequence.truncate(to);
    if (member.sequence.lacksState()) { // its tokens are to be read again
      ++lost;
      member.sequence.truncate(to = 0);
    }
    member.expected.resize(to);
    member.pending.clear();
    if (random.percent(20))
      member.text = random(12);
  }

  void fork() {
    const Modelled &from = any();
    auto other = from.sequence.fork();
    ASSERT_TRUE(succeeds(other.status()));
    auto added = std::make_unique<Modelled>(other.take());
    added->expected = from.expected;
    added->text = random.percent(50) ? from.text : random(12);
    added->sick = from.sick;
    living.push_back(std::move(added));
  }

  /// From the step in flight on, a sequence computes what no other would.
  void sicken(Modelled &member) {
    member.sick = true;
    for (size_t i = 0; i < member.pending.size(); ++i) {
      const int64_t position = member.sequence.length() + i;
      member.pendingContent[i] = hash(member.pendingContent[i], 9999);
      write(member.sequence, position, member.pendingContent[i]);
    }
    const bool early = random.percent(50);
    if (early)
      member.sequence.forget();
    commit(member);
    if (!early)
      member.sequence.forget();
  }

  void verify() {
    std::vector<const PagedSequence *> sequences;
    for (const auto &member : living) {
      sequences.push_back(&member->sequence);
      const auto pages = member->sequence.pages();
      ASSERT_EQ(member->sequence.length(), std::ssize(member->expected));
      // What the next row sees.
      const auto seen = static_cast<size_t>(std::max<int64_t>(
          std::ssize(member->expected) + 1 - windows.positions, 0));
      for (size_t i = windows.areAll ? seen : 0; i < member->expected.size();
           ++i)
        ASSERT_EQ(memory[pages[i / kCachePage] * kCachePage + i % kCachePage],
                  member->expected[i])
            << "position " << i << " of " << member->expected.size();
      for (const std::vector<int32_t> &row : member->sequence.windowPages())
        for (size_t i = seen; i < member->expected.size(); ++i)
          ASSERT_EQ(memory[row[i / kCachePage] * kCachePage + i % kCachePage],
                    member->expected[i])
              << "a window's position " << i;
    }
    ASSERT_TRUE(succeeds(pool->check(sequences)));
  }

  /// In all layers.
  void write(const PagedSequence &sequence, int64_t position, Content content) {
    auto writeTo = [&](std::span<const int32_t> pages) {
      memory[pages[position / kCachePage] * kCachePage +
             position % kCachePage] = content;
    };
    writeTo(sequence.pages());
    for (const std::vector<int32_t> &row : sequence.windowPages())
      writeTo(row);
  }

  std::unique_ptr<PagePool> pool;
  std::vector<Content> memory; ///< [pages, kCachePage]
  Random random;
  bool sickness;
  CacheWindows windows;
  std::vector<std::unique_ptr<Modelled>> living;
};

/// Of sequences of all kinds, those that are gone, too; who shares a page goes
/// on with it.
TEST(PagePool, NothingIsFoundThatIsForgotten) {
  auto pool = PagePool::create(12, /*slots=*/0, /*kinds=*/2).take();
  {
    const PagedSequence gone = compute(*pool, range(500, 150));
  }
  PagedSequence first = compute(*pool, range(0, 200)),
                second = compute(*pool, range(0, 200)), other(*pool, 1);
  append(other, range(0, 70));
  EXPECT_GT(pool->cached(), 0);
  pool->forgetAll();
  EXPECT_EQ(pool->cached(), 0);
  append(first, range(200, 100));
  const PagedSequence *living[] = {&first, &second, &other};
  EXPECT_TRUE(succeeds(pool->check(living)));
  for (const int32_t kind : {0, 1})
    for (const int32_t begin : {0, 500}) {
      PagedSequence sequence(*pool, kind);
      Result<int64_t> found = sequence.reusePrefix(range(begin, 200));
      ASSERT_TRUE(found.ok());
      EXPECT_EQ(*found, 0);
    }
}

/// A step that failed: what it was to write is found by nobody.
TEST(PagePool, RevokedTokensAreNotFound) {
  for (const int64_t before : {0, 10, 64, 100}) {
    auto pool = makePool(8);
    PagedSequence sequence(*pool);
    append(sequence, range(0, before));
    append(sequence, range(static_cast<int32_t>(before), 100));
    sequence.revoke(before);
    EXPECT_EQ(idsOf(sequence), range(0, before));
    EXPECT_EQ(pool->used(), cachePagesOf(before));
    EXPECT_EQ(pool->cached(), 0);
    const PagedSequence *living[] = {&sequence};
    EXPECT_TRUE(succeeds(pool->check(living)));
    PagedSequence other(*pool);
    Result<int64_t> found = other.reusePrefix(range(0, 200));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, before);
  }
}

} // namespace

TEST(PagePool, EveryPositionHoldsItsOwnHistory) {
  for (bool sickness : {false, true})
    for (int64_t pages : {1, 2, 3, 5, 8, 12, 20, 40}) {
      SCOPED_TRACE(std::to_string(pages) + " pages" +
                   (sickness ? ", sickness" : ""));
      RandomPool model(pages, 100 * pages + sickness, sickness, {});
      model.run(10'000);
      // That all of it happens at all.
      if (pages >= 3) {
        EXPECT_GT(model.reused, 1000);
        EXPECT_GT(model.copied, 100);
        EXPECT_GT(model.evicting, 100);
      }
      if (pages <= 12)
        EXPECT_GT(model.full, 1000);
      if (HasFailure())
        return;
    }
}

TEST(PagePool, EveryPositionThatAWindowSeesHoldsItsOwnHistory) {
  for (const CacheWindows &windows :
       {CacheWindows{1, 1}, CacheWindows{1, 64}, CacheWindows{1, 65},
        CacheWindows{2, 100}, CacheWindows{3, 20}, CacheWindows{1, 1, true},
        CacheWindows{1, 65, true}, CacheWindows{2, 100, true}})
    for (bool sickness : {false, true})
      for (int64_t pages : {1, 5, 12, 30, 60, 120}) {
        SCOPED_TRACE(std::to_string(pages) + " pages, windows of " +
                     std::to_string(windows.positions) +
                     (windows.areAll ? " in all layers" : "") +
                     (sickness ? ", sickness" : ""));
        RandomPool model(pages, 100 * pages + sickness, sickness, windows);
        model.run(5'000);
        if (pages == 60) {
          EXPECT_GT(model.reused, 1000);
          EXPECT_GT(model.copied, 10);
          EXPECT_GT(model.evicting, 10);
          if (windows.positions > 1)
            EXPECT_GT(model.lost, 0);
        }
        if (pages <= (windows.areAll ? 5 : 12))
          EXPECT_GT(model.full, 1000);
        if (HasFailure())
          return;
      }
}

TEST(PagePool, AllThatFitsIsFound) {
  const auto pool = makePool(4096);
  Random random{1};
  std::vector<Ids> ended;
  for (int i = 0; i < 400; ++i) {
    Ids prompt(1 + random(400));
    const int64_t text = random(40);
    for (size_t j = 0; j < prompt.size(); ++j)
      prompt[j] = wordAt(text, j);
    int64_t longest = 0;
    for (const Ids &other : ended)
      longest = std::max<int64_t>(
          longest, std::mismatch(other.begin(), other.end(), prompt.begin(),
                                 prompt.end() - 1)
                           .first -
                       other.begin());
    PagedSequence sequence(*pool);
    ASSERT_EQ(*sequence.reusePrefix(prompt), longest);
    append(sequence, Ids(prompt.begin() + longest, prompt.end()));
    ASSERT_TRUE(isSound(*pool, sequence));
    ended.push_back(std::move(prompt));
  }
  ASSERT_GT(pool->free(), 0);
}
