//===- WriteFile.cpp - Bytes to a file ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/WriteFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

namespace fs = std::filesystem;

static Status cannotWrite(const std::string &path, const std::string &why) {
  return Status::error("cannot write '" + path + "': " + why);
}

/// Writes all of `bytes`; returns 0 or the reason as errno has it.
static int writeAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR)
      return errno;
    if (count > 0)
      bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// AtomicFile
//===----------------------------------------------------------------------===//

/// What the links at the end of `path` lead to, whether or not it is there.
static std::string behindLinks(fs::path path) {
  constexpr int most = 40; // as the system has it
  std::error_code code;
  for (int i = 0; i < most && fs::is_symlink(path, code) && !code; ++i) {
    const fs::path to = fs::read_symlink(path, code);
    if (code)
      break;
    path = path.parent_path() / to;
  }
  return path.string();
}

/// A name beside `target` that nothing has, by all likelihood.
static std::string temporaryName(const std::string &target) {
  // The name may be as long as names can be.
  constexpr size_t most = 200;
  uint64_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0)
    number = static_cast<uint64_t>(::getpid());
  char digits[32];
  std::snprintf(digits, sizeof(digits), ".%016llx",
                static_cast<unsigned long long>(number));
  const fs::path path(target);
  return (path.parent_path() /
          path.filename().string().substr(0, most).append(digits).append(
              AtomicFile::kSuffix))
      .string();
}

/// Makes the renaming of a file inside `folder` last.
static void syncFolder(const fs::path &folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return; // a folder that cannot be read; the file itself is on the disk
  ::fsync(descriptor);
  ::close(descriptor);
}

Status AtomicFile::failed(int reason) const {
  return cannotWrite(name, std::strerror(reason));
}

Result<AtomicFile> AtomicFile::create(const std::string &path,
                                      Options options) {
  AtomicFile file;
  file.name = path;
  KF_RETURN_IF_ERROR(file.open(options));
  return file;
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : name(std::move(other.name)), target(std::move(other.target)),
      temporary(std::exchange(other.temporary, {})),
      known(std::move(other.known)),
      descriptor(std::exchange(other.descriptor, -1)),
      mayReplace(other.mayReplace) {}

Status AtomicFile::open(Options options) {
  mayReplace = options.replace;
  target = behindLinks(name);
  struct stat old;
  const bool exists = ::stat(target.c_str(), &old) == 0;
  if (!exists && errno != ENOENT)
    return failed(errno);
  if (exists && !S_ISREG(old.st_mode))
    return cannotWrite(name, S_ISDIR(old.st_mode) ? std::strerror(EISDIR)
                                                  : "it is not a regular file");
  if (exists && !mayReplace)
    return Status::error("'" + name + "' exists already");
  // A folder lets anyone who may write to it replace its files.
  if (exists && ::access(target.c_str(), W_OK) != 0 && errno != ENOENT)
    return failed(errno);
  for (int attempt = 0; descriptor < 0; ++attempt) {
    temporary = temporaryName(target);
    descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
               exists ? old.st_mode & 0700 : options.mode);
    if (descriptor >= 0) {
      known = KnownTemporary(temporary);
      break;
    }
    const int reason = errno;
    temporary.clear();
    if (reason != EEXIST || attempt == 100)
      return failed(reason);
  }
  if (!exists)
    return Status();
  // What the old owner's group may do is not for ours.
  mode_t mode = old.st_mode & 0777;
  if (::fchown(descriptor, old.st_uid, old.st_gid) != 0)
    mode &= 0707;
  return ::fchmod(descriptor, mode) == 0 ? Status() : failed(errno);
}

Status AtomicFile::reserve(uint64_t bytes) {
  if (::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
    return failed(errno);
  return Status();
}

Status AtomicFile::append(std::string_view bytes) {
  const int reason = writeAll(descriptor, bytes);
  return reason == 0 ? Status() : failed(reason);
}

Status AtomicFile::finish() {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR)
      return failed(errno);
  // What an interrupt ends is closed all the same.
  if (::close(std::exchange(descriptor, -1)) != 0 && errno != EINTR)
    return failed(errno);
  int renamed = -1;
  if (!mayReplace) {
    renamed = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(),
                          RENAME_NOREPLACE);
    if (renamed != 0 && errno == EEXIST)
      return Status::error("'" + name + "' exists already");
  }
  // Not every file system can tell whether it replaces.
  if (renamed != 0 && ::rename(temporary.c_str(), target.c_str()) != 0)
    return failed(errno);
  known = KnownTemporary();
  temporary.clear();
  syncFolder(fs::path(target).parent_path());
  return Status();
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

//===----------------------------------------------------------------------===//
// writeFile
//===----------------------------------------------------------------------===//

/// Whether `path` stands for something that the process has open.
static bool isOpenAlready(std::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

/// Writes to a device, or to what the process has open.
static Status writeInPlace(const std::string &path, std::string_view bytes) {
  // Devices may wait when they are opened, too.
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC |
                                                  O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0)
    return cannotWrite(path, std::strerror(errno));
  int reason = 0;
  if (::fcntl(descriptor, F_SETFL, 0) != 0)
    reason = errno;
  if (reason == 0)
    reason = writeAll(descriptor, bytes);
  if (::close(descriptor) != 0 && reason == 0 && errno != EINTR)
    reason = errno;
  return reason == 0 ? Status() : cannotWrite(path, std::strerror(reason));
}

/// Whether `path` is written in place, and not beside it first.
static bool isInPlace(const std::string &path) {
  struct stat info;
  return isOpenAlready(path) ||
         (::stat(path.c_str(), &info) == 0 && S_ISCHR(info.st_mode));
}

Status kf::checkCanWrite(const std::string &path) {
  if (isInPlace(path))
    return ::access(path.c_str(), W_OK) == 0
               ? Status()
               : cannotWrite(path, std::strerror(errno));
  // Its file goes when nothing finishes it.
  return AtomicFile::create(path, {}).status();
}

Status kf::writeFile(const std::string &path, std::string_view bytes,
                     bool replace) {
  if (isInPlace(path))
    return writeInPlace(path, bytes);
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(path, {.replace = replace}));
  KF_RETURN_IF_ERROR(file.append(bytes));
  return file.finish();
}
