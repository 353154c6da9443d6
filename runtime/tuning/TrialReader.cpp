//===- TrialReader.cpp - The trials of a tuning database ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/TrialReader.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <array>

using namespace kf;

namespace {

constexpr std::string_view kSchedule = "schedule", kRejected = "rejected";
struct NumberField {
  std::string_view name;
  double TuningTrial::*member;
};
constexpr NumberField kNumbers[] = {
    {"predicted", &TuningTrial::predictedSeconds},
    {"seconds", &TuningTrial::seconds},
    {"error", &TuningTrial::error}};

/// A bit for each field; 0 for others.
unsigned bitOf(std::string_view field) {
  unsigned bit = 1;
  for (const NumberField &number : kNumbers) {
    if (number.name == field)
      return bit;
    bit <<= 1;
  }
  if (field == kSchedule)
    return bit;
  return field == kRejected ? bit << 1 : 0;
}

} // namespace

Result<std::vector<TuningTrial>> TrialReader::take(size_t entry) {
  if (entry >= lists.size())
    return std::vector<TuningTrial>();
  KF_RETURN_IF_ERROR(lists[entry].problem);
  return std::move(lists[entry].trials);
}

bool TrialReader::isEntryNext() const {
  return depth == 0 && path().size() == 2 && path()[0] == "entries";
}

bool TrialReader::isTrialNext() const {
  return path().size() == 4 && path()[0] == "entries" && path()[2] == "tried";
}

/// The document goes on behind an error: what its version says comes first.
bool TrialReader::note(const std::string &problem) {
  List &list = lists.back();
  if (list.problem.ok())
    list.problem =
        Status::error(problem).in("trial " + std::to_string(list.count - 1));
  return true;
}

bool TrialReader::begin(bool isTrial) {
  ++lists.back().count;
  isObject = isTrial;
  trial = TuningTrial();
  seen = 0;
  return isTrial || note("the trial is not an object");
}

bool TrialReader::takes() {
  if (depth == 0 && isTrialNext())
    return begin(/*isTrial=*/false);
  return depth > 0;
}

bool TrialReader::end() {
  if (--depth > 0 || !isObject)
    return true;
  if (!(seen & bitOf(kSchedule)))
    return note("there is no string 'schedule'");
  if (lists.back().problem.ok())
    lists.back().trials.push_back(std::move(trial));
  return true;
}

std::optional<bool> TrialReader::open(bool isTrial) {
  if (depth > 0)
    return ++depth > kMaxJsonDepth ? fail("JSON nested too deep") : misplaced();
  if (isTrialNext()) {
    ++depth;
    return begin(isTrial);
  }
  if (isEntryNext())
    lists.emplace_back();
  return std::nullopt;
}

bool TrialReader::start_object(std::size_t size) {
  const std::optional<bool> taken = open(/*isTrial=*/true);
  return taken ? *taken : JsonBuilder::start_object(size);
}
bool TrialReader::start_array(std::size_t size) {
  const std::optional<bool> taken = open(/*isTrial=*/false);
  return taken ? *taken : JsonBuilder::start_array(size);
}

bool TrialReader::end_object() {
  return depth > 0 ? end() : JsonBuilder::end_object();
}
bool TrialReader::end_array() {
  return depth > 0 ? end() : JsonBuilder::end_array();
}

bool TrialReader::key(string_t &name) {
  if (depth == 0)
    return JsonBuilder::key(name);
  if (depth > 1 || !isObject)
    return true;
  const unsigned bit = bitOf(name);
  if (bit == 0)
    note("the trial has an unknown field " + inQuotes(name));
  else if (seen & bit)
    return fail("key " + inQuotes(name) + " appears twice in one JSON object");
  seen |= bit;
  field = std::move(name);
  return true;
}

bool TrialReader::misplaced() {
  if (!isObject)
    return true;
  const bool isText = field == kSchedule || field == kRejected;
  return note(isText ? "there is no string '" + field + "'"
                     : "'" + field + "' is not a number");
}

bool TrialReader::string(string_t &value) {
  if (!takes())
    return JsonBuilder::string(value);
  if (depth != 1 || !isObject)
    return true;
  if (field == kSchedule)
    trial.schedule = value;
  else if (field != kRejected)
    return misplaced();
  else if (value.empty())
    return note("the reason is empty");
  else
    trial.rejected = value;
  return true;
}

bool TrialReader::number(double value) {
  if (depth != 1 || !isObject)
    return true;
  auto known =
      std::ranges::find(kNumbers, std::string_view(field), &NumberField::name);
  if (known == std::end(kNumbers))
    return misplaced();
  trial.*known->member = value;
  return true;
}

bool TrialReader::number_unsigned(number_unsigned_t value) {
  return takes() ? number(static_cast<double>(value))
                 : JsonBuilder::number_unsigned(value);
}
bool TrialReader::number_integer(number_integer_t value) {
  return takes() ? number(static_cast<double>(value))
                 : JsonBuilder::number_integer(value);
}
bool TrialReader::number_float(number_float_t value, const string_t &text) {
  return takes() ? number(value) : JsonBuilder::number_float(value, text);
}
bool TrialReader::null() {
  return takes() ? depth == 0 || misplaced() : JsonBuilder::null();
}
bool TrialReader::boolean(bool value) {
  return takes() ? depth == 0 || misplaced() : JsonBuilder::boolean(value);
}
