//===- PagePool.h - Who has which pages of the cache ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's side of a paged KV cache. A page holds kCachePage positions of one
// sequence, in every layer, or as many on each of the ranks that share them; a
// pool has a number of them, and sequences whose tokens begin alike share those
// of the common beginning. No device is known
// here: what has to be copied is said, and whoever runs the steps does it.
//
// Where layers with windows have pages of their own (CacheWindows), kCachePage
// positions have a page of the layers that attend to all, which stands for them
// here, and one of each group of the others. The latter, its windows' pages,
// are a sequence's as long as its next row may see them. Then they are kept, as
// pages of ended sequences are, for others whose tokens begin alike and end
// near there, until somebody needs the room. Where no layer attends to all,
// what stands for positions has a number as a page has, and nothing in the
// cache: it is there as long as a sequence has it, or what windows see of it or
// behind it is in the cache.
//
//   PagedSequence sequence(pool);
//   sequence.reusePrefix(prompt)      what other sequences have computed
//   sequence.reserve(count, copies)   for each sequence of a step
//   (make the copies, run the step with sequence.pages() as its table)
//   sequence.commit(ids)              unless the step failed
//
// What the pool expects of its caller, so that nobody reads keys and values
// that are not there:
//
// - Copies and steps have effect in the order of the calls that led to them, as
//   those of one stream do: the copies of reserve() before the step that it was
//   called for, and before the copies that later calls ask for.
// - A copy is made even if no step follows. Where that fails, the sequence has
//   lost what it held: forget() it, then drop it.
// - commit() means that the step was run, or that it is in the stream; revoke()
//   that it has failed there.
//
// A page whose tokens are committed can be found by others while sequences have
// it, and afterwards as a cached page, until it is evicted for want of a free
// one. docs/decisions/pages.md says why it is made so.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_PAGEPOOL_H
#define KF_RUNTIME_ENGINE_PAGEPOOL_H

#include "runtime/core/Status.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/model/Step.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace kf {

/// A copy of a whole page, in every layer that it is of.
struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;

  bool operator==(const PageCopy &) const = default;
};

class PagedSequence;

/// The pages 0 to total - 1 of a cache, and which tokens they hold. It must
/// outlive its sequences. One thread, its sequences included.
class PagePool {
public:
  /// The most that pages can be: their numbers are of 32 bits.
  static constexpr int64_t kMostPages = std::numeric_limits<int32_t>::max() - 1;

  /// A pool of 1 to kMostPages - kinds pages. All that it will ever need itself
  /// is allocated here, about 300 bytes for each page; but for as much for each
  /// 64 positions of texts where all layers have windows.
  /// With `slots` for states, each sequence needs one (PagedSequence).
  /// Sequences are of `kinds` kinds, and share nothing with those of another.
  /// With `windows`, there are no slots. A page has `pagePositions` positions:
  /// kCachePage where there are windows.
  static Result<std::unique_ptr<PagePool>>
  create(int64_t pages, int64_t slots = 0, int64_t kinds = 1,
         const CacheWindows &windows = {}, int64_t pagePositions = kCachePage);
  ~PagePool();
  PagePool(const PagePool &) = delete;
  PagePool &operator=(const PagePool &) = delete;

  /// total() == used() + cached() + free().
  int64_t total() const { return count; }
  /// Pages that living sequences have; a shared one counts once.
  int64_t used() const { return usedCount; }
  /// Pages that no sequence has, kept for those whose tokens begin alike; and
  /// windows' pages that no sequence sees.
  int64_t cached() const { return cachedCount; }
  int64_t free() const { return total() - used() - cached(); }
  /// Pages that sequences can be given: free ones, and cached ones, which are
  /// evicted for it: windows' pages that living sequences have passed, then the
  /// others, of both the least recently used first.
  int64_t available() const { return total() - used(); }
  /// Slots for states, those in use included; 0: sequences have none.
  int64_t slots() const { return static_cast<int64_t>(allSlots.size()); }
  const CacheWindows &windows() const { return ofWindows; }
  /// Positions of a page.
  int64_t pagePositions() const { return positions; }
  /// Whether `page`, which a sequence has, is one of the cache's.
  bool isInCache(int32_t page) const { return page < count; }
  /// What stands for positions and is not in the cache, of texts that live or
  /// can be found.
  int64_t standIns() const {
    return std::ssize(pages) - count - kinds -
           static_cast<int64_t>(freeOutside);
  }
  /// Living sequences that have `page`.
  int64_t users(int32_t page) const { return pages[page].users; }

  /// Keeps all pages from those that begin from now on: what they hold may not
  /// be what was read. Living sequences go on with theirs.
  void forgetAll();

  /// For tests: an error that names the first thing that is not as it should
  /// be. `living` are all sequences of this pool.
  Status check(std::span<const PagedSequence *const> living) const;

private:
  friend class PagedSequence;

  Status checkSlots(std::span<const PagedSequence *const> living) const;

  /// No page.
  static constexpr int32_t kNone = -1;

  /// What is known of a page. Listed pages form a tree for each kind of
  /// sequences, in which a page follows the one with the positions before its
  /// own: the tokens from the root to a page are those that its keys and values
  /// come from. What follows a page follows all of its tokens.
  struct Page {
    int32_t filled = 0;      ///< positions that hold something
    int64_t users = 0;       ///< living sequences that have it
    bool listed = false;     ///< can be found
    int32_t parent = kNone;  ///< if listed
    int32_t child = kNone;   ///< the first of those that follow
    int32_t sibling = kNone; ///< the next one with this parent
    int32_t previousSibling = kNone;
    /// Cached: the next one to be used again or evicted. Free: the next one of
    /// those in the cache, or of the others.
    int32_t newer = kNone;
    int32_t older = kNone; ///< cached
    /// Its windows' pages, or all but the first of these behind it: the next.
    int32_t window = kNone;
    /// Of a window's page: whose it is. Of others, itself.
    int32_t owner = kNone;
    int32_t another = kNone; ///< find(): the next page that matches as well
    int32_t seen = 0; ///< find(): pages up to it that have windows' pages
  };

  /// A run of tokens that ends in `page`; kNone if there are none.
  struct Match {
    int32_t page = kNone;
    int64_t tokens = 0;
  };

  /// A slot for states.
  struct Slot {
    PagedSequence *owner = nullptr; ///< null: nobody's
    uint64_t used = 0;              ///< later ones are larger
  };

  PagePool(int64_t count, int64_t slots, int64_t kinds,
           const CacheWindows &windows, int64_t pagePositions);

  int32_t rootOf(int32_t kind) const { return count + kind; }
  bool isRoot(int32_t page) const {
    return page >= count && page < count + kinds;
  }
  /// The tokens of `page`, `filled` of them: [positions].
  std::span<int32_t> idsOf(int32_t page) {
    return std::span(ids).subspan(static_cast<size_t>(page * positions),
                                  static_cast<size_t>(positions));
  }
  std::span<const int32_t> idsOf(int32_t page) const {
    return const_cast<PagePool *>(this)->idsOf(page);
  }
  /// The longest run of the beginning of `ids` that listed pages behind `root`
  /// hold.
  Match find(int32_t root, std::span<const int32_t> ids);
  /// An empty page of the cache for a sequence; available() is not 0.
  int32_t take();
  /// One that stands for positions; if it is not in the cache, `room` is there.
  int32_t takeForPositions();
  /// Has room for `wanted` pages that are not in the cache; throws.
  void makeRoom(size_t wanted);
  void share(int32_t page);
  void release(int32_t page);
  /// Pages of the cache that the positions of one have.
  int64_t pagesOfEach() const { return ofWindows.groups(); }
  bool hasWindows(int32_t page) const { return pages[page].window != kNone; }
  /// Gives `page` windows' pages; as many are available().
  void takeWindows(int32_t page);
  void shareWindows(int32_t page);
  /// Keeps them where nobody sees them any more: as what ended sequences had,
  /// or, `passed` by one that goes on, to be evicted before all of that.
  void releaseWindows(int32_t page, bool passed);
  /// Frees the windows' pages of `page`, if it has any. Nobody uses them.
  void freeWindows(int32_t page);
  /// Of `size` pages, which are cached as one; the next to be evicted behind
  /// `before`, kNone: the first one.
  void keep(int32_t page, int64_t size, int32_t before);
  /// Lets `page` be found behind `parent`, which is full and listed.
  void list(int32_t page, int32_t parent);
  /// Lets `page` and all that follows it not be found; frees what is cached.
  void unlist(int32_t page);
  /// unlist() of all that follows `page`.
  void unlistFollowing(int32_t page);
  void removeFromTree(int32_t page);
  /// Frees `page`, and those before it, if they are not in the cache and nobody
  /// has, and nobody finds, anything by them.
  void dropUnused(int32_t page);
  void removeFromCached(int32_t page, int64_t size);
  void makeFree(int32_t page);

  /// Those of the cache; the roots of the trees; those that are not in the
  /// cache, of which there are as many as have been needed at once.
  std::vector<Page> pages;
  int64_t positions;        ///< of a page
  std::vector<int32_t> ids; ///< of `pages`: [pages][positions]
  int32_t count;            ///< of those in the cache
  int32_t kinds;            ///< and of roots
  int64_t usedCount = 0;
  int64_t cachedCount = 0;
  int32_t firstFree = kNone;    ///< in the cache
  int32_t firstOutside = kNone; ///< free, and not in the cache
  size_t freeOutside = 0;
  /// Cached pages, in the order in which they are evicted, and among them the
  /// first one of windows' pages, for all of these: up to `lastPassed` those
  /// that living sequences gave back, then the others. Both are in the order in
  /// which they ceased to be used. A sequence gives its last page back first,
  /// so none comes before one that follows it.
  int32_t oldest = kNone;
  int32_t newest = kNone;
  int32_t lastPassed = kNone;
  std::vector<Slot> allSlots;
  uint64_t slotUses = 0;
  CacheWindows ofWindows;
};

/// The tokens of a sequence whose keys and values are in the cache, and the
/// pages that hold them. Gives its pages back on destruction. A sequence that
/// was moved from can be destroyed or assigned to.
class PagedSequence {
public:
  /// `kind` is from 0 to the pool's number of kinds, less 1.
  explicit PagedSequence(PagePool &pool, int32_t kind = 0)
      : pool(&pool), ownKind(kind),
        windows(static_cast<size_t>(pool.windows().tables)) {}
  PagedSequence(PagedSequence &&other) noexcept;
  PagedSequence &operator=(PagedSequence &&other) noexcept;
  ~PagedSequence();

  int32_t kind() const { return ownKind; }
  /// Positions of each of its pages.
  int64_t pagePositions() const { return pool->pagePositions(); }
  /// Positions with keys and values; the next token is at this one.
  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  /// [length()]
  std::span<const int32_t> ids() const { return tokens; }
  /// The row of a step's first page table: page i of the sequence, for all that
  /// is committed or reserved. Where its next row, and those behind it, see
  /// nothing, because all layers have windows, they are any pages.
  std::span<const int32_t> pages() const {
    return pool->windows().areAll ? windows.front() : held;
  }
  /// The rows of a step's other page tables, those of windows, as long as
  /// pages(). They are any pages as well where nothing is seen.
  std::span<const std::vector<int32_t>> windowPages() const {
    return std::span(windows).subspan(pool->windows().areAll);
  }

  /// Takes over what others of its kind, living and ended, have computed of the
  /// beginning of `ids`: as much as there is, but not the last one of `ids`,
  /// whose logits the caller wants. Returns how many tokens that are. Takes no
  /// page from those available other than cached ones that it uses. length() is
  /// 0. Fails for want of the host's memory, with nothing changed.
  Result<int64_t> reusePrefix(std::span<const int32_t> ids);

  /// The slot of the cache of states that holds what layers keep of all tokens
  /// so far; -1: there is none.
  int32_t slot() const { return ownSlot; }
  /// Whether its tokens have to be read again, and it has no pages: there is no
  /// state of them, and the model's layers keep one; or what windows would see
  /// where it went back has been used for something else, by itself too.
  bool lacksState() const {
    return length() > 0 && (pool->slots() > 0 ? ownSlot < 0 : held.empty());
  }
  /// Of whom a slot is not taken.
  using IsBusy = std::function<bool(const PagedSequence &owner)>;
  /// Whether takeSlot() would find one, where sequences have them.
  bool canTakeSlot(const IsBusy &isBusy) const;
  /// Gives a sequence without tokens a slot, where sequences have them: one
  /// that is nobody's, or the least recently used one of those that are not
  /// busy, whose owner lacks its state then and has given its pages back.
  /// Returns whether there was one.
  bool takeSlot(const IsBusy &isBusy);

  /// Pages that reserve(count) needs: it succeeds if they are available().
  int64_t pagesFor(int64_t count) const;
  /// Pages with which `count` more positions can be read, in as many steps as
  /// it takes: pagesFor(), but for windows' pages, which are given back
  /// meanwhile. `lost` is by how many users a page is to have fewer by then.
  using LostUsers = std::function<int64_t(int32_t page)>;
  int64_t pagesToRead(int64_t count, const LostUsers &lost = {}) const;
  /// Calls `visit` with each page that it has, those of windows included, and
  /// those that are not in the cache.
  void forEachPage(const std::function<void(int32_t page)> &visit) const;

  /// Makes the positions from length() to length() + count - 1 writable, for
  /// one step, which may write to the slot as well: takes pages, and adds to
  /// `copies` what must be copied first, a page that others have, or that is
  /// kept for them. What the sequence held behind length() before truncate() is
  /// lost. Fails, with nothing changed and StatusCode::OutOfMemory, if fewer
  /// pages are available than needed, or for want of the host's memory.
  Status reserve(int64_t count, std::vector<PageCopy> &copies);

  /// The step has written these tokens, as many as were reserved or fewer. From
  /// now on others can find them. Ends what reserve() began. Gives back pages
  /// of windows, but for those that it sees from a page further back.
  void commit(std::span<const int32_t> ids);

  /// Goes back to `length` tokens, at most length(). Gives back pages behind
  /// them, those that were reserved too. A slot whose state is, or may be, that
  /// of other tokens is given back, with all pages. So are these where what
  /// windows would see has been used for something else, by itself too.
  void truncate(int64_t length);

  /// Takes commit() back, of a step that failed: as truncate(), and nobody
  /// finds what was behind, where only this sequence has written since `length`
  /// was reached.
  void revoke(int64_t length);

  /// Another sequence with the same tokens, without what is reserved. It shares
  /// all pages, the last one too; who writes there first copies it. Where
  /// sequences have slots, it has neither one nor pages. Fails for want of the
  /// host's memory.
  Result<PagedSequence> fork() const;

  /// Keeps pages from others: what this sequence, or the one that it was forked
  /// from, has computed cannot be found from now on, nor what follows it, nor
  /// what this sequence and its later forks compute. For sequences whose
  /// numbers are not finite. Living sequences that share such pages go on with
  /// them; pages that reusePrefix() found stay what they were.
  void forget();

private:
  friend class PagePool;

  Status tryReserve(int64_t count, std::vector<PageCopy> &copies);
  /// The page with length() in it has tokens before it.
  bool inPage() const { return length() % pool->positions != 0; }
  int32_t lastPage() const { return held[length() / pool->positions]; }
  int64_t room() const;
  int64_t pagesBehind(int64_t count) const;
  bool isCopied(int64_t count) const;
  void giveBack(size_t keep);
  void giveBackSlot();
  void takePage();
  bool seeWindowsFrom(size_t first);
  void forgetWindowsBefore(size_t first);
  void setWindows(size_t index);
  void loseState();
  void takeSlotOf(PagedSequence &other);
  PagePool::Slot *findSlot(const IsBusy &isBusy) const;
  void useSlot();

  PagePool *pool;
  int32_t ownKind = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> held;                 ///< those that stand for positions
  std::vector<std::vector<int32_t>> windows; ///< [tables], as long as `held`
  size_t seen = 0;      ///< the first of `held` whose windows' pages it has
  int64_t reserved = 0; ///< positions that commit() may be told of
  size_t found = 0;     ///< the first pages, which others have computed
  bool findable = true; ///< until forget()
  int32_t ownSlot = -1; ///< whose owner this is
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_PAGEPOOL_H
