//===- WriteFile.cpp - Bytes to a file ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/WriteFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

/// Whether `path` stands for something that the process has open.
static bool isOpenAlready(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

static Status cannotWrite(const std::string &path, const std::string &why) {
  return Status::error("cannot write '" + path + "': " + why);
}

/// Writes all of `bytes`; returns 0 or the reason as errno has it.
static int writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR)
      return errno;
    if (count > 0)
      bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

Status kf::writeFile(const std::string &path, std::string_view bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) &&
      !S_ISDIR(info.st_mode) && !S_ISCHR(info.st_mode) && !isOpenAlready(path))
    return cannotWrite(path, "it is not a regular file");
  // Devices may wait when they are opened, too.
  const int descriptor = open(
      path.c_str(),
      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (descriptor < 0)
    return cannotWrite(path, std::strerror(errno));
  int reason = 0;
  if (fcntl(descriptor, F_SETFL, 0) != 0)
    reason = errno;
  if (reason == 0)
    reason = writeAll(descriptor, bytes);
  if (close(descriptor) != 0 && reason == 0 && errno != EINTR)
    reason = errno;
  return reason == 0 ? Status() : cannotWrite(path, std::strerror(reason));
}
