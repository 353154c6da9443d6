//===- PagedCacheTest.cpp - Several sequences in the pages of one cache ---===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Steps of a few sequences on one cache, on each device, against softmax in
// doubles over what each sequence has appended. Pages are handed out in no
// order; before they are, they hold NaNs and infinities, as do entries of the
// page table that nobody may read.
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/core/BlockRounding.h"
#include "runtime/engine/ProgramRunner.h"
#include "test/conformance/TestDevice.h"
#include "test/runtime/DeviceSteps.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

using namespace kf;

namespace {

constexpr int64_t kHeads = 4, kKVHeads = 2;
constexpr int64_t kSequences = 4, kTablePages = 4, kPoolPages = 11;
constexpr float kScale = 0.2f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What a test varies; `rows` is T and `sequences` S, -1 for any. `device` as
/// in TestDevice.h.
struct Variant {
  std::string device = "cpu", type = "f32";
  int64_t page = 64, rows = -1, sequences = -1, dim = 24;
  int64_t mostRows = 48;
  std::optional<int64_t> window;
};

/// Appends to layer 1 of a cache of two and attends to it.
std::string programText(const Variant &variant) {
  const std::string t = variant.rows < 0 ? "?" : std::to_string(variant.rows);
  const std::string d = "x" + std::to_string(variant.dim) + "xf32>";
  const std::string q = "tensor<" + t + "x" + std::to_string(kHeads) + d,
                    kv = "tensor<" + t + "x" + std::to_string(kKVHeads) + d,
                    ints = "tensor<" + t + "xi32>",
                    pages = "x" + std::to_string(kTablePages) + "xi32",
                    table = variant.sequences < 0
                                ? "tensor<?" + pages + ", #kf.size<sequences>>"
                                : "tensor<" +
                                      std::to_string(variant.sequences) +
                                      pages + ">";
  const std::string range = variant.sequences < 0
                                ? ", kf.size_ranges = [#kf.size_range<"
                                  "sequences, least = 1, most = " +
                                      std::to_string(kSequences) + ">]"
                                : "";
  const std::string cache =
      "!kf.kv_cache<layers = 2, kv_heads = " + std::to_string(kKVHeads) +
      ", head_dim = " + std::to_string(variant.dim) +
      ", type = " + variant.type + ", page = " + std::to_string(variant.page) +
      ">";
  const std::string window =
      variant.window ? ", window = " + std::to_string(*variant.window) : "";
  return "func.func @step(%q: " + q + ", %k: " + kv + ", %v: " + kv +
         ", %p: " + ints + ", %s: " + ints + ", %t: " + table +
         ", %c: " + cache + ") -> " + q + " attributes {kf.max_tokens = " +
         std::to_string(variant.rows < 0 ? variant.mostRows : variant.rows) +
         " : i64" + range +
         "} {\n"
         "kf.kv_append %c, %k, %v, %p, %s, %t {layer = 1 : i64} : " +
         cache + ", " + kv + ", " + ints + ", " + table +
         "\n%0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = " +
         std::to_string(kScale) + " : f32" + window + "} : " + q + ", " +
         cache + ", " + ints + ", " + table + "\nreturn %0 : " + q + "\n}\n";
}

Executable compileStep(const Device &device, const Variant &variant) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(programText(variant), &context);
  if (!module) {
    ADD_FAILURE() << programText(variant);
    return {};
  }
  mlir::kf::CompileOptions options;
  options.target = test::targetFor(device, variant.device);
  auto executable = mlir::kf::compile(*module, options);
  if (!executable) {
    ADD_FAILURE() << llvm::toString(executable.takeError());
    return {};
  }
  return std::move(*executable);
}

/// One row of a step, and what it has to give.
struct Row {
  int64_t sequence, position;
  std::vector<float> q;        // [heads, dim]
  std::vector<float> k, v;     // [kv heads, dim]
  std::vector<float> expected; // [heads, dim]
};

/// What a sequence has appended, as the cache keeps it.
struct History {
  std::vector<std::vector<float>> keys, values; // [position][kv heads, dim]
};

class PagedCacheTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override { KF_REQUIRE_DEVICE(GetParam()); }

  /// Appends elements of all magnitudes to a cache of blocks.
  void checkRounding();

  /// A cache of poisoned pages, which nobody has.
  void start(Variant variant) {
    variant.device = GetParam();
    this->variant = variant;
    runner.reset();
    cache.reset();
    weights.reset();
    device = test::openTestDevice(variant.device);
    ASSERT_NE(device, nullptr);
    weights = std::make_unique<WeightStore>(*device, nullptr);
    cache =
        std::make_unique<KVCache>(*device, kPoolPages, kPoolPages * kCachePage);
    runner = load(variant);
    ASSERT_TRUE(runner);
    spec = runner->program().caches[0];
    poison();
    table.assign(kSequences * kTablePages, 1 << 30);
    free = {7, 2, 9, 0, 5, 10, 3, 8, 1, 6, 4};
    histories.assign(kSequences, {});
  }

  std::unique_ptr<ProgramRunner> load(const Variant &variant) {
    auto loaded = ProgramRunner::create(compileStep(*device, variant), *device,
                                        *weights, *cache);
    EXPECT_TRUE(loaded.ok()) << loaded.message();
    return loaded.ok() ? loaded.take() : nullptr;
  }

  void poison() {
    Buffer *buffer = cache->get(0, spec).take();
    if (isBlock(spec.type)) { // a NaN is the scale of codes that are not 0
      const std::vector<std::byte> bytes(buffer->size(), std::byte(0x7e));
      ASSERT_TRUE(
          test::writeAndWait(*device, *buffer, 0, bytes.data(), bytes.size())
              .ok());
      return;
    }
    std::vector<float> values(buffer->size() / sizeOf(spec.type));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = i % 3 == 0 ? kInfinity : std::nanf("");
    std::vector<std::byte> bytes(buffer->size());
    ASSERT_TRUE(convertFromFloat(spec.type, values.data(),
                                 static_cast<int64_t>(values.size()),
                                 bytes.data())
                    .ok());
    ASSERT_TRUE(
        test::writeAndWait(*device, *buffer, 0, bytes.data(), bytes.size())
            .ok());
  }

  std::vector<std::byte> content() {
    Buffer *buffer = cache->get(0, spec).take();
    std::vector<std::byte> bytes(buffer->size());
    EXPECT_TRUE(
        test::readAndWait(*device, *buffer, 0, bytes.data(), bytes.size())
            .ok());
    return bytes;
  }

  int32_t &entry(int64_t sequence, int64_t number) {
    return table[sequence * kTablePages + number];
  }

  std::vector<float> randomFloats(int64_t count) {
    std::vector<float> values(count);
    for (float &value : values)
      value = static_cast<float>(random() % 4096) / 2048.0f - 1.0f;
    return values;
  }

  std::vector<float> rounded(const std::vector<float> &values) const {
    const int64_t count = static_cast<int64_t>(values.size());
    std::vector<float> result(values.size());
    if (isBlock(spec.type)) {
      const int64_t blocks = count / elementsPerBlock(spec.type);
      std::vector<std::byte> bytes(blocks * bytesPerBlock(spec.type));
      quantizeBlocks(spec.type, values.data(), blocks, bytes.data());
      dequantizeBlocks(spec.type, bytes.data(), blocks, result.data());
      return result;
    }
    std::vector<std::byte> bytes(values.size() * sizeOf(spec.type));
    EXPECT_TRUE(
        convertFromFloat(spec.type, values.data(), count, bytes.data()).ok());
    EXPECT_TRUE(
        convertToFloat(spec.type, bytes.data(), count, result.data()).ok());
    return result;
  }

  /// The next row of a sequence, whose page is taken from the free ones if it
  /// is a new one.
  Row nextRow(int64_t sequence) {
    History &history = histories[sequence];
    Row row;
    row.sequence = sequence;
    row.position = static_cast<int64_t>(history.keys.size());
    if (row.position % variant.page == 0) {
      EXPECT_FALSE(free.empty());
      entry(sequence, row.position / variant.page) = free.back();
      free.pop_back();
    }
    row.q = randomFloats(kHeads * variant.dim);
    row.k = randomFloats(kKVHeads * variant.dim);
    row.v = randomFloats(kKVHeads * variant.dim);
    history.keys.push_back(rounded(row.k));
    history.values.push_back(rounded(row.v));
    row.expected = attend(row);
    return row;
  }

  /// Softmax over the row's history, in doubles.
  std::vector<float> attend(const Row &row) const {
    const History &history = histories[row.sequence];
    int64_t first = 0;
    if (variant.window)
      first = std::max<int64_t>(row.position - *variant.window + 1, 0);
    std::vector<float> result;
    for (int64_t h = 0; h < kHeads; ++h) {
      const int64_t at = h / (kHeads / kKVHeads) * variant.dim;
      double sum = 0;
      std::vector<double> weighted(variant.dim);
      for (int64_t p = first; p <= row.position; ++p) {
        double score = 0;
        for (int64_t d = 0; d < variant.dim; ++d)
          score += double(row.q[h * variant.dim + d]) * history.keys[p][at + d];
        const double weight = std::exp(score * double(kScale));
        sum += weight;
        for (int64_t d = 0; d < variant.dim; ++d)
          weighted[d] += weight * history.values[p][at + d];
      }
      for (double element : weighted)
        result.push_back(static_cast<float>(element / sum));
    }
    return result;
  }

  /// The table has `sequences` rows.
  std::vector<HostTensor> inputsOf(const std::vector<Row> &rows,
                                   int64_t sequences = kSequences) const {
    const int64_t count = static_cast<int64_t>(rows.size());
    std::vector<HostTensor> inputs;
    for (auto [member, heads] :
         {std::pair(&Row::q, kHeads), std::pair(&Row::k, kKVHeads),
          std::pair(&Row::v, kKVHeads)}) {
      HostTensor tensor =
          HostTensor::zeros(DataType::F32, {count, heads, variant.dim}).take();
      for (int64_t i = 0; i < count; ++i)
        std::ranges::copy(rows[i].*member,
                          tensor.data<float>() + i * heads * variant.dim);
      inputs.push_back(std::move(tensor));
    }
    for (auto member : {&Row::position, &Row::sequence}) {
      HostTensor tensor = HostTensor::zeros(DataType::I32, {count}).take();
      for (int64_t i = 0; i < count; ++i)
        tensor.data<int32_t>()[i] = static_cast<int32_t>(rows[i].*member);
      inputs.push_back(std::move(tensor));
    }
    HostTensor pages =
        HostTensor::zeros(DataType::I32, {sequences, kTablePages}).take();
    std::copy_n(table.begin(), sequences * kTablePages, pages.data<int32_t>());
    inputs.push_back(std::move(pages));
    return inputs;
  }

  /// A block of the cache as quantizeBlocks writes it: block `group` of a row,
  /// K for `kind` 0 and V for 1, in layer 1.
  std::vector<uint8_t> blockAt(const std::vector<std::byte> &bytes, int kind,
                               int64_t page, int64_t head, int64_t place,
                               int64_t group) const {
    const int64_t groups = spec.headDim / 32;
    const int64_t keyBlock = kind == 0 ? spec.keyBlock : 1;
    const std::byte *codes =
        bytes.data() +
        (((kPoolPages + page) * 2 + kind) * spec.kvHeads + head) * spec.page *
            groups * 34;
    const std::byte *scales = codes + spec.page * spec.headDim;
    const int64_t block = place / keyBlock, lane = place % keyBlock;
    std::vector<uint8_t> result(34);
    std::memcpy(result.data(),
                scales + ((block * groups + group) * keyBlock + lane) * 2, 2);
    for (int64_t i = 0; i < 32; ++i)
      result[2 + i] = static_cast<uint8_t>(
          codes[(block * spec.headDim + group * 32 + i) * keyBlock + lane]);
    return result;
  }

  /// Matrix units multiply what is rounded to 16 bits. A CPU's round to bf16
  /// whatever the cache has, but for f32, which they are not to multiply: 2e-3
  /// is eight times what has been seen.
  double tolerance(const Executable &program) const {
    if (variant.type != "f32" && test::roundsToBF16(program, *device))
      return 2e-3;
    if (!test::multipliesIn16Bits(variant.device) || variant.type == "f32")
      return 1e-5;
    return variant.type == "bf16" ? 1e-2 : 2e-3;
  }

  void run(ProgramRunner &program, const std::vector<Row> &rows) {
    auto results = program.run(inputsOf(rows));
    ASSERT_TRUE(results.ok()) << results.message();
    const float *found = (*results)[0].data<float>();
    const double most = tolerance(program.program());
    for (size_t i = 0; i < rows.size(); ++i)
      for (int64_t j = 0; j < kHeads * variant.dim; ++j) {
        const float value = found[i * kHeads * variant.dim + j];
        const float expected = rows[i].expected[j];
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(value)) << "row " << i << " is " << value;
        else
          ASSERT_NEAR(value, expected, most)
              << "row " << i << ", position " << rows[i].position
              << " of sequence " << rows[i].sequence << ", element " << j;
      }
  }

  /// A step with the next `count` rows of `sequence` for each pair.
  void step(const std::vector<std::pair<int64_t, int64_t>> &runs) {
    std::vector<Row> rows;
    for (auto [sequence, count] : runs)
      for (int64_t i = 0; i < count; ++i)
        rows.push_back(nextRow(sequence));
    run(*runner, rows);
  }

  Variant variant;
  std::mt19937 random{5};
  std::unique_ptr<Device> device;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache;
  std::unique_ptr<ProgramRunner> runner;
  CacheSpec spec;
  std::vector<int32_t> table; // [S, P]
  std::vector<int32_t> free;  // pages that nobody has
  std::vector<History> histories;
};

/// Prompts in chunks beside decoding, pages of all in no order, and a sequence
/// whose rows are not all neighbours.
const std::vector<std::vector<std::pair<int64_t, int64_t>>> mixedSteps = {
    {{0, 30}, {1, 10}},
    {{1, 40}},
    {{1, 25}, {2, 3}, {0, 12}},
    {{0, 40}, {3, 1}},
    {{3, 1}, {0, 1}, {1, 1}, {2, 1}},
    {{0, 1}, {2, 1}, {0, 1}, {0, 2}, {2, 40}},
    {{2, 40}, {3, 1}, {0, 7}},
    {{3, 1}},
    {{0, 1}, {1, 1}, {2, 1}, {3, 1}}};

TEST_P(PagedCacheTest, StepsOfSeveralSequences) {
  start({});
  for (const auto &runs : mixedSteps)
    ASSERT_NO_FATAL_FAILURE(step(runs));
}

TEST_P(PagedCacheTest, WindowsOfSeveralSequences) {
  Variant windowed;
  windowed.window = 20;
  start(windowed);
  for (const auto &runs : mixedSteps) {
    ASSERT_NO_FATAL_FAILURE(step(runs));
    // What no later row sees is given back, and is poison from then on.
    for (int64_t sequence = 0; sequence < kSequences; ++sequence) {
      const int64_t next =
          static_cast<int64_t>(histories[sequence].keys.size());
      for (int64_t i = 0; (i + 1) * variant.page <= next - *variant.window; ++i)
        entry(sequence, i) = -7;
    }
  }
}

TEST_P(PagedCacheTest, SmallPages) {
  Variant small;
  small.page = 32;
  start(small);
  ASSERT_NO_FATAL_FAILURE(step({{0, 33}, {1, 15}}));
  ASSERT_NO_FATAL_FAILURE(step({{1, 20}, {2, 1}, {0, 20}}));
  ASSERT_NO_FATAL_FAILURE(step({{0, 40}, {3, 1}}));
}

TEST_P(PagedCacheTest, CachesOf16Bits) {
  for (const char *type : {"f16", "bf16"}) {
    Variant half;
    half.type = type;
    start(half);
    ASSERT_NO_FATAL_FAILURE(step({{0, 33}, {1, 15}}));
    ASSERT_NO_FATAL_FAILURE(step({{1, 2}, {2, 1}, {0, 40}}));
    ASSERT_NO_FATAL_FAILURE(step({{1, 1}, {2, 1}, {0, 1}}));
  }
}

/// Queries that no f16 holds, and scores that would all be -infinity of them.
TEST_P(PagedCacheTest, LargeQueries) {
  for (const char *type : {"f16", "!kf.quant<q8_0>"}) {
    Variant large;
    large.type = type;
    large.dim = 32;
    start(large);
    for (int64_t count : {40, 3}) {
      std::vector<Row> rows;
      for (int64_t i = 0; i < count; ++i) {
        Row row = nextRow(0);
        std::ranges::fill(row.q, 0.0f);
        for (int64_t j = 0; j < kHeads; ++j)
          row.q[j * large.dim] = 70000.0f;
        for (float &element : row.k)
          element *= 0x1p-12f;
        for (int64_t j = 0; j < kKVHeads; ++j)
          row.k[j * large.dim] = -0x1p-13f - std::abs(row.k[j * large.dim]);
        histories[0].keys.back() = rounded(row.k);
        row.expected = attend(row);
        rows.push_back(std::move(row));
      }
      ASSERT_NO_FATAL_FAILURE(run(*runner, rows));
    }
  }
}

TEST_P(PagedCacheTest, CachesOfBlocks) {
  for (int64_t dim : {32, 96}) {
    Variant blocks;
    blocks.type = "!kf.quant<q8_0>";
    blocks.dim = dim;
    start(blocks);
    ASSERT_NO_FATAL_FAILURE(step({{0, 33}, {1, 15}}));
    ASSERT_NO_FATAL_FAILURE(step({{1, 2}, {2, 1}, {0, 40}}));
    ASSERT_NO_FATAL_FAILURE(step({{1, 1}, {2, 1}, {0, 1}}));
    // A NaN is not hidden, and stays where it is.
    std::vector<Row> rows = {nextRow(0), nextRow(3)};
    for (int64_t i = 0; i < kKVHeads; ++i)
      rows[1].v[i * dim + 7] = std::nanf("");
    for (int64_t i = 0; i < kHeads * dim; ++i)
      if (i % dim < 32)
        rows[1].expected[i] = std::nanf("");
    ASSERT_NO_FATAL_FAILURE(run(*runner, rows));
    ASSERT_NO_FATAL_FAILURE(step({{0, 1}, {1, 1}}));
  }
}

/// Every device stores the same bits: those of quantizeBlocks, and a NaN for
/// what no finite scale holds.
void PagedCacheTest::checkRounding() {
  Variant blocks;
  blocks.type = "!kf.quant<q8_0>";
  blocks.dim = 64;
  start(blocks);
  std::vector<Row> rows;
  for (int64_t i = 0; i < 48; ++i) {
    rows.push_back(nextRow(0));
    std::vector<float> &k = rows.back().k, &v = rows.back().v;
    const float unit = std::ldexp(1.0f, static_cast<int>(i) * 10 / 3 - 140);
    for (size_t j = 0; j < k.size(); ++j) {
      k[j] *= unit;
      // Codes are halves where the largest is 127: these are rounded away from
      // zero.
      v[j] = j % 32 == 0 ? 127.0f : std::round(v[j] * 100.0f) + 0.5f;
    }
    if (i == 5)
      std::fill_n(k.begin(), 32, i % 2 ? -0.0f : 0.0f);
    if (i >= 6 && i < 10)
      k[i] = std::array{-std::numeric_limits<float>::infinity(), std::nanf(""),
                        -kTooLargeForBlock,
                        std::nextafter(kTooLargeForBlock, 0.0f)}[i - 6];
  }
  // What is attended to does not matter here.
  ASSERT_TRUE(runner->run(inputsOf(rows)).ok());
  const std::vector<std::byte> found = content();
  for (size_t place = 0; place < rows.size(); ++place)
    for (int kind : {0, 1})
      for (int64_t head = 0; head < kKVHeads; ++head)
        for (int64_t group = 0; group < 2; ++group) {
          const std::vector<float> &row =
              kind == 0 ? rows[place].k : rows[place].v;
          std::vector<uint8_t> expected(34);
          quantizeBlocks(DataType::Q8_0, row.data() + head * 64 + group * 32, 1,
                         expected.data());
          const std::vector<uint8_t> block =
              blockAt(found, kind, entry(0, 0), head,
                      static_cast<int64_t>(place), group);
          uint16_t scale;
          std::memcpy(&scale, block.data(), sizeof(scale));
          if (kind == 0 && place >= 6 && place < 9 && head == 0 && group == 0)
            ASSERT_TRUE(std::isnan(halfToFloat(scale))) << "key " << place;
          else
            ASSERT_EQ(block, expected)
                << (kind == 0 ? "key " : "value ") << place << ", head " << head
                << ", block " << group;
        }
}

/// Barriers follow from this.
TEST_P(PagedCacheTest, SaysWhatDispatchesReadAndWrite) {
  start({});
  int appends = 0, reads = 0;
  for (const DispatchSpec &dispatch : runner->program().dispatches) {
    ASSERT_EQ(dispatch.accesses.size(), dispatch.bindings.size());
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
      const BindingAccess &access = dispatch.accesses[i];
      const uint32_t kind = dispatch.bindings[i].kind;
      if (kind == KF_BINDING_CACHE)
        ++(access.writes ? appends : reads);
      if (kind == KF_BINDING_INPUT || kind == KF_BINDING_WEIGHT)
        EXPECT_FALSE(access.writes);
      if (kind == KF_BINDING_OUTPUT)
        EXPECT_TRUE(access.writes);
      EXPECT_EQ(access.bytes > 0, kind == KF_BINDING_ARENA);
    }
  }
  EXPECT_EQ(appends, 1);
  EXPECT_GE(reads, 1);
}

TEST_P(PagedCacheTest, RoundsToBlocksAsWeightsAre) { checkRounding(); }

/// On devices without subnormal numbers.
class FlushedCacheTest : public PagedCacheTest {};

TEST_P(FlushedCacheTest, RoundsToBlocksAsWeightsAre) { checkRounding(); }

INSTANTIATE_TEST_SUITE_P(Devices, FlushedCacheTest,
                         testing::Values("vulkan_flushed"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

TEST_P(PagedCacheTest, DecodesFourAtOnce) {
  start({});
  ASSERT_NO_FATAL_FAILURE(step({{0, 40}, {1, 3}}));
  ASSERT_NO_FATAL_FAILURE(step({{0, 40}, {2, 1}}));
  Variant four = variant;
  four.rows = four.sequences = 4;
  std::unique_ptr<ProgramRunner> decoder = load(four);
  ASSERT_TRUE(decoder);
  for (int64_t i = 0; i < 3; ++i) {
    std::vector<Row> rows;
    for (int64_t sequence : {2, 0, 3, 1})
      rows.push_back(nextRow(sequence));
    ASSERT_NO_FATAL_FAILURE(run(*decoder, rows));
  }
}

/// Kernels of few rows may append what they attend to: of one sequence, of
/// several, and of none.
TEST_P(PagedCacheTest, StepsOfFewRows) {
  for (const char *type : {"f32", "f16", "bf16"}) {
    Variant few;
    few.type = type;
    few.mostRows = 16;
    few.page = 32;
    start(few);
    ASSERT_NO_FATAL_FAILURE(step({{0, 16}}));
    ASSERT_NO_FATAL_FAILURE(step({{0, 15}, {1, 1}}));
    ASSERT_NO_FATAL_FAILURE(step({{1, 3}, {0, 4}, {2, 8}}));
    ASSERT_NO_FATAL_FAILURE(step({{2, 1}, {3, 1}, {0, 1}, {1, 1}}));
    Row nowhere = nextRow(0);
    histories[0].keys.pop_back();
    histories[0].values.pop_back();
    nowhere.position = -1;
    nowhere.expected.assign(kHeads * variant.dim, 0);
    ASSERT_NO_FATAL_FAILURE(run(*runner, {nowhere, nextRow(1), nowhere}));
    // Those of a sequence need not be neighbours.
    std::vector<Row> rows = {nextRow(3), nextRow(0), nextRow(3), nextRow(0)};
    ASSERT_NO_FATAL_FAILURE(run(*runner, rows));
  }
}

/// Kernels of many rows, which may read the cache otherwise than those of few.
TEST_P(PagedCacheTest, StepsOfManyRows) {
  for (const char *type : {"f16", "bf16", "!kf.quant<q8_0>"}) {
    Variant many;
    many.type = type;
    many.mostRows = 300;
    many.dim = 64;
    if (many.type == "f16")
      many.window = 21;
    start(many);
    ASSERT_NO_FATAL_FAILURE(step({{0, 48}, {2, 17}, {1, 5}}));
    ASSERT_NO_FATAL_FAILURE(step({{2, 70}, {0, 33}}));
    ASSERT_NO_FATAL_FAILURE(step({{3, 1}, {1, 1}, {0, 1}}));
    // A NaN stays in its sequence, and is not hidden there.
    std::vector<Row> rows = {nextRow(0), nextRow(1), nextRow(2)};
    rows[1].v.assign(kKVHeads * variant.dim, std::nanf(""));
    rows[1].expected.assign(kHeads * variant.dim, std::nanf(""));
    ASSERT_NO_FATAL_FAILURE(run(*runner, rows));
  }
}

/// Where a GPU has clusters, workgroups of one divide the keys.
TEST_P(PagedCacheTest, DecodesOneAtATime) {
  for (const char *type : {"f16", "bf16", "!kf.quant<q8_0>"}) {
    Variant longer;
    longer.type = type;
    longer.dim = 64;
    start(longer);
    ASSERT_NO_FATAL_FAILURE(step({{0, 48}}));
    for (int i = 0; i < 4; ++i)
      ASSERT_NO_FATAL_FAILURE(step({{0, 40}, {1, 5}}));
    Variant one = variant;
    one.rows = 1;
    std::unique_ptr<ProgramRunner> decoder = load(one);
    ASSERT_TRUE(decoder);
    for (int64_t sequence : {0, 1, 2, 0, 1})
      ASSERT_NO_FATAL_FAILURE(run(*decoder, {nextRow(sequence)}));
    // A NaN is not hidden.
    Row row = nextRow(0);
    row.v.assign(kKVHeads * variant.dim, std::nanf(""));
    row.expected.assign(kHeads * variant.dim, std::nanf(""));
    ASSERT_NO_FATAL_FAILURE(run(*decoder, {row}));
    ASSERT_NO_FATAL_FAILURE(run(*decoder, {nextRow(1)}));
  }
}

TEST_P(PagedCacheTest, SharesPagesOfAPrefix) {
  start({});
  ASSERT_NO_FATAL_FAILURE(step({{0, 48}}));
  ASSERT_NO_FATAL_FAILURE(step({{0, 16}}));
  for (int64_t sequence : {1, 3}) {
    entry(sequence, 0) = entry(0, 0);
    histories[sequence] = histories[0];
  }
  ASSERT_NO_FATAL_FAILURE(step({{0, 5}, {1, 7}, {3, 1}}));
  ASSERT_NO_FATAL_FAILURE(step({{3, 1}, {1, 1}, {0, 1}, {2, 1}}));
}

TEST_P(PagedCacheTest, NaNsStayInTheirSequence) {
  start({});
  ASSERT_NO_FATAL_FAILURE(step({{0, 10}, {2, 5}}));
  std::vector<Row> rows = {nextRow(0), nextRow(1), nextRow(2)};
  rows[1].k.assign(kKVHeads * variant.dim, kInfinity);
  rows[1].v.assign(kKVHeads * variant.dim, std::nanf(""));
  rows[1].expected.assign(kHeads * variant.dim, std::nanf(""));
  ASSERT_NO_FATAL_FAILURE(run(*runner, rows));
  histories[1].values[0] = rows[1].v;
  ASSERT_NO_FATAL_FAILURE(step({{0, 3}, {1, 2}, {2, 4}}));
}

TEST_P(PagedCacheTest, RowsWithoutAPosition) {
  start({});
  ASSERT_NO_FATAL_FAILURE(step({{0, 3}}));
  Row nowhere = nextRow(0);
  histories[0].keys.pop_back();
  histories[0].values.pop_back();
  nowhere.position = -1;
  nowhere.expected.assign(kHeads * variant.dim, 0);
  Row stranger = nowhere;
  stranger.sequence = 77;
  const std::vector<std::byte> before = content();
  ASSERT_NO_FATAL_FAILURE(run(*runner, {nowhere, stranger, nowhere}));
  EXPECT_EQ(content(), before);
  ASSERT_NO_FATAL_FAILURE(run(*runner, {nowhere, nextRow(0), stranger}));
}

/// Compiled code stays inside the cache whatever the tables say, and stores
/// nothing in a page that was not named.
TEST_P(PagedCacheTest, WrongTables) {
  start({});
  Row row = nextRow(0);
  const std::vector<std::byte> before = content();
  const std::pair<int64_t, int32_t> wrong[] = {
      {0, kPoolPages}, {0, INT32_MAX}, {0, INT32_MIN}, {0, -1},
      {kSequences, 0}, {INT32_MAX, 0}, {-1, 0},        {INT32_MIN, 0}};
  for (auto [sequence, page] : wrong) {
    row.sequence = sequence;
    entry(0, 0) = page;
    auto results = runner->run(inputsOf({row}));
    EXPECT_EQ(results.ok(), variant.device != "reference") << results.message();
    EXPECT_EQ(content(), before) << sequence << ", " << page;
  }
}

/// As many rows of the table count as the step has, not as there is room for.
TEST_P(PagedCacheTest, SequencesThatTheStepLacks) {
  start({});
  ASSERT_NO_FATAL_FAILURE(step({{0, 3}, {1, 5}, {2, 4}, {3, 2}}));
  std::vector<Row> rows = {nextRow(0), nextRow(1)};
  auto results = runner->run(inputsOf(rows, 2));
  ASSERT_TRUE(results.ok()) << results.message();
  EXPECT_NEAR((*results)[0].data<float>()[kHeads * variant.dim],
              rows[1].expected[0], 1e-5);
  const std::vector<std::byte> before = content();
  Row row = nextRow(3);
  for (int64_t sequences : {1, 2, 3}) {
    auto refused = runner->run(inputsOf({row}, sequences));
    EXPECT_EQ(refused.ok(), variant.device != "reference") << refused.message();
    EXPECT_EQ(content(), before) << sequences;
  }
  EXPECT_FALSE(runner->run(inputsOf({row}, 0)).ok());
  ASSERT_NO_FATAL_FAILURE(run(*runner, {row}));
}

INSTANTIATE_TEST_SUITE_P(Devices, PagedCacheTest,
                         testing::Values("cpu", "cpu2", "reference", "vulkan",
                                         "cuda", "x86-64-v2", "x86-64-v3"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

} // namespace
