//===- TuningDatabase.cpp - Schedules that were measured ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TuningDatabase.h"

#include "runtime/core/Descriptor.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/PrivateFolder.h"
#include "runtime/core/Quote.h"
#include "runtime/core/WriteFile.h"
#include "runtime/program/ExecutableCache.h"
#include "runtime/tuning/TuningFile.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

namespace {

/// A bound far beyond any database.
constexpr uint64_t kMaxFileBytes = uint64_t(64) << 20;

/// Makes `folder` where it is missing; for this user alone where it is that of
/// the cache of programs, which is private.
Status makeFolder(const std::string &folder) {
  if (const auto cache = ExecutableCache::defaultFolder();
      cache.ok() && *cache == folder)
    return PrivateFolder::make(folder).status();
  std::error_code code;
  if (!folder.empty() && !std::filesystem::is_directory(folder, code))
    std::filesystem::create_directories(folder, code);
  return code ? Status::error("cannot make the folder " + inQuotes(folder) +
                              ": " + code.message())
              : Status();
}

Status failed(const char *verb, const std::string &path) {
  return Status::error("cannot " + std::string(verb) + " " + inQuotes(path) +
                       ": " + std::strerror(errno));
}

} // namespace

//===----------------------------------------------------------------------===//
// The database
//===----------------------------------------------------------------------===//

Result<TuningDatabase> TuningDatabase::parse(std::string_view text,
                                             const std::string &name) try {
  if (text.size() > kMaxFileBytes)
    return Status::error(name + ": " + std::to_string(text.size()) +
                         " bytes are too many for a tuning database");
  auto entries = readTuningEntries(text);
  if (!entries.ok())
    return entries.status().in(name);
  TuningDatabase result;
  result.entries = entries.take();
  return result;
} catch (...) {
  return statusOfException();
}

Result<TuningDatabase> TuningDatabase::load(const std::string &path) try {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT)
    return TuningDatabase();
  return loadExisting(path);
} catch (...) {
  return statusOfException();
}

Result<TuningDatabase>
TuningDatabase::loadExisting(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return parse(file.text(), path);
} catch (...) {
  return statusOfException();
}

Result<std::string> TuningDatabase::defaultPath() {
  KF_ASSIGN_OR_RETURN(std::string folder, ExecutableCache::defaultFolder());
  return folder + "/tuning.json";
}

const TuningEntry *TuningDatabase::find(const TuningKey &key) const {
  auto it = entries.find(key);
  return it == entries.end() ? nullptr : &it->second;
}

Status TuningDatabase::insert(TuningEntry entry) try {
  KF_RETURN_IF_ERROR(checkTuningEntry(entry).in("tuning database"));
  TuningKey key = entry.key;
  inserted.insert(key);
  entries.insert_or_assign(std::move(key), std::move(entry));
  return Status();
} catch (...) {
  return statusOfException();
}

std::vector<TuningEntry> TuningDatabase::list() const {
  std::vector<TuningEntry> result;
  result.reserve(entries.size());
  for (const auto &[key, entry] : entries)
    result.push_back(entry);
  return result;
}

std::vector<TuningScope> TuningDatabase::scopes() const {
  std::set<TuningScope> found;
  for (const auto &[key, entry] : entries)
    found.insert(key.scope);
  return {found.begin(), found.end()};
}

std::string TuningDatabase::digest(std::span<const TuningKey> keys) const {
  std::vector<std::string> fields;
  for (const TuningKey &key : keys)
    if (const TuningEntry *entry = find(key))
      for (std::string field :
           {key.kernel, std::to_string(key.rows), entry->schedule})
        fields.push_back(std::move(field));
  if (fields.empty())
    return "";
  return hashKey(std::vector<std::string_view>(fields.begin(), fields.end()));
}

std::string TuningDatabase::serialize() const {
  return tuningFileText(entries);
}

Status TuningDatabase::save(const std::string &path) const try {
  KF_RETURN_IF_ERROR(
      makeFolder(std::filesystem::path(path).parent_path().string()));
  // The lock has a file of its own, for the database's is replaced. It ends
  // with the descriptor.
  const std::string lockPath = path + ".lock";
  const Descriptor lock(
      ::open(lockPath.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.ok())
    return failed("open", lockPath);
  while (::flock(lock.get(), LOCK_EX) != 0)
    if (errno != EINTR)
      return failed("lock", lockPath);

  KF_ASSIGN_OR_RETURN(TuningDatabase merged, load(path));
  for (const auto &[key, entry] : entries)
    if (inserted.count(key))
      merged.entries.insert_or_assign(key, entry);
    else
      merged.entries.emplace(key, entry);
  return writeFile(path, merged.serialize());
} catch (...) {
  return statusOfException();
}
