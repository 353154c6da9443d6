//===- CacheCounts.cpp - How often a cache had what was asked for ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/CacheCounts.h"

#include "runtime/core/Descriptor.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

namespace {

/// Keys that are kept apart; what those had that were not used for longer goes
/// to kOthers.
constexpr size_t kMostKeys = 1024;
constexpr std::string_view kOthers = "-";
/// No file of such lines is longer.
constexpr size_t kMostBytes = kMostKeys * 128;

struct Line {
  std::string key;
  CacheCounts counts;
};

std::optional<uint64_t> takeNumber(std::string_view &text) {
  uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

/// "KEY 12 3"; nothing for anything else.
std::optional<Line> parseLine(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == 0 || blank > 64 || blank == text.npos)
    return std::nullopt;
  Line line{std::string(text.substr(0, blank)), {}};
  text.remove_prefix(blank + 1);
  const std::optional<uint64_t> hits = takeNumber(text);
  if (!hits || !text.starts_with(' '))
    return std::nullopt;
  text.remove_prefix(1);
  const std::optional<uint64_t> misses = takeNumber(text);
  if (!misses || !text.empty())
    return std::nullopt;
  line.counts = {*hits, *misses};
  return line;
}

std::vector<Line> parse(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (std::optional<Line> line = parseLine(text.substr(0, end)))
      lines.push_back(std::move(*line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string textOf(const std::vector<Line> &lines) {
  std::string text;
  for (const Line &line : lines)
    text += line.key + " " + std::to_string(line.counts.hits) + " " +
            std::to_string(line.counts.misses) + "\n";
  return text;
}

/// Takes `key` out of `lines`.
Line take(std::vector<Line> &lines, std::string_view key) {
  const auto found = std::ranges::find(lines, key, &Line::key);
  if (found == lines.end())
    return {std::string(key), {}};
  Line line = std::move(*found);
  lines.erase(found);
  return line;
}

void count(std::vector<Line> &lines, std::string_view key, bool isHit) {
  Line line = take(lines, key);
  ++(isHit ? line.counts.hits : line.counts.misses);
  lines.push_back(std::move(line));
  if (lines.size() <= kMostKeys)
    return;
  Line others = take(lines, kOthers);
  while (lines.size() >= kMostKeys) {
    others.counts.hits += lines.front().counts.hits;
    others.counts.misses += lines.front().counts.misses;
    lines.erase(lines.begin());
  }
  lines.push_back(std::move(others));
}

/// The file, locked against others until it is closed; none where it cannot be
/// had, or is no file.
Descriptor openLocked(const std::string &folder, int flags, int lock) {
  const std::string path = folder + "/" + std::string(kCacheCountsName);
  Descriptor file(
      ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat info;
  if (!file.ok() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Descriptor();
  int status;
  do
    status = ::flock(file.get(), lock);
  while (status != 0 && errno == EINTR);
  return status == 0 ? std::move(file) : Descriptor();
}

std::string contentsOf(const Descriptor &file) {
  std::string text(kMostBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::pread(file.get(), text.data() + size,
                                text.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

} // namespace

void kf::countLookup(const std::string &folder, std::string_view key,
                     bool isHit) {
  const Descriptor file = openLocked(folder, O_RDWR | O_CREAT, LOCK_EX);
  if (!file.ok())
    return;
  std::vector<Line> lines = parse(contentsOf(file));
  count(lines, key, isHit);
  const std::string text = textOf(lines);
  // Where it does not go in whole, what is there is cut to what can be read.
  const ssize_t written = ::pwrite(file.get(), text.data(), text.size(), 0);
  (void)!::ftruncate(file.get(), std::max<ssize_t>(written, 0));
}

CacheCountsByKey kf::readCacheCounts(const std::string &folder) {
  CacheCountsByKey counts;
  const Descriptor file = openLocked(folder, O_RDONLY, LOCK_SH);
  if (!file.ok())
    return counts;
  for (const Line &line : parse(contentsOf(file))) {
    counts.all.hits += line.counts.hits;
    counts.all.misses += line.counts.misses;
    if (line.key != kOthers)
      counts.keys[line.key] = line.counts;
  }
  return counts;
}
