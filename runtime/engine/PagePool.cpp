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
#include <utility>

using namespace kf;

//===----------------------------------------------------------------------===//
// PagePool
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<PagePool>>
PagePool::create(int64_t pages, int64_t slots, int64_t kinds,
                 const CacheWindows &windows) {
  assert(kinds >= 1 && kinds <= kMostPages && "sequences are of some kind");
  assert((slots == 0 || windows.tables == 0) && "windows beside states");
  if (pages < 1 || pages > kMostPages - kinds)
    return Status::error("a KV cache of " + std::to_string(pages) +
                         " pages; it has from 1 to " +
                         std::to_string(kMostPages));
  return catchExceptions([&]() -> Result<std::unique_ptr<PagePool>> {
    return std::unique_ptr<PagePool>(
        new PagePool(pages, slots, kinds, windows));
  });
}

PagePool::PagePool(int64_t count, int64_t slots, int64_t kinds,
                   const CacheWindows &windows)
    : pages(count + kinds), count(static_cast<int32_t>(count)),
      allSlots(static_cast<size_t>(slots)), ofWindows(windows) {
  for (int32_t page = this->count; page-- > 0;)
    makeFree(page);
  for (int32_t kind = 0; kind < kinds; ++kind) {
    pages[rootOf(kind)].filled = kCachePage;
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
  for (int64_t done = 0; parents != kNone; done += kCachePage) {
    const auto rest = ids.subspan(done);
    int32_t whole = kNone;
    for (int32_t parent = parents; parent != kNone;
         parent = pages[parent].another)
      for (int32_t number = pages[parent].child; number != kNone;
           number = pages[number].sibling) {
        Page &page = pages[number];
        const size_t most = std::min<size_t>(page.filled, rest.size());
        const int64_t equal =
            std::mismatch(rest.begin(), rest.begin() + most, page.ids.begin())
                .first -
            rest.begin();
        page.seen = hasWindows(number) ? pages[parent].seen + 1 : 0;
        if (done + equal > best.tokens &&
            isSeen(page, done / kCachePage, done + equal))
          best = {number, done + equal};
        if (equal == kCachePage) {
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
    if (const int32_t owner = pages[oldest].owner; owner != kNone)
      freeWindows(owner);
    else
      unlist(oldest);
  }
  const int32_t number = firstFree;
  Page &page = pages[number];
  firstFree = page.newer;
  page.newer = kNone;
  page.users = 1;
  ++usedCount;
  return number;
}

void PagePool::share(int32_t number) {
  Page &page = pages[number];
  if (page.users == 0) {
    removeFromCached(number, 1);
    ++usedCount;
  }
  ++page.users;
}

void PagePool::release(int32_t number) {
  Page &page = pages[number];
  if (--page.users != 0)
    return;
  --usedCount;
  if (!page.listed)
    return makeFree(number);
  keep(number, 1, newest);
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
         pages[parent].filled == kCachePage && "nothing follows that page");
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
  removeFromCached(number, 1);
  makeFree(number);
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
  page.newer = firstFree;
  firstFree = number;
}

//===----------------------------------------------------------------------===//
// PagedSequence
//===----------------------------------------------------------------------===//

PagedSequence::PagedSequence(PagedSequence &&other) noexcept
    : pool(other.pool), ownKind(other.ownKind), tokens(std::move(other.tokens)),
      held(std::move(other.held)), windows(std::move(other.windows)),
      seen(other.seen), reserved(other.reserved), found(other.found),
      findable(other.findable) {
  takeSlotOf(other);
  other.tokens.clear();
  other.held.clear();
}

PagedSequence &PagedSequence::operator=(PagedSequence &&other) noexcept {
  if (this == &other)
    return *this;
  giveBackSlot();
  giveBack(0);
  pool = other.pool;
  ownKind = other.ownKind;
  tokens = std::move(other.tokens);
  held = std::move(other.held);
  windows = std::move(other.windows);
  seen = other.seen;
  reserved = other.reserved;
  found = other.found;
  findable = other.findable;
  takeSlotOf(other);
  other.tokens.clear();
  other.held.clear();
  return *this;
}

PagedSequence::~PagedSequence() {
  giveBackSlot();
  giveBack(0);
}

void PagedSequence::giveBackSlot() {
  if (ownSlot >= 0)
    pool->allSlots[static_cast<size_t>(std::exchange(ownSlot, -1))].owner =
        nullptr;
}

/// Nothing can be read behind tokens without a state, so that their pages are
/// of no use, either.
void PagedSequence::loseState() {
  giveBackSlot();
  giveBack(0);
  reserved = 0;
}

void PagedSequence::takeSlotOf(PagedSequence &other) {
  ownSlot = std::exchange(other.ownSlot, -1);
  if (ownSlot >= 0)
    pool->allSlots[static_cast<size_t>(ownSlot)].owner = this;
}

/// One for a sequence that needs it; null: there is none.
PagePool::Slot *PagedSequence::findSlot(const IsBusy &isBusy) const {
  PagePool::Slot *oldest = nullptr;
  for (PagePool::Slot &slot : pool->allSlots) {
    if (!slot.owner)
      return &slot;
    if (!isBusy(*slot.owner) && (!oldest || slot.used < oldest->used))
      oldest = &slot;
  }
  return oldest;
}

bool PagedSequence::canTakeSlot(const IsBusy &isBusy) const {
  return pool->slots() == 0 || findSlot(isBusy);
}

bool PagedSequence::takeSlot(const IsBusy &isBusy) {
  if (pool->slots() == 0)
    return true;
  assert(length() == 0 && ownSlot < 0 && "only a beginning needs another one");
  PagePool::Slot *found = findSlot(isBusy);
  if (!found)
    return false;
  if (found->owner)
    found->owner->loseState();
  found->owner = this;
  ownSlot = static_cast<int32_t>(found - pool->allSlots.data());
  useSlot();
  return true;
}

void PagedSequence::useSlot() {
  if (ownSlot >= 0)
    pool->allSlots[static_cast<size_t>(ownSlot)].used = ++pool->slotUses;
}

/// Gives back all pages but the first `keep`, the last one first.
void PagedSequence::giveBack(size_t keep) {
  for (; held.size() > keep; held.pop_back()) {
    if (!windows.empty() && held.size() > seen)
      pool->releaseWindows(held.back(), /*passed=*/false);
    pool->release(held.back());
  }
  found = std::min(found, keep);
  seen = std::min(seen, held.size());
  for (std::vector<int32_t> &row : windows)
    row.resize(held.size());
}

/// Writes down the windows' pages of page number `index`.
void PagedSequence::setWindows(size_t index) {
  int32_t page = pool->pages[held[index]].window;
  for (std::vector<int32_t> &row : windows) {
    row[index] = page;
    page = pool->pages[page].window;
  }
}

/// Has the windows' pages of its pages from number `first` on; false where
/// there are none any more, which has it have fewer.
bool PagedSequence::seeWindowsFrom(size_t first) {
  for (; !windows.empty() && seen > first; --seen) {
    if (!pool->hasWindows(held[seen - 1]))
      return false;
    pool->shareWindows(held[seen - 1]);
    setWindows(seen - 1);
  }
  return true;
}

/// Gives back the windows' pages of those before number `first`.
void PagedSequence::forgetWindowsBefore(size_t first) {
  for (; !windows.empty() && seen < std::min(first, held.size()); ++seen)
    pool->releaseWindows(held[seen], /*passed=*/true);
}

/// An empty page behind the others.
void PagedSequence::takePage() {
  held.push_back(pool->take());
  pool->takeWindows(held.back());
  for (std::vector<int32_t> &row : windows)
    row.push_back(PagePool::kNone);
  setWindows(held.size() - 1);
}

Result<int64_t> PagedSequence::reusePrefix(std::span<const int32_t> ids) {
  assert(length() == 0 && "only a beginning can be reused");
  if (ids.empty())
    return 0;
  return catchExceptions([&]() -> Result<int64_t> {
    const PagePool::Match match =
        pool->find(pool->rootOf(ownKind), ids.first(ids.size() - 1));
    const size_t count = cachePagesOf(match.tokens);
    std::vector<int32_t> path(count);
    tokens.reserve(count * kCachePage);
    for (std::vector<int32_t> &row : windows)
      row.reserve(count);
    truncate(0);
    int32_t page = match.page;
    for (size_t i = count; i-- > 0; page = pool->pages[page].parent) {
      path[i] = page;
      pool->share(page);
    }
    held = std::move(path);
    found = count;
    for (std::vector<int32_t> &row : windows)
      row.assign(held.begin(), held.end());
    seen = windows.empty() ? 0 : count;
    [[maybe_unused]] const bool isSeen = seeWindowsFrom(
        static_cast<size_t>(pool->ofWindows.firstSeen(match.tokens)));
    assert(isSeen && "what was found cannot be gone on from");
    seeWindowsFrom(
        static_cast<size_t>(pool->ofWindows.firstKept(match.tokens)));
    tokens.assign(ids.begin(), ids.begin() + match.tokens);
    return match.tokens;
  });
}

/// Pages behind those of the sequence that `count` more positions need.
static int64_t pagesBehind(int64_t room, int64_t count) {
  const int64_t over = std::max<int64_t>(count - room, 0);
  return over / kCachePage + (over % kCachePage != 0);
}

/// Those of the positions that it has pages for, behind length().
int64_t PagedSequence::room() const {
  return static_cast<int64_t>(held.size()) * kCachePage - length();
}

bool PagedSequence::isCopied(int64_t count) const {
  return count > 0 && inPage() && pool->pages[lastPage()].users > 1;
}

int64_t PagedSequence::pagesFor(int64_t count) const {
  assert(count >= 0 && "a number of positions");
  return (pagesBehind(room(), count) + isCopied(count)) * pool->pagesOfEach();
}

int64_t PagedSequence::pagesToRead(int64_t count, const LostUsers &lost) const {
  assert(count >= 0 && "a number of positions");
  auto users = [&](int32_t page) {
    return pool->users(page) - (lost ? lost(page) : 0);
  };
  const int64_t added = pagesBehind(room(), count);
  const bool copied = isCopied(count) && users(lastPage()) > 1;
  if (windows.empty())
    return added + copied;
  // Windows' pages that it gives back are nobody's but for those of others.
  const int64_t own = std::count_if(
      held.begin() + static_cast<ptrdiff_t>(seen), held.end(),
      [&](int32_t page) {
        return pool->hasWindows(page) && users(pool->pages[page].window) == 1;
      });
  const int64_t ofWindows = std::min(
      added, std::max<int64_t>(pool->ofWindows.pagesKept() + 1 - own, 1));
  return added + ofWindows * pool->ofWindows.tables +
         copied * pool->pagesOfEach();
}

void PagedSequence::forEachPage(
    const std::function<void(int32_t)> &visit) const {
  for (size_t i = 0; i < held.size(); ++i) {
    visit(held[i]);
    if (i >= seen)
      for (const std::vector<int32_t> &row : windows)
        visit(row[i]);
  }
}

static Status full(const PagePool &pool, int64_t needed) {
  std::string message = "the KV cache is full: ";
  message += std::to_string(pool.used()) + " of its ";
  message += std::to_string(pool.total()) + " pages of ";
  message += std::to_string(kCachePage) + " positions are in use, and a ";
  message += "sequence needs " + std::to_string(needed) + " more; ";
  message += "give the cache more memory or run fewer sequences";
  return Status::error(std::move(message), StatusCode::OutOfMemory);
}

/// Room for `size` elements. Grows as push_back() does: a sequence that becomes
/// longer page by page is not copied for each.
static void growTo(std::vector<int32_t> &values, size_t size) {
  if (values.capacity() < size)
    values.reserve(std::max(size, 2 * values.capacity()));
}

Status PagedSequence::reserve(int64_t count, std::vector<PageCopy> &copies) {
  return catchExceptions([&] { return tryReserve(count, copies); });
}

Status PagedSequence::tryReserve(int64_t count, std::vector<PageCopy> &copies) {
  assert(!lacksState() && "its tokens have to be read again");
  const int64_t needed = pagesFor(count);
  const int64_t available = pool->available();
  if (needed > available)
    return full(*pool, needed);

  const size_t size =
      std::max<size_t>(cachePagesOf(length() + count), held.size());
  growTo(held, size);
  for (std::vector<int32_t> &row : windows)
    growTo(row, size);
  growTo(tokens, size * kCachePage);
  if (count > 0 && inPage()) {
    const int32_t number = lastPage();
    const int32_t filled = length() % kCachePage;
    PagePool::Page &page = pool->pages[number];
    // What others computed is worth a page as long as there is one.
    const bool kept = page.listed && page.filled > filled &&
                      held.size() == found &&
                      needed + pool->pagesOfEach() <= available;
    if (page.users > 1 || kept) {
      const size_t before = copies.size();
      copies.resize(before + static_cast<size_t>(pool->pagesOfEach()));
      // Nothing after this allocates.
      const int32_t target = pool->take();
      pool->takeWindows(target);
      int32_t from = number, to = target;
      for (size_t i = before; i < copies.size(); ++i) {
        copies[i] = {from, to};
        from = pool->pages[from].window;
        to = pool->pages[to].window;
      }
      pool->pages[target].ids = page.ids;
      if (page.listed && findable)
        pool->list(target, page.parent);
      held[length() / kCachePage] = target;
      setWindows(length() / kCachePage);
      if (!windows.empty())
        pool->releaseWindows(number, /*passed=*/false);
      pool->release(number);
      pool->pages[target].filled = filled;
    } else {
      // What follows in the tree follows tokens that are lost.
      if (findable)
        pool->unlistFollowing(number);
      else
        pool->unlist(number);
      page.filled = filled;
    }
    found = std::min<size_t>(found, length() / kCachePage);
  }
  while (held.size() < size)
    takePage();
  reserved = count;
  useSlot();
  return Status();
}

void PagedSequence::commit(std::span<const int32_t> ids) {
  assert(static_cast<int64_t>(ids.size()) <= reserved &&
         "tokens at positions that were not reserved");
  reserved = 0;
  while (!ids.empty()) {
    const size_t index = length() / kCachePage;
    const int64_t filled = length() % kCachePage;
    const auto added =
        ids.first(std::min<size_t>(ids.size(), kCachePage - filled));
    PagePool::Page &page = pool->pages[held[index]];
    assert(page.filled == filled && "another sequence wrote there");
    std::copy(added.begin(), added.end(), page.ids.begin() + filled);
    page.filled += static_cast<int32_t>(added.size());
    const int32_t before = index == 0 ? pool->rootOf(ownKind) : held[index - 1];
    if (filled == 0 && findable && pool->pages[before].listed)
      pool->list(held[index], before);
    tokens.insert(tokens.end(), added.begin(), added.end());
    ids = ids.subspan(added.size());
  }
  forgetWindowsBefore(static_cast<size_t>(pool->ofWindows.firstKept(length())));
}

void PagedSequence::truncate(int64_t length) {
  assert(length >= 0 && length <= this->length() && "it has no such length");
  const bool changes = length < this->length() || reserved > 0;
  if (pool->slots() > 0 && (length == 0 || changes))
    loseState();
  giveBack(cachePagesOf(length));
  tokens.resize(length);
  reserved = 0;
  if (!seeWindowsFrom(static_cast<size_t>(pool->ofWindows.firstSeen(length))))
    giveBack(0);
}

void PagedSequence::revoke(int64_t length) {
  const size_t keep = cachePagesOf(length);
  for (size_t i = keep; i < held.size(); ++i)
    pool->unlist(held[i]);
  if (length % kCachePage != 0 && keep <= held.size()) {
    pool->unlistFollowing(held[keep - 1]);
    pool->pages[held[keep - 1]].filled = length % kCachePage;
  }
  truncate(length);
}

Result<PagedSequence> PagedSequence::fork() const {
  return catchExceptions([&]() -> Result<PagedSequence> {
    PagedSequence other(*pool, ownKind);
    other.tokens = tokens;
    other.findable = findable;
    if (pool->slots() > 0 || lacksState())
      return other;
    const size_t count = cachePagesOf(length());
    std::vector<int32_t> pages(held.begin(), held.begin() + count);
    for (size_t i = 0; i < windows.size(); ++i)
      other.windows[i].assign(windows[i].begin(), windows[i].begin() + count);
    for (int32_t page : pages)
      pool->share(page);
    other.held = std::move(pages);
    other.seen = windows.empty() ? 0 : count;
    other.seeWindowsFrom(std::min(seen, count));
    other.found = found;
    return other;
  });
}

void PagedSequence::forget() {
  findable = false;
  if (found < held.size())
    pool->unlist(held[found]);
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

  std::vector<int64_t> users(count);
  for (const PagedSequence *sequence : living) {
    const int64_t length = sequence->length();
    int32_t before = rootOf(sequence->kind());
    for (size_t i = 0; i < sequence->held.size(); ++i) {
      const int32_t number = sequence->held[i];
      const Page &page = pages[number];
      ++users[number];
      const int64_t own =
          std::clamp<int64_t>(length - i * kCachePage, 0, kCachePage);
      if (page.filled < own ||
          !std::equal(page.ids.begin(), page.ids.begin() + own,
                      sequence->tokens.begin() + i * kCachePage))
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
  std::vector<int64_t> turn(count);
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

  std::vector<bool> isFree(count);
  int64_t freePages = 0;
  for (int32_t number = firstFree; number != kNone;
       number = pages[number].newer) {
    if (isFree[number])
      return wrong(number, "twice in the list of free pages");
    isFree[number] = true;
    ++freePages;
  }
  if (freePages != free())
    return Status::error("free pages are miscounted");

  int64_t usedPages = 0;
  int64_t children = 0;
  int64_t listedPages = 0;
  for (int32_t number = 0; number < static_cast<int32_t>(pages.size());
       ++number) {
    const Page &page = pages[number];
    int32_t previous = kNone;
    for (int32_t child = page.child; child != kNone;
         previous = child, child = pages[child].sibling) {
      if (!page.listed || page.filled != kCachePage)
        return wrong(number, "others follow what is not whole or not listed");
      if (!pages[child].listed || pages[child].parent != number ||
          pages[child].previousSibling != previous)
        return wrong(child, "links of the tree are broken");
      if (!isRoot(number) && turn[number] != 0 &&
          (turn[child] == 0 || turn[child] > turn[number]))
        return wrong(number, "evicted before one that follows it");
      if (++children > count)
        return Status::error("the tree has a circle");
    }
    if (isRoot(number))
      continue;
    listedPages += page.listed;
    usedPages += page.users != 0;
    if (page.users != users[number])
      return wrong(number, "its users are miscounted");
    if ((page.users != 0) + (turn[number] != 0) + isFree[number] != 1)
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
