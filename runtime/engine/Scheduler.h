//===- Scheduler.h - Who reads in a step, and who waits ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which sequences read how many rows in a step. No device is known here.
//
// Pages, in the order of arrival (the first reading that a sequence asked for):
//
// - A sequence without pages waits until there are pages for all that it reads
//   and for one page more, beside as many for each that has begun. Nobody
//   begins before one that came earlier, but for one that waits for a prompt
//   like its own to be read.
// - One that has begun and needs a page takes it from those that came later,
//   if theirs are enough for all that it reads: the last one of them loses its
//   pages and waits. It reads again what it had read, but for what the cache
//   still has of it, and goes on as if nothing had happened. Those that came
//   earlier are never touched: the first one of all gets on whatever the others
//   do. Where layers have windows, a prompt takes pages beside those that it
//   keeps, which come back with the step, of what those that came later do not
//   need in it.
// - What is too much for the cache even alone is an error. So is a page that
//   the first one needs where sequences that do not read leave too few.
// - Beside steps that are under way, nobody loses pages, nor fails for want of
//   them: where somebody would, no step is planned before those are over. Who
//   has too few, and would not get enough by that, takes what there is.
//
// Rows, in the order of who was not served for longest:
//
// - Whoever has nothing left to read waits for what a step that is under way
//   chooses, and is in no other.
// - Of the rows that a step has for prompts, the first one takes all that it
// has
//   tokens for, and the next one what is left. They come in the order in which
//   they were asked for; in every second step with several of them, the one
//   with the fewest tokens left comes first. So prompts that are alike are read
//   one after the other, and short ones soon.
// - A prompt leaves a row to each sequence behind it that generates. Where that
//   leaves none for itself, its place is nearer to the front in the next step,
//   and whoever has the first place gets a row at least.
// - So with enough pages, and no more sequences that have begun than a step
//   chooses tokens and fewer than it has rows, each that generates is in every
//   step: the time between two of its tokens is that of a step. With n times as
//   many, it is that of n steps; and where n steps are under way, each is in
//   one of them.
//
// docs/decisions/waiting.md says why.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_SCHEDULER_H
#define KF_RUNTIME_ENGINE_SCHEDULER_H

#include "runtime/core/Status.h"
#include "runtime/engine/PagePool.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace kf {

/// The tokens of a sequence, and what it reads. While a scheduler has it, the
/// pages may be given back, and what was read be read again.
struct ScheduledReading {
  explicit ScheduledReading(PagedSequence pages) : pages(std::move(pages)) {}

  PagedSequence pages;
  /// What is read, and how much of it is; the rest comes behind `pages`.
  std::vector<int32_t> ids;
  size_t next = 0;
  /// The first of `ids` of which something is to be known; those before it may
  /// be taken over from others.
  size_t firstWanted = 0;
  /// How many of `ids`, the last ones, may be dropped.
  size_t drafted = 0;
  /// How many of `ids`, the first ones, had been read before they were asked
  /// for: it has lost its pages.
  size_t readAgain = 0;
  /// How many tokens it began with, which the cache had of others.
  int64_t reused = 0;

  size_t rest() const { return ids.size() - next; }
  bool isGenerating() const { return rest() == 1 + drafted; }
  bool isWhole() const { return next == ids.size(); }
  /// The step has read `count` of them.
  void commit(size_t count);
  /// Keeps the first `count` of what is drafted, if there are more.
  void keepDrafts(size_t count);
  /// Whether it has pages, or gets the first ones in the step that is planned.
  bool begun() const { return hasBegun; }
  /// All that was read is to be read again. May throw for want of memory, and
  /// nothing has changed then.
  void giveUpPages();

private:
  friend class Scheduler;

  std::span<const int32_t> beginning() const;

  uint64_t arrival = 0; ///< of the sequence, from 1 on; a lower one is earlier
  uint64_t asked = 0;   ///< the same of what is being read
  bool hasBegun = false;
  bool hasLost = false; ///< pages, during this reading
  int64_t most = 0;     ///< rows that the step has pages for; -1: never any
};

/// Sequences that read from one pool of pages. It refers to them until
/// remove(). One thread.
class Scheduler {
public:
  /// `positions` is the most that a sequence has room for; `reusesPrefixes`
  /// says whether sequences begin with what the cache has of their tokens.
  Scheduler(PagePool &pool, int64_t positions, bool reusesPrefixes)
      : pool(pool), positions(positions), reusesPrefixes(reusesPrefixes) {}

  /// `reading` has something to read. May throw for want of memory, and nothing
  /// has changed then.
  void add(ScheduledReading &reading);
  void remove(const ScheduledReading &reading);
  /// It was in a step: others come before it in the next one.
  void served(ScheduledReading &reading);
  /// All, the last served at the end.
  const std::vector<ScheduledReading *> &queue() const { return readings; }

  struct Limits {
    int64_t rows = 1;    ///< of a step
    int64_t prompts = 1; ///< of them, those of readings that do not generate
    int64_t chosen = 1;  ///< rows of a step behind which a token is chosen
    int64_t texts = INT64_MAX; ///< readings of a step that generate
    bool isBeside = false;     ///< other steps are under way, which go first
  };
  /// What a reading takes of a step.
  struct Share {
    int64_t rows = 0;
    int64_t chosen = 0;
  };
  /// Takes up to `rows` rows of what `reading` reads into the step, and
  /// reserves their pages. A reading that there can be no page for is given a
  /// row as well: reserving it fails. It may remove readings.
  using Take = std::function<Share(ScheduledReading &reading, int64_t rows)>;
  /// Decides on a step with limits of at least 1: calls `take` for each that is
  /// in it. Sequences that begin have what the cache has of their tokens. May
  /// throw for want of memory, between two calls of `take`.
  void plan(const Limits &limits, const Take &take);

  /// Whether the next step could have one that has not begun. Throws nothing.
  bool anyCouldBegin();

  /// Those that have not begun, or lost their pages.
  int64_t waiting() const;
  /// How many times a sequence has lost its pages so far.
  int64_t preemptions() const { return lost; }

private:
  void orderPrompts();
  static bool isReady(const ScheduledReading *reading);
  int64_t pagesWanted(const ScheduledReading &reading) const;
  bool waitsForPrefix(const ScheduledReading &reading) const;
  bool tryBegin(ScheduledReading &reading);
  bool prepareBegin(ScheduledReading &reading);
  bool isReading(const PagedSequence &other) const;
  void takeBackBegin(ScheduledReading &reading);
  bool isEnough(const ScheduledReading &reading,
                std::span<const ScheduledReading *const> later,
                int64_t free) const;
  bool decide(const Limits &limits);

  PagePool &pool;
  int64_t positions;
  bool reusesPrefixes;
  std::vector<ScheduledReading *> readings; ///< the last served at the end
  uint64_t arrivals = 0, readingsAsked = 0;
  int64_t lost = 0;
  bool shortestFirst = false; ///< of the next step's prompts
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_SCHEDULER_H
