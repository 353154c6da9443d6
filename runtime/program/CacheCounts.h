//===- CacheCounts.h - How often a cache had what was asked for -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small file in the cache's folder, a line for each key: the key, how often
// it was found, how often it was not, in the order of their last use. Counts
// are for people: a file that is damaged counts from there on, and one that
// cannot be written is left alone.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_CACHECOUNTS_H
#define KF_RUNTIME_PROGRAM_CACHECOUNTS_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace kf {

struct CacheCounts {
  uint64_t hits = 0, misses = 0;

  bool operator==(const CacheCounts &) const = default;
};

/// The counts of a cache, by key.
struct CacheCountsByKey {
  CacheCounts all; ///< of all keys, those too that are not known any more
  std::map<std::string, CacheCounts, std::less<>> keys;
};

/// The file's name in the folder.
inline constexpr std::string_view kCacheCountsName = "counts";

/// Counts a lookup of `key` in the file of the folder `folder`, which exists.
/// Any number of threads and processes may.
void countLookup(const std::string &folder, std::string_view key, bool isHit);

/// What the file has; nothing where there is none.
CacheCountsByKey readCacheCounts(const std::string &folder);

} // namespace kf

#endif // KF_RUNTIME_PROGRAM_CACHECOUNTS_H
