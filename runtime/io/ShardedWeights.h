//===- ShardedWeights.h - Parts of tensors as tensors -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one of several ranks keeps of a checkpoint (runtime/model/Sharding.h
// says which parts). Rows that follow one another are views of the source's;
// columns, several ranges and zeros are copied when they are asked for. Of a
// source that holds its tensors in memory, nothing but the parts is read.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_SHARDEDWEIGHTS_H
#define KF_RUNTIME_IO_SHARDEDWEIGHTS_H

#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kf {

/// A tensor that is made of parts of another one.
struct TensorShard {
  /// `count` rows or columns from number `first` on.
  struct Range {
    int64_t first = 0, count = 0;
    bool operator==(const Range &) const = default;
  };

  std::string source; ///< what the parts are of
  /// Which dimension has the parts: 0, or 1 of a matrix, where ranges begin and
  /// end with blocks.
  size_t dim = 0;
  std::vector<Range> ranges; ///< in the order that the shard has them in
  int64_t extent = 0;        ///< of `dim`; zeros behind the ranges
  bool isListed = true;      ///< names() has it
};

/// Safe to use as its source is: any number of threads at once.
class ShardedWeights : public WeightSource {
public:
  using Shards = std::map<std::string, TensorShard>;
  /// Presents `shards`, by their names, and nothing else of `source`. Errors: a
  /// tensor that is not there, ranges that it does not have or that split
  /// blocks, an extent that has no room for them.
  static Result<std::unique_ptr<ShardedWeights>>
  create(std::shared_ptr<const WeightSource> source, Shards shards);
  ~ShardedWeights() override;

  /// A copy is held until release() or the end.
  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  /// Releases the source's tensor where no other shard is made of it.
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  std::vector<std::string> names() const override;

private:
  struct Entry;
  explicit ShardedWeights(std::shared_ptr<const WeightSource> source);
  Status add(const std::string &name, TensorShard shard);
  Result<Entry *> entryOf(const std::string &name) const;

  std::shared_ptr<const WeightSource> source;
  std::map<std::string, std::unique_ptr<Entry>> entries; ///< by name
  std::map<std::string, size_t>
      uses; ///< shards of each of the source's tensors
};

} // namespace kf

#endif // KF_RUNTIME_IO_SHARDEDWEIGHTS_H
