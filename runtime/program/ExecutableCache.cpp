//===- ExecutableCache.cpp - Compiled programs kept on disk ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/ExecutableCache.h"

#include "runtime/core/ByteCount.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/PrivateFolder.h"
#include "runtime/core/Quote.h"
#include "runtime/core/WriteFile.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <tuple>

namespace kf {
namespace {

/// A file's name is the key and this; its bytes are kHead, the key, a line
/// break, a line of kNote and the note where there is one, and the executable.
/// A copy under another name is not taken for what that name says.
constexpr std::string_view kSuffix = ".kfexec";
constexpr std::string_view kHead = "KernelForge program ";
constexpr std::string_view kNote = "note ";
/// A writer that has not finished after this many seconds never will.
constexpr int64_t kStaleSeconds = 3600;
constexpr int64_t kNanoseconds = 1'000'000'000;

Status checkKey(std::string_view key) {
  auto isHex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
           (c >= 'A' && c <= 'F');
  };
  if (key.empty() || key.size() > 64 || !std::ranges::all_of(key, isHex))
    return Status::error("cache key '" + std::string(key) +
                         "' is not 1 to 64 hexadecimal digits");
  return Status();
}

std::string nameOf(std::string_view key) {
  return std::string(key) + std::string(kSuffix);
}

std::string headOf(std::string_view key) {
  return std::string(kHead) + std::string(key) + "\n";
}

/// The key of a cache file's name; empty for any other name.
std::string keyOf(const std::string &name) {
  if (!name.ends_with(kSuffix))
    return "";
  std::string key = name.substr(0, name.size() - kSuffix.size());
  return checkKey(key).ok() ? key : "";
}

/// Whether `file` is what a writer left that will not come back.
bool isStale(const PrivateFolder::File &file) {
  auto isOf = [&](std::string_view suffix) {
    return file.name.find(suffix) != std::string::npos;
  };
  return file.name.ends_with(AtomicFile::kSuffix) &&
         (isOf(kSuffix) || isOf(ExecutableCache::kDriverSuffix)) &&
         file.changed / kNanoseconds + kStaleSeconds < ::time(nullptr);
}

/// Whether what failed may go well another time, when there is more memory.
bool isWantOfMemory(const Status &status) {
  return status.code() == StatusCode::OutOfMemory;
}

/// The executable in the bytes of the file of `key`, and the note.
Result<Executable> executableIn(std::string_view bytes, std::string_view key,
                                std::string *note = nullptr) {
  const std::string head = headOf(key);
  if (bytes.starts_with(head)) {
    bytes.remove_prefix(head.size());
    std::string_view line;
    if (bytes.starts_with(kNote)) {
      const size_t end = std::min(bytes.find('\n'), bytes.size());
      line = bytes.substr(kNote.size(), end - kNote.size());
      bytes.remove_prefix(std::min(end + 1, bytes.size()));
    }
    if (note)
      *note = line;
    return Executable::deserialize(bytes);
  }
  return Status::error(bytes.starts_with(kHead) ? "it holds another program"
                                                : "it is no cache entry");
}

} // namespace

std::string hashKey(std::span<const std::string_view> fields) {
  using Word = unsigned __int128;
  constexpr Word prime = (Word(1) << 88) | 0x13b;
  Word hash = (Word(0x6c62272e07bb0142) << 64) | 0x62b821756295c58d;
  auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * prime; };
  for (std::string_view field : fields) {
    for (size_t i = 0; i < 8; ++i)
      mix(static_cast<unsigned char>(uint64_t(field.size()) >> (8 * i)));
    for (char c : field)
      mix(static_cast<unsigned char>(c));
  }
  std::string digits(32, '0');
  for (size_t i = 0; i < 32; ++i, hash >>= 4)
    digits[31 - i] = "0123456789abcdef"[static_cast<unsigned>(hash & 15)];
  return digits;
}

std::string hashKey(std::initializer_list<std::string_view> fields) {
  return hashKey(
      std::span<const std::string_view>(fields.begin(), fields.size()));
}

ExecutableCache::ExecutableCache(std::string folder, Warning warn,
                                 uint64_t limit)
    : path(std::move(folder)), warn(std::move(warn)), most(limit) {
  // File systems take the coarse clock's time, which is behind the other one.
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  made = int64_t(now.tv_sec) * kNanoseconds + now.tv_nsec;
}

Result<std::string> ExecutableCache::defaultFolder() {
  // The XDG specification has relative paths ignored.
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/kernelforge";
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/kernelforge";
  return Status::error("no place for the executable cache: set XDG_CACHE_HOME "
                       "or HOME to an absolute path");
}

Result<uint64_t> ExecutableCache::defaultLimit() {
  const char *variable = std::getenv("KF_CACHE_SIZE");
  if (!variable || !*variable)
    return kDefaultLimit;
  if (std::optional<uint64_t> bytes = parseByteCount(variable))
    return *bytes;
  return Status::error("KF_CACHE_SIZE is " + inQuotes(variable) + ", but " +
                       std::string(kByteCountText) + " is expected");
}

void ExecutableCache::warning(const std::string &line) const {
  if (warn)
    warn(line);
}

void ExecutableCache::warnOfException(const char *what) const noexcept {
  try {
    warning(what + statusOfException().message());
  } catch (...) {
  }
}

std::string ExecutableCache::pathOf(std::string_view name) const {
  return path + "/" + std::string(name);
}

Status ExecutableCache::prepare() const try {
  KF_ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(path));
  return folder.checkPrivate();
} catch (...) {
  return statusOfException();
}

Status ExecutableCache::checkWritable() const {
  KF_ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(path));
  return folder.checkWritable();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Result<std::optional<Executable>>
ExecutableCache::find(std::string_view key, std::string *note) const {
  auto nothing = [&](const std::string &why) {
    if (!why.empty())
      warning(why);
    return std::optional<Executable>();
  };
  if (most == 0)
    return nothing("");
  Result<std::optional<PrivateFolder>> opened = PrivateFolder::open(path);
  if (!opened.ok())
    return nothing(opened.message());
  if (!*opened)
    return nothing("");
  const PrivateFolder &folder = **opened;
  if (Status status = folder.checkPrivate(); !status.ok())
    return nothing(status.message());

  using State = PrivateFolder::Reading::State;
  const std::string name = nameOf(key);
  const PrivateFolder::Reading reading = folder.read(name);
  if (reading.state == State::Missing)
    return nothing("");
  if (reading.state == State::Failed)
    return nothing("cannot read the cache entry " + pathOf(name) + ": " +
                   reading.why);
  Result<Executable> executable = reading.state == State::Done
                                      ? executableIn(reading.bytes, key, note)
                                      : Status::error(reading.why);
  if (executable.ok()) {
    folder.touch(name);
    return std::optional<Executable>(executable.take());
  }
  if (isWantOfMemory(executable.status()))
    return nothing("cannot read the cache entry " + pathOf(name) + ": " +
                   executable.message());
  const Status removed = folder.remove(name);
  return nothing(removed.ok()
                     ? "removed the unusable cache entry " + pathOf(name) +
                           ": " + executable.message()
                     : "the cache entry " + pathOf(name) + " is unusable (" +
                           executable.message() +
                           ") and cannot be removed: " + removed.message());
}

/// Whether the folder is there, and nobody else's.
bool ExecutableCache::isPrivate() const {
  const Result<std::optional<PrivateFolder>> folder = PrivateFolder::open(path);
  return folder.ok() && *folder && (*folder)->checkPrivate().ok();
}

void ExecutableCache::count(std::string_view key, bool isHit) const noexcept
    try {
  if (most > 0 && isPrivate())
    countLookup(path, key, isHit);
} catch (...) {
}

CacheCountsByKey ExecutableCache::countsByKey() const {
  return isPrivate() ? readCacheCounts(path) : CacheCountsByKey();
}

Result<std::optional<Executable>>
ExecutableCache::lookup(std::string_view key, std::string *note) const try {
  KF_RETURN_IF_ERROR(checkKey(key));
  Result<std::optional<Executable>> found = find(key, note);
  if (!note)
    count(key, found.ok() && found->has_value());
  return found;
} catch (...) {
  warnOfException("cannot look into the cache of programs: ");
  return std::optional<Executable>();
}

Result<std::vector<ExecutableCache::Entry>> ExecutableCache::list() const try {
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> folder,
                      PrivateFolder::open(path));
  std::vector<Entry> entries;
  if (!folder)
    return entries;
  if (Status status = folder->checkPrivate(); !status.ok())
    warning(status.message());
  KF_ASSIGN_OR_RETURN(std::vector<PrivateFolder::File> files, folder->files());
  const CacheCountsByKey counts = countsByKey();
  using State = PrivateFolder::Reading::State;
  for (const PrivateFolder::File &file : files) {
    Entry entry{.key = keyOf(file.name), .program = {}, .target = {}};
    const PrivateFolder::Reading reading =
        entry.key.empty() ? PrivateFolder::Reading() : folder->read(file.name);
    if (reading.state == State::Missing)
      continue;
    entry.bytes = file.bytes;
    entry.used = file.changed / kNanoseconds;
    if (auto known = counts.keys.find(entry.key); known != counts.keys.end())
      entry.counts = known->second;
    if (reading.state != State::Done)
      entry.program = "(" + reading.why + ")";
    else if (Result<Executable> executable =
                 executableIn(reading.bytes, entry.key)) {
      entry.program = executable->programName;
      entry.target = executable->target;
    } else
      entry.program = "(" + executable.message() + ")";
    entries.push_back(std::move(entry));
  }
  return entries;
} catch (...) {
  return statusOfException();
}

CacheCounts ExecutableCache::counts() const try {
  return countsByKey().all;
} catch (...) {
  warnOfException("cannot read the counts of the cache of programs: ");
  return {};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Status ExecutableCache::write(std::string_view key,
                              const Executable &executable,
                              std::string_view note) const {
  KF_ASSIGN_OR_RETURN(PrivateFolder folder, PrivateFolder::make(path));
  KF_RETURN_IF_ERROR(folder.checkPrivate());
  const std::string name = nameOf(key);
  // What is replaced hands on its owner and its mode.
  if (folder.read(name).state == PrivateFolder::Reading::State::Refused)
    KF_RETURN_IF_ERROR(folder.remove(name).in(pathOf(name)));
  KF_ASSIGN_OR_RETURN(AtomicFile file,
                      AtomicFile::create(pathOf(name), {.mode = 0600}));
  KF_RETURN_IF_ERROR(file.append(
      headOf(key) +
      (note.empty() ? "" : std::string(kNote) + std::string(note) + "\n") +
      executable.serialize()));
  return file.finish();
}

Status ExecutableCache::store(std::string_view key,
                              const Executable &executable,
                              std::string_view note) const try {
  KF_RETURN_IF_ERROR(checkKey(key));
  if (note.find('\n') != std::string_view::npos)
    return Status::error("the note of cache key '" + std::string(key) +
                         "' has a line break");
  const Status written = most > 0 ? write(key, executable, note) : Status();
  if (written.ok())
    evict();
  else
    warning("could not keep the compiled program: " + written.message());
  return Status();
} catch (...) {
  warnOfException("could not keep the compiled program: ");
  return Status();
}

/// Makes room, as far as it can: what cannot be listed or removed is the
/// business of whoever clears the cache.
void ExecutableCache::evict() const {
  Result<std::optional<PrivateFolder>> folder = PrivateFolder::open(path);
  if (!folder.ok() || !*folder)
    return;
  Result<std::vector<PrivateFolder::File>> files = (*folder)->files();
  if (!files.ok())
    return;
  uint64_t bytes = 0;
  for (const PrivateFolder::File &file : *files) {
    if (isStale(file))
      (void)(*folder)->remove(file.name);
    if (!keyOf(file.name).empty())
      bytes += file.bytes;
  }
  std::ranges::sort(*files, {}, [](const PrivateFolder::File &file) {
    return std::tie(file.changed, file.name);
  });
  for (const PrivateFolder::File &file : *files) {
    if (bytes <= most || file.changed >= made)
      break;
    if (!keyOf(file.name).empty() && (*folder)->remove(file.name).ok())
      bytes -= file.bytes;
  }
}

Result<int64_t> ExecutableCache::clear() const try {
  KF_ASSIGN_OR_RETURN(std::optional<PrivateFolder> folder,
                      PrivateFolder::open(path));
  if (!folder)
    return 0;
  KF_ASSIGN_OR_RETURN(std::vector<PrivateFolder::File> files, folder->files());
  int64_t removed = 0;
  for (const PrivateFolder::File &file : files) {
    const bool isEntry = !keyOf(file.name).empty();
    if (!isEntry && !isStale(file) && !file.name.ends_with(kDriverSuffix) &&
        file.name != kCacheCountsName)
      continue;
    if (Status status = folder->remove(file.name); !status.ok())
      return Status::error("cannot remove " + pathOf(file.name) + ": " +
                           status.message());
    removed += isEntry;
  }
  return removed;
} catch (...) {
  return statusOfException();
}

} // namespace kf
