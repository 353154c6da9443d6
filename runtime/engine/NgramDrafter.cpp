//===- NgramDrafter.cpp - Drafts from what a text has said ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/NgramDrafter.h"

#include <algorithm>
#include <cassert>

using namespace kf;

/// The most tokens to rest for after drafts that were all wrong.
static constexpr size_t kLongestRest = 32;

NgramDrafter::NgramDrafter(const NgramOptions &wanted) : options(wanted) {
  assert(options.longest > 0 && options.most > 0 && "nothing can be drafted");
  options.shortest = std::clamp<size_t>(options.shortest, 1, options.longest);
  followers.resize(options.longest - options.shortest + 1);
  worth = options.most;
}

/// Of the last `length` tokens (FNV-1a, by words).
uint64_t NgramDrafter::keyOf(size_t length) const {
  uint64_t key = 0xcbf29ce484222325;
  for (int32_t id : std::span(tokens).last(length))
    key = (key ^ static_cast<uint32_t>(id)) * 0x100000001b3;
  return key;
}

void NgramDrafter::accept(int32_t id) {
  for (size_t length = options.shortest;
       length <= std::min(options.longest, tokens.size()); ++length)
    followers[length - options.shortest][keyOf(length)] = tokens.size();
  tokens.push_back(id);
  resting -= resting > 0;
}

/// Where the token is that followed the last `length` ones when they were there
/// before; 0: they were not.
size_t NgramDrafter::followerOf(size_t length) const {
  const auto &places = followers[length - options.shortest];
  const auto found = places.find(keyOf(length));
  if (found == places.end())
    return 0;
  // Others may have the same hash.
  const std::span<const int32_t> all = tokens;
  return std::ranges::equal(all.subspan(found->second - length, length),
                            all.last(length))
             ? found->second
             : 0;
}

/// Where the token is that follows the last ones; 0: they are new.
size_t NgramDrafter::next() const {
  size_t place = 0;
  for (size_t length = std::min(options.longest, tokens.size());
       place == 0 && length >= options.shortest; --length)
    place = followerOf(length);
  return place;
}

std::span<const int32_t> NgramDrafter::draft(size_t most) {
  drafts.clear();
  if (!hasDrafts())
    return drafts;
  most = std::min(most, worth);
  // What has been said ends with the last token; drafts go on with drafts.
  for (size_t place = next(); drafts.size() < most; ++place)
    drafts.push_back(place < tokens.size() ? tokens[place]
                                           : drafts[place - tokens.size()]);
  return drafts;
}

/// Twice as many after drafts that were all right, one more than were right
/// after others.
void NgramDrafter::learn(size_t accepted) {
  if (accepted == drafts.size()) {
    worth = std::min(std::max(worth, 2 * accepted), options.most);
  } else {
    worth = std::min(accepted + 1, options.most);
  }
  misses = accepted > 0 ? 0 : misses + 1;
  if (misses > 1)
    resting = std::min(size_t(1) << std::min<size_t>(misses, 8), kLongestRest);
}
