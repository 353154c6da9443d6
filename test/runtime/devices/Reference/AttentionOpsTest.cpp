//===- AttentionOpsTest.cpp - Rotary embedding, cache, attention ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "ReferenceTestUtils.h"

namespace kf::reference {
namespace {

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

void expectFrequencies(const RopeOptions &options,
                       const std::vector<double> &expected) {
  std::vector<float> frequencies = ropeFrequencies(options);
  ASSERT_EQ(frequencies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(frequencies[i] / expected[i], 1, 1e-6) << "frequency " << i;
}

TEST(RopeFrequencies, FallGeometrically) {
  expectFrequencies({10000, 8, RopeStyle::Half, {}}, {1, 0.1, 0.01, 0.001});
}

TEST(RopeFrequencies, ScaleLinearly) {
  RopeScaling scaling;
  scaling.factor = 4;
  expectFrequencies({10000, 8, RopeStyle::Half, scaling},
                    {0.25, 0.025, 0.0025, 0.00025});
}

TEST(RopeFrequencies, ScaleAsLlama3) {
  // Wavelengths 6.28, 11.2 | 19.9, 35.3, 62.8 | 112, 199, 353 for borders at 16
  // and 64; computed in double precision from the rule.
  RopeScaling scaling{RopeScaling::Kind::Llama3, 8, 1, 4, 64};
  expectFrequencies({100, 16, RopeStyle::Half, scaling},
                    {1, 0.5623413251903491, 0.24438459943539834,
                     0.0643098724277271, 0.013042256043820465,
                     0.007029266564879364, 0.003952847075210474,
                     0.0022228492625486537});
}

TEST(Rope, RotatesHalves) {
  // Frequencies 1 and 0.01 at position 2: angles 2 and 0.02.
  Tensor x = makeTensor({1, 1, 4}, {1, 2, 3, 4}), at = makeInts({2});
  float c0 = std::cos(2.0f), s0 = std::sin(2.0f);
  float c1 = std::cos(0.02f), s1 = std::sin(0.02f);
  Result<Tensor> result =
      rope(x.view(), at.view(), nullptr, {10000, 4, RopeStyle::Half, {}});
  expectShape(result, {1, 1, 4});
  expectFloats(result,
               {c0 - 3 * s0, 2 * c1 - 4 * s1, 3 * c0 + s0, 4 * c1 + 2 * s1},
               1e-6f);
}

TEST(Rope, RotatesNeighbours) {
  Tensor x = makeTensor({1, 1, 4}, {1, 2, 3, 4}), at = makeInts({2});
  float c0 = std::cos(2.0f), s0 = std::sin(2.0f);
  float c1 = std::cos(0.02f), s1 = std::sin(0.02f);
  expectFloats(rope(x.view(), at.view(), nullptr,
                    {10000, 4, RopeStyle::Interleaved, {}}),
               {c0 - 2 * s0, 2 * c0 + s0, 3 * c1 - 4 * s1, 4 * c1 + 3 * s1},
               1e-6f);
}

TEST(Rope, LeavesTheRestOfEachHeadAlone) {
  // One pair rotates by its position; two rows of two heads.
  Tensor x = makeTensor({2, 2, 3}, {1, 0, 7, 0, 1, 8, 1, 0, 9, 0, 1, 10});
  Tensor at = makeInts({0, 1});
  float c = std::cos(1.0f), s = std::sin(1.0f);
  for (RopeStyle style : {RopeStyle::Half, RopeStyle::Interleaved})
    expectFloats(rope(x.view(), at.view(), nullptr, {10000, 2, style, {}}),
                 {1, 0, 7, 0, 1, 8, c, s, 9, -s, c, 10}, 1e-6f);
}

TEST(Rope, RejectsWrongOperands) {
  Tensor x = makeTensor({1, 1, 4}, {1, 2, 3, 4}), at = makeInts({2});
  Tensor two = makeInts({1, 2}), flat = makeTensor({1, 4}, {1, 2, 3, 4});
  RopeOptions options{10000, 4, RopeStyle::Half, {}};
  expectError(rope(flat.view(), at.view(), nullptr, options), "kf.rope C1");
  expectError(rope(x.view(), two.view(), nullptr, options), "kf.rope C2");
  expectError(rope(x.view(), makeTensor({1}, {1}).view(), nullptr, options),
              "kf.rope C2");
  for (int64_t dim : {-2, 0, 3, 6}) {
    options.rotaryDim = dim;
    expectError(rope(x.view(), at.view(), nullptr, options), "kf.rope C3");
  }
  expectError(rope(x.view(), at.view(), nullptr, {0, 4, RopeStyle::Half, {}}),
              "kf.rope C4");
}

//===----------------------------------------------------------------------===//
// kv_append
//===----------------------------------------------------------------------===//

/// A cache that owns its memory, of `pages` pages, with a page table.
struct Cache {
  Cache(CacheSpec spec, int64_t pages, std::vector<int32_t> table,
        int64_t sequences = 1)
      : memory(*spec.bytes(pages)), view{spec, pages, memory.data()},
        table(makeInts(table)) {
    int64_t length = static_cast<int64_t>(table.size());
    this->table.shape = {sequences, length / sequences};
  }
  /// One page for one sequence.
  explicit Cache(CacheSpec spec) : Cache(spec, 1, {0}) {}

  std::vector<std::byte> memory;
  CacheView view;
  Tensor table;

  Status append(const Tensor &k, const Tensor &v, const Tensor &at,
                const Tensor &sequences, int64_t layer) const {
    return kvAppend(view, k.view(), v.view(),
                    {at.view(), sequences.view(), table.view()}, layer);
  }
  /// Rows of sequence 0.
  Status append(const Tensor &k, const Tensor &v, const Tensor &at,
                int64_t layer) const {
    return append(k, v, at, zeros(at), layer);
  }
  Result<Tensor> attend(const Tensor &q, const Tensor &at,
                        const Tensor &sequences,
                        const AttentionOptions &options) const {
    return attention(q.view(), view,
                     {at.view(), sequences.view(), table.view()}, options);
  }
  Result<Tensor> attend(const Tensor &q, const Tensor &at,
                        const AttentionOptions &options) const {
    return attend(q, at, zeros(at), options);
  }
  static Tensor zeros(const Tensor &at) {
    return makeInts(std::vector<int32_t>(at.shape.front()));
  }

  const float *floats() const {
    return reinterpret_cast<const float *>(memory.data());
  }
};

TEST(KVAppend, LaysKeysAndValuesOut) {
  // [2 layers][K, V][2 heads][4 positions][3], keys in blocks of 2 positions:
  // [2 blocks][3][2].
  Cache cache({DataType::F32, 2, 2, 3, 2, 4});
  Tensor k = makeTensor({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor v = makeTensor({1, 2, 3}, {10, 20, 30, 40, 50, 60});
  Tensor at = makeInts({3});
  Status status = cache.append(k, v, at, 1);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> expected(2 * 2 * 2 * 4 * 3);
  for (int head = 0; head < 2; ++head)
    for (int d = 0; d < 3; ++d) {
      float key = static_cast<float>(1 + head * 3 + d);
      // Position 3 is lane 1 of block 1.
      expected[((2 + 0) * 2 + head) * 12 + 6 + d * 2 + 1] = key;
      expected[((2 + 1) * 2 + head) * 12 + 3 * 3 + d] = 10 * key;
    }
  EXPECT_EQ(std::vector<float>(cache.floats(), cache.floats() + 96), expected);
}

TEST(KVAppend, DropsRowsPastThePages) {
  Cache cache({DataType::F32, 1, 1, 1, 1, 2});
  Tensor rows = makeTensor({4, 1, 1}, {1, 2, 3, 4});
  Tensor at = makeInts({-1, 2, 1, INT32_MAX});
  Status status = cache.append(rows, rows, at, 0);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(std::vector<float>(cache.floats(), cache.floats() + 4),
            (std::vector<float>{0, 3, 0, 3}));
}

TEST(KVAppend, RoundsToTheCachesType) {
  Cache cache({DataType::BF16, 1, 1, 2, 4, 4});
  Tensor rows = makeTensor({1, 1, 2}, {257, 1});
  Tensor at = makeInts({2});
  Status status = cache.append(rows, rows, at, 0);
  ASSERT_TRUE(status.ok()) << status.message();
  float row[2];
  cache.view.readKey(0, 0, 2, row);
  EXPECT_EQ(row[0], 256);
  EXPECT_EQ(row[1], 1);
  cache.view.readValue(0, 0, 2, row);
  EXPECT_EQ(row[0], 256);
  EXPECT_EQ(row[1], 1);
}

TEST(KVAppend, RejectsWrongOperands) {
  Cache cache({DataType::F32, 1, 1, 2, 1, 2});
  Tensor k = makeTensor({1, 1, 2}, {1, 2}), at = makeInts({0});
  Tensor wide = makeTensor({1, 1, 3}, {1, 2, 3});
  Tensor half = makeTensor({1, 1, 2}, {1, 2}, DataType::F16);
  auto append = [&](const Tensor &k, const Tensor &v, const Tensor &at,
                    int64_t layer) { return cache.append(k, v, at, layer); };
  expectError(append(at, at, at, 0), "kf.kv_append C1");
  expectError(append(k, wide, at, 0), "kf.kv_append C1");
  expectError(append(wide, wide, at, 0), "kf.kv_append C1");
  expectError(append(k, half, at, 0), "kf.kv_append C1");
  expectError(append(k, k, makeInts({0, 1}), 0), "kf.kv_append C2");
  expectError(append(k, k, at, 1), "kf.kv_append C3");
  expectError(append(k, k, at, -1), "kf.kv_append C3");
  expectError(cache.append(k, k, at, makeInts({0, 0}), 0), "kf.kv_append C4");
  cache.table.shape = {1};
  expectError(append(k, k, at, 0), "kf.kv_append C5");
}

TEST(KVAppend, FindsThePagesOfSequences) {
  // Two sequences of two pages of two positions, in five pages.
  Cache cache({DataType::F32, 1, 1, 1, 1, 2}, 5, {4, 1, 2, -1}, 2);
  Tensor rows = makeTensor({4, 1, 1}, {1, 2, 3, 4});
  Tensor at = makeInts({1, 2, 0, -1});
  // What sequence a row without a position has does not matter.
  Tensor of = makeInts({0, 0, 1, 7});
  Status status = cache.append(rows, rows, at, of, 0);
  ASSERT_TRUE(status.ok()) << status.message();
  // Pages of two keys and two values.
  EXPECT_EQ(std::vector<float>(cache.floats(), cache.floats() + 20),
            (std::vector<float>{0, 0, 0, 0, 2, 0, 2, 0, 3, 0,
                                3, 0, 0, 0, 0, 0, 0, 1, 0, 1}));
  expectError(cache.append(rows, rows, at, makeInts({0, 2, 1, 0}), 0),
              "kf.kv_append C5: row 1 belongs to sequence 2");
  expectError(cache.append(rows, rows, at, makeInts({0, 1, 1, 0}), 0),
              "kf.kv_append C5: page 1 of sequence 1 is -1");
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

/// A cache of one layer whose keys have scores log(1), log(2), log(3), ... with
/// the query 1 and whose values are 1, 10, 100, ... in head 0 and the negatives
/// of these in head 1.
Cache countingCache(int64_t capacity, int64_t keyBlock) {
  Cache cache({DataType::F32, 1, 2, 1, keyBlock, capacity});
  float value = 1;
  for (int64_t p = 0; p < capacity; ++p, value *= 10) {
    float key = std::log(static_cast<float>(p + 1)), negative = -value;
    for (int64_t head = 0; head < 2; ++head) {
      cache.view.writeKey(0, head, p, &key);
      cache.view.writeValue(0, head, p, head == 0 ? &value : &negative);
    }
  }
  return cache;
}

TEST(Attention, IsCausal) {
  for (int64_t keyBlock : {1, 2, 4}) {
    Cache cache = countingCache(4, keyBlock);
    Tensor q = makeTensor({3, 2, 1}, std::vector<float>(6, 1.0f));
    Tensor at = makeInts({0, 2, 1});
    Result<Tensor> result = cache.attend(q, at, {});
    expectShape(result, {3, 2, 1});
    // (1 + 2 * 10 + 3 * 100) / 6 and (1 + 2 * 10) / 3.
    expectFloats(result, {1, -1, 53.5f, -53.5f, 7, -7}, 1e-4f);
  }
}

TEST(Attention, GroupsHeads) {
  Cache cache = countingCache(2, 1);
  Tensor q = makeTensor({1, 4, 1}, {1, 0, 0, 1});
  Tensor at = makeInts({1});
  // Heads 0 and 1 read KV head 0; a query of 0 weighs all keys the same.
  expectFloats(cache.attend(q, at, {}), {7, 5.5f, -5.5f, -7}, 1e-5f);
}

TEST(Attention, AppliesScaleAndWindow) {
  Cache cache = countingCache(4, 2);
  Tensor q = makeTensor({2, 2, 1}, {1, 1, 1, 1});
  Tensor at = makeInts({3, 0});
  // With scale 2 the weights are squared: 1, 4, 9, 16.
  expectFloats(cache.attend(q, at, {0, 2, {}}),
               {16941.0f / 30, -16941.0f / 30, 1, -1}, 1e-2f);
  // A window of 1 sees the position itself alone.
  expectFloats(cache.attend(q, at, {0, 1, {1}}), {1000, -1000, 1, -1});
  // A window of 2: (3 * 100 + 4 * 1000) / 7.
  expectFloats(cache.attend(q, at, {0, 1, {2}}),
               {4300.0f / 7, -4300.0f / 7, 1, -1}, 1e-3f);
  for (uint64_t window : {uint64_t(4), uint64_t(5), UINT64_MAX})
    expectFloats(cache.attend(q, at, {0, 2, {window}}),
                 {16941.0f / 30, -16941.0f / 30, 1, -1}, 1e-2f);
}

TEST(Attention, SeesTheKeysOfItsChunk) {
  Cache cache = countingCache(4, 2);
  Tensor q = makeTensor({4, 2, 1}, std::vector<float>(8, 1));
  Tensor at = makeInts({0, 1, 2, 3});
  // Chunks of 3: the first key, (1 + 2 * 10) / 3, that and the third, and the
  // fourth alone.
  expectFloats(cache.attend(q, at, {0, 1, {3, true}}),
               {1, -1, 7, -7, 53.5f, -53.5f, 1000, -1000}, 1e-4f);
  expectFloats(cache.attend(q, at, {0, 1, {1, true}}),
               {1, -1, 10, -10, 100, -100, 1000, -1000});
}

TEST(Attention, StaysInsideTheCache) {
  Cache cache = countingCache(2, 1);
  Tensor q = makeTensor({3, 2, 1}, {1, 1, 1, 1, 1, 1});
  // No position at all, more than there are, and a window past the end.
  Tensor at = makeInts({-1, 100, INT32_MIN});
  expectFloats(cache.attend(q, at, {}), {0, 0, 7, -7, 0, 0}, 1e-5f);
  expectFloats(cache.attend(q, at, {0, 1, {3}}), {0, 0, 0, 0, 0, 0});
  expectFloats(cache.attend(q, at, {0, 1, {3, true}}), {0, 0, 0, 0, 0, 0});
}

TEST(Attention, AgreesWithDoubles) {
  // Two layers, heads of 8, four query heads, keys in blocks of 4, from what
  // kv_append stored.
  // The pages of 4 come in reverse.
  Cache cache({DataType::F32, 2, 2, 8, 4, 4}, 2, {1, 0});
  std::vector<float> keys = randomFloats(5 * 2 * 8, 3),
                     values = randomFloats(5 * 2 * 8, 4),
                     queries = randomFloats(5 * 4 * 8, 5);
  Tensor k = makeTensor({5, 2, 8}, keys), v = makeTensor({5, 2, 8}, values);
  Tensor q = makeTensor({5, 4, 8}, queries), at = makeInts({0, 1, 2, 3, 4});
  Status status = cache.append(k, v, at, 1);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> expected;
  for (int t = 0; t < 5; ++t)
    for (int h = 0; h < 4; ++h) {
      double sum = 0, weighted[8] = {};
      for (int p = 0; p <= t; ++p) {
        double score = 0;
        for (int d = 0; d < 8; ++d)
          score += double(queries[(t * 4 + h) * 8 + d]) *
                   keys[(p * 2 + h / 2) * 8 + d];
        double weight = std::exp(score * 0.3);
        sum += weight;
        for (int d = 0; d < 8; ++d)
          weighted[d] += weight * values[(p * 2 + h / 2) * 8 + d];
      }
      for (double element : weighted)
        expected.push_back(static_cast<float>(element / sum));
    }
  expectFloats(cache.attend(q, at, {1, 0.3f, {}}), expected, 1e-6f);
}

TEST(Attention, ReadsThePagesOfSequences) {
  // Pages of one position: 0 and 1 hold 1 and 10, which both sequences share;
  // 2 holds 100 and 3 a NaN.
  Cache cache({DataType::F32, 1, 1, 1, 1, 1}, 4, {0, 1, 2, 0, 1, 3}, 2);
  const float zero = 0;
  const float values[] = {1, 10, 100, std::nanf("")};
  for (int64_t slot = 0; slot < 4; ++slot) {
    cache.view.writeKey(0, 0, slot, &zero);
    cache.view.writeValue(0, 0, slot, &values[slot]);
  }
  Tensor q = makeTensor({5, 1, 1}, {1, 1, 1, 1, 1});
  Tensor at = makeInts({1, 2, 1, 2, 0}), of = makeInts({0, 1, 1, 0, 0});
  Result<Tensor> result = cache.attend(q, at, of, {});
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_TRUE(std::isnan(result->floats()[1]));
  result->floats()[1] = 0;
  expectFloats(result, {5.5f, 0, 5.5f, 37, 1}, 1e-5f);
  // Pages that a window has left behind may be gone.
  cache.table.ints()[0] = -1;
  expectError(cache.attend(q, at, of, {}),
              "kf.attention C9: page 0 of sequence 0 is -1");
  Tensor last = makeInts({2, 2, 2, 2, 2}), all = makeInts({0, 0, 0, 0, 0});
  expectFloats(cache.attend(q, last, all, {0, 1, {2}}), {55, 55, 55, 55, 55},
               1e-5f);
}

TEST(Attention, RejectsWrongOperands) {
  Cache cache = countingCache(2, 1);
  Tensor q = makeTensor({1, 2, 1}, {1, 1}), at = makeInts({0});
  Tensor wide = makeTensor({1, 2, 2}, {1, 1, 1, 1});
  Tensor odd = makeTensor({1, 3, 1}, {1, 1, 1});
  auto attend = [&](const Tensor &q, const Tensor &at,
                    AttentionOptions options = {}) {
    return cache.attend(q, at, options);
  };
  expectError(attend(at, at), "kf.attention C1");
  expectError(attend(wide, at), "kf.attention C2");
  expectError(attend(odd, at), "kf.attention C3");
  expectError(attend(q, makeInts({0, 1})), "kf.attention C4");
  expectError(attend(q, at, {1, 1, {}}), "kf.attention C5");
  expectError(attend(q, at, {0, 1, {0, true}}), "kf.attention C6");
  expectError(cache.attend(q, at, makeInts({0, 0}), {}), "kf.attention C8");
  cache.table.shape = {1};
  expectError(attend(q, at), "kf.attention C9");
}

//===----------------------------------------------------------------------===//
// attention_partial, attention_combine
//===----------------------------------------------------------------------===//

TEST(AttentionParts, DivideThePagesThatARowSees) {
  // Pages of two positions with scores 0 and values 1, 10, 100, ...
  Cache cache({DataType::F32, 1, 1, 1, 1, 2}, 3, {2, 0, 1});
  float value = 1;
  for (int64_t slot : {4, 5, 0, 1, 2, 3}) {
    const float zero = 0;
    cache.view.writeKey(0, 0, slot, &zero);
    cache.view.writeValue(0, 0, slot, &value);
    value *= 10;
  }
  Tensor q = makeTensor({4, 1, 1}, {1, 1, 1, 1});
  // Two parts of three pages, of two, of one, and of no page.
  Tensor at = makeInts({4, 2, 1, -1}), of = makeInts({0, 0, 0, 0});
  auto parts = attentionPartial(
      q.view(), cache.view, {at.view(), of.view(), cache.table.view()}, {}, 2);
  ASSERT_TRUE(parts.ok()) << parts.message();
  Tensor &maxima = (*parts)[0], &totals = (*parts)[1], &values = (*parts)[2];
  EXPECT_EQ(values.shape, (std::vector<int64_t>{4, 1, 2, 1}));
  expectFloats(Result<Tensor>(maxima), {0, 0, 0, 0, 0, -kInf, -kInf, -kInf});
  expectFloats(Result<Tensor>(totals), {4, 1, 2, 1, 2, 0, 0, 0});
  expectFloats(Result<Tensor>(values), {1111, 10000, 11, 100, 11, 0, 0, 0});
  Result<Tensor> whole = cache.attend(q, at, {});
  ASSERT_TRUE(whole.ok()) << whole.message();
  Result<Tensor> combined =
      attentionCombine(maxima.view(), totals.view(), values.view());
  expectShape(combined, {4, 1, 1});
  expectFloats(combined,
               {whole->floats()[0], whole->floats()[1], whole->floats()[2], 0},
               1e-2f);
}

TEST(Attention, SinksTakeAShare) {
  // Keys 0, so that scores are: values 1, 10, 100 and 1000.
  Cache cache({DataType::F32, 1, 1, 1, 1, 4});
  float value = 1, zero = 0;
  for (int64_t slot = 0; slot < 4; ++slot) {
    cache.view.writeKey(0, 0, slot, &zero);
    cache.view.writeValue(0, 0, slot, &value);
    value *= 10;
  }
  Tensor q = makeTensor({3, 2, 1}, {1, 1, 1, 1, 1, 1});
  Tensor at = makeInts({0, 1, -1}), of = makeInts({0, 0, 0});
  const CacheRows rows = {at.view(), of.view(), cache.table.view()};
  // Shares of 1 and of 3 beside those of the keys.
  Tensor own = makeTensor({2}, {0, std::log(3.0f)});
  TensorView sinks = own.view();
  Result<Tensor> whole = attention(q.view(), cache.view, rows, {}, &sinks);
  expectFloats(whole, {0.5, 0.25, 11 / 3.0f, 11 / 5.0f, 0, 0}, 1e-6f);
  auto parts = attentionPartial(q.view(), cache.view, rows, {}, 1);
  ASSERT_TRUE(parts.ok()) << parts.message();
  expectFloats(attentionCombine((*parts)[0].view(), (*parts)[1].view(),
                                (*parts)[2].view(), &sinks),
               {0.5, 0.25, 11 / 3.0f, 11 / 5.0f, 0, 0}, 1e-6f);
  // Far larger than all scores, nothing is left of them.
  Tensor large = makeTensor({2}, {1e30f, kInf});
  sinks = large.view();
  expectFloats(attention(q.view(), cache.view, rows, {}, &sinks),
               {0, 0, 0, 0, 0, 0});
  Tensor three = makeTensor({3}, {0, 0, 0});
  sinks = three.view();
  expectError(attention(q.view(), cache.view, rows, {}, &sinks),
              "kf.attention C10");
  expectError(attentionCombine((*parts)[0].view(), (*parts)[1].view(),
                               (*parts)[2].view(), &sinks),
              "kf.attention_combine C4");
}

TEST(AttentionParts, RejectWrongOperands) {
  Cache cache = countingCache(2, 1);
  Tensor q = makeTensor({1, 2, 1}, {1, 1}), at = makeInts({0});
  auto divide = [&](const Tensor &q, int64_t splits) {
    return attentionPartial(q.view(), cache.view,
                            {at.view(), at.view(), cache.table.view()}, {},
                            splits);
  };
  expectError(divide(at, 2), "kf.attention_partial C1");
  expectError(divide(q, 0), "kf.attention_partial C10");
  expectError(divide(q, 65537), "kf.attention_partial C10");
  Tensor parts = makeTensor({1, 2, 1}, {0, 0});
  expectError(attentionCombine(parts.view(), parts.view(), parts.view()),
              "kf.attention_combine C1");
  Tensor values = makeTensor({1, 1, 2, 1}, {0, 0});
  expectError(attentionCombine(parts.view(), parts.view(), values.view()),
              "kf.attention_combine C2");
}

TEST(PlainAttention, MasksScores) {
  // Equal scores: means of the values of the keys that are seen.
  Tensor q = makeTensor({1, 2, 1}, {0, 0}),
         k = makeTensor({1, 3, 1}, {1, 2, 3});
  Tensor v = makeTensor({1, 3, 1}, {3, 6, 12});
  auto attend = [&](PlainAttentionOptions options,
                    const TensorView *mask = nullptr) {
    return plainAttention(q.view(), k.view(), v.view(), mask, options);
  };
  expectFloats(attend({}), {7, 7}, 1e-6f);
  PlainAttentionOptions causal;
  causal.causal = true;
  expectFloats(attend(causal), {3, 4.5f}, 1e-6f);
  causal.offset = 1;
  causal.window = 1;
  expectFloats(attend(causal), {6, 12}, 1e-6f);
  causal.offset = -2;
  expectFloats(attend(causal), {0, 0});
  Tensor mask = makeTensor({2, 3}, {0, -kInf, -kInf, -kInf, 0, 0});
  TensorView view = mask.view();
  expectFloats(attend({}, &view), {3, 9}, 1e-6f);
  expectError(plainAttention(q.view(), k.view(), q.view(), nullptr, {}),
              "kf.scaled_dot_product_attention C3");
}

TEST(RotaryEmbedding, RotatesPairs) {
  Tensor x = makeTensor({1, 5}, {1, 2, 3, 4, 9});
  Tensor cos = makeTensor({2}, {0, 1}), sin = makeTensor({2}, {1, 0});
  expectFloats(rotate(x.view(), cos.view(), sin.view(), RopeStyle::Half),
               {-3, 2, 1, 4, 9});
  expectFloats(rotate(x.view(), cos.view(), sin.view(), RopeStyle::Interleaved),
               {-2, 1, 3, 4, 9});
  Tensor wide = makeTensor({3}, {1, 1, 1});
  expectError(rotate(x.view(), wide.view(), wide.view(), RopeStyle::Half),
              "kf.rotary_embedding C2");
}

} // namespace
} // namespace kf::reference
