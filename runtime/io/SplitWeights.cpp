//===- SplitWeights.cpp - Rows of tensors as tensors ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/SplitWeights.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <cassert>

using namespace kf;

Status SplitWeights::setRows(Whole &whole) const {
  KF_ASSIGN_OR_RETURN(const TensorView view, source->describe(whole.name));
  int64_t rows = view.shape.empty() ? 0 : view.shape.front();
  for (size_t i = 1; i + 1 < view.shape.size(); ++i)
    rows *= view.shape[i];
  int64_t sum = 0;
  for (const Part &part : whole.parts)
    sum += part.rows;
  whole.isRow = view.shape.size() == 1 && sum == 1 && rows > 1;
  if (whole.isRow)
    rows = 1;
  if (rows < 1 || rows != sum)
    return Status::error("checkpoint tensor " + inQuotes(whole.name) + " has " +
                         std::to_string(rows) +
                         " rows, but the configuration implies " +
                         std::to_string(sum));
  // Rows are whole blocks: their bytes divide those of the tensor.
  whole.rowBytes = view.bytes / static_cast<uint64_t>(rows);
  return Status();
}

Status SplitWeights::add(const std::string &name,
                         const std::vector<Part> &parts, bool isListed) {
  auto whole = std::make_unique<Whole>(name, parts);
  whole->isListed = isListed;
  KF_RETURN_IF_ERROR(setRows(*whole));
  std::map<std::string, Place> added;
  int64_t row = 0;
  for (const Part &part : parts) {
    assert((!part.isVector || part.rows == 1) && "a vector is one row");
    const Place place = {whole.get(), row, part.rows, part.isVector};
    const bool isTaken =
        part.name == name ? wholes.contains(name) : describe(part.name).ok();
    if (isTaken || !added.emplace(part.name, place).second)
      return Status::error("checkpoint tensors " + inQuotes(name) + " and " +
                           inQuotes(part.name) + " hold the same");
    row += part.rows;
  }
  wholes[name] = std::move(whole);
  places.merge(added);
  return Status();
}

Status SplitWeights::split(const std::string &name,
                           const std::vector<Part> &parts) try {
  return add(name, parts, /*isListed=*/true);
} catch (...) {
  return statusOfException();
}

Result<bool> SplitWeights::keepFloat8(const std::string &name) try {
  auto place = places.find(name);
  if (place == places.end())
    return wholes.contains(name) ? false : source->keepFloat8(name);
  Whole &whole = *place->second.whole;
  KF_ASSIGN_OR_RETURN(const bool isKept, source->keepFloat8(whole.name));
  if (!isKept || wholes.contains(scaleName(whole.name)))
    return isKept;
  KF_RETURN_IF_ERROR(setRows(whole));
  std::vector<Part> scales = whole.parts;
  for (Part &part : scales)
    part.name = scaleName(part.name);
  KF_RETURN_IF_ERROR(add(scaleName(whole.name), scales, /*isListed=*/false));
  return true;
} catch (...) {
  return statusOfException();
}

TensorView SplitWeights::partOf(const Place &place, TensorView whole) const {
  if (whole.shape.size() > 2)
    whole.shape.erase(whole.shape.begin() + 1, whole.shape.end() - 1);
  if (place.whole->isRow)
    whole.shape.insert(whole.shape.begin(), 1);
  whole.shape.front() = place.rows;
  if (place.isVector)
    whole.shape.erase(whole.shape.begin());
  whole.bytes = place.bytes();
  if (whole.data)
    whole.data = static_cast<const std::byte *>(whole.data) + place.offset();
  return whole;
}

Result<TensorView> SplitWeights::find(const std::string &name) const try {
  auto place = places.find(name);
  if (place == places.end())
    return source->find(name);
  {
    std::lock_guard<std::mutex> lock(releasing);
    Place &found = place->second;
    found.whole->released -= found.released ? 1 : 0;
    found.released = false;
  }
  KF_ASSIGN_OR_RETURN(TensorView view, source->find(place->second.whole->name));
  return partOf(place->second, std::move(view));
} catch (...) {
  return statusOfException();
}

Result<TensorView> SplitWeights::describe(const std::string &name) const try {
  auto place = places.find(name);
  if (place == places.end())
    return source->describe(name);
  KF_ASSIGN_OR_RETURN(TensorView view,
                      source->describe(place->second.whole->name));
  return partOf(place->second, std::move(view));
} catch (...) {
  return statusOfException();
}

void SplitWeights::release(const std::string &name) const {
  auto found = places.find(name);
  if (found == places.end())
    return source->release(name);
  Place &place = found->second;
  source->releasePart(place.whole->name, place.offset(), place.bytes());
  std::lock_guard<std::mutex> lock(releasing);
  if (place.released)
    return;
  place.released = true;
  if (++place.whole->released == place.whole->parts.size())
    source->release(place.whole->name);
}

void SplitWeights::releasePart(const std::string &name, uint64_t first,
                               uint64_t bytes) const {
  auto found = places.find(name);
  if (found == places.end())
    return source->releasePart(name, first, bytes);
  const Place &place = found->second;
  source->releasePart(place.whole->name, place.offset() + first, bytes);
}

std::vector<std::string> SplitWeights::names() const {
  std::vector<std::string> names;
  for (const std::string &name : source->names())
    if (!wholes.contains(name))
      names.push_back(name);
  for (const auto &[name, place] : places)
    if (place.whole->isListed)
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}
