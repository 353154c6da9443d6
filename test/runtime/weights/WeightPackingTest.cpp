//===- WeightPackingTest.cpp - Packing against the layouts' formulas ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/WeightPacking.h"

#include "runtime/core/Float8.h"
#include "runtime/weights/BlockPacking.h"
#include "runtime/weights/FragmentPacking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <random>

using namespace kf;

namespace {

/// Random tensors, each at an odd address as in a mapped file.
class RandomSource final : public WeightSource {
public:
  void add(const std::string &name, DataType type, std::vector<int64_t> shape) {
    Stored &stored = tensors[name];
    stored.view.type = type;
    stored.view.shape = shape;
    int64_t count = *checkedElementCount(shape);
    stored.view.bytes = *checkedByteCount(type, shape);
    stored.bytes.resize(stored.view.bytes + 1);
    stored.view.data = stored.bytes.data() + 1;
    std::vector<float> values(count);
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (float &value : values)
      value = uniform(random);
    if (type == DataType::F8E4M3)
      for (int64_t i = 0; i < count; ++i)
        stored.bytes[i + 1] = static_cast<char>(floatToE4M3(values[i]));
    else if (type == DataType::I32 || type == DataType::F64 || isBlock(type))
      for (char &byte : stored.bytes)
        byte = static_cast<char>(random());
    else
      ASSERT_TRUE(
          convertFromFloat(type, values.data(), count, stored.bytes.data() + 1)
              .ok());
  }
  TensorView &view(const std::string &name) { return tensors.at(name).view; }

  Result<TensorView> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return Status::error("there is no tensor '" + name + "'");
    return found->second.view;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto &[name, stored] : tensors)
      all.push_back(name);
    return all;
  }

private:
  struct Stored {
    TensorView view;
    std::vector<char> bytes;
  };
  std::map<std::string, Stored> tensors;
  std::mt19937 random{7};
};

float elementAt(DataType type, const void *data, int64_t index) {
  float value = 0;
  EXPECT_TRUE(convertToFloat(
                  type, static_cast<const char *>(data) + index * sizeOf(type),
                  1, &value)
                  .ok());
  return value;
}

/// The logical weight in f32, rounded to spec.type, [groups * rows][columns].
std::vector<float> logicalWeight(const WeightSpec &spec,
                                 const WeightSource &source) {
  std::vector<float> all;
  int64_t columns = spec.shape.back();
  for (const std::string &name : spec.names) {
    TensorView view = *source.find(name);
    int64_t count = *checkedElementCount(view.shape), rows = count / columns;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = spec.transposed ? i % columns * rows + i / columns : i;
      float value = elementAt(view.type, view.data, at), rounded[1];
      char bytes[4];
      if (spec.type == DataType::F8E4M3)
        bytes[0] = static_cast<char>(floatToE4M3(value));
      else
        EXPECT_TRUE(convertFromFloat(spec.type, &value, 1, bytes).ok());
      EXPECT_TRUE(convertToFloat(spec.type, bytes, 1, rounded).ok());
      all.push_back(rounded[0]);
    }
  }
  return all;
}

/// The packed weight by FragmentTile.h's definition: each stored element is
/// looked up in the logical weight.
std::vector<float> fragmentsByDefinition(const WeightSpec &spec,
                                         const std::vector<float> &logical) {
  int64_t K = spec.shape.back(), N = spec.shape[spec.shape.size() - 2];
  int64_t G = spec.shape.size() > 2 ? spec.shape[0] : 1, blockRows = 16 / G;
  int64_t E = spec.shape.size() == 4 ? spec.shape[1] : 1;
  int64_t perWord = 4 / static_cast<int64_t>(sizeOf(spec.type));
  int64_t tileColumns = 8 * perWord,
          tiles = (K + tileColumns - 1) / tileColumns;
  int64_t blocks = (N + blockRows - 1) / blockRows;
  std::vector<float> packed;
  for (int64_t number = 0; number < E * blocks; ++number)
    for (int64_t tile = 0; tile < tiles; ++tile)
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t word = 0; word < 4; ++word)
          for (int64_t i = 0; i < perWord; ++i) {
            int64_t line = lane / 4 + word % 2 * 8;
            int64_t row = number % blocks * blockRows + line % blockRows;
            int64_t matrix = line / blockRows * E + number / blocks;
            int64_t k = (lane % 4 + word / 2 * 4) * perWord + i;
            if (perWord == 4) // neighbours of two, with others 8 columns behind
              k = word / 2 * 16 + i / 2 * 8 + lane % 4 * 2 + i % 2;
            k += tile * tileColumns;
            packed.push_back(
                row < N && k < K ? logical[(matrix * N + row) * K + k] : 0.0f);
          }
  return packed;
}

/// The packed weight by Executable.h's formulas.
std::vector<float> packedByFormula(const WeightSpec &spec,
                                   const WeightSource &source) {
  std::vector<float> logical = logicalWeight(spec, source);
  if (spec.layout.kind == WeightLayout::Kind::RowMajor)
    return logical;
  if (spec.layout.kind == WeightLayout::Kind::Fragments)
    return fragmentsByDefinition(spec, logical);
  int64_t K = spec.shape.back(), N = spec.shape[spec.shape.size() - 2];
  int64_t G = spec.shape.size() >= 3 ? spec.shape[0] : 1;
  int64_t E = spec.shape.size() == 4 ? spec.shape[1] : 1;
  int64_t P = spec.layout.panel, I = spec.layout.interleave;
  int64_t ofExpert = (N + P - 1) / P, panels = E * ofExpert;
  std::vector<float> packed(panels * G * K * P);
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t g = 0; g < G; ++g)
      for (int64_t k = 0; k < K; ++k)
        for (int64_t j = 0; j < P; ++j) {
          int64_t e = p / ofExpert, row = p % ofExpert * P + j, stored = j;
          if (I) { // element i to 2i, element i + I to 2i + 1
            int64_t i = j % (2 * I);
            stored = j - i + (i < I ? 2 * i : 2 * (i - I) + 1);
          }
          packed[((p * G + g) * K + k) * P + stored] =
              row < N ? logical[((g * E + e) * N + row) * K + k] : 0.0f;
        }
  return packed;
}

/// Parts of a weight are what the whole has there.
void expectParts(const WeightSpec &spec, const WeightSource &source,
                 ThreadPool *pool, std::span<const std::byte> whole) {
  const auto unit = static_cast<size_t>(packedUnit(spec));
  ASSERT_EQ(whole.size() % unit, 0u);
  const size_t part = std::max<size_t>(3, 1000 / unit) * unit;
  for (size_t first = 0; first < whole.size(); first += part) {
    const size_t count = std::min(part, whole.size() - first);
    AlignedBuffer packed = AlignedBuffer::allocate(count).take();
    const Status status = packWeightPart(
        spec, source, static_cast<int64_t>(first), packed.span(), {pool});
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(std::ranges::equal(packed.span(), whole.subspan(first, count)))
        << "from byte " << first << " on";
  }
}

void expectPacked(const WeightSpec &spec, const WeightSource &source,
                  ThreadPool *pool, const std::string &label) {
  Result<AlignedBuffer> packed = packWeight(spec, source, {pool});
  ASSERT_TRUE(packed.ok()) << label << ": " << packed.message();
  std::vector<float> expected = packedByFormula(spec, source);
  ASSERT_EQ(packed->size(), expected.size() * sizeOf(spec.type)) << label;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(packed->data()) % 64, 0u);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(elementAt(spec.type, packed->data(), i), expected[i])
        << label << " at " << i;
  SCOPED_TRACE(label);
  expectParts(spec, source, pool, packed->span());
}

TEST(WeightPacking, EveryLayoutTypeAndJoin) {
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(3).take();
  const DataType types[] = {DataType::F32, DataType::F16, DataType::BF16,
                            DataType::F8E4M3};
  const WeightLayout layouts[] = {{},
                                  {WeightLayout::Kind::Panels, 32, 16},
                                  {WeightLayout::Kind::Panels, 32, 0},
                                  {WeightLayout::Kind::Panels, 64, 16},
                                  {WeightLayout::Kind::Panels, 8, 4},
                                  {WeightLayout::Kind::Panels, 14, 0},
                                  {WeightLayout::Kind::Panels, 1, 0}};
  for (DataType stored : types)
    for (DataType type : types)
      for (const WeightLayout &layout : layouts)
        for (int64_t columns : {1, 7, 64, 300})
          for (bool transposed : {false, true})
            for (bool stacked : {false, true}) {
              if (layout.interleave && type != DataType::BF16)
                continue;
              // What is in 8 bits stays so, or becomes a float.
              if (type == DataType::F8E4M3 && stored != type)
                continue;
              RandomSource source;
              WeightSpec spec;
              spec.type = type;
              spec.layout = layout;
              spec.transposed = transposed;
              spec.stacked = stacked;
              spec.names = {"a", "b", "c"};
              const int64_t rows[] = {40, stacked ? 40 : 3, stacked ? 40 : 32};
              for (int i = 0; i < 3; ++i)
                source.add(spec.names[i], stored,
                           transposed ? std::vector<int64_t>{columns, rows[i]}
                                      : std::vector<int64_t>{rows[i], columns});
              spec.shape = stacked ? std::vector<int64_t>{3, 40, columns}
                                   : std::vector<int64_t>{75, columns};
              std::string label = std::string(nameOf(stored)) + " to " +
                                  std::string(nameOf(type)) + ", panel " +
                                  std::to_string(layout.panel) + "/" +
                                  std::to_string(layout.interleave) + ", " +
                                  std::to_string(columns) + " columns" +
                                  (transposed ? ", transposed" : "") +
                                  (stacked ? ", stacked" : "");
              expectPacked(spec, source, columns % 2 ? nullptr : pool.get(),
                           label);
            }
}

/// In either layout, those of the weight of one expert after those of
/// another's.
void checkExperts(WeightLayout::Kind kind) {
  const bool isPanel = kind == WeightLayout::Kind::Panels;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(3).take();
  for (DataType type : {DataType::F32, DataType::BF16, DataType::Q8_0})
    for (int64_t groups : {1, 2})
      for (int64_t rows : {8, 32, 45})
        for (bool transposed : {false, true}) {
          if (transposed && isBlock(type))
            continue;
          RandomSource source;
          WeightSpec spec;
          spec.type = type;
          spec.layout = {kind};
          if (isPanel)
            spec.layout = {kind, 16, type == DataType::BF16 ? 8 : 0};
          spec.transposed = transposed;
          spec.stacked = true;
          spec.shape = {groups, 3, rows, 64};
          for (int64_t i = 0; i < groups * 3; ++i) {
            spec.names.push_back("w" + std::to_string(i));
            source.add(spec.names.back(), type,
                       transposed ? std::vector<int64_t>{64, rows}
                                  : std::vector<int64_t>{rows, 64});
          }
          const std::string label = std::string(nameOf(type)) + ", " +
                                    std::to_string(groups) + " groups of " +
                                    std::to_string(rows) + " rows" +
                                    (transposed ? ", transposed" : "");
          if (!isBlock(type)) {
            expectPacked(spec, source, pool.get(), label);
            continue;
          }
          // Those of an expert are what packing its weight alone makes.
          Result<AlignedBuffer> whole = packWeight(spec, source, {pool.get()});
          ASSERT_TRUE(whole.ok()) << label << ": " << whole.message();
          const size_t bytes = whole->size() / 3;
          for (size_t e = 0; e < 3; ++e) {
            WeightSpec one = spec;
            one.shape = {groups, rows, 64};
            if (groups == 1 && !isPanel) {
              one.shape = {rows, 64};
              one.stacked = false;
            }
            one.names = {spec.names[e]};
            if (groups == 2)
              one.names.push_back(spec.names[3 + e]);
            Result<AlignedBuffer> apart = packWeight(one, source);
            ASSERT_TRUE(apart.ok()) << label << ": " << apart.message();
            ASSERT_TRUE(std::ranges::equal(
                apart->span(), whole->span().subspan(e * bytes, bytes)))
                << label << ", expert " << e;
          }
        }
}

TEST(WeightPacking, PanelsOfExpertsFollowOneAnother) {
  checkExperts(WeightLayout::Kind::Panels);
}

TEST(WeightPacking, FragmentsOfExpertsFollowOneAnother) {
  checkExperts(WeightLayout::Kind::Fragments);
}

TEST(WeightPacking, FragmentsOfEveryTypeAndJoin) {
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(3).take();
  const DataType types[] = {DataType::F32, DataType::F16, DataType::BF16,
                            DataType::F8E4M3};
  for (DataType stored : types)
    for (DataType type : types)
      for (int64_t rows : {1, 8, 19, 32})
        for (int64_t columns : {1, 8, 16, 37, 600})
          for (bool transposed : {false, true})
            for (bool stacked : {false, true}) {
              if (type == DataType::F8E4M3 && stored != type)
                continue;
              RandomSource source;
              WeightSpec spec;
              spec.type = type;
              spec.layout = {WeightLayout::Kind::Fragments};
              spec.transposed = transposed;
              spec.stacked = stacked;
              spec.names = {"a", "b"};
              const int64_t second = stacked ? rows : 7;
              for (auto [name, extent] : {std::pair{"a", rows}, {"b", second}})
                source.add(name, stored,
                           transposed ? std::vector<int64_t>{columns, extent}
                                      : std::vector<int64_t>{extent, columns});
              spec.shape = stacked
                               ? std::vector<int64_t>{2, rows, columns}
                               : std::vector<int64_t>{rows + second, columns};
              expectPacked(spec, source, columns % 2 ? nullptr : pool.get(),
                           std::string(nameOf(stored)) + " to " +
                               std::string(nameOf(type)) + ", " +
                               std::to_string(rows) + " x " +
                               std::to_string(columns) +
                               (transposed ? ", transposed" : "") +
                               (stacked ? ", stacked" : ""));
            }
}

/// Row by row, what packFragmentBlocks() makes of the tensors' rows.
TEST(WeightPacking, FragmentsOfJoinedBlocks) {
  constexpr int64_t columns = 512, firstRows = 19;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(3).take();
  for (DataType type : {DataType::Q8_0, DataType::Q4_K})
    for (bool stacked : {false, true}) {
      SCOPED_TRACE(std::string(nameOf(type)) + (stacked ? ", stacked" : ""));
      const int64_t secondRows = stacked ? firstRows : 13;
      RandomSource source;
      source.add("a", type, {firstRows, columns});
      source.add("b", type, {secondRows, columns});
      WeightSpec spec;
      spec.names = {"a", "b"};
      spec.type = type;
      spec.layout = {WeightLayout::Kind::Fragments};
      spec.stacked = stacked;
      spec.shape = stacked
                       ? std::vector<int64_t>{2, firstRows, columns}
                       : std::vector<int64_t>{firstRows + secondRows, columns};
      Result<AlignedBuffer> packed = packWeight(spec, source, {pool.get()});
      ASSERT_TRUE(packed.ok()) << packed.message();
      const int64_t blocks = columns / elementsPerBlock(type);
      const int64_t groups = stacked ? 2 : 1, groupRows = 16 / groups;
      const int64_t rows = spec.shape[spec.shape.size() - 2];
      auto rowAt = [&](int64_t group, int64_t row) {
        const bool isFirst = stacked ? group == 0 : row < firstRows;
        const int64_t within = stacked || isFirst ? row : row - firstRows;
        return static_cast<const std::byte *>(
                   source.view(isFirst ? "a" : "b").data) +
               within * blocks * bytesPerBlock(type);
      };
      std::vector<std::byte> expected(packedUnit(spec));
      for (int64_t block = 0; block * groupRows < rows; ++block) {
        std::array<const std::byte *, 16> fragmentRows = {};
        for (int64_t r = 0; r < 16; ++r)
          if (const int64_t row = block * groupRows + r % groupRows; row < rows)
            fragmentRows[r] = rowAt(r / groupRows, row);
        packFragmentBlocks(type, fragmentRows, blocks, expected.data());
        EXPECT_TRUE(std::ranges::equal(
            packed->span().subspan(block * expected.size(), expected.size()),
            expected))
            << "row block " << block;
      }
      expectParts(spec, source, pool.get(), packed->span());
    }
}

/// A thread packs several panels in a row, of which the last run has fewer.
TEST(WeightPacking, RunsOfPanels) {
  RandomSource source;
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(2).take();
  for (DataType type : {DataType::F32, DataType::F16, DataType::BF16})
    for (int64_t rows : {645, 1, 260}) {
      WeightSpec spec;
      spec.names = {std::string(nameOf(type)) + std::to_string(rows)};
      source.add(spec.names.front(), type, {rows, 70});
      spec.type = type;
      spec.shape = {rows, 70};
      spec.layout = {WeightLayout::Kind::Panels, 8, 0};
      expectPacked(spec, source, nullptr, spec.names.front() + " alone");
      expectPacked(spec, source, pool.get(), spec.names.front());
    }
}

/// Panel by panel, what packBlockPanel() makes of the tensor's rows.
TEST(WeightPacking, RunsOfBlockPanels) {
  constexpr int64_t blocks = 3, panel = 8;
  std::unique_ptr<ThreadPool> two = ThreadPool::create(2).take();
  for (DataType type : {DataType::Q8_0, DataType::Q4_K})
    for (int64_t rows : {645, 3, 260})
      for (ThreadPool *pool : {two.get(), static_cast<ThreadPool *>(nullptr)}) {
        SCOPED_TRACE(std::string(nameOf(type)) + ", " + std::to_string(rows) +
                     (pool ? " rows" : " rows, alone"));
        const int64_t columns = blocks * elementsPerBlock(type);
        RandomSource source;
        source.add("a", type, {rows, columns});
        WeightSpec spec;
        spec.names = {"a"};
        spec.type = type;
        spec.shape = {rows, columns};
        spec.layout = {WeightLayout::Kind::Panels, panel, 0};
        Result<AlignedBuffer> packed = packWeight(spec, source, {pool});
        ASSERT_TRUE(packed.ok()) << packed.message();
        std::vector<std::byte> expected(packedUnit(spec));
        ASSERT_EQ(packed->size(), (rows + panel - 1) / panel * expected.size());
        const auto *data =
            static_cast<const std::byte *>(source.view("a").data);
        for (int64_t first = 0; first < rows; first += panel) {
          std::array<const std::byte *, panel> panelRows = {};
          for (int64_t r = 0; r < std::min(panel, rows - first); ++r)
            panelRows[r] = data + (first + r) * blocks * bytesPerBlock(type);
          packBlockPanel(type, {.rows = panelRows}, blocks, expected.data());
          EXPECT_TRUE(std::ranges::equal(
              packed->span().subspan(first / panel * expected.size(),
                                     expected.size()),
              expected))
              << "panel from row " << first << " on";
        }
        expectParts(spec, source, pool, packed->span());
      }
}

TEST(WeightPacking, PiecesOfDifferentTypes) {
  RandomSource source;
  source.add("a", DataType::F32, {20, 33});
  source.add("b", DataType::BF16, {20, 33});
  WeightSpec spec;
  spec.names = {"a", "b"};
  spec.type = DataType::BF16;
  spec.shape = {40, 33};
  spec.layout = {WeightLayout::Kind::Panels, 32, 16};
  expectPacked(spec, source, nullptr, "panels");
  spec.layout = {WeightLayout::Kind::Fragments};
  expectPacked(spec, source, nullptr, "fragments");
  spec.layout = {};
  expectPacked(spec, source, nullptr, "rows");
}

TEST(WeightPacking, VectorsAndSingleGroups) {
  RandomSource source;
  source.add("a", DataType::F16, {30});
  source.add("b", DataType::F16, {12});
  source.add("g", DataType::BF16, {2, 33, 17});
  WeightSpec spec;
  spec.names = {"a", "b"};
  spec.shape = {42};
  expectPacked(spec, source, nullptr, "joined vectors");
  spec.names = {"g"};
  spec.shape = {2, 33, 17};
  spec.type = DataType::BF16;
  spec.layout = {WeightLayout::Kind::Panels, 32, 16};
  expectPacked(spec, source, nullptr, "grouped panels");
}

TEST(WeightPacking, ErrorsNameTheTensor) {
  RandomSource source;
  source.add("a", DataType::BF16, {40, 64});
  source.add("b", DataType::BF16, {8, 64});
  source.add("thin", DataType::BF16, {8, 63});
  source.add("ints", DataType::I32, {40, 64});
  auto message = [&](std::vector<std::string> names, std::vector<int64_t> shape,
                     bool transposed = false, bool stacked = false) {
    WeightSpec spec;
    spec.names = std::move(names);
    spec.type = DataType::BF16;
    spec.shape = std::move(shape);
    spec.transposed = transposed;
    spec.stacked = stacked;
    return packWeight(spec, source).message();
  };
  EXPECT_EQ(message({"none"}, {40, 64}), "there is no tensor 'none'");
  EXPECT_EQ(message({"a"}, {41, 64}), "checkpoint tensor 'a' has shape "
                                      "[40, 64] where [41, 64] is expected");
  EXPECT_EQ(message({"a"}, {40, 64}, true),
            "checkpoint tensor 'a' has shape [40, 64] where [64, 40] is "
            "expected");
  EXPECT_EQ(message({"a", "thin"}, {48, 64}),
            "checkpoint tensor 'thin' has shape [8, 63] where [any, 64] is "
            "expected");
  EXPECT_EQ(message({"a", "b"}, {2, 40, 64}, false, true),
            "checkpoint tensor 'b' has shape [8, 64] where [40, 64] is "
            "expected");
  EXPECT_EQ(message({"a", "b"}, {50, 64}), "checkpoint tensors 'a' to 'b' make "
                                           "48 rows where 50 are expected");
  EXPECT_EQ(message({"a", "b"}, {47, 64}),
            "checkpoint tensors 'a' to 'b' make more than the 47 rows that are "
            "expected");
  EXPECT_EQ(message({"ints"}, {40, 64}),
            "checkpoint tensor 'ints' has type i32, which cannot be converted "
            "to bf16");
  source.view("a").bytes -= 2;
  EXPECT_EQ(message({"a"}, {40, 64}), "checkpoint tensor 'a' holds 5118 bytes "
                                      "where 5120 are expected");
}

TEST(WeightPacking, DestinationIsChecked) {
  RandomSource source;
  source.add("a", DataType::F32, {4, 4});
  WeightSpec spec;
  spec.names = {"a"};
  spec.shape = {4, 4};
  AlignedBuffer buffer = AlignedBuffer::allocate(128).take();
  std::span<std::byte> bytes = buffer.span();
  EXPECT_TRUE(packWeightInto(spec, source, bytes.first(64)).ok());
  EXPECT_EQ(packWeightInto(spec, source, bytes).message(),
            "weight 'a' takes 64 bytes, not the 128 given");
  EXPECT_FALSE(packWeightInto(spec, source, bytes.subspan(4, 64)).ok());
  auto partFrom = [&](int64_t first, size_t count) {
    return packWeightPart(spec, source, first, bytes.first(count)).message();
  };
  EXPECT_EQ(partFrom(16, 32), "");
  EXPECT_EQ(partFrom(48, 16), "");
  for (auto [first, count] : {std::pair<int64_t, size_t>{2, 32},
                              {16, 30},
                              {48, 20},
                              {-4, 16},
                              {68, 0}})
    EXPECT_EQ(partFrom(first, count),
              "weight 'a' takes 64 bytes, of which " + std::to_string(count) +
                  " from " + std::to_string(first) + " on are no part");
}

TEST(WeightPacking, EndsWhenCancelled) {
  RandomSource source;
  source.add("a", DataType::F32, {640, 64});
  WeightSpec spec;
  spec.names = {"a"};
  spec.shape = {640, 64};
  spec.layout = {WeightLayout::Kind::Panels, 32, 0};
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(3).take();
  AlignedBuffer buffer = AlignedBuffer::allocate(640 * 64 * 4).take();
  std::atomic<bool> cancelled{true};
  for (ThreadPool *threads : {pool.get(), static_cast<ThreadPool *>(nullptr)}) {
    Status status =
        packWeightInto(spec, source, buffer.span(), {threads, &cancelled});
    EXPECT_TRUE(status.isCancelled()) << status.message();
    EXPECT_EQ(std::ranges::count(buffer.span(), std::byte(0)), 640 * 64 * 4);
  }
  cancelled = false;
  EXPECT_TRUE(
      packWeightInto(spec, source, buffer.span(), {pool.get(), &cancelled})
          .ok());
}

TEST(WeightPacking, DirectBinding) {
  RandomSource source;
  source.add("a", DataType::F32, {4, 6});
  WeightSpec spec;
  spec.names = {"a"};
  spec.shape = {4, 6};
  const TensorView &view = source.view("a");
  EXPECT_TRUE(canBindDirectly(spec, view));
  WeightSpec other = spec;
  other.type = DataType::BF16;
  EXPECT_FALSE(canBindDirectly(other, view));
  other = spec;
  other.transposed = true;
  EXPECT_FALSE(canBindDirectly(other, view));
  other = spec;
  other.shape = {6, 4};
  EXPECT_FALSE(canBindDirectly(other, view));
  other = spec;
  other.layout = {WeightLayout::Kind::Panels, 8, 0};
  EXPECT_FALSE(canBindDirectly(other, view));
  other.layout = {WeightLayout::Kind::Fragments};
  EXPECT_FALSE(canBindDirectly(other, view));
  other = spec;
  other.names = {"a", "a"};
  EXPECT_FALSE(canBindDirectly(other, view));
}

TEST(AlignedBuffer, SizesAndFailure) {
  for (uint64_t bytes : {uint64_t(0), uint64_t(1), uint64_t(4096),
                         (uint64_t(2) << 20) - 1, uint64_t(5) << 20}) {
    Result<AlignedBuffer> buffer = AlignedBuffer::allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    if (bytes > 0) {
      EXPECT_EQ(buffer->data()[bytes - 1], std::byte(0));
      std::memset(buffer->data(), 1, bytes);
    }
    AlignedBuffer moved = buffer.take();
    EXPECT_EQ(moved.size(), bytes);
  }
  EXPECT_FALSE(AlignedBuffer::allocate(~uint64_t(0)).ok());
  EXPECT_EQ(AlignedBuffer::allocate(uint64_t(1) << 60).message(),
            "no memory for a buffer of 1152921504606846976 bytes");
}

} // namespace
