//===- ExecutableCache.cpp - Compiled programs kept on disk ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ExecutableCache.h"

#include "runtime/io/WriteFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kfexec";
/// A writer that has not finished after this many seconds never will.
constexpr int64_t kStaleSeconds = 3600;

std::string errnoText(int code) { return std::strerror(code); }

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

/// Closes a file descriptor at the end of its scope.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return fd; }

private:
  int fd;
};

/// The bytes of a regular file; `missing` tells whether it is just not there.
Result<std::string> readFile(const std::string &file, bool &missing) {
  // O_NONBLOCK: do not hang on a pipe of that name.
  Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  missing = fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR);
  if (fd.get() < 0)
    return Status::error(errnoText(errno));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0)
    return Status::error(errnoText(errno));
  if (!S_ISREG(info.st_mode))
    return Status::error("not a regular file");
  std::string bytes;
  try {
    bytes.resize(static_cast<size_t>(info.st_size));
  } catch (const std::exception &) {
    return Status::error("no memory for " + std::to_string(info.st_size) +
                         " bytes");
  }
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Status::error(errnoText(errno));
    if (got == 0)
      break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

/// The key of a cache file's name; empty for any other name.
std::string keyOf(const std::string &name) {
  if (!name.ends_with(kSuffix))
    return "";
  std::string key = name.substr(0, name.size() - kSuffix.size());
  return checkKey(key).ok() ? key : "";
}

/// Names of all files in `folder`, sorted; none if it does not exist.
Result<std::vector<std::string>> fileNames(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator it(folder, code), end;
  if (code == std::errc::no_such_file_or_directory)
    return names;
  for (; !code && it != end; it.increment(code))
    names.push_back(it->path().filename().string());
  if (code)
    return Status::error("cannot list the cache folder " + folder + ": " +
                         code.message());
  std::ranges::sort(names);
  return names;
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

ExecutableCache::ExecutableCache(std::string folder, Warning warn)
    : path(std::move(folder)), warn(std::move(warn)) {}

Result<std::string> ExecutableCache::defaultFolder() {
  // The XDG specification has relative paths ignored.
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/kernelforge";
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/kernelforge";
  return Status::error("no place for the executable cache: set XDG_CACHE_HOME "
                       "or HOME to an absolute path");
}

void ExecutableCache::warning(const std::string &line) const {
  if (warn)
    warn(line);
}

std::string ExecutableCache::fileOf(std::string_view key) const {
  return path + "/" + std::string(key) + std::string(kSuffix);
}

Status ExecutableCache::prepare() const {
  std::error_code code;
  fs::create_directories(path, code);
  if (!code && ::access(path.c_str(), W_OK | X_OK) != 0)
    code.assign(errno, std::generic_category());
  return code ? Status::error("cannot write to " + path + ": " + code.message())
              : Status();
}

Result<std::optional<Executable>>
ExecutableCache::lookup(std::string_view key) const {
  KF_RETURN_IF_ERROR(checkKey(key));
  std::string file = fileOf(key);
  bool missing = false;
  Result<std::string> bytes = readFile(file, missing);
  if (missing)
    return std::optional<Executable>();
  Result<Executable> executable =
      bytes.ok() ? Executable::deserialize(*bytes) : bytes.status();
  if (executable.ok())
    return std::optional<Executable>(executable.take());
  warning("removed the unusable cache entry " + file + ": " +
          executable.message());
  ::unlink(file.c_str());
  return std::optional<Executable>();
}

Status ExecutableCache::store(std::string_view key,
                              const Executable &executable) const {
  KF_RETURN_IF_ERROR(checkKey(key));
  std::error_code code;
  fs::create_directories(path, code);
  Result<AtomicFile> file = AtomicFile::create(fileOf(key), {.mode = 0600});
  Status written =
      file.ok() ? file->append(executable.serialize()) : file.status();
  if (written.ok())
    written = file->finish();
  if (!written.ok())
    warning("could not keep the compiled program: " + written.message());
  return Status();
}

Result<std::vector<ExecutableCache::Entry>> ExecutableCache::list() const {
  KF_ASSIGN_OR_RETURN(std::vector<std::string> names, fileNames(path));
  std::vector<Entry> entries;
  for (const std::string &name : names) {
    Entry entry;
    entry.key = keyOf(name);
    std::string file = path + "/" + name;
    struct stat info;
    if (entry.key.empty() || ::stat(file.c_str(), &info) != 0)
      continue;
    entry.bytes = static_cast<uint64_t>(info.st_size);
    entry.modified = static_cast<int64_t>(info.st_mtime);
    entry.program = "(damaged)";
    bool missing = false;
    Result<std::string> bytes = readFile(file, missing);
    if (missing)
      continue;
    if (bytes.ok()) {
      if (Result<Executable> executable = Executable::deserialize(*bytes)) {
        entry.program = executable->programName;
        entry.target = executable->target;
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<int64_t> ExecutableCache::clear() const {
  KF_ASSIGN_OR_RETURN(std::vector<std::string> names, fileNames(path));
  int64_t removed = 0;
  for (const std::string &name : names) {
    std::string file = path + "/" + name;
    struct stat info;
    bool isEntry = !keyOf(name).empty();
    bool isStale = name.ends_with(AtomicFile::kSuffix) &&
                   ::stat(file.c_str(), &info) == 0 &&
                   info.st_mtime + kStaleSeconds < ::time(nullptr);
    if (!isEntry && !isStale)
      continue;
    if (::unlink(file.c_str()) == 0)
      removed += isEntry;
    else if (errno != ENOENT)
      return Status::error("cannot remove " + file + ": " + errnoText(errno));
  }
  return removed;
}

} // namespace kf
