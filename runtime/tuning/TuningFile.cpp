//===- TuningFile.cpp - The text of a tuning database ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TuningFile.h"

#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/tuning/TrialReader.h"

#include <algorithm>
#include <cmath>

using namespace kf;
using nlohmann::json;

namespace {

constexpr int kVersion = 2;
/// Bounds far beyond any entry: one with ten trials has about three kilobytes.
constexpr size_t kMaxText = 1024, kMaxSchedule = 4096;
constexpr size_t kMaxScheduleDepth = 4;
constexpr size_t kMaxArguments = 64, kMaxRank = 8, kMaxTrials = 1024;
constexpr size_t kKernelDigits = 32;

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

/// What schedules are written with, so that a parser of attributes can be given
/// the text: names, numbers and lists that are not deep.
bool isScheduleText(std::string_view text) {
  size_t depth = 0;
  for (const char c : text) {
    depth += c == '<' || c == '[';
    if (c == '>' || c == ']') {
      if (depth == 0)
        return false;
      --depth;
    }
    const bool isKnown =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9') ||
        std::string_view("#._-=, <>[]").find(c) != std::string_view::npos;
    if (!isKnown || depth > kMaxScheduleDepth)
      return false;
  }
  return depth == 0;
}

Status checkSchedule(std::string_view schedule) {
  if (!schedule.starts_with("#kf.") || !schedule.ends_with('>') ||
      schedule.size() > kMaxSchedule || !isScheduleText(schedule))
    return Status::error("the schedule is not #kf.NAME<...> of at most " +
                         std::to_string(kMaxSchedule) +
                         " characters, with names, numbers and lists");
  return Status();
}

Status checkMeasure(const char *what, double value) {
  if (!std::isfinite(value) || value < 0)
    return Status::error(std::string(what) +
                         " is not a number that is zero or positive");
  return Status();
}

Status checkKey(const TuningKey &key) {
  const bool isHash = key.kernel.size() == kKernelDigits &&
                      std::ranges::all_of(key.kernel, [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                      });
  if (!isHash)
    return Status::error("the kernel is not a hash of " +
                         std::to_string(kKernelDigits) + " hexadecimal digits");
  if (key.rows < 1)
    return Status::error("the rows are not a positive number");
  const TuningScope &scope = key.scope;
  KF_RETURN_IF_ERROR(checkText("the target", scope.target, false));
  KF_RETURN_IF_ERROR(checkText("the identity", scope.identity, true));
  KF_RETURN_IF_ERROR(checkText("the device", scope.device, false));
  return checkText("the compiler", scope.compiler, false);
}

Status checkSubject(const TuningSubject &subject) {
  KF_RETURN_IF_ERROR(checkText("the op", subject.op, false));
  if (subject.shapes.size() > kMaxArguments ||
      subject.types.size() > kMaxArguments)
    return Status::error("the kernel has more than " +
                         std::to_string(kMaxArguments) + " arguments");
  for (const std::string &type : subject.types)
    KF_RETURN_IF_ERROR(checkText("a type", type, false));
  for (const std::vector<int64_t> &shape : subject.shapes)
    if (shape.size() > kMaxRank ||
        std::ranges::any_of(shape, [](int64_t dim) { return dim < -1; }))
      return Status::error("a shape has more than " + std::to_string(kMaxRank) +
                           " dimensions or one below -1");
  if (subject.shapes.size() != subject.types.size())
    return Status::error("the kernel has arguments without a shape or a type");
  return Status();
}

Status checkTrial(const TuningTrial &trial) {
  KF_RETURN_IF_ERROR(checkSchedule(trial.schedule));
  KF_RETURN_IF_ERROR(
      checkMeasure("the predicted time", trial.predictedSeconds));
  KF_RETURN_IF_ERROR(checkMeasure("the time", trial.seconds));
  KF_RETURN_IF_ERROR(checkMeasure("the error", trial.error));
  return checkText("the reason", trial.rejected, true);
}

} // namespace

Status kf::checkTuningEntry(const TuningEntry &entry) {
  KF_RETURN_IF_ERROR(checkKey(entry.key));
  KF_RETURN_IF_ERROR(checkSubject(entry.subject));
  KF_RETURN_IF_ERROR(checkSchedule(entry.schedule));
  if (!std::isfinite(entry.seconds) || entry.seconds <= 0)
    return Status::error("the time is not a positive number of seconds");
  KF_RETURN_IF_ERROR(checkMeasure("the default's time", entry.defaultSeconds));
  KF_RETURN_IF_ERROR(checkMeasure("the error", entry.error));
  if (entry.tried.size() > kMaxTrials)
    return Status::error("more than " + std::to_string(kMaxTrials) +
                         " schedules were tried");
  for (size_t i = 0; i < entry.tried.size(); ++i)
    KF_RETURN_IF_ERROR(
        checkTrial(entry.tried[i]).in("trial " + std::to_string(i)));
  return checkDate(entry.date);
}

namespace {

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

Result<const json *> readObject(const json &object, const char *name,
                                std::initializer_list<std::string_view> known) {
  auto it = object.find(name);
  if (it == object.end())
    return Status::error("there is no '" + std::string(name) + "'");
  KF_RETURN_IF_ERROR(
      checkFields(*it, ("'" + std::string(name) + "'").c_str(), known));
  return &*it;
}

/// A number; 0 where there is none.
Result<double> readNumber(const json &object, const char *name) {
  auto it = object.find(name);
  if (it == object.end())
    return 0.0;
  if (!it->is_number())
    return Status::error("'" + std::string(name) + "' is not a number");
  return it->get<double>();
}

/// Whether `value` is an integer that int64_t holds; the parser makes one
/// beyond it unsigned.
bool isInt64(const json &value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
}

Result<TuningKey> readKey(const json &entry) {
  KF_ASSIGN_OR_RETURN(const json *object,
                      readObject(entry, "key",
                                 {"kernel", "rows", "target", "identity",
                                  "device", "compiler"}));
  TuningKey key;
  TuningScope &scope = key.scope;
  KF_ASSIGN_OR_RETURN(key.kernel, readText(*object, "kernel"));
  auto rows = object->find("rows");
  if (rows == object->end() || !isInt64(*rows))
    return Status::error("there is no integer 'rows'");
  key.rows = rows->get<int64_t>();
  KF_ASSIGN_OR_RETURN(scope.target, readText(*object, "target"));
  KF_ASSIGN_OR_RETURN(scope.identity, readText(*object, "identity"));
  KF_ASSIGN_OR_RETURN(scope.device, readText(*object, "device"));
  KF_ASSIGN_OR_RETURN(scope.compiler, readText(*object, "compiler"));
  return key;
}

Result<TuningSubject> readSubject(const json &entry) {
  KF_ASSIGN_OR_RETURN(const json *object,
                      readObject(entry, "about", {"op", "shapes", "types"}));
  TuningSubject subject;
  KF_ASSIGN_OR_RETURN(subject.op, readText(*object, "op"));
  KF_ASSIGN_OR_RETURN(const json *types, readArray(*object, "types"));
  for (const json &type : *types) {
    if (!type.is_string())
      return Status::error("'types' is not a list of strings");
    subject.types.push_back(type.get<std::string>());
  }
  KF_ASSIGN_OR_RETURN(const json *shapes, readArray(*object, "shapes"));
  for (const json &shape : *shapes) {
    if (!shape.is_array() || !std::ranges::all_of(shape, isInt64))
      return Status::error("'shapes' is not a list of lists of integers");
    subject.shapes.push_back(shape.get<std::vector<int64_t>>());
  }
  return subject;
}

/// `tried` is what the reader took out of the entry.
Result<TuningEntry> readEntry(const json &object,
                              Result<std::vector<TuningTrial>> tried) {
  KF_RETURN_IF_ERROR(checkFields(
      object, "the entry", {"key", "about", "schedule", "measured", "tried"}));
  TuningEntry entry;
  KF_ASSIGN_OR_RETURN(entry.key, readKey(object));
  KF_ASSIGN_OR_RETURN(entry.subject, readSubject(object));
  KF_ASSIGN_OR_RETURN(entry.schedule, readText(object, "schedule"));
  KF_ASSIGN_OR_RETURN(
      const json *measured,
      readObject(object, "measured",
                 {"seconds", "default_seconds", "error", "date"}));
  KF_ASSIGN_OR_RETURN(entry.seconds, readNumber(*measured, "seconds"));
  KF_ASSIGN_OR_RETURN(entry.defaultSeconds,
                      readNumber(*measured, "default_seconds"));
  KF_ASSIGN_OR_RETURN(entry.error, readNumber(*measured, "error"));
  if (measured->contains("date")) {
    KF_ASSIGN_OR_RETURN(entry.date, readText(*measured, "date"));
  }
  if (object.contains("tried")) {
    KF_RETURN_IF_ERROR(readArray(object, "tried").status());
    KF_ASSIGN_OR_RETURN(entry.tried, std::move(tried));
  }
  KF_RETURN_IF_ERROR(checkTuningEntry(entry));
  return entry;
}

} // namespace

Result<std::map<TuningKey, TuningEntry>>
kf::readTuningEntries(std::string_view text) {
  TrialReader reader;
  KF_ASSIGN_OR_RETURN(JsonDocument parsed, reader.parse(text));
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
    Result<TuningEntry> entry = readEntry((*list)[i], reader.take(i));
    if (!entry.ok())
      return entry.status().in(where);
    TuningKey key = entry->key;
    if (!entries.emplace(std::move(key), entry.take()).second)
      return Status::error(where + ": its key has an entry already");
  }
  return entries;
}

namespace {

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Adds a number that readNumber() takes for 0 where it is left out.
void addNumber(std::vector<JsonMember> &members, std::string_view name,
               double value) {
  if (value != 0)
    members.emplace_back(name, jsonText(value));
}

std::string trialText(const TuningTrial &trial) {
  std::vector<JsonMember> fields = {{"schedule", jsonText(trial.schedule)}};
  addNumber(fields, "predicted", trial.predictedSeconds);
  addNumber(fields, "seconds", trial.seconds);
  addNumber(fields, "error", trial.error);
  if (!trial.rejected.empty())
    fields.emplace_back("rejected", jsonText(trial.rejected));
  return jsonObject(fields);
}

std::string entryText(const TuningEntry &entry) {
  const TuningScope &scope = entry.key.scope;
  std::vector<JsonMember> measured = {{"seconds", jsonText(entry.seconds)}};
  addNumber(measured, "default_seconds", entry.defaultSeconds);
  addNumber(measured, "error", entry.error);
  if (!entry.date.empty())
    measured.emplace_back("date", jsonText(entry.date));
  std::vector<JsonMember> fields = {
      {"key", jsonObject({{"kernel", jsonText(entry.key.kernel)},
                          {"rows", jsonText(entry.key.rows)},
                          {"target", jsonText(scope.target)},
                          {"identity", jsonText(scope.identity)},
                          {"device", jsonText(scope.device)},
                          {"compiler", jsonText(scope.compiler)}})},
      {"about", jsonObject({{"op", jsonText(entry.subject.op)},
                            {"shapes", jsonArray(entry.subject.shapes)},
                            {"types", jsonArray(entry.subject.types)}})},
      {"schedule", jsonText(entry.schedule)},
      {"measured", jsonObject(measured)}};
  if (!entry.tried.empty())
    fields.emplace_back("tried", jsonArray(entry.tried, trialText));
  return jsonObject(fields);
}

} // namespace

std::string
kf::tuningFileText(const std::map<TuningKey, TuningEntry> &entries) {
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
