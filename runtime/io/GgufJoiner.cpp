//===- GgufJoiner.cpp - The files of a model that is split ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufJoiner.h"

#include "GgufParser.h"

#include "runtime/core/Quote.h"

#include <algorithm>

using namespace kf;

/// As many as names have digits for.
static constexpr uint64_t kMostFiles = 99999;

/// Five digits or more.
static std::string digits(uint64_t number) {
  const std::string text = std::to_string(number);
  return std::string(5 - std::min<size_t>(text.size(), 5), '0') + text;
}

std::string GgufJoiner::part(uint64_t number) const {
  return "part " + std::to_string(number + 1) + " of " + std::to_string(count) +
         " of a model";
}

std::string GgufJoiner::suffix(uint64_t number) const {
  return "-" + digits(number + 1) + "-of-" + digits(count) + ".gguf";
}

Status GgufJoiner::checkFirst() {
  KF_ASSIGN_OR_RETURN(const uint64_t number,
                      first.getUnsigned(kGgufSplitNumber));
  KF_ASSIGN_OR_RETURN(tensors, first.getUnsigned(kGgufSplitTensors));
  if (number >= count || count > kMostFiles)
    return Status::error(
        first.source() + ": metadata " + inQuotes(kGgufSplitNumber) + " is " +
        std::to_string(number) + " of " + inQuotes(kGgufSplitCount) + " " +
        std::to_string(count) + ", which no file is");
  const std::string end = suffix(number);
  if (!first.source().ends_with(end))
    return Status::error(first.source() + ": the file is " + part(number) +
                         ", but its name does not end with " + inQuotes(end) +
                         ", by which the others are found; give all parts "
                         "their names");
  prefix = first.source().substr(0, first.source().size() - end.size());
  if (number == 0)
    return Status();
  return Status::error(first.source() + ": the file is " + part(number) +
                       "; open the first, '" + prefix + suffix(0) + "'");
}

Result<std::unique_ptr<Gguf>> GgufJoiner::open(uint64_t number) const {
  Result<MappedFile> mapped = MappedFile::open(prefix + suffix(number));
  if (!mapped.ok())
    return Status::error(first.source() + ": " + part(number) + ": " +
                             mapped.message() +
                             "; all parts have to lie in one folder",
                         mapped.status().code());
  std::unique_ptr<Gguf> other(new Gguf());
  other->name = mapped->path();
  other->file = mapped.take();
  other->image = other->file->bytes();
  KF_RETURN_IF_ERROR(GgufParser(*other).parse().in(other->name));
  for (auto [key, expected] :
       {std::pair(kGgufSplitCount, count), std::pair(kGgufSplitNumber, number),
        std::pair(kGgufSplitTensors, tensors)}) {
    KF_ASSIGN_OR_RETURN(const uint64_t value, other->getUnsigned(key));
    if (value != expected)
      return Status::error(
          other->name + ": metadata " + inQuotes(key) + " is " +
          std::to_string(value) + " where " + std::to_string(expected) +
          " is expected: " + part(number) + " is another file");
  }
  // Only the first says what the model is.
  const GgufValue *own = other->lookUp("general.architecture");
  const GgufValue *wanted = first.lookUp("general.architecture");
  if (own && (!wanted || own->toString() != wanted->toString()))
    return Status::error(other->name +
                         ": metadata 'general.architecture' is "
                         "not that of the first part: " +
                         part(number) + " is another file");
  return other;
}

Status GgufJoiner::add(std::unique_ptr<Gguf> other) {
  const size_t file = first.others.size() + 1;
  for (GgufTensor tensor : other->infos) {
    tensor.file = file;
    const auto [known, isNew] =
        first.tensorIndex.emplace(tensor.name, first.infos.size());
    if (!isNew)
      return Status::error(other->name + ": tensor " + inQuotes(tensor.name) +
                           " is in " + part(first.infos[known->second].file) +
                           ", too");
    first.infos.push_back(std::move(tensor));
  }
  first.others.push_back(std::move(other));
  return Status();
}

Status GgufJoiner::join() {
  KF_ASSIGN_OR_RETURN(count, first.getUnsigned(kGgufSplitCount, 1));
  if (count <= 1)
    return Status();
  KF_RETURN_IF_ERROR(checkFirst());
  for (uint64_t i = 1; i < count; ++i) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> other, open(i));
    KF_RETURN_IF_ERROR(add(std::move(other)));
  }
  if (first.infos.size() == tensors)
    return Status();
  return Status::error(first.source() + ": the " + std::to_string(count) +
                       " parts of the model have " +
                       std::to_string(first.infos.size()) +
                       " tensors, but metadata " + inQuotes(kGgufSplitTensors) +
                       " is " + std::to_string(tensors));
}
