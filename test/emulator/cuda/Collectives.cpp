//===- Collectives.cpp - What threads do together --------------*- C++ -*--===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include <algorithm>

using namespace emu;

void emuBarrier(Thread *t, u32 id, u32 threads) {
  Fiber *fiber = fiberOf(t);
  if (id > 15)
    emuFail(t, "no such barrier:", id, 15);
  Barrier &barrier = fiber->workgroup->barriers[id];
  const u32 wanted = threads ? threads : u32(fiber->workgroup->fibers.size());
  if (barrier.arrived && barrier.threads != wanted)
    emuFail(t, "threads wait at one barrier for different counts:",
            barrier.threads, wanted);
  barrier.threads = wanted;
  barrier.waiting.push_back(fiber);
  if (++barrier.arrived == wanted) {
    barrier.arrived = 0;
    for (Fiber *each : std::exchange(barrier.waiting, {}))
      wake(each);
  }
  suspend(fiber, "a barrier");
}

void emu::meet(Thread *t, uint32_t mask, void *brings,
               const std::function<void(Warp &)> &act) {
  Fiber *fiber = fiberOf(t);
  Warp &warp = fiber->workgroup->warps[t->warp];
  mask &= warp.existing;
  if (!(mask >> t->lane & 1))
    emuFail(t, "a lane that is not in its own mask: mask, lane", mask, t->lane);
  fiber->meets = brings;
  if (warp.arrived && warp.line != t->line)
    emuFail(t, "lanes of a warp meet at different instructions: lines",
            warp.line, t->line);
  if (warp.arrived && warp.mask != mask)
    emuFail(t, "lanes of a warp meet with different masks:", warp.mask, mask);
  warp.mask = mask;
  warp.line = t->line;
  warp.arrived |= 1u << t->lane;
  if (warp.arrived != mask) {
    suspend(fiber, "lanes of its warp");
    return;
  }
  warp.arrived = 0;
  act(warp);
  for (Fiber *each : warp.lanes)
    if (each != fiber && mask >> each->thread.lane & 1)
      wake(each);
}

/// What the lanes of a meeting brought, each a T.
template <typename T, typename Fn>
static void forEach(const Warp &warp, Fn act) {
  for (uint32_t lane = 0; lane < warp.lanes.size(); ++lane)
    if (warp.mask >> lane & 1)
      act(lane, *static_cast<T *>(warp.lanes[lane]->meets));
}

void emuWarpSync(Thread *t, u32 mask) {
  meet(t, mask, nullptr, [](Warp &) {});
}

namespace {
struct Shuffled {
  u32 a, b, c, result;
  bool inRange;
};
} // namespace

u32 emuShuffle(Thread *t, int mode, u32 a, u32 b, u32 c, u32 mask,
               u8 *inRange) {
  Shuffled mine{a, b, c, 0, false};
  meet(t, mask, &mine, [mode](Warp &warp) {
    forEach<Shuffled>(warp, [&](int lane, Shuffled &each) {
      // As the PTX ISA says it: c has the clamp below, the segments' mask
      // above.
      const int by = each.b & 31, clamp = each.c & 31;
      const int segment = each.c >> 8 & 31, least = lane & segment;
      const int most = least | (clamp & ~segment);
      int from = 0;
      switch (mode) {
      case 0:
        from = least | (by & ~segment);
        break;
      case 1:
        from = lane - by;
        break;
      case 2:
        from = lane + by;
        break;
      default:
        from = lane ^ by;
      }
      each.inRange = mode == 1 ? from >= most : from <= most;
      from = each.inRange ? from : lane;
      if (!(warp.mask >> from & 1))
        emuFail(&warp.lanes[lane]->thread,
                "shfl from a lane that is not in the mask: lane, mask", from,
                warp.mask);
      each.result = static_cast<Shuffled *>(warp.lanes[from]->meets)->a;
    });
  });
  *inRange = mine.inRange;
  return mine.result;
}

namespace {
struct Voted {
  u32 given, result;
};
} // namespace

u32 emuVote(Thread *t, int mode, u32 p, u32 mask) {
  Voted mine{p, 0};
  meet(t, mask, &mine, [mode](Warp &warp) {
    u32 votes = 0;
    forEach<Voted>(warp, [&](int lane, Voted &each) {
      votes |= u32(each.given != 0) << lane;
    });
    const u32 results[] = {votes, votes != 0, votes == warp.mask,
                           votes == warp.mask || votes == 0};
    forEach<Voted>(warp,
                   [&](int, Voted &each) { each.result = results[mode]; });
  });
  return mine.result;
}

static u32 reduced(int mode, bool isSigned, u32 a, u32 b) {
  switch (mode) {
  case 0:
    return a + b;
  case 1:
    return isSigned ? u32(std::min(s32(a), s32(b))) : std::min(a, b);
  case 2:
    return isSigned ? u32(std::max(s32(a), s32(b))) : std::max(a, b);
  case 3:
    return a & b;
  case 4:
    return a | b;
  default:
    return a ^ b;
  }
}

u32 emuReduce(Thread *t, int mode, int isSigned, u32 a, u32 mask) {
  Voted mine{a, 0};
  meet(t, mask, &mine, [=](Warp &warp) {
    bool isFirst = true;
    u32 result = 0;
    forEach<Voted>(warp, [&](int, Voted &each) {
      result =
          isFirst ? each.given : reduced(mode, isSigned, result, each.given);
      isFirst = false;
    });
    forEach<Voted>(warp, [&](int, Voted &each) { each.result = result; });
  });
  return mine.result;
}

//===- Copies -------------------------------------------------------------===//

static void finish(std::vector<Copy> &copies) {
  for (const Copy &each : copies) {
    copyBytes(each.to, each.from, each.of);
    memset(reinterpret_cast<void *>(each.to + each.of), 0,
           each.bytes - each.of);
  }
  copies.clear();
}

/// As late as can be, when the thread waits for them, or at once: both are
/// right, and a kernel that does not wait is found by the former, one that
/// writes where it still reads by the latter.
static bool areLate() {
  return strcmp(setting("KF_EMULATOR_COPIES", "late"), "now") != 0;
}

void emuCopy(Thread *t, u64 to, u64 from, u32 bytes, u32 of) {
  emuAt(t, to, bytes, InShared, 1);
  if (from % bytes)
    emuFail(t, "cp.async of a misaligned source: address, bytes", from, bytes);
  if (of > bytes)
    emuFail(t, "cp.async of more bytes than it has:", of, bytes);
  if (of)
    emuCheckGlobal(t, from, of, 0);
  std::vector<Copy> &begun = fiberOf(t)->begun;
  begun.push_back({to, from, bytes, of});
  static const bool late = areLate();
  if (!late)
    finish(begun);
}

void emuCommitCopies(Thread *t) {
  Fiber *fiber = fiberOf(t);
  fiber->committed.push_back(std::exchange(fiber->begun, {}));
}

void emuAwaitCopies(Thread *t, u32 groupsLeft) {
  std::deque<std::vector<Copy>> &groups = fiberOf(t)->committed;
  for (; groups.size() > groupsLeft; groups.pop_front())
    finish(groups.front());
}
