//===- PagedSequence.cpp - A sequence's pages and tokens ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/engine/PagePool.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

using namespace kf;

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
  held.push_back(pool->takeForPositions());
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
    const size_t count = cachePagesOf(match.tokens, pool->positions);
    std::vector<int32_t> path(count);
    tokens.reserve(count * pool->positions);
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
      row.assign(count, 0);
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
int64_t PagedSequence::pagesBehind(int64_t count) const {
  return cachePagesOf(std::max<int64_t>(count - room(), 0), pool->positions);
}

/// Those of the positions that it has pages for, behind length().
int64_t PagedSequence::room() const {
  return static_cast<int64_t>(held.size()) * pool->positions - length();
}

bool PagedSequence::isCopied(int64_t count) const {
  return count > 0 && inPage() && pool->pages[lastPage()].users > 1;
}

int64_t PagedSequence::pagesFor(int64_t count) const {
  assert(count >= 0 && "a number of positions");
  return (pagesBehind(count) + isCopied(count)) * pool->pagesOfEach();
}

int64_t PagedSequence::pagesToRead(int64_t count, const LostUsers &lost) const {
  assert(count >= 0 && "a number of positions");
  auto users = [&](int32_t page) {
    return pool->users(page) - (lost ? lost(page) : 0);
  };
  const int64_t added = pagesBehind(count);
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
  return (pool->ofWindows.areAll ? 0 : added) +
         ofWindows * pool->ofWindows.tables + copied * pool->pagesOfEach();
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
  message +=
      std::to_string(pool.pagePositions()) + " positions are in use, and a ";
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

  const size_t size = std::max<size_t>(
      cachePagesOf(length() + count, pool->positions), held.size());
  growTo(held, size);
  for (std::vector<int32_t> &row : windows)
    growTo(row, size);
  growTo(tokens, size * pool->positions);
  pool->makeRoom(size - held.size() + 1); // one for a copy
  if (count > 0 && inPage()) {
    const int32_t number = lastPage();
    const int32_t filled = length() % pool->positions;
    PagePool::Page &page = pool->pages[number];
    // What others computed is worth a page as long as there is one.
    const bool kept = page.listed && page.filled > filled &&
                      held.size() == found &&
                      needed + pool->pagesOfEach() <= available;
    if (page.users > 1 || kept) {
      const size_t before = copies.size();
      copies.resize(before + static_cast<size_t>(pool->pagesOfEach()));
      // Nothing after this allocates.
      const int32_t target = pool->takeForPositions();
      pool->takeWindows(target);
      int32_t from = number, to = target;
      if (!pool->isInCache(number)) {
        from = page.window;
        to = pool->pages[target].window;
      }
      for (size_t i = before; i < copies.size(); ++i) {
        copies[i] = {from, to};
        from = pool->pages[from].window;
        to = pool->pages[to].window;
      }
      std::ranges::copy(pool->idsOf(number), pool->idsOf(target).begin());
      if (page.listed && findable)
        pool->list(target, page.parent);
      held[length() / pool->positions] = target;
      setWindows(length() / pool->positions);
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
    found = std::min<size_t>(found, length() / pool->positions);
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
    const size_t index = length() / pool->positions;
    const int64_t filled = length() % pool->positions;
    const auto added =
        ids.first(std::min<size_t>(ids.size(), pool->positions - filled));
    PagePool::Page &page = pool->pages[held[index]];
    assert(page.filled == filled && "another sequence wrote there");
    std::copy(added.begin(), added.end(),
              pool->idsOf(held[index]).begin() + filled);
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
  giveBack(cachePagesOf(length, pool->positions));
  tokens.resize(length);
  reserved = 0;
  if (!seeWindowsFrom(static_cast<size_t>(pool->ofWindows.firstSeen(length))))
    giveBack(0);
}

void PagedSequence::revoke(int64_t length) {
  const size_t keep = cachePagesOf(length, pool->positions);
  for (size_t i = keep; i < held.size(); ++i)
    pool->unlist(held[i]);
  if (length % pool->positions != 0 && keep <= held.size()) {
    pool->unlistFollowing(held[keep - 1]);
    pool->pages[held[keep - 1]].filled = length % pool->positions;
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
    const size_t count = cachePagesOf(length(), pool->positions);
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
