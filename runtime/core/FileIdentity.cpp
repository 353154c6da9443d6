//===- FileIdentity.cpp - Whether a file is the one it was ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/FileIdentity.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <sys/stat.h>

using namespace kf;

/// The least or the most of 64 bits where these hold no more: centuries away.
static int64_t nanosecondsOf(const timespec &time) {
  constexpr int64_t second = 1'000'000'000, most = INT64_MAX / second - 1;
  return std::clamp<int64_t>(time.tv_sec, -most, most) * second + time.tv_nsec;
}

FileIdentity FileIdentity::of(const std::string &path,
                              const struct stat &info) {
  const std::unique_ptr<char, void (*)(void *)> whole(
      ::realpath(path.c_str(), nullptr), &std::free);
  return {.path = whole ? std::string(whole.get()) : path,
          .inode = info.st_ino,
          .bytes = static_cast<uint64_t>(info.st_size),
          .changed = nanosecondsOf(info.st_mtim),
          .touched = nanosecondsOf(info.st_ctim)};
}

std::string FileIdentity::text() const {
  return std::to_string(inode) + ' ' + std::to_string(bytes) + ' ' +
         std::to_string(changed) + ' ' + std::to_string(touched) + ' ' +
         std::to_string(path.size()) + ':' + path;
}

bool FileIdentity::isCurrent() const {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && of(path, info) == *this;
}

bool FileIdentity::isSettled() const {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return touched < nanosecondsOf(now) - 2'000'000'000;
}
