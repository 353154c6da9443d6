//===- AffineBlocks.cpp - Rounding to q2_k, q4_k and q5_k -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sub-block of these formats is x = step * code - offset with step = d *
// scale and offset = m * min, where d and m belong to the block and scale and
// min are small integers. Three searches minimize the weighted squared error:
// for the best real step and offset of each sub-block, for the integers near
// them once d and m are chosen, and for the best d and m with these integers.
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockEncoder.h"

namespace kf::quantize {
namespace {

/// A step and an offset, and the weighted squared error that they leave.
struct Fit {
  float step = 0, offset = 0;
  double error = 0;
};

/// The elements of a sub-block and how much their errors count.
template <int Count, int Most> class SubBlock {
public:
  /// Large values count more: what they are multiplied with may be as large as
  /// for others, but their errors are larger.
  void read(const float *values) {
    x = values;
    double squares = 0;
    for (int i = 0; i < Count; ++i)
      squares += double(x[i]) * x[i];
    const float typical = static_cast<float>(std::sqrt(squares / Count));
    for (int i = 0; i < Count; ++i) {
      weights[i] = typical + std::fabs(x[i]);
      sumW += weights[i];
      sumWX += double(weights[i]) * x[i];
      sumWXX += double(weights[i]) * x[i] * x[i];
    }
  }

  template <typename T> static T codeOf(T value, float inverse, float offset) {
    return nearest(clampTo((value + offset) * inverse, 0, Most));
  }
  float code(int i, float inverse, float offset) const {
    return codeOf(x[i], inverse, offset);
  }

  /// The best step and offset for the codes that `inverse` and `offset` give;
  /// no step if all codes are the same.
  Fit solve(float inverse, float offset) const {
    Lanes lanesQ = {}, lanesQQ = {}, lanesQX = {};
    for (int i = 0; i < Count; i += kLanes) {
      const Lanes value = loadLanes(x + i);
      const Lanes q = codeOf(value, inverse, offset);
      const Lanes weighted = loadLanes(weights + i) * q;
      lanesQ += weighted;
      lanesQQ += weighted * q;
      lanesQX += weighted * value;
    }
    const double sumQ = total(lanesQ), sumQQ = total(lanesQQ),
                 sumQX = total(lanesQX);
    const double determinant = sumW * sumQQ - sumQ * sumQ;
    if (!(determinant > 0))
      return {};
    double step = (sumW * sumQX - sumQ * sumWX) / determinant;
    double best = (sumQ * sumQX - sumQQ * sumWX) / determinant;
    if (best < 0) { // not storable: the best step without an offset
      step = sumQX / sumQQ;
      best = 0;
    }
    return {static_cast<float>(step), static_cast<float>(best),
            sumWXX - step * sumQX + best * sumWX};
  }

  /// The error of a step and an offset with the best codes.
  double errorOf(float step, float offset) const {
    const float inverse = inverseOf(step);
    Lanes lanes = {};
    for (int i = 0; i < Count; i += kLanes) {
      const Lanes value = loadLanes(x + i);
      const Lanes rest = codeOf(value, inverse, offset) * step - offset - value;
      lanes += loadLanes(weights + i) * rest * rest;
    }
    return total(lanes);
  }

  /// Tries ranges of codes around [min(x), max(x)], then alternates between
  /// the best codes and the best step and offset.
  Fit search() const {
    const float low = std::min(0.0f, *std::min_element(x, x + Count));
    const float high = *std::max_element(x, x + Count);
    Fit best{0, -low, sumWXX + 2.0 * low * sumWX + double(low) * low * sumW};
    if (!(high > low))
      return best;
    best = {(high - low) / Most, -low, HUGE_VAL};
    auto attempt = [&](float inverse, float offset) {
      const Fit fit = solve(inverse, offset);
      const bool better = fit.step > 0 && fit.error < best.error;
      if (better)
        best = fit;
      return better;
    };
    for (int i = -10; i <= 10; ++i)
      attempt((Most + 0.1f * static_cast<float>(i)) / (high - low), -low);
    for (int i = 0; i < 4; ++i)
      if (!attempt(inverseOf(best.step), best.offset))
        break;
    return best;
  }

  const float *x = nullptr; // [Count]
  float weights[Count] = {};
  double sumW = 0, sumWX = 0, sumWXX = 0;
};

/// One block on its way: d, m, and the integers of its sub-blocks.
template <DataType Type, int MostScale> class AffineBlock {
  static constexpr const BlockFormat &format = BlockEncoder<Type>::format;
  static constexpr int kCount = format.subBlock, kSubs = format.subBlocks();
  static constexpr int kMost = (1 << format.codeBits()) - 1;

  struct Choice {
    float d = 0, m = 0; // as half precision has them
    int scales[kSubs] = {}, mins[kSubs] = {};
    double error = HUGE_VAL;
  };

public:
  explicit AffineBlock(const float *x) {
    for (int sub = 0; sub < kSubs; ++sub)
      subs[sub].read(x + sub * kCount);
  }

  void encode(uint8_t *block) {
    float largestStep = 0, largestOffset = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      fits[sub] = subs[sub].search();
      largestStep = std::max(largestStep, fits[sub].step);
      largestOffset = std::max(largestOffset, fits[sub].offset);
    }
    Choice best = choose(largestStep / MostScale, largestOffset / MostScale);
    for (int i = 0; i < 2; ++i) {
      Choice next = improve(best);
      if (!(next.error < best.error))
        break;
      best = next;
    }
    store(best, block);
  }

private:
  /// The best integers for d and m, among the neighbours of the real ones.
  Choice choose(float d, float m) const {
    Choice choice;
    choice.d = roundToHalf(d);
    choice.m = roundToHalf(m);
    choice.error = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      const int scale =
          roundTo(fits[sub].step * inverseOf(choice.d), 0, MostScale);
      const int min =
          roundTo(fits[sub].offset * inverseOf(choice.m), 0, MostScale);
      double least = HUGE_VAL;
      choice.scales[sub] = scale;
      choice.mins[sub] = min;
      for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, MostScale);
           ++s)
        for (int n = std::max(min - 1, 0); n <= std::min(min + 1, MostScale);
             ++n) {
          const double error =
              subs[sub].errorOf(choice.d * static_cast<float>(s),
                                choice.m * static_cast<float>(n));
          if (!(error < least))
            continue;
          least = error;
          choice.scales[sub] = s;
          choice.mins[sub] = n;
        }
      choice.error += least;
    }
    return choice;
  }

  /// The best d and m for the integers and codes of `choice`, and the best
  /// integers for these.
  Choice improve(const Choice &choice) const {
    // Least squares of x = d * a - m * b with a = scale * code, b = min.
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      const float scale = static_cast<float>(choice.scales[sub]);
      const double b = choice.mins[sub];
      const float inverse = inverseOf(choice.d * scale);
      const float offset = choice.m * static_cast<float>(choice.mins[sub]);
      for (int i = 0; i < kCount; ++i) {
        const double a = scale * subs[sub].code(i, inverse, offset);
        const double weight = subs[sub].weights[i], x = subs[sub].x[i];
        aa += weight * a * a, ab += weight * a * b, bb += weight * b * b;
        ax += weight * a * x, bx += weight * b * x;
      }
    }
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 0))
      return {};
    const double d = (ax * bb - ab * bx) / determinant;
    const double m = (ab * ax - aa * bx) / determinant;
    if (!(d > 0) || !(m >= 0))
      return {};
    return choose(static_cast<float>(d), static_cast<float>(m));
  }

  void store(const Choice &choice, uint8_t *block) const {
    BlockEncoder<Type> encoder(block);
    encoder.putScale(choice.d);
    encoder.putMin(choice.m);
    for (int sub = 0; sub < kSubs; ++sub) {
      encoder.putSubScale(sub, choice.scales[sub], choice.mins[sub]);
      const float inverse =
          inverseOf(choice.d * static_cast<float>(choice.scales[sub]));
      const float offset = choice.m * static_cast<float>(choice.mins[sub]);
      for (int i = 0; i < kCount; ++i)
        encoder.putCode(sub * kCount + i,
                        static_cast<int>(subs[sub].code(i, inverse, offset)));
    }
  }

  SubBlock<kCount, kMost> subs[kSubs];
  Fit fits[kSubs];
};

} // namespace

void encodeQ2_K(const float *x, uint8_t *block) {
  AffineBlock<DataType::Q2_K, 15>(x).encode(block);
}
void encodeQ4_K(const float *x, uint8_t *block) {
  AffineBlock<DataType::Q4_K, 63>(x).encode(block);
}
void encodeQ5_K(const float *x, uint8_t *block) {
  AffineBlock<DataType::Q5_K, 63>(x).encode(block);
}

} // namespace kf::quantize
