//===- PrivateFolder.cpp - Files that only this user writes ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/PrivateFolder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

using namespace kf;

static std::string errorText() { return std::strerror(errno); }

/// Says what makes a file or folder not private; empty if it is.
static std::string describeAccess(const struct stat &info) {
  if (info.st_uid != ::geteuid())
    return "belongs to another user (uid " + std::to_string(info.st_uid) + ")";
  // With access lists, the group's bits are the most that a list gives.
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return "";
  char mode[16];
  std::snprintf(mode, sizeof(mode), "%04o",
                static_cast<unsigned>(info.st_mode & 07777));
  return "can be written by others (mode " + std::string(mode) + ")";
}

static bool isFolder(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Makes one folder unless it is there; returns 0 or the reason.
static int makeFolder(const std::string &path) {
  if (::mkdir(path.c_str(), 0700) == 0)
    return 0;
  // Systems differ in the reason for a folder that is there.
  const int reason = errno;
  if (isFolder(path))
    return 0;
  return reason == EEXIST ? ENOTDIR : reason;
}

Result<std::optional<PrivateFolder>>
PrivateFolder::open(const std::string &path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.ok())
    return std::optional(PrivateFolder(path, std::move(folder)));
  if (errno == ENOENT)
    return std::optional<PrivateFolder>();
  return Status::error("cannot open the folder '" + path + "': " + errorText());
}

Result<PrivateFolder> PrivateFolder::make(const std::string &path) {
  if (!isFolder(path))
    for (size_t end = 1; end <= path.size(); ++end)
      if (end == path.size() || path[end] == '/')
        if (const int reason = makeFolder(path.substr(0, end)))
          return Status::error("cannot make the folder '" + path +
                               "': " + std::strerror(reason));
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> folder, open(path));
  if (!folder)
    return Status::error("the folder '" + path + "' is gone again");
  return std::move(*folder);
}

Status PrivateFolder::checkPrivate() const {
  struct stat info;
  if (::fstat(folder.get(), &info) != 0)
    return Status::error("cannot look at the folder '" + path +
                         "': " + errorText());
  const std::string access = describeAccess(info);
  if (access.empty())
    return Status();
  const bool mine = info.st_uid == ::geteuid();
  return Status::error(
      "the folder '" + path + "' " + access +
      ", so that nothing in it is safe to run; " +
      (mine ? "empty it and make it mode 0700" : "use a folder of your own"));
}

Status PrivateFolder::checkWritable() const {
  if (::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) == 0)
    return Status();
  return Status::error("cannot write to the folder '" + path +
                       "': " + errorText());
}

PrivateFolder::Opening PrivateFolder::openFile(const std::string &name) const {
  using State = Reading::State;
  // O_NONBLOCK: do not hang on a pipe of that name.
  Descriptor fd(::openat(folder.get(), name.c_str(),
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.ok() && errno == ENOENT)
    return {};
  const std::string reason = errorText();
  struct stat info;
  const int known = fd.ok() ? ::fstat(fd.get(), &info)
                            : ::fstatat(folder.get(), name.c_str(), &info,
                                        AT_SYMLINK_NOFOLLOW);
  if (known != 0)
    return {.state = State::Failed, .why = fd.ok() ? errorText() : reason};
  if (!S_ISREG(info.st_mode))
    return {.state = State::Refused, .why = "it is not a regular file"};
  if (std::string access = describeAccess(info); !access.empty())
    return {.state = State::Refused, .why = "it " + access};
  if (!fd.ok())
    return {.state = State::Failed, .why = reason};
  return {.state = State::Done,
          .descriptor = std::move(fd),
          .bytes = static_cast<uint64_t>(info.st_size)};
}

PrivateFolder::Reading PrivateFolder::read(const std::string &name,
                                           uint64_t most) const {
  using State = Reading::State;
  Opening file = openFile(name);
  if (file.state != State::Done)
    return {file.state, {}, std::move(file.why)};
  if (file.bytes > most)
    return {State::Refused,
            {},
            "it has " + std::to_string(file.bytes) + " bytes, more than " +
                std::to_string(most)};
  Reading result{State::Done, {}, {}};
  try {
    result.bytes.resize(static_cast<size_t>(file.bytes));
  } catch (const std::exception &) {
    return {State::Failed,
            {},
            "no memory for " + std::to_string(file.bytes) + " bytes"};
  }
  size_t done = 0;
  while (done < result.bytes.size()) {
    const ssize_t got =
        ::read(file.descriptor.get(), result.bytes.data() + done,
               result.bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return {State::Failed, {}, errorText()};
    if (got == 0)
      break;
    done += static_cast<size_t>(got);
  }
  result.bytes.resize(done);
  return result;
}

Result<std::vector<PrivateFolder::File>> PrivateFolder::files() const {
  const auto failed = [&] {
    return Status::error("cannot list the folder '" + path +
                         "': " + errorText());
  };
  const int fd =
      ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return failed();
  const std::unique_ptr<DIR, int (*)(DIR *)> stream(::fdopendir(fd),
                                                    &::closedir);
  if (!stream) {
    ::close(fd);
    return failed();
  }
  std::vector<File> result;
  for (;;) {
    errno = 0;
    const dirent *entry = ::readdir(stream.get());
    if (!entry && errno != 0)
      return failed();
    if (!entry)
      break;
    struct stat info;
    if (::fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISDIR(info.st_mode))
      continue; // gone meanwhile, or none of ours
    result.push_back(
        {entry->d_name, static_cast<uint64_t>(info.st_size),
         int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  std::ranges::sort(result, {}, &File::name);
  return result;
}

void PrivateFolder::touch(const std::string &name) const {
  (void)::utimensat(folder.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Status PrivateFolder::remove(const std::string &name) const {
  if (::unlinkat(folder.get(), name.c_str(), 0) == 0 || errno == ENOENT)
    return Status();
  return Status::error(errorText());
}
