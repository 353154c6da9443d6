//===- PagePool.cpp - Who has which pages of the cache --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PagePool.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

using namespace kf;

Result<std::unique_ptr<PagePool>> PagePool::create(int64_t pages, int64_t slots,
                                                   int64_t kinds,
                                                   const CacheWindows &windows,
                                                   int64_t pagePositions) {
  assert(kinds >= 1 && kinds <= kMostPages && "sequences are of some kind");
  assert((slots == 0 || windows.tables == 0) && "windows beside states");
  assert((pagePositions == kCachePage || windows.tables == 0) &&
         "windows are counted in pages of one rank");
  if (pages < 1 || pages > kMostPages - kinds)
    return Status::error("a KV cache of " + std::to_string(pages) +
                         " pages; it has from 1 to " +
                         std::to_string(kMostPages));
  return catchExceptions([&]() -> Result<std::unique_ptr<PagePool>> {
    return std::unique_ptr<PagePool>(
        new PagePool(pages, slots, kinds, windows, pagePositions));
  });
}

PagePool::PagePool(int64_t count, int64_t slots, int64_t kinds,
                   const CacheWindows &windows, int64_t pagePositions)
    : pages(count + kinds), positions(pagePositions),
      ids(pages.size() * static_cast<size_t>(positions)),
      count(static_cast<int32_t>(count)), kinds(static_cast<int32_t>(kinds)),
      allSlots(static_cast<size_t>(slots)), ofWindows(windows) {
  for (int32_t page = this->count; page-- > 0;)
    makeFree(page);
  for (int32_t kind = 0; kind < kinds; ++kind) {
    pages[rootOf(kind)].filled = static_cast<int32_t>(positions);
    pages[rootOf(kind)].listed = true;
  }
}

PagePool::~PagePool() {
  assert(usedCount == 0 && "the pool's sequences have to go first");
}

PagePool::Match PagePool::find(int32_t root, std::span<const int32_t> ids) {
  Match best;
  // Several pages may hold the same tokens, each with others that follow it:
  // go on from all of them.
  int32_t parents = root;
  pages[root].another = kNone;
  // What goes on behind `tokens` tokens has to have what windows see of them.
  auto isSeen = [&](const Page &page, int64_t index, int64_t tokens) {
    return ofWindows.tables == 0 ||
           page.seen > index - ofWindows.firstSeen(tokens);
  };
  for (int64_t done = 0; parents != kNone; done += positions) {
    const auto rest = ids.subspan(done);
    int32_t whole = kNone;
    for (int32_t parent = parents; parent != kNone;
         parent = pages[parent].another)
      for (int32_t number = pages[parent].child; number != kNone;
           number = pages[number].sibling) {
        Page &page = pages[number];
        const size_t most = std::min<size_t>(page.filled, rest.size());
        const int64_t equal = std::mismatch(rest.begin(), rest.begin() + most,
                                            idsOf(number).begin())
                                  .first -
                              rest.begin();
        page.seen = hasWindows(number) ? pages[parent].seen + 1 : 0;
        if (done + equal > best.tokens &&
            isSeen(page, done / positions, done + equal))
          best = {number, done + equal};
        if (equal == positions) {
          page.another = whole;
          whole = number;
        }
      }
    parents = whole;
  }
  return best;
}

int32_t PagePool::take() {
  if (firstFree == kNone) {
    assert(oldest != kNone && "no page is available");
    if (const int32_t owner = pages[oldest].owner; owner != kNone) {
      freeWindows(owner);
      dropUnused(owner);
    } else {
      unlist(oldest);
    }
  }
  const int32_t number = firstFree;
  Page &page = pages[number];
  firstFree = page.newer;
  page.newer = kNone;
  page.users = 1;
  ++usedCount;
  return number;
}

void PagePool::makeRoom(size_t wanted) {
  if (!ofWindows.areAll || wanted <= freeOutside)
    return;
  const size_t first = pages.size(), added = wanted - freeOutside;
  if (added > static_cast<size_t>(kMostPages) - first)
    throw std::length_error("numbers of pages are of 32 bits");
  ids.resize((first + added) * static_cast<size_t>(positions));
  pages.resize(first + added);
  for (size_t number = pages.size(); number-- > first;)
    makeFree(static_cast<int32_t>(number));
}

int32_t PagePool::takeForPositions() {
  if (!ofWindows.areAll)
    return take();
  assert(firstOutside != kNone && "there is no room");
  const int32_t number = firstOutside;
  firstOutside = std::exchange(pages[number].newer, kNone);
  --freeOutside;
  pages[number].users = 1;
  return number;
}

void PagePool::share(int32_t number) {
  Page &page = pages[number];
  if (page.users == 0 && isInCache(number)) {
    removeFromCached(number, 1);
    ++usedCount;
  }
  ++page.users;
}

void PagePool::release(int32_t number) {
  Page &page = pages[number];
  if (--page.users != 0)
    return;
  usedCount -= isInCache(number);
  if (!page.listed)
    return makeFree(number);
  if (isInCache(number))
    keep(number, 1, newest);
  else
    dropUnused(number);
}

void PagePool::keep(int32_t number, int64_t size, int32_t before) {
  int32_t &next = before == kNone ? oldest : pages[before].newer;
  Page &page = pages[number];
  page.older = before;
  page.newer = std::exchange(next, number);
  (page.newer == kNone ? newest : pages[page.newer].older) = number;
  cachedCount += size;
}

void PagePool::takeWindows(int32_t number) {
  for (int64_t i = 0; i < ofWindows.tables; ++i) {
    const int32_t window = take();
    pages[window].owner = number;
    pages[window].window = std::exchange(pages[number].window, window);
  }
}

void PagePool::shareWindows(int32_t number) {
  const int32_t first = pages[number].window;
  if (pages[first].users == 0) {
    removeFromCached(first, ofWindows.tables);
    usedCount += ofWindows.tables;
  }
  for (int32_t each = first; each != kNone; each = pages[each].window)
    ++pages[each].users;
}

void PagePool::releaseWindows(int32_t number, bool passed) {
  const int32_t first = pages[number].window;
  for (int32_t each = first; each != kNone; each = pages[each].window)
    --pages[each].users;
  if (pages[first].users != 0)
    return;
  usedCount -= ofWindows.tables;
  keep(first, ofWindows.tables, passed ? lastPassed : newest);
  if (passed)
    lastPassed = first;
  if (!pages[number].listed)
    freeWindows(number);
}

void PagePool::freeWindows(int32_t number) {
  int32_t each = std::exchange(pages[number].window, kNone);
  if (each == kNone)
    return;
  assert(pages[each].users == 0 && "a sequence sees them");
  removeFromCached(each, ofWindows.tables);
  while (each != kNone) {
    const int32_t next = std::exchange(pages[each].window, kNone);
    pages[each].owner = kNone;
    makeFree(each);
    each = next;
  }
}

void PagePool::list(int32_t number, int32_t parent) {
  Page &page = pages[number];
  assert(!page.listed && pages[parent].listed &&
         pages[parent].filled == positions && "nothing follows that page");
  page.listed = true;
  page.parent = parent;
  page.sibling = pages[parent].child;
  if (page.sibling != kNone)
    pages[page.sibling].previousSibling = number;
  pages[parent].child = number;
}

void PagePool::unlist(int32_t number) {
  if (!pages[number].listed)
    return;
  unlistFollowing(number);
  removeFromTree(number);
}

void PagePool::unlistFollowing(int32_t top) {
  // A path may be as long as the pool is large: no recursion.
  for (int32_t number = top; number != top || pages[top].child != kNone;) {
    if (pages[number].child != kNone) {
      number = pages[number].child;
      continue;
    }
    const int32_t parent = pages[number].parent;
    removeFromTree(number);
    number = parent;
  }
}

void PagePool::forgetAll() {
  for (int32_t kind = 0; kind < kinds; ++kind)
    unlistFollowing(rootOf(kind));
}

void PagePool::removeFromTree(int32_t number) {
  Page &page = pages[number];
  assert(page.child == kNone && "pages follow this one");
  (page.previousSibling == kNone ? pages[page.parent].child
                                 : pages[page.previousSibling].sibling) =
      page.sibling;
  if (page.sibling != kNone)
    pages[page.sibling].previousSibling = page.previousSibling;
  page.listed = false;
  page.parent = page.sibling = page.previousSibling = kNone;
  if (page.users != 0) {
    // Nobody finds what no window sees.
    if (hasWindows(number) && pages[page.window].users == 0)
      freeWindows(number);
    return;
  }
  if (isInCache(number))
    removeFromCached(number, 1);
  makeFree(number);
}

void PagePool::dropUnused(int32_t number) {
  while (!isInCache(number) && !isRoot(number) && pages[number].listed &&
         pages[number].users == 0 && pages[number].child == kNone &&
         !hasWindows(number)) {
    const int32_t parent = pages[number].parent;
    removeFromTree(number);
    number = parent;
  }
}

void PagePool::removeFromCached(int32_t number, int64_t size) {
  Page &page = pages[number];
  if (lastPassed == number)
    lastPassed = page.older;
  (page.older == kNone ? oldest : pages[page.older].newer) = page.newer;
  (page.newer == kNone ? newest : pages[page.newer].older) = page.older;
  page.older = page.newer = kNone;
  cachedCount -= size;
}

void PagePool::makeFree(int32_t number) {
  freeWindows(number);
  Page &page = pages[number];
  page.filled = 0;
  if (!isInCache(number))
    ++freeOutside;
  page.newer =
      std::exchange(isInCache(number) ? firstFree : firstOutside, number);
}

//===----------------------------------------------------------------------===//
// What tests check
//===----------------------------------------------------------------------===//

Status PagePool::check(std::span<const PagedSequence *const> living) const {
  const auto wrong = [](int32_t page, const char *what) {
    return Status::error("page " + std::to_string(page) + ": " + what);
  };
  auto sizeOf = [&](int32_t page) {
    return pages[page].owner == kNone ? 1 : ofWindows.tables;
  };

  std::vector<int64_t> users(pages.size());
  for (const PagedSequence *sequence : living) {
    const int64_t length = sequence->length();
    int32_t before = rootOf(sequence->kind());
    for (size_t i = 0; i < sequence->held.size(); ++i) {
      const int32_t number = sequence->held[i];
      const Page &page = pages[number];
      ++users[number];
      const int64_t own =
          std::clamp<int64_t>(length - i * positions, 0, positions);
      if (page.filled < own ||
          !std::equal(idsOf(number).begin(), idsOf(number).begin() + own,
                      sequence->tokens.begin() + i * positions))
        return wrong(number, "does not hold a sequence's tokens");
      if (own == 0 && (page.filled != 0 || page.users != 1))
        return wrong(number, "reserved, but not empty or not alone");
      if (page.listed && page.parent != before)
        return wrong(number, "listed behind what a sequence does not have");
      before = number;
      int32_t window = page.window;
      for (const std::vector<int32_t> &row : sequence->windows) {
        if (i < sequence->seen)
          break;
        if (window == kNone || row[i] != window)
          return wrong(number, "without the windows' pages of a sequence");
        ++users[window];
        window = pages[window].window;
      }
    }
    if (sequence->found > sequence->held.size())
      return Status::error("more pages were found than are there");
    if (!sequence->held.empty() &&
        static_cast<int64_t>(sequence->seen) > ofWindows.firstSeen(length))
      return Status::error("a sequence is without what windows see");
  }

  // Where a page is in the order of eviction; 0: nowhere.
  std::vector<int64_t> turn(pages.size());
  int64_t cachedPages = 0, turns = 0;
  int32_t older = kNone;
  for (int32_t number = oldest; number != kNone;
       older = number, number = pages[number].newer) {
    if (turn[number] != 0 || pages[number].older != older)
      return wrong(number, "links of cached pages are broken");
    ++turns;
    cachedPages += sizeOf(number);
    if (pages[number].owner != kNone &&
        pages[pages[number].owner].window != number)
      return wrong(number, "cached without the rest of its windows' pages");
    for (int32_t each = number; each != kNone; each = pages[each].window) {
      turn[each] = turns;
      if (pages[number].owner == kNone)
        break;
    }
  }
  if (older != newest || cachedPages != cachedCount)
    return Status::error("cached pages are miscounted");

  std::vector<bool> isFree(pages.size());
  for (const bool inCache : {true, false}) {
    int64_t freePages = 0;
    for (int32_t number = inCache ? firstFree : firstOutside; number != kNone;
         number = pages[number].newer) {
      if (isFree[number] || isInCache(number) != inCache)
        return wrong(number,
                     "twice in the lists of free pages, or in another's");
      isFree[number] = true;
      ++freePages;
    }
    if (freePages != (inCache ? free() : static_cast<int64_t>(freeOutside)))
      return Status::error("free pages are miscounted");
  }

  int64_t usedPages = 0;
  int64_t children = 0;
  int64_t listedPages = 0;
  for (int32_t number = 0; number < static_cast<int32_t>(pages.size());
       ++number) {
    const Page &page = pages[number];
    int32_t previous = kNone;
    for (int32_t child = page.child; child != kNone;
         previous = child, child = pages[child].sibling) {
      if (!page.listed || page.filled != positions)
        return wrong(number, "others follow what is not whole or not listed");
      if (!pages[child].listed || pages[child].parent != number ||
          pages[child].previousSibling != previous)
        return wrong(child, "links of the tree are broken");
      if (!isRoot(number) && turn[number] != 0 &&
          (turn[child] == 0 || turn[child] > turn[number]))
        return wrong(number, "evicted before one that follows it");
      if (++children > std::ssize(pages))
        return Status::error("the tree has a circle");
    }
    if (isRoot(number))
      continue;
    listedPages += page.listed;
    usedPages += page.users != 0 && isInCache(number);
    if (page.users != users[number])
      return wrong(number, "its users are miscounted");
    const bool isKept = isInCache(number)
                            ? turn[number] != 0
                            : page.users == 0 && page.listed &&
                                  (hasWindows(number) || page.child != kNone);
    if ((page.users != 0) + isKept + isFree[number] != 1)
      return wrong(number, "neither used nor cached nor free, or two of these");
    if (turn[number] != 0 && !page.listed &&
        (page.owner == kNone || !pages[page.owner].listed))
      return wrong(number, "cached, but cannot be found");
    if (page.owner != kNone && (page.listed || page.filled != 0 ||
                                isFree[number] || isFree[page.owner]))
      return wrong(number, "a window's page, and something else");
    if (page.listed && page.filled < 1)
      return wrong(number, "listed, but empty");
    if (isFree[number] && (page.listed || page.filled != 0))
      return wrong(number, "free, but listed or not empty");
  }
  if (usedPages != usedCount || children != listedPages)
    return Status::error("used or listed pages are miscounted");
  return checkSlots(living);
}

Status
PagePool::checkSlots(std::span<const PagedSequence *const> living) const {
  const auto wrong = [](size_t slot, const char *what) {
    return Status::error("slot " + std::to_string(slot) + ": " + what);
  };
  for (size_t slot = 0; slot < allSlots.size(); ++slot) {
    const PagedSequence *owner = allSlots[slot].owner;
    if (owner && owner->ownSlot != static_cast<int32_t>(slot))
      return wrong(slot, "its owner has another one");
    if (owner && std::ranges::find(living, owner) == living.end())
      return wrong(slot, "its owner does not live");
  }
  for (const PagedSequence *sequence : living) {
    if (sequence->ownSlot < 0)
      continue;
    const auto slot = static_cast<size_t>(sequence->ownSlot);
    if (slot >= allSlots.size() || allSlots[slot].owner != sequence)
      return wrong(slot, "is another's than the sequence's that has it");
  }
  return Status();
}
