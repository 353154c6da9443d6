//===- PackingBenchmark.cpp - Packing weights beside a copy ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a first start does with a checkpoint: a tensor that is in memory becomes
// panels in pages that nobody has written yet. The ceiling is a copy of the
// tensor into such pages by as many threads: by memcpy(), which is faster there
// than stores that go past the caches.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/Comparison.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/weights/WeightPacking.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace kf;
using namespace kf::bench;

namespace {

/// One tensor of random bytes.
class RandomTensor final : public WeightSource {
public:
  static Result<std::shared_ptr<RandomTensor>>
  create(DataType type, int64_t rows, int64_t columns) {
    auto made = std::make_shared<RandomTensor>();
    made->view = {.type = type, .shape = {rows, columns}};
    KF_ASSIGN_OR_RETURN(const int64_t bytes,
                        checkedByteCount(type, made->view.shape));
    KF_ASSIGN_OR_RETURN(made->memory,
                        AlignedBuffer::allocate(static_cast<uint64_t>(bytes)));
    std::mt19937_64 random(7);
    for (size_t at = 0; at < made->memory.size(); at += sizeof(uint64_t)) {
      const uint64_t number = random();
      std::memcpy(made->memory.data() + at, &number,
                  std::min(sizeof(number), made->memory.size() - at));
    }
    made->view.data = made->memory.data();
    made->view.bytes = made->memory.size();
    return made;
  }

  Result<TensorView> find(const std::string &) const override { return view; }
  std::vector<std::string> names() const override { return {"weight"}; }
  std::span<const std::byte> bytes() const { return memory.span(); }

private:
  AlignedBuffer memory;
  TensorView view;
};

class Packing final : public Contender {
public:
  Packing(std::shared_ptr<RandomTensor> tensor, WeightSpec spec,
          std::shared_ptr<ThreadPool> pool)
      : tensor(std::move(tensor)), spec(std::move(spec)),
        pool(std::move(pool)) {}

  Status run() override {
    return packWeight(spec, *tensor, {.pool = pool.get()}).status();
  }

private:
  std::shared_ptr<RandomTensor> tensor;
  WeightSpec spec;
  std::shared_ptr<ThreadPool> pool;
};

class Copy final : public Contender {
public:
  Copy(std::shared_ptr<RandomTensor> tensor, std::shared_ptr<ThreadPool> pool)
      : tensor(std::move(tensor)), pool(std::move(pool)) {}

  Status run() override {
    const std::span<const std::byte> from = tensor->bytes();
    KF_ASSIGN_OR_RETURN(AlignedBuffer to, AlignedBuffer::allocate(from.size()));
    constexpr size_t slice = size_t(2) << 20; // a huge page
    return pool->parallelFor(
        static_cast<int64_t>((from.size() + slice - 1) / slice),
        [&](int64_t i) {
          const size_t first = static_cast<size_t>(i) * slice;
          std::memcpy(to.data() + first, from.data() + first,
                      std::min(slice, from.size() - first));
          return Status();
        });
  }

private:
  std::shared_ptr<RandomTensor> tensor;
  std::shared_ptr<ThreadPool> pool;
};

/// A panel has two vectors of a CPU's rows, where 16 numbers are a vector.
WeightSpec specOf(DataType type, int64_t rows, int64_t columns) {
  WeightSpec spec;
  spec.names = {"weight"};
  spec.type = type;
  spec.shape = {rows, columns};
  spec.layout.kind = WeightLayout::Kind::Panels;
  spec.layout.panel = 32;
  spec.layout.interleave = type == DataType::BF16 ? 16 : 0;
  return spec;
}

Result<std::vector<Entry>> contenders(const WeightSpec &spec, int threads) {
  KF_ASSIGN_OR_RETURN(
      std::shared_ptr<RandomTensor> tensor,
      RandomTensor::create(spec.type, spec.shape[0], spec.shape[1]));
  KF_ASSIGN_OR_RETURN(std::shared_ptr<ThreadPool> pool,
                      ThreadPool::create(threads));
  const auto read = static_cast<double>(tensor->bytes().size());
  std::vector<Entry> entries;
  entries.push_back({.name = "kf",
                     .contender = std::make_unique<Packing>(tensor, spec, pool),
                     .amount = read});
  entries.push_back({.name = "ceiling",
                     .contender = std::make_unique<Copy>(tensor, pool),
                     .amount = read,
                     .isCeiling = true});
  return entries;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<DataType> types;
  for (const BlockFormat &format : kBlockFormats)
    types.push_back(format.type);
  types.insert(types.end(), {DataType::F8E4M3, DataType::BF16, DataType::F16,
                             DataType::F32});
  // Rows and columns that are whole panels and vectors, and some that are not.
  for (auto [rows, blocks] :
       {std::pair<int64_t, int64_t>(32000, 8), {31987, 9}})
    for (int threads : {1, 2})
      for (DataType type : types) {
        // Of numbers that are no blocks, one column more than blocks have.
        const int64_t columns = blocks * 256 + (!isBlock(type) && blocks == 9);
        addCase({.name = "pack/" + std::string(nameOf(type)) + "/" +
                         std::to_string(rows) + "x" + std::to_string(columns) +
                         "/threads:" + std::to_string(threads),
                 .unit = Unit::Bytes,
                 .prepare = [=] {
                   return contenders(specOf(type, rows, columns), threads);
                 }});
      }
  return runCases(argc, argv, {});
}
