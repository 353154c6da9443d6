//===- TensorPartsTest.cpp - What parts of weights are packed from --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/TensorParts.h"

#include "runtime/weights/WeightPacking.h"
#include "test/runtime/FakeDevice.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <vector>

using namespace kf;
using kf::test::FakeSource;

namespace {

class TensorParts : public testing::Test {
protected:
  void add(const std::string &name, std::vector<int64_t> shape,
           DataType type = DataType::F32) {
    std::vector<std::byte> &data = memory[name];
    data.resize(static_cast<size_t>(*checkedByteCount(type, shape)),
                std::byte(1));
    source.tensors[name] = {type, std::move(shape), data.data(), data.size()};
  }

  /// Packs `spec` in parts of `units` units. What a part is said to read and no
  /// other one does is overwritten before the next: the weight has to be what
  /// it is without that. Returns the bytes of each tensor that were said.
  std::map<std::string, uint64_t> check(const WeightSpec &spec, int64_t units) {
    const AlignedBuffer expected = packWeight(spec, source).take();
    const auto kept = memory;
    const int64_t bytes = *spec.packedBytes();
    const int64_t unit = packedUnit(spec);
    const int64_t part = std::lcm(unit, int64_t(KF_BUFFER_ALIGNMENT)) * units;
    std::map<std::string, uint64_t> said;
    AlignedBuffer packed =
        AlignedBuffer::allocate(static_cast<uint64_t>(bytes)).take();
    for (int64_t first = 0; first < bytes; first += part) {
      const int64_t count = std::min(part, bytes - first);
      EXPECT_TRUE(packWeightPart(spec, source, first,
                                 packed.span().subspan(first, count))
                      .ok());
      for (const TensorPart &each : tensorPartsOf(spec, source, first, count)) {
        said[each.name] += each.bytes;
        EXPECT_LE(each.first + each.bytes, memory[each.name].size());
        std::fill_n(memory[each.name].begin() +
                        static_cast<int64_t>(each.first),
                    each.bytes, std::byte(0xee));
      }
    }
    EXPECT_TRUE(std::ranges::equal(packed.span(), expected.span()));
    for (const auto &[name, data] : kept)
      std::ranges::copy(data, memory[name].begin());
    return said;
  }

  FakeSource source;
  std::map<std::string, std::vector<std::byte>> memory;
};

WeightSpec specOf(std::vector<std::string> names, std::vector<int64_t> shape,
                  DataType type, WeightLayout layout = {}) {
  WeightSpec spec;
  spec.names = std::move(names);
  spec.shape = std::move(shape);
  spec.type = type;
  spec.layout = layout;
  return spec;
}

TEST_F(TensorParts, ArePartsOfRows) {
  add("q", {40, 64});
  add("k", {17, 64});
  add("blocks", {33, 256}, DataType::Q4_K);
  const WeightLayout panels = {WeightLayout::Kind::Panels, 8, 0};
  const WeightLayout fragments = {WeightLayout::Kind::Fragments, 0, 0};
  using Said = std::map<std::string, uint64_t>;
  const Said all = {{"q", 40 * 64 * 4}, {"k", 17 * 64 * 4}};
  for (int64_t units : {1, 2, 3, 1000}) {
    for (const WeightLayout &layout : {WeightLayout(), panels, fragments})
      for (DataType type : {DataType::F32, DataType::BF16})
        EXPECT_EQ(check(specOf({"q", "k"}, {57, 64}, type, layout), units),
                  all);
    for (const WeightLayout &layout : {WeightLayout(), panels, fragments})
      EXPECT_EQ(
          check(specOf({"blocks"}, {33, 256}, DataType::Q4_K, layout), units),
          (Said{{"blocks", 33 * 144}}));
  }
}

/// Panels of gate and up lie in turns: of a part that ends between the two,
/// their rows come with the next one.
TEST_F(TensorParts, OfStackedTensors) {
  add("gate", {40, 64});
  add("up", {40, 64});
  WeightSpec spec = specOf({"gate", "up"}, {2, 40, 64}, DataType::BF16,
                           {WeightLayout::Kind::Panels, 8, 0});
  spec.stacked = true;
  const std::map<std::string, uint64_t> all = {{"gate", 40 * 64 * 4},
                                               {"up", 40 * 64 * 4}};
  for (int64_t units : {1, 2, 3, 4, 1000})
    EXPECT_EQ(check(spec, units), all);
  spec.layout = {WeightLayout::Kind::Fragments, 0, 0};
  for (int64_t units : {1, 2, 1000})
    EXPECT_EQ(check(spec, units), all);
}

/// Rows of an expert, of gate and of up, before those of the next one.
TEST_F(TensorParts, OfExperts) {
  const std::vector<std::string> names = {"g0", "g1", "g2", "u0", "u1", "u2"};
  std::map<std::string, uint64_t> all;
  for (const std::string &name : names) {
    add(name, {40, 64});
    all[name] = 40 * 64 * 4;
  }
  for (WeightLayout layout :
       {WeightLayout{WeightLayout::Kind::Panels, 8, 0},
        WeightLayout{WeightLayout::Kind::Fragments, 0, 0}}) {
    WeightSpec spec = specOf(names, {2, 3, 40, 64}, DataType::BF16, layout);
    spec.stacked = true;
    for (int64_t units : {1, 2, 3, 4, 7, 1000})
      EXPECT_EQ(check(spec, units), all);
    const int64_t bytes = *spec.packedBytes() / 3;
    EXPECT_EQ(tensorPartsOf(spec, source, bytes, bytes),
              (std::vector<TensorPart>{{"g1", 0, 40 * 64 * 4},
                                       {"u1", 0, 40 * 64 * 4}}));
  }
}

TEST_F(TensorParts, OfTransposedTensors) {
  add("w", {64, 40});
  WeightSpec spec = specOf({"w"}, {40, 64}, DataType::F32);
  spec.transposed = true;
  EXPECT_EQ(tensorPartsOf(spec, source, 0, *spec.packedBytes()),
            (std::vector<TensorPart>{{"w", 0, 64 * 40 * 4}}));
  // Panels of these are parts of rows, which are columns of the tensor.
  spec.layout = {WeightLayout::Kind::Panels, 8, 0};
  EXPECT_EQ(tensorPartsOf(spec, source, 0, packedUnit(spec)),
            std::vector<TensorPart>());
  const int64_t unit = packedUnit(spec), bytes = *spec.packedBytes();
  EXPECT_EQ(tensorPartsOf(spec, source, bytes - unit, unit),
            (std::vector<TensorPart>{{"w", 0, 64 * 40 * 4}}));
}

} // namespace
