//===- Cache.cpp - kf-run cache -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "JsonDocument.h"
#include "OptionParser.h"
#include "Report.h"

#include "runtime/core/Quote.h"
#include "runtime/program/ExecutableCache.h"
#include "runtime/weights/PackedCache.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <span>
#include <tuple>

using namespace kf;

namespace {

/// "3 hours ago".
std::string ageOf(int64_t seconds) {
  struct Unit {
    int64_t seconds;
    const char *name;
  };
  constexpr Unit units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}};
  const int64_t age = std::time(nullptr) - seconds;
  for (const Unit &unit : units)
    if (const int64_t count = age / unit.seconds; count > 0)
      return std::to_string(count) + " " + unit.name +
             (count > 1 ? "s ago" : " ago");
  return "just now";
}

std::string padded(std::string text, size_t width) {
  text.insert(0, width - std::min(width, text.size()), ' ');
  return text;
}

/// "1 hit", "12 misses".
std::string counted(uint64_t count, std::string one, const char *plural) {
  return std::to_string(count) + " " + (count == 1 ? one : one + plural);
}

std::string countsText(const CacheCounts &counts) {
  return counted(counts.hits, "hit", "s") + ", " +
         counted(counts.misses, "miss", "es");
}

/// "2 files of packed weights".
std::string filesText(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " file" : " files") +
         " of packed weights";
}

/// `text`, or as much of it as fits behind `line`.
std::string cutBehind(const std::string &line, const std::string &text) {
  const size_t room = 100 - std::min<size_t>(line.size(), 83);
  return text.size() <= room ? text
                             : std::string(cutText(text, room - 3)) + "...";
}

/// A line for each file of packed weights, and one for all.
std::string textOf(const PackedCache &cache,
                   std::span<const PackedCache::Entry> entries) {
  std::string out;
  uint64_t bytes = 0;
  for (const PackedCache::Entry &entry : entries) {
    const std::string line = entry.name + " " +
                             padded(bytesText(entry.bytes), 9) + "  used " +
                             padded(ageOf(entry.used), 14) + "  ";
    out += line + cutBehind(line, oneLine(entry.model)) + "\n";
    bytes += entry.bytes;
  }
  return out + filesText(entries.size()) + ", " + bytesText(bytes) + ", in " +
         cache.folder() + "\n";
}

std::string jsonOf(const ExecutableCache &cache,
                   std::span<const ExecutableCache::Entry> entries,
                   std::span<const PackedCache::Entry> packed) {
  using Json = nlohmann::ordered_json;
  uint64_t bytes = 0;
  Json programs = Json::array();
  for (const ExecutableCache::Entry &entry : entries) {
    bytes += entry.bytes;
    programs.push_back({{"key", entry.key},
                        {"program", entry.program},
                        {"target", entry.target},
                        {"bytes", entry.bytes},
                        {"used", entry.used},
                        {"hits", entry.counts.hits},
                        {"misses", entry.counts.misses}});
  }
  Json weights = Json::array();
  for (const PackedCache::Entry &entry : packed)
    weights.push_back({{"file", entry.name},
                       {"model", entry.model},
                       {"bytes", entry.bytes},
                       {"used", entry.used}});
  const CacheCounts counts = cache.counts();
  const Json json = {{"folder", cache.folder()}, {"bytes", bytes},
                     {"limit", cache.limit()},   {"hits", counts.hits},
                     {"misses", counts.misses},  {"programs", programs},
                     {"packed_weights", weights}};
  return documentText(json) + "\n";
}

/// The latest used first: the limit takes from the end.
Status list(const std::string &folder, const std::string &json) {
  KF_ASSIGN_OR_RETURN(uint64_t limit, ExecutableCache::defaultLimit());
  const ExecutableCache cache(folder, printWarning, limit);
  KF_ASSIGN_OR_RETURN(std::vector<ExecutableCache::Entry> entries,
                      cache.list());
  std::ranges::sort(entries, std::ranges::greater(),
                    [](const ExecutableCache::Entry &entry) {
                      return std::tie(entry.used, entry.key);
                    });
  const PackedCache packed(folder);
  KF_ASSIGN_OR_RETURN(std::vector<PackedCache::Entry> weights, packed.list());
  std::ranges::sort(weights, std::ranges::greater(),
                    [](const PackedCache::Entry &entry) {
                      return std::tie(entry.used, entry.name);
                    });
  if (!json.empty())
    return writeOutput(json, jsonOf(cache, entries, weights));
  std::string out;
  uint64_t bytes = 0;
  for (const ExecutableCache::Entry &entry : entries) {
    std::string line = entry.key + " " + padded(bytesText(entry.bytes), 9) +
                       "  used " + padded(ageOf(entry.used), 14) + "  " +
                       padded(countsText(entry.counts), 14) + "  " +
                       (entry.target.empty() ? "" : entry.target + "  ");
    // A program's name, or why the file cannot be read, whose begin says
    // enough.
    out += line + cutBehind(line, oneLine(entry.program)) + "\n";
    bytes += entry.bytes;
  }
  out += std::to_string(entries.size()) +
         (entries.size() == 1 ? " program, " : " programs, ") +
         bytesText(bytes) + " of at most " + bytesText(cache.limit()) +
         ", in " + cache.folder() + "; " + countsText(cache.counts()) + "\n";
  if (!weights.empty())
    out += textOf(packed, weights);
  return writeStdout(out);
}

Status clear(const std::string &folder) {
  const ExecutableCache cache(folder, printWarning);
  KF_ASSIGN_OR_RETURN(int64_t count, cache.clear());
  KF_ASSIGN_OR_RETURN(int64_t weights, PackedCache(folder).clear());
  return writeStdout(
      "removed " + std::to_string(count) + " programs" +
      (weights ? " and " + filesText(static_cast<uint64_t>(weights)) : "") +
      " from " + cache.folder() + "\n");
}

Status manage(const std::string &action, std::string folder,
              const std::string &json) {
  if (folder.empty()) {
    KF_ASSIGN_OR_RETURN(folder, ExecutableCache::defaultFolder());
  }
  return action == "list" ? list(folder, json) : clear(folder);
}

} // namespace

int kf::runCache(Arguments arguments) {
  std::string action, folder, json;
  OptionParser parser(
      "cache list|clear [options]",
      "Lists or removes the compiled programs that are kept. Together they "
      "have at most 1 GiB, or what the variable KF_CACHE_SIZE says (such as "
      "500M or 2G; 0 keeps none): those go first that were not used for the "
      "longest time. A hit is a program that was found, a miss one that had to "
      "be compiled. Packed weights, which --packed-cache keeps and bounds, are "
      "listed and removed, too.");
  parser.positional("list|clear", true, action, "what to do");
  parser.text({"dir", 0, "DIR"}, folder,
              "the cache's folder; $XDG_CACHE_HOME/kernelforge or "
              "~/.cache/kernelforge by default");
  parser.json(json, "the list");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (!json.empty() && action == "clear")
    return parser.usageError("--json goes with list");
  if (action != "list" && action != "clear")
    return parser.usageError("there is list and clear, not " +
                             inQuotes(action));
  return report(manage(action, folder, json));
}
