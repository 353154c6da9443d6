//===- PackedCache.cpp - Packed weights kept on disk ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/PackedCache.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Lines.h"
#include "runtime/core/Quote.h"
#include "runtime/program/ExecutableCache.h"

#include <algorithm>
#include <ctime>
#include <tuple>

using namespace kf;

/// A file's name is a hash of its identity and this.
static constexpr std::string_view kSuffix = ".kfweights";
/// A writer that has not finished after this many seconds never will.
static constexpr int64_t kStaleSeconds = 3600;
static constexpr int64_t kNanoseconds = 1'000'000'000;

static std::string fileNameOf(std::string_view identity) {
  return hashKey({identity}).append(kSuffix);
}

static bool isEntry(const PrivateFolder::File &file) {
  return file.name.ends_with(kSuffix);
}

/// Whether `file` is what a writer left that will not come back.
static bool isStale(const PrivateFolder::File &file) {
  return file.name.ends_with(AtomicFile::kSuffix) &&
         file.name.find(kSuffix) != std::string::npos &&
         file.changed / kNanoseconds + kStaleSeconds < ::time(nullptr);
}

PackedCache::PackedCache(std::string folder, uint64_t limit, Warning warn)
    : path(std::move(folder)), most(limit), warn(std::move(warn)) {
  // File systems take the coarse clock's time, which is behind the other one.
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  made = int64_t(now.tv_sec) * kNanoseconds + now.tv_nsec;
}

void PackedCache::warning(const std::string &line) const {
  if (warn)
    warn(line);
}

std::string PackedCache::pathOf(std::string_view name) const {
  return path + "/" + std::string(name);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<PackedFile>>
PackedCache::lookup(std::string_view identity, const PackOptions &options) const
    try {
  auto nothing = [&](const std::string &why) {
    if (!why.empty())
      warning(why + "; the weights are packed anew");
    return std::unique_ptr<PackedFile>();
  };
  Result<std::optional<PrivateFolder>> opened = PrivateFolder::open(path);
  if (!opened.ok())
    return nothing(opened.message());
  if (!*opened)
    return nothing("");
  const PrivateFolder &folder = **opened;
  if (Status status = folder.checkPrivate(); !status.ok())
    return nothing(status.message());

  using State = PrivateFolder::Reading::State;
  const std::string name = fileNameOf(identity);
  const PrivateFolder::Opening file = folder.openFile(name);
  if (file.state == State::Missing)
    return nothing("");
  if (file.state == State::Failed)
    return nothing("cannot read the packed weights " + quotePath(pathOf(name)) +
                   ": " + file.why);
  Result<std::unique_ptr<PackedFile>> found =
      file.state == State::Done
          ? PackedFile::open(file.descriptor, file.bytes, pathOf(name),
                             identity, options)
          : Status::error(file.why);
  if (found.ok()) {
    folder.touch(name);
    return found.take();
  }
  if (found.status().code() == StatusCode::Cancelled)
    return found.status();
  if (found.status().code() == StatusCode::OutOfMemory)
    return nothing("cannot map the packed weights " + quotePath(pathOf(name)) +
                   ": " + found.message());
  const Status removed = folder.remove(name);
  return nothing(removed.ok()
                     ? "removed the unusable file of packed weights " +
                           quotePath(pathOf(name)) + ": " + found.message()
                     : "the packed weights " + quotePath(pathOf(name)) +
                           " are unusable (" + found.message() +
                           ") and cannot be removed: " + removed.message());
} catch (...) {
  warning("cannot look for packed weights: " + statusOfException().message());
  return std::unique_ptr<PackedFile>();
}

Result<std::vector<PackedCache::Entry>> PackedCache::list() const try {
  std::vector<Entry> entries;
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> folder,
                      PrivateFolder::open(path));
  if (!folder)
    return entries;
  KF_ASSIGN_OR_RETURN(std::vector<PrivateFolder::File> files, folder->files());
  for (const PrivateFolder::File &file : files) {
    if (!isEntry(file))
      continue;
    const PrivateFolder::Opening opened = folder->openFile(file.name);
    if (opened.state == PrivateFolder::Reading::State::Missing)
      continue;
    const Result<std::string> model =
        opened.state == PrivateFolder::Reading::State::Done
            ? PackedFile::modelOf(opened.descriptor, opened.bytes)
            : Status::error(opened.why);
    entries.push_back(
        {.name = file.name,
         .model = model.ok() ? *model : "(" + model.message() + ")",
         .bytes = file.bytes,
         .used = file.changed / kNanoseconds});
  }
  return entries;
} catch (...) {
  return statusOfException();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Removes files until there is room for one of `bytes` bytes called `name`,
/// and what interrupted writers left.
Status PackedCache::makeRoom(const PrivateFolder &folder,
                             const std::string &name, uint64_t bytes) const {
  KF_ASSIGN_OR_RETURN(std::vector<PrivateFolder::File> files, folder.files());
  uint64_t others = 0;
  for (const PrivateFolder::File &file : files) {
    if (isStale(file))
      (void)folder.remove(file.name);
    if (isEntry(file) && file.name != name)
      others += file.bytes;
  }
  std::ranges::sort(files, {}, [](const PrivateFolder::File &file) {
    return std::tie(file.changed, file.name);
  });
  uint64_t kept = 0; // of those that may not go
  for (const PrivateFolder::File &file : files)
    if (isEntry(file) && file.name != name && file.changed >= made)
      kept += file.bytes;
  if (bytes > most || kept > most - bytes)
    return Status::error("they take " + bytesText(bytes + kept) +
                         ", and --packed-cache has room for " +
                         bytesText(most));
  for (const PrivateFolder::File &file : files) {
    if (others <= most - bytes)
      break;
    if (isEntry(file) && file.name != name && file.changed < made &&
        folder.remove(file.name).ok())
      others -= file.bytes;
  }
  return others <= most - bytes
             ? Status()
             : Status::error("there are files in " + quotePath(path) +
                             " that cannot be removed");
}

Status PackedCache::write(std::string_view identity, std::string_view model,
                          std::span<const PackedWeight> weights,
                          const PackOptions &options) const {
  KF_ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(path));
  KF_RETURN_IF_ERROR(folder.checkPrivate());
  const std::string name = fileNameOf(identity);
  KF_RETURN_IF_ERROR(
      makeRoom(folder, name, PackedFile::bytesFor(identity, model, weights)));
  // What is replaced hands on its owner and its mode.
  if (folder.openFile(name).state == PrivateFolder::Reading::State::Refused)
    KF_RETURN_IF_ERROR(folder.remove(name).in(pathOf(name)));
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(pathOf(name), {.mode = 0600}));
  KF_RETURN_IF_ERROR(
      PackedFile::write(file, identity, model, weights, options));
  return file.finish();
}

Status PackedCache::store(std::string_view identity, std::string_view model,
                          std::span<const PackedWeight> weights,
                          const PackOptions &options) const {
  const Status status =
      catchExceptions([&] { return write(identity, model, weights, options); });
  if (status.code() == StatusCode::Cancelled)
    return status;
  return catchExceptions([&] {
    if (!status.ok())
      warning("the packed weights are not kept: " + status.message());
    return Status();
  });
}

Result<int64_t> PackedCache::clear() const try {
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> folder,
                      PrivateFolder::open(path));
  if (!folder)
    return 0;
  KF_ASSIGN_OR_RETURN(std::vector<PrivateFolder::File> files, folder->files());
  int64_t removed = 0;
  for (const PrivateFolder::File &file : files) {
    if (!isEntry(file) && !isStale(file))
      continue;
    if (Status status = folder->remove(file.name); !status.ok())
      return Status::error("cannot remove " + pathOf(file.name) + ": " +
                           status.message());
    removed += isEntry(file);
  }
  return removed;
} catch (...) {
  return statusOfException();
}
