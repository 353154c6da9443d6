//===- StateOpsTest.cpp - Linear attention --------------------------------===//
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

/// Operands of kf.gated_delta, and a cache of two slots of one layer that is
/// full of NaNs. K = 1, V = 2, dk = 3, dv = 2, 3 taps.
struct Delta {
  static constexpr int64_t kElements = 3 * 2 + 2 * (2 * 3 + 2);

  explicit Delta(int64_t rows)
      : spec(CacheSpec::ofStates(1, 2, kElements, 1)),
        memory(static_cast<size_t>(*spec.bytes(2)) / sizeof(float), kNan),
        q(random({rows, 1, 3}, 1)), k(random({rows, 1, 3}, 2)),
        v(random({rows, 2, 2}, 3)), a(random({rows, 2}, 4)),
        b(random({rows, 2}, 5)), convolution(random({10, 1, 3}, 6)),
        decay(random({2}, 7)), bias(random({2}, 8)), states(makeInts({1})) {}

  static Tensor random(const std::vector<int64_t> &shape, uint32_t seed) {
    size_t count = 1;
    for (int64_t extent : shape)
      count *= static_cast<size_t>(extent);
    return makeTensor(shape, randomFloats(count, seed));
  }
  /// Rows [first, first + count) of `tensor`.
  static Tensor part(const Tensor &tensor, int64_t first, int64_t count) {
    std::vector<int64_t> shape = tensor.shape;
    const size_t each = tensor.bytes.size() / static_cast<size_t>(shape[0]);
    shape[0] = count;
    Tensor rows = Tensor::zeros(DataType::F32, shape).take();
    std::memcpy(rows.bytes.data(), tensor.bytes.data() + first * each,
                count * each);
    return rows;
  }

  CacheView cache() {
    return {spec, 2, reinterpret_cast<std::byte *>(memory.data())};
  }
  Result<Tensor> run(int64_t first, const std::vector<int32_t> &positions,
                     const std::vector<int32_t> &sequences, int64_t layer = 0) {
    const auto count = static_cast<int64_t>(positions.size());
    const Tensor parts[] = {part(q, first, count), part(k, first, count),
                            part(v, first, count), part(a, first, count),
                            part(b, first, count)};
    const Tensor at = makeInts(positions), of = makeInts(sequences);
    return gatedDelta({parts[0].view(), parts[1].view(), parts[2].view(),
                       parts[3].view(), parts[4].view(), convolution.view(),
                       decay.view(), bias.view(), at.view(), of.view(),
                       states.view()},
                      cache(), layer);
  }

  CacheSpec spec;
  std::vector<float> memory;
  Tensor q, k, v, a, b, convolution, decay, bias, states;
};

/// The rule as it is written, in double precision, of all rows of one sequence.
std::vector<float> expected(Delta &op, int64_t rows) {
  auto at = [](Tensor &tensor, int64_t i) {
    return static_cast<double>(tensor.floats()[i]);
  };
  auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  std::vector<float> result(static_cast<size_t>(rows * 4));
  for (int64_t head = 0; head < 2; ++head) {
    double state[3][2] = {};
    for (int64_t t = 0; t < rows; ++t) {
      auto convolved = [&](Tensor &x, int64_t heads, int64_t own, int64_t size,
                           int64_t i, int64_t firstLine) {
        double sum = 0;
        for (int64_t tap = 0; tap < 3; ++tap)
          if (t + tap >= 2)
            sum += at(x, ((t + tap - 2) * heads + own) * size + i) *
                   at(op.convolution, (firstLine + own * size + i) * 3 + tap);
        return silu(sum);
      };
      double q[3], k[3], v[2], ofQ = 1e-6, ofK = 1e-6;
      for (int64_t i = 0; i < 3; ++i) {
        q[i] = convolved(op.q, 1, 0, 3, i, 0);
        k[i] = convolved(op.k, 1, 0, 3, i, 3);
        ofQ += q[i] * q[i];
        ofK += k[i] * k[i];
      }
      for (int64_t j = 0; j < 2; ++j)
        v[j] = convolved(op.v, 2, head, 2, j, 6);
      const double decay = std::exp(
          -std::exp(at(op.decay, head)) *
          std::log1p(std::exp(at(op.a, t * 2 + head) + at(op.bias, head))));
      const double share = 1 / (1 + std::exp(-at(op.b, t * 2 + head)));
      for (int64_t j = 0; j < 2; ++j) {
        double known = 0, sum = 0;
        for (int64_t i = 0; i < 3; ++i)
          known += k[i] / std::sqrt(ofK) * decay * state[i][j];
        for (int64_t i = 0; i < 3; ++i) {
          state[i][j] = decay * state[i][j] +
                        k[i] / std::sqrt(ofK) * share * (v[j] - known);
          sum += q[i] / std::sqrt(ofQ) / std::sqrt(3.0) * state[i][j];
        }
        result[static_cast<size_t>((t * 2 + head) * 2 + j)] =
            static_cast<float>(sum);
      }
    }
  }
  return result;
}

TEST(GatedDelta, IsTheRuleAsItIsWritten) {
  Delta op(5);
  const Result<Tensor> result = op.run(0, {0, 1, 2, 3, 4}, {0, 0, 0, 0, 0});
  expectShape(result, {5, 2, 2});
  expectFloats(result, expected(op, 5), 1e-5f);
  // The other slot is what it was.
  EXPECT_TRUE(std::isnan(op.memory[0]));
}

TEST(GatedDelta, GoesOnFromTheCache) {
  Delta whole(5), parts(5);
  Tensor all = whole.run(0, {0, 1, 2, 3, 4}, {0, 0, 0, 0, 0}).take();
  ASSERT_TRUE(parts.run(0, {0, 1, 2}, {0, 0, 0}).ok());
  const std::vector<float> rest(all.floats() + 3 * 4, all.floats() + 5 * 4);
  expectFloats(parts.run(3, {3, 4}, {0, 0}), rest, 0);
  // A row at position 0 begins again.
  const std::vector<float> first(all.floats(), all.floats() + 4);
  expectFloats(parts.run(0, {0}, {0}), first, 0);
}

TEST(GatedDelta, SequencesHaveSlotsOfTheirOwn) {
  Delta op(4), alone(4);
  op.states = makeInts({1, 0});
  const Tensor both = op.run(0, {0, 0, 1, 1}, {1, 0, 1, 0}).take();
  // Row 2 follows row 0.
  for (Tensor *tensor : {&alone.q, &alone.k, &alone.v, &alone.a, &alone.b}) {
    const size_t each = tensor->bytes.size() / 4;
    std::memcpy(tensor->bytes.data() + each, tensor->bytes.data() + 2 * each,
                each);
  }
  Tensor lone = alone.run(0, {0, 1}, {0, 0}).take();
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reinterpret_cast<const float *>(both.bytes.data())[i],
              lone.floats()[i]);
    EXPECT_EQ(reinterpret_cast<const float *>(both.bytes.data())[8 + i],
              lone.floats()[4 + i]);
  }
}

TEST(GatedDelta, RejectsWrongOperands) {
  auto errorOf = [](auto change, const char *text) {
    Delta op(1);
    change(op);
    expectError(op.run(0, {0}, {0}), text);
  };
  errorOf([](Delta &op) { op.v = Delta::random({1, 2}, 1); },
          "kf.gated_delta C1");
  errorOf([](Delta &op) { op.a = Delta::random({1, 3}, 1); },
          "kf.gated_delta C2");
  errorOf([](Delta &op) { op.convolution = Delta::random({9, 1, 3}, 1); },
          "kf.gated_delta C3");
  errorOf([](Delta &op) { op.decay = Delta::random({3}, 1); },
          "kf.gated_delta C4");
  errorOf([](Delta &op) { op.spec.headDim = 21; }, "kf.gated_delta C5");
  errorOf([](Delta &op) { op.states = makeInts({2}); },
          "kf.gated_delta C8: the state of sequence 0 is in slot 2");
  Delta op(1);
  for (const int64_t layer : {-1, 1})
    expectError(op.run(0, {0}, {0}, layer), "kf.gated_delta C6: layer " +
                                                std::to_string(layer) +
                                                " is outside the cache's 1");
  expectError(op.run(0, {0}, {0, 0}),
              "kf.gated_delta C7: there are 1 positions and 2 sequences");
  expectError(op.run(0, {0}, {1}), "kf.gated_delta C8: row 0 is of sequence 1");
}

} // namespace
} // namespace kf::reference
