//===- UsableThreads.cpp - How many threads make sense --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/UsableThreads.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include <sched.h>

using namespace kf;

namespace {

/// The words of `text` between occurrences of `separator`.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

bool contains(const std::string &list, std::string_view word) {
  return std::ranges::count(split(list, ','), word) > 0;
}

/// A path as mountinfo has it: blanks and backslashes are \ooo there.
std::string unescape(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8).ptr ==
            &text[i + 1] + 3) {
      path += static_cast<char>(code);
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

/// The number in `text`; nothing for "max", or what else is none.
std::optional<double> numberIn(const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end)
    return std::nullopt;
  return static_cast<double>(value);
}

/// A hierarchy of control groups that may limit CPU time: version 2, or the
/// controller `cpu` of version 1.
enum class Version { One, Two };

/// This process's group in the hierarchy, as a path from its root.
std::optional<std::string> findGroup(const std::string &root, Version version) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::Two ? line.starts_with("0:") && controllers.empty()
                                : contains(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Where a hierarchy is mounted, and which of its groups is seen there.
struct Mount {
  std::string group, path;
};

std::optional<Mount> findMount(const std::string &root, Version version) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // number parent device group path options... - type source options
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::ranges::find(words, "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4)
      continue;
    if (version == Version::Two
            ? dash[1] == "cgroup2"
            : dash[1] == "cgroup" && contains(dash[3], "cpu"))
      return Mount{unescape(words[3]), unescape(words[4])};
  }
  return std::nullopt;
}

std::string firstLine(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The limit of the group in `folder` alone.
std::optional<double> limitOf(const std::string &folder, Version version) {
  std::optional<double> quota, period;
  if (version == Version::Two) {
    const std::vector<std::string> words =
        split(firstLine(folder + "/cpu.max"), ' ');
    if (words.size() != 2)
      return std::nullopt;
    quota = numberIn(words[0]);
    period = numberIn(words[1]);
  } else {
    quota = numberIn(firstLine(folder + "/cpu.cfs_quota_us"));
    period = numberIn(firstLine(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0)
    return std::nullopt; // version 1 has -1 for no limit
  return *quota / *period;
}

void takeLeast(std::optional<double> &least, std::optional<double> other) {
  if (other)
    least = std::min(*other, least.value_or(*other));
}

std::optional<double> limitIn(const std::string &root, Version version) {
  const std::optional<std::string> group = findGroup(root, version);
  const std::optional<Mount> mount = findMount(root, version);
  if (!group || !mount)
    return std::nullopt;
  // The part of the group's path that lies below what is mounted. A container
  // may have its group mounted as the root, and its path as the host sees it.
  std::string below = *group;
  if (mount->group != "/") {
    below = below.starts_with(mount->group) ? below.substr(mount->group.size())
                                            : std::string();
    if (!below.starts_with('/'))
      below.clear(); // the group itself, or one whose name begins the same
  }
  if (below.find("/..") != below.npos)
    below.clear(); // outside of what this process may see
  std::optional<double> least;
  for (;;) {
    takeLeast(least, limitOf(root + mount->path + below, version));
    const size_t slash = below.rfind('/');
    if (slash == below.npos)
      return least;
    below.resize(slash);
  }
}

/// Hardware threads that this process may run on: what taskset or a container
/// left of the machine.
int affineThreads() {
#ifdef __linux__
  // The mask has to be as long as the kernel's, which no call tells.
  for (int most = CPU_SETSIZE; most <= CPU_SETSIZE << 10; most *= 2) {
    std::vector<cpu_set_t> mask(static_cast<size_t>(most / CPU_SETSIZE));
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, mask.data()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, mask.data()));
    if (errno != EINVAL)
      break;
  }
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

} // namespace

std::optional<double> kf::controlGroupCpus(const std::string &root) {
  std::optional<double> least = limitIn(root, Version::Two);
  takeLeast(least, limitIn(root, Version::One));
  return least;
}

int kf::usableThreads(const std::string &root) {
  const int threads = affineThreads();
  const std::optional<double> cpus = controlGroupCpus(root);
  if (!cpus || *cpus >= threads)
    return threads;
  return std::max(1, static_cast<int>(std::lround(*cpus)));
}
