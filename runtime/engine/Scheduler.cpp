//===- Scheduler.cpp - Who reads in a step, and who waits -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Scheduler.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <utility>

using namespace kf;

/// Tokens that a prompt has to have in common with another one to wait for it.
static constexpr size_t kWorthWaiting = 16;

//===----------------------------------------------------------------------===//
// ScheduledReading
//===----------------------------------------------------------------------===//

void ScheduledReading::commit(size_t count) {
  pages.commit(std::span(ids).subspan(next, count));
  next += count;
}

void ScheduledReading::keepDrafts(size_t count) {
  if (drafted <= count)
    return;
  ids.resize(ids.size() - (drafted - count));
  drafted = count;
}

/// The ids up to the first of which something is to be known.
std::span<const int32_t> ScheduledReading::beginning() const {
  return std::span(ids).first(std::min(ids.size(), firstWanted + 1));
}

/// The pages stay in the cache until others need them, or are those of others,
/// too.
void ScheduledReading::giveUpPages() {
  const std::span<const int32_t> known = pages.ids();
  std::vector<int32_t> all;
  all.reserve(known.size() + rest());
  all.assign(known.begin(), known.end());
  all.insert(all.end(), ids.begin() + static_cast<ptrdiff_t>(next), ids.end());
  const size_t before = known.size() - next;
  firstWanted = std::max(firstWanted, next) + before;
  readAgain += before;
  ids = std::move(all);
  next = 0;
  hasBegun = false;
  hasLost = true;
  pages.truncate(0);
}

//===----------------------------------------------------------------------===//
// Readings
//===----------------------------------------------------------------------===//

void Scheduler::add(ScheduledReading &reading) {
  readings.push_back(&reading);
  if (reading.arrival == 0)
    reading.arrival = ++arrivals;
  reading.asked = ++readingsAsked;
  reading.hasBegun = !reading.pages.pages().empty();
  reading.hasLost = false;
  reading.most = 0;
}

void Scheduler::remove(const ScheduledReading &reading) {
  std::erase(readings, &reading);
}

void Scheduler::served(ScheduledReading &reading) {
  const auto found = std::ranges::find(readings, &reading);
  std::rotate(found, found + 1, readings.end());
}

int64_t Scheduler::waiting() const {
  return std::ranges::count(readings, false, &ScheduledReading::hasBegun);
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// Pages that `reading` needs for all that it reads, and for one page more.
int64_t Scheduler::pagesWanted(const ScheduledReading &reading) const {
  const int64_t rest = static_cast<int64_t>(reading.rest());
  const int64_t room = positions - reading.pages.length();
  return reading.pages.pagesToRead(
      std::min(rest + reading.pages.pagePositions(), room));
}

/// How many of the next `rows` rows `free` pages are enough for.
static int64_t rowsFor(const ScheduledReading &reading, int64_t rows,
                       int64_t free) {
  int64_t least = 0;
  while (least < rows) {
    const int64_t middle = least + (rows - least + 1) / 2;
    if (reading.pages.pagesFor(middle) <= std::max<int64_t>(free, 0))
      least = middle;
    else
      rows = middle - 1;
  }
  return least;
}

/// Whether what `reading` could take over is about to be read for another one.
bool Scheduler::waitsForPrefix(const ScheduledReading &reading) const {
  if (!reusesPrefixes)
    return false;
  const std::span<const int32_t> ids = reading.beginning();
  return std::ranges::any_of(readings, [&](const ScheduledReading *other) {
    if (!other->hasBegun || other->pages.kind() != reading.pages.kind())
      return false;
    const std::span<const int32_t> read = other->pages.ids();
    const std::span<const int32_t> coming =
        std::span(other->ids).subspan(other->next);
    if (coming.size() < kWorthWaiting || read.size() >= ids.size() ||
        !std::ranges::equal(read, ids.first(read.size())))
      return false;
    const auto end =
        std::ranges::mismatch(coming, ids.subspan(read.size())).in1;
    return static_cast<size_t>(end - coming.begin()) >= kWorthWaiting;
  });
}

/// Whether `other` is to keep its slot: it reads.
bool Scheduler::isReading(const PagedSequence &other) const {
  return std::ranges::any_of(readings, [&](const ScheduledReading *reading) {
    return reading->hasBegun && &reading->pages == &other;
  });
}

/// Has `reading` begin, but for its slot, if there are pages and a slot for it.
/// Others are what they were.
bool Scheduler::prepareBegin(ScheduledReading &reading) {
  assert(reading.next == 0 && reading.pages.pages().empty() &&
         "it has begun before");
  int64_t reused = 0;
  if (reusesPrefixes)
    // Without the memory for it, all of it is read.
    if (Result<int64_t> found = reading.pages.reusePrefix(reading.beginning());
        found.ok())
      reused = *found;
  reading.next = static_cast<size_t>(reused);
  reading.hasBegun = true;
  int64_t free = pool.available() - pagesWanted(reading);
  bool isAlone = true;
  for (const ScheduledReading *other : readings)
    if (other->hasBegun && other != &reading) {
      free -= pagesWanted(*other);
      isAlone = false;
    }
  const bool hasSlot = reading.pages.canTakeSlot(
      [this](const PagedSequence &owner) { return isReading(owner); });
  if (hasSlot && (free >= 0 || isAlone))
    return true;
  takeBackBegin(reading);
  return false;
}

/// Begins with `reading` if there are pages and a slot for it. Who has had the
/// slot, and does not read, reads again what it has read.
bool Scheduler::tryBegin(ScheduledReading &reading) {
  if (!prepareBegin(reading))
    return false;
  reading.pages.takeSlot(
      [this](const PagedSequence &owner) { return isReading(owner); });
  if (!reading.hasLost)
    reading.reused = static_cast<int64_t>(reading.next);
  return true;
}

void Scheduler::takeBackBegin(ScheduledReading &reading) {
  reading.pages.truncate(0);
  reading.next = 0;
  reading.hasBegun = false;
}

bool Scheduler::anyCouldBegin() {
  ScheduledReading *first = nullptr;
  for (ScheduledReading *reading : readings)
    if (!reading->hasBegun && (!first || reading->arrival < first->arrival))
      first = reading;
  if (!first)
    return false;
  if (waitsForPrefix(*first))
    return true; // for the sake of those behind it
  if (!prepareBegin(*first))
    return false;
  takeBackBegin(*first);
  return true;
}

/// Whether `free` pages and those of `later` have room for all that `reading`
/// reads.
bool Scheduler::isEnough(const ScheduledReading &reading,
                         std::span<const ScheduledReading *const> later,
                         int64_t free) const {
  std::unordered_map<int32_t, int64_t> losers; // that have a page
  for (const ScheduledReading *other : later)
    other->pages.forEachPage([&](int32_t page) {
      free += ++losers[page] == pool.users(page) && pool.isInCache(page);
    });
  // What it shares with them alone is its own then.
  return reading.pages.pagesToRead(
             static_cast<int64_t>(reading.rest()), [&](int32_t page) {
               const auto found = losers.find(page);
               return found == losers.end() ? 0 : found->second;
             }) <= free;
}

/// Begins with those that there are pages for, and says for each how many rows
/// it may have of a step. Returns false where the step has to wait for those
/// that are under way: somebody would lose pages, or the first one has too few.
bool Scheduler::decide(const Limits &limits) {
  std::vector<ScheduledReading *> order = readings;
  std::ranges::sort(order, {}, &ScheduledReading::arrival);
  std::vector<ScheduledReading *> begun, others;
  for (ScheduledReading *reading : order)
    (reading->hasBegun ? begun : others).push_back(reading);
  int64_t promised = 0;             // pages of this step
  uint64_t firstLoser = UINT64_MAX; // the arrival of the first of them
  // For drafts, nobody loses pages, nor waits for some.
  auto sure = [](const ScheduledReading &reading) {
    return reading.isWhole()
               ? 0
               : static_cast<int64_t>(reading.rest() - reading.drafted);
  };
  auto rowsOf = [&](const ScheduledReading &reading) {
    return reading.isGenerating() ? limits.rows
                                  : std::min(limits.rows, limits.prompts);
  };
  // `behind` are the pages of those behind it. The windows' pages of a prompt's
  // step, nearly all of which come back at its end, are none of them.
  auto give = [&](ScheduledReading &reading, bool isFirst, int64_t behind) {
    const int64_t wanted = std::min<int64_t>(
        static_cast<int64_t>(reading.rest()), rowsOf(reading));
    int64_t free = pool.available() - promised;
    if (pool.windows().tables > 0 && !reading.isGenerating())
      free = std::max(free - behind,
                      std::min(free, reading.pages.pagesToRead(wanted)));
    const int64_t most = rowsFor(reading, wanted, free);
    promised += reading.pages.pagesFor(std::min(most, sure(reading)));
    reading.most = most == 0 && isFirst && !limits.isBeside ? -1 : most;
  };

  std::vector<int64_t> needs; // of each of `begun`, in this step
  for (const ScheduledReading *reading : begun)
    needs.push_back(
        reading->pages.pagesToRead(std::min(sure(*reading), rowsOf(*reading))));
  int64_t behind = std::accumulate(needs.begin(), needs.end(), int64_t(0));
  for (size_t i = 0; i < begun.size(); ++i) {
    ScheduledReading &reading = *begun[i];
    const int64_t wanted = std::min(sure(reading), rowsOf(reading));
    behind -= needs[i];
    auto isShort = [&] {
      return reading.pages.pagesToRead(wanted) > pool.available() - promised;
    };
    if (reading.isWhole()) {
      reading.most = 0;
      continue;
    }
    // Nobody loses what would not do.
    const bool takes =
        isShort() && isEnough(reading, std::span(begun).subspan(i + 1),
                              pool.available() - promised);
    if (limits.isBeside && isShort() && (takes || i == 0))
      return false;
    if (takes)
      for (; isShort() && begun.size() > i + 1; begun.pop_back()) {
        begun.back()->giveUpPages();
        firstLoser = begun.back()->arrival;
        behind -= needs[begun.size() - 1];
        ++lost;
      }
    give(reading, /*isFirst=*/i == 0, behind);
  }
  // Those that have just lost their pages wait for a later step, and nobody
  // overtakes them.
  for (ScheduledReading *reading : others) {
    reading->most = 0;
    if (waitsForPrefix(*reading))
      continue;
    if (reading->arrival > firstLoser || !tryBegin(*reading))
      return true;
    begun.push_back(reading);
    give(*reading, /*isFirst=*/begun.size() == 1, /*behind=*/0);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

bool Scheduler::isReady(const ScheduledReading *reading) {
  return reading->hasBegun && reading->most != 0;
}

/// Which prompt has which of the places that prompts have. A place is its
/// step's share, whoever has it: one that is served goes to the end.
void Scheduler::orderPrompts() {
  auto isPrompt = [](const ScheduledReading *reading) {
    return isReady(reading) && !reading->isGenerating();
  };
  std::vector<ScheduledReading *> prompts;
  std::ranges::copy_if(readings, std::back_inserter(prompts), isPrompt);
  if (prompts.size() < 2)
    return;
  std::ranges::sort(prompts, {}, &ScheduledReading::asked);
  if (std::exchange(shortestFirst, !shortestFirst))
    std::ranges::stable_sort(prompts, {}, &ScheduledReading::rest);
  auto next = prompts.begin();
  for (ScheduledReading *&reading : readings)
    if (isPrompt(reading))
      reading = *next++;
}

void Scheduler::plan(const Limits &limits, const Take &take) {
  if (!decide(limits))
    return;
  orderPrompts();
  std::vector<ScheduledReading *> ready;
  std::ranges::copy_if(readings, std::back_inserter(ready), isReady);
  int64_t behind = std::min<int64_t>(
      std::ranges::count_if(ready, &ScheduledReading::isGenerating),
      limits.texts);
  int64_t rows = limits.rows, prompts = limits.prompts, chosen = limits.chosen,
          texts = limits.texts;
  for (ScheduledReading *reading : ready) {
    if (rows == 0)
      return;
    const bool isPrompt = !reading->isGenerating();
    if (!isPrompt && texts == 0)
      continue;
    behind -= !isPrompt;
    texts -= !isPrompt;
    // Those behind that nothing can be known of are not in this step.
    const int64_t left = std::min(behind, chosen);
    if (isPrompt && (prompts == 0 || (rows <= left && rows < limits.rows)))
      continue;
    int64_t share = std::max<int64_t>(rows - left, 1);
    if (isPrompt)
      share = std::min(share, prompts);
    if (reading->most > 0) {
      // Copies of pages, to keep what they hold, may have taken some.
      share =
          rowsFor(*reading, std::min(share, reading->most), pool.available());
      if (share == 0)
        continue;
    }
    const Share taken = take(*reading, share);
    rows -= taken.rows;
    chosen -= taken.chosen;
    if (isPrompt)
      prompts -= taken.rows;
  }
}
