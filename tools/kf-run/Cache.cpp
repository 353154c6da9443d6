//===- Cache.cpp - kf-run cache -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "OptionParser.h"
#include "Report.h"

#include "runtime/ExecutableCache.h"
#include "runtime/io/Quote.h"

#include <ctime>

using namespace kf;

namespace {

std::string dateOf(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts;
  char buffer[32];
  if (!localtime_r(&time, &parts) ||
      !std::strftime(buffer, sizeof(buffer), "%Y-%m-%d %H:%M", &parts))
    return "?";
  return buffer;
}

Status list(const ExecutableCache &cache) {
  KF_ASSIGN_OR_RETURN(std::vector<ExecutableCache::Entry> entries,
                      cache.list());
  std::string out;
  uint64_t bytes = 0;
  for (const ExecutableCache::Entry &entry : entries) {
    out += entry.key + "  " + dateOf(entry.modified) + "  " +
           std::to_string(entry.bytes) + " bytes  " + entry.target + "  " +
           entry.program + "\n";
    bytes += entry.bytes;
  }
  out += std::to_string(entries.size()) + " programs, " +
         std::to_string(bytes) + " bytes in " + cache.folder() + "\n";
  return writeStdout(out);
}

Status clear(const ExecutableCache &cache) {
  KF_ASSIGN_OR_RETURN(int64_t count, cache.clear());
  return writeStdout("removed " + std::to_string(count) + " programs from " +
                     cache.folder() + "\n");
}

Status manage(const std::string &action, std::string folder) {
  if (folder.empty()) {
    KF_ASSIGN_OR_RETURN(folder, ExecutableCache::defaultFolder());
  }
  const ExecutableCache cache(folder, printWarning);
  return action == "list" ? list(cache) : clear(cache);
}

} // namespace

int kf::runCache(Arguments arguments) {
  std::string action, folder;
  OptionParser parser("cache list|clear [options]",
                      "Lists or removes the compiled programs that are kept.");
  parser.positional("list|clear", true, action, "what to do");
  parser.text({"dir", 0, "DIR"}, folder,
              "the cache's folder; $XDG_CACHE_HOME/kernelforge or "
              "~/.cache/kernelforge by default");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (action != "list" && action != "clear")
    return parser.usageError("there is list and clear, not " +
                             inQuotes(action));
  return report(manage(action, folder));
}
