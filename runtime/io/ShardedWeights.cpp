//===- ShardedWeights.cpp - Parts of tensors as tensors -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ShardedWeights.h"

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"

#include <cstring>
#include <mutex>

using namespace kf;

struct ShardedWeights::Entry {
  TensorShard shard;
  TensorView view;       ///< of the shard, without data
  uint64_t stride = 0;   ///< bytes of what `dim` counts, in one row (dim 1:
                         ///< of a block) or as a whole row (dim 0)
  int64_t step = 1;      ///< elements of `dim` that `stride` stands for
  int64_t rows = 1;      ///< dim 1: rows of the matrix
  uint64_t rowBytes = 0; ///< dim 1: of the source's rows
  std::mutex making;     ///< of `copy`
  AlignedBuffer copy;    ///< empty where there is none
  bool isCopied() const { return shard.dim != 0 || !isOneRange(); }
  uint64_t offset(int64_t element) const {
    return stride * static_cast<uint64_t>(element / step);
  }

  Status make(const TensorView &whole);

private:
  bool isOneRange() const {
    return shard.ranges.size() == 1 &&
           shard.ranges.front().count == shard.extent;
  }
};

/// Copies the parts of `whole`, and puts zeros behind them.
Status ShardedWeights::Entry::make(const TensorView &whole) {
  KF_ASSIGN_OR_RETURN(copy, AlignedBuffer::allocate(view.bytes)); // zeros
  const auto *from = static_cast<const std::byte *>(whole.data);
  const uint64_t shardRow = shard.dim == 0 ? 0 : offset(shard.extent);
  for (int64_t row = 0; row < rows; ++row) {
    std::byte *to = copy.data() + static_cast<uint64_t>(row) * shardRow;
    for (const TensorShard::Range &range : shard.ranges) {
      std::memcpy(to,
                  from + static_cast<uint64_t>(row) * rowBytes +
                      offset(range.first),
                  offset(range.count));
      to += offset(range.count);
    }
  }
  return Status();
}

ShardedWeights::ShardedWeights(std::shared_ptr<const WeightSource> source)
    : source(std::move(source)) {}
ShardedWeights::~ShardedWeights() = default;

Result<std::unique_ptr<ShardedWeights>>
ShardedWeights::create(std::shared_ptr<const WeightSource> source,
                       Shards shards) try {
  std::unique_ptr<ShardedWeights> result(new ShardedWeights(std::move(source)));
  for (auto &[name, shard] : shards)
    KF_RETURN_IF_ERROR(
        result->add(name, std::move(shard)).in("shard " + inQuotes(name)));
  return result;
} catch (...) {
  return statusOfException();
}

Status ShardedWeights::add(const std::string &name, TensorShard shard) {
  KF_ASSIGN_OR_RETURN(TensorView whole, source->describe(shard.source));
  const int64_t rank = static_cast<int64_t>(whole.shape.size());
  if (shard.dim > 1 || rank < 1 || (shard.dim == 1 && rank != 2))
    return Status::error("checkpoint tensor " + inQuotes(shard.source) +
                         " has " + std::to_string(rank) +
                         " dimensions, of which number " +
                         std::to_string(shard.dim) + " cannot be split");
  auto entry = std::make_unique<Entry>();
  const int64_t extent = whole.shape[shard.dim];
  if (shard.dim == 1) {
    entry->step = elementsPerBlock(whole.type);
    entry->stride = static_cast<uint64_t>(bytesPerBlock(whole.type));
    entry->rows = whole.shape[0];
    entry->rowBytes = entry->offset(extent);
  } else if (extent > 0) {
    entry->stride = whole.bytes / static_cast<uint64_t>(extent);
  }
  int64_t sum = 0;
  for (const TensorShard::Range &range : shard.ranges) {
    if (range.first < 0 || range.count < 0 || range.first > extent ||
        range.count > extent - range.first)
      return Status::error(
          std::to_string(range.count) + " elements from number " +
          std::to_string(range.first) + " on are not in the " +
          std::to_string(extent) + " of " + inQuotes(shard.source));
    if (range.first % entry->step != 0 || range.count % entry->step != 0)
      return Status::error(
          std::to_string(range.count) + " columns from number " +
          std::to_string(range.first) + " on split blocks of " +
          std::to_string(entry->step));
    sum += range.count;
  }
  if (shard.extent < std::max<int64_t>(sum, 1) ||
      shard.extent % entry->step != 0)
    return Status::error(std::to_string(sum) +
                         " elements and zeros do not "
                         "make " +
                         std::to_string(shard.extent));
  entry->view.type = whole.type;
  entry->view.shape = std::move(whole.shape);
  entry->view.shape[shard.dim] = shard.extent;
  KF_ASSIGN_OR_RETURN(const int64_t bytes,
                      checkedByteCount(whole.type, entry->view.shape));
  entry->view.bytes = static_cast<uint64_t>(bytes);
  ++uses[shard.source];
  entry->shard = std::move(shard);
  entries[name] = std::move(entry);
  return Status();
}

Result<ShardedWeights::Entry *>
ShardedWeights::entryOf(const std::string &name) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    return Status::error("checkpoint tensor " + inQuotes(name) +
                             " does not exist",
                         StatusCode::NotFound);
  return found->second.get();
}

Result<TensorView> ShardedWeights::find(const std::string &name) const try {
  KF_ASSIGN_OR_RETURN(Entry *const entry, entryOf(name));
  TensorView view = entry->view;
  if (!entry->isCopied()) {
    KF_ASSIGN_OR_RETURN(const TensorView whole,
                        source->find(entry->shard.source));
    view.data = static_cast<const std::byte *>(whole.data) +
                entry->offset(entry->shard.ranges.front().first);
    return view;
  }
  std::lock_guard<std::mutex> lock(entry->making);
  if (entry->copy.size() == 0) {
    TensorView whole;
    if (!entry->shard.ranges.empty()) {
      KF_ASSIGN_OR_RETURN(whole, source->find(entry->shard.source));
    }
    KF_RETURN_IF_ERROR(entry->make(whole));
  }
  view.data = entry->copy.data();
  return view;
} catch (...) {
  return statusOfException();
}

Result<TensorView> ShardedWeights::describe(const std::string &name) const try {
  KF_ASSIGN_OR_RETURN(Entry *const entry, entryOf(name));
  return entry->view;
} catch (...) {
  return statusOfException();
}

void ShardedWeights::release(const std::string &name) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    return;
  Entry &entry = *found->second;
  {
    std::lock_guard<std::mutex> lock(entry.making);
    entry.copy = AlignedBuffer();
  }
  if (entry.shard.dim == 0)
    for (const TensorShard::Range &range : entry.shard.ranges)
      source->releasePart(entry.shard.source, entry.offset(range.first),
                          entry.offset(range.count));
  if (uses.at(entry.shard.source) == 1)
    source->release(entry.shard.source);
}

void ShardedWeights::releasePart(const std::string &name, uint64_t first,
                                 uint64_t bytes) const {
  const auto found = entries.find(name);
  if (found == entries.end() || found->second->isCopied())
    return;
  const Entry &entry = *found->second;
  source->releasePart(entry.shard.source,
                      entry.offset(entry.shard.ranges.front().first) + first,
                      bytes);
}

std::vector<std::string> ShardedWeights::names() const {
  std::vector<std::string> names;
  for (const auto &[name, entry] : entries)
    if (entry->shard.isListed)
      names.push_back(name);
  return names;
}
