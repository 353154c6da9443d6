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
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/PrivateFolder.h"
#include "runtime/core/Quote.h"
#include "runtime/core/WriteFile.h"
#include "runtime/program/ExecutableCache.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;
using nlohmann::json;

namespace {

constexpr int kVersion = 1;
/// Bounds far beyond any database: a key of a kernel with 32 arguments has
/// about a kilobyte.
constexpr uint64_t kMaxFileBytes = uint64_t(64) << 20;
constexpr size_t kMaxText = 1024, kMaxSchedule = 16384;
constexpr size_t kMaxArguments = 64, kMaxRank = 8;

//===----------------------------------------------------------------------===//
// What an entry may be
//===----------------------------------------------------------------------===//

bool isPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

Status checkText(const char *what, std::string_view text, bool mayBeEmpty) {
  if (text.empty() && !mayBeEmpty)
    return Status::error(std::string(what) + " is empty");
  if (text.size() > kMaxText)
    return Status::error(std::string(what) + " has " +
                         std::to_string(text.size()) + " characters; at most " +
                         std::to_string(kMaxText) + " are possible");
  if (!isPrintable(text))
    return Status::error(std::string(what) + " is not printable ASCII");
  return Status();
}

Status checkDate(std::string_view date) {
  bool fits = date.empty() || date.size() == 10;
  for (size_t i = 0; fits && i < date.size(); ++i)
    fits = i == 4 || i == 7 ? date[i] == '-' : date[i] >= '0' && date[i] <= '9';
  if (!fits)
    return Status::error("the date is " + inQuotes(date) +
                         ", but 2026-01-31 is the form");
  return Status();
}

Status checkEntry(const TuningEntry &entry) {
  const TuningKey &key = entry.key;
  KF_RETURN_IF_ERROR(checkText("the op", key.op, false));
  KF_RETURN_IF_ERROR(checkText("the target", key.target, false));
  KF_RETURN_IF_ERROR(checkText("the device", key.device, false));
  KF_RETURN_IF_ERROR(checkText("the compiler", key.compiler, false));
  if (key.shapes.size() > kMaxArguments || key.types.size() > kMaxArguments)
    return Status::error("the key has more than " +
                         std::to_string(kMaxArguments) + " arguments");
  for (const std::string &type : key.types)
    KF_RETURN_IF_ERROR(checkText("a type", type, false));
  for (const std::vector<int64_t> &shape : key.shapes)
    if (shape.size() > kMaxRank ||
        std::ranges::any_of(shape, [](int64_t dim) { return dim < -1; }))
      return Status::error("a shape has more than " + std::to_string(kMaxRank) +
                           " dimensions or one below -1");
  const std::string_view schedule = entry.schedule;
  if (!schedule.starts_with("#kf.") || !schedule.ends_with('>') ||
      schedule.size() > kMaxSchedule || !isPrintable(schedule))
    return Status::error("the schedule is not #kf.NAME<...> of at most " +
                         std::to_string(kMaxSchedule) +
                         " printable characters");
  if (!std::isfinite(entry.seconds) || entry.seconds <= 0)
    return Status::error("the time is not a positive number of seconds");
  return checkDate(entry.date);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// An error unless `object` is an object whose fields are all among `known`.
Status checkFields(const json &object, const char *what,
                   std::initializer_list<std::string_view> known) {
  if (!object.is_object())
    return Status::error(std::string(what) + " is not an object");
  for (const auto &[name, value] : object.items())
    if (std::ranges::find(known, std::string_view(name)) == known.end())
      return Status::error(std::string(what) + " has an unknown field " +
                           inQuotes(name));
  return Status();
}

Result<std::string> readText(const json &object, const char *name) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_string())
    return Status::error("there is no string '" + std::string(name) + "'");
  return it->get<std::string>();
}

Result<const json *> readArray(const json &object, const char *name) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_array())
    return Status::error("there is no list '" + std::string(name) + "'");
  return &*it;
}

Result<TuningKey> readKey(const json &object) {
  KF_RETURN_IF_ERROR(
      checkFields(object, "the key",
                  {"op", "shapes", "types", "target", "device", "compiler"}));
  TuningKey key;
  KF_ASSIGN_OR_RETURN(key.op, readText(object, "op"));
  KF_ASSIGN_OR_RETURN(key.target, readText(object, "target"));
  KF_ASSIGN_OR_RETURN(key.device, readText(object, "device"));
  KF_ASSIGN_OR_RETURN(key.compiler, readText(object, "compiler"));
  KF_ASSIGN_OR_RETURN(const json *types, readArray(object, "types"));
  for (const json &type : *types) {
    if (!type.is_string())
      return Status::error("'types' is not a list of strings");
    key.types.push_back(type.get<std::string>());
  }
  KF_ASSIGN_OR_RETURN(const json *shapes, readArray(object, "shapes"));
  for (const json &shape : *shapes) {
    std::vector<int64_t> &sizes = key.shapes.emplace_back();
    bool fits = shape.is_array();
    for (size_t i = 0; fits && i < shape.size(); ++i) {
      const json &dim = shape[i];
      // The parser makes a number beyond int64_t unsigned.
      fits = dim.is_number_integer() &&
             (!dim.is_number_unsigned() ||
              dim.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
      if (fits)
        sizes.push_back(dim.get<int64_t>());
    }
    if (!fits)
      return Status::error("'shapes' is not a list of lists of integers");
  }
  return key;
}

Result<TuningEntry> readEntry(const json &object) {
  KF_RETURN_IF_ERROR(
      checkFields(object, "the entry", {"key", "schedule", "measured"}));
  auto key = object.find("key"), measured = object.find("measured");
  if (key == object.end() || measured == object.end())
    return Status::error("the entry has no 'key' or no 'measured'");
  TuningEntry entry;
  KF_ASSIGN_OR_RETURN(entry.key, readKey(*key));
  KF_ASSIGN_OR_RETURN(entry.schedule, readText(object, "schedule"));
  KF_RETURN_IF_ERROR(checkFields(*measured, "'measured'", {"seconds", "date"}));
  auto seconds = measured->find("seconds");
  if (seconds == measured->end() || !seconds->is_number())
    return Status::error("there is no number 'seconds'");
  entry.seconds = seconds->get<double>();
  if (measured->contains("date")) {
    KF_ASSIGN_OR_RETURN(entry.date, readText(*measured, "date"));
  }
  KF_RETURN_IF_ERROR(checkEntry(entry));
  return entry;
}

Result<std::map<TuningKey, TuningEntry>> readEntries(std::string_view text) {
  KF_ASSIGN_OR_RETURN(JsonDocument parsed, parseJson(text));
  const json &file = *parsed;
  auto version = file.is_object() ? file.find("version") : file.end();
  if (version == file.end() || !version->is_number_integer())
    return Status::error("this is no tuning database: it has no 'version'");
  if (*version != kVersion)
    return Status::error("version " + version->dump() +
                         " is not known; this program reads version " +
                         std::to_string(kVersion));
  KF_RETURN_IF_ERROR(checkFields(file, "the file", {"version", "entries"}));
  KF_ASSIGN_OR_RETURN(const json *list, readArray(file, "entries"));
  std::map<TuningKey, TuningEntry> entries;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where = "entry " + std::to_string(i);
    Result<TuningEntry> entry = readEntry((*list)[i]);
    if (!entry.ok())
      return entry.status().in(where);
    TuningKey key = entry->key;
    if (!entries.emplace(std::move(key), entry.take()).second)
      return Status::error(where + ": its key has an entry already");
  }
  return entries;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string entryText(const TuningEntry &entry) {
  const TuningKey &key = entry.key;
  const std::string seconds = jsonText(entry.seconds);
  return jsonObject(
      {{"key", jsonObject({{"op", jsonText(key.op)},
                           {"shapes", jsonArray(key.shapes)},
                           {"types", jsonArray(key.types)},
                           {"target", jsonText(key.target)},
                           {"device", jsonText(key.device)},
                           {"compiler", jsonText(key.compiler)}})},
       {"schedule", jsonText(entry.schedule)},
       {"measured", entry.date.empty()
                        ? jsonObject({{"seconds", seconds}})
                        : jsonObject({{"seconds", seconds},
                                      {"date", jsonText(entry.date)}})}});
}

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
  auto entries = readEntries(text);
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
  KF_RETURN_IF_ERROR(checkEntry(entry).in("tuning database"));
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

std::string TuningDatabase::serialize() const {
  // An entry a line, so that two files compare well.
  std::string text =
      "{\"version\": " + std::to_string(kVersion) + ", \"entries\": [";
  std::string separator = "\n";
  for (const auto &[key, entry] : entries) {
    text += separator + entryText(entry);
    separator = ",\n";
  }
  return text + "\n]}\n";
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
