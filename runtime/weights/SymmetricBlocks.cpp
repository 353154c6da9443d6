//===- SymmetricBlocks.cpp - Rounding to blocks without a minimum ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounding to q3_k, q6_k, iq4_nl, iq4_xs and mxfp4. A sub-block of these
// formats is x = step * value(code) without a minimum. The searches are those
// of AffineBlocks.cpp with one unknown less: the best real step of each
// sub-block, the integers near d's multiples, the best d for them. Of mxfp4,
// whose steps are powers of two, few are possible.
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockEncoder.h"

#include <type_traits>

namespace kf::quantize {
namespace {

/// The values -Ends ... Ends - 1.
template <int Ends> struct Integers {
  static constexpr float low = -Ends, high = Ends - 1;

  template <typename T> static T nearestTo(T v) {
    return nearest(clampTo(v, low, high));
  }
  static int codeOf(float value) { return static_cast<int>(value) + Ends; }
};

/// The values of iq4_nl and iq4_xs.
struct Table {
  static constexpr const int8_t (&values)[16] = kIq4NlTable;
  static constexpr float low = kIq4NlTable[0], high = kIq4NlTable[15];

  /// The code of the value nearest to (i + 0.5) / 2 above the lowest; what
  /// separates two values is a multiple of a half.
  static constexpr auto codes = [] {
    std::array<uint8_t, 2 * (kIq4NlTable[15] - kIq4NlTable[0]) + 1> result{};
    int code = 0;
    for (int i = 0; i < int(result.size()); ++i) {
      const int atLeast = 2 * values[0] + i;
      while (code < 15 && atLeast >= values[code] + values[code + 1])
        ++code;
      result[i] = static_cast<uint8_t>(code);
    }
    return result;
  }();

  static int codeOf(float v) {
    return codes[static_cast<int>((clampTo(v, low, high) - low) * 2)];
  }
  static float nearestTo(float v) { return values[codeOf(v)]; }
  static Lanes nearestTo(Lanes v) {
    return Lanes{nearestTo(v[0]), nearestTo(v[1]), nearestTo(v[2]),
                 nearestTo(v[3])};
  }
};

/// The values of mxfp4: E2M1 rounds to the nearest, and halves to an even
/// mantissa.
struct E2M1 {
  static constexpr const int8_t (&values)[16] = kE2M1Table;

  static int codeOf(float v) {
    const float size = std::fabs(v);
    const int code = (size > 0.5f) + (size >= 1.5f) + (size > 2.5f) +
                     (size >= 3.5f) + (size > 5) + (size >= 7) + (size > 10);
    return v < 0 ? code + 8 : code;
  }
  static float nearestTo(float v) { return values[codeOf(v)]; }
  static Lanes nearestTo(Lanes v) {
    return Lanes{nearestTo(v[0]), nearestTo(v[1]), nearestTo(v[2]),
                 nearestTo(v[3])};
  }
};

/// A step, and how much of the weighted sum of squares it explains.
struct Fit {
  float step = 0;
  double gain = 0;
};

/// The elements of a sub-block, weighted by their squares: what errs is then
/// the relative error of what matters.
template <int Count, typename Values> class SubBlock {
public:
  void read(const float *values) {
    x = values;
    for (int i = 0; i < Count; ++i)
      weights[i] = x[i] * x[i];
  }

  /// The sums of weight * value * x and weight * value^2 for the values that
  /// are nearest with `inverse`.
  void sums(float inverse, double &valueX, double &valueSquare) const {
    Lanes lanesVX = {}, lanesVV = {};
    for (int i = 0; i < Count; i += kLanes) {
      const Lanes element = loadLanes(x + i);
      const Lanes value = Values::nearestTo(element * inverse);
      const Lanes weighted = loadLanes(weights + i) * value;
      lanesVX += weighted * element;
      lanesVV += weighted * value;
    }
    valueX = total(lanesVX);
    valueSquare = total(lanesVV);
  }

  /// The best step for the values that are nearest with `inverse`.
  Fit solve(float inverse) const {
    double valueX = 0, valueSquare = 0;
    sums(inverse, valueX, valueSquare);
    if (!(valueSquare > 0))
      return {};
    return {static_cast<float>(valueX / valueSquare),
            valueX * valueX / valueSquare};
  }

  /// The error with the best values, less the weighted sum of squares.
  double errorOf(float step) const {
    double valueX = 0, valueSquare = 0;
    sums(inverseOf(step), valueX, valueSquare);
    return step * (step * valueSquare - 2 * valueX);
  }

  /// Tries steps for which the largest element is near either end of the
  /// values, then alternates between the best values and the best step.
  Fit search() const {
    const float largest = largestMagnitude(x, Count);
    Fit best;
    if (largest == 0)
      return best;
    auto attempt = [&](float inverse) {
      const Fit fit = solve(inverse);
      const bool better = fit.gain > best.gain;
      if (better)
        best = fit;
      return better;
    };
    constexpr float width = (Values::high - Values::low) / 16;
    for (int i = -9; i <= 9; ++i) {
      const float shift = std::min(width, 1.0f) * 0.1f * static_cast<float>(i);
      attempt((Values::low + shift) / largest);
      attempt((Values::high + shift) / largest);
    }
    for (int i = 0; i < 4; ++i)
      if (!attempt(inverseOf(best.step)))
        break;
    return best;
  }

  const float *x = nullptr; // [Count]
  float weights[Count] = {};
};

/// One block on its way. The integer scales are Ends * 2 values around 0.
template <DataType Type, int Ends> class SymmetricBlock {
  static constexpr const BlockFormat &format = BlockEncoder<Type>::format;
  static constexpr int kCount = format.subBlock, kSubs = format.subBlocks();
  using Values =
      std::conditional_t<format.table != nullptr, Table, Integers<format.zero>>;

  struct Choice {
    float d = 0; // as half precision has it
    int scales[kSubs] = {};
    double error = HUGE_VAL;
  };

public:
  void encode(const float *x, uint8_t *block) {
    for (int sub = 0; sub < kSubs; ++sub) {
      subs[sub].read(x + sub * kCount);
      steps[sub] = subs[sub].search().step;
    }
    // The largest step becomes the end of the range that has one value more.
    Choice best = choose(largestMagnitude(steps, kSubs) / -Ends);
    for (int i = 0; i < 2; ++i) {
      Choice next = improve(best);
      if (!(next.error < best.error))
        break;
      best = next;
    }
    store(best, block);
  }

private:
  /// The best integers for d, among the neighbours of the real ones.
  Choice choose(float d) const {
    Choice choice;
    choice.d = roundToHalf(d);
    choice.error = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      const int scale =
          roundTo(steps[sub] * inverseOf(choice.d), -Ends, Ends - 1);
      double least = HUGE_VAL;
      choice.scales[sub] = scale;
      for (int s = std::max(scale - 1, -Ends);
           s <= std::min(scale + 1, Ends - 1); ++s) {
        const double error =
            subs[sub].errorOf(choice.d * static_cast<float>(s));
        if (!(error < least))
          continue;
        least = error;
        choice.scales[sub] = s;
      }
      choice.error += least;
    }
    return choice;
  }

  /// The best d for the integers and codes of `choice`, and the best integers
  /// for it.
  Choice improve(const Choice &choice) const {
    double allX = 0, allSquares = 0;
    for (int sub = 0; sub < kSubs; ++sub) {
      const double scale = choice.scales[sub];
      double valueX = 0, valueSquare = 0;
      subs[sub].sums(
          inverseOf(choice.d * static_cast<float>(choice.scales[sub])), valueX,
          valueSquare);
      allX += scale * valueX;
      allSquares += scale * scale * valueSquare;
    }
    if (!(allSquares > 0))
      return {};
    return choose(static_cast<float>(allX / allSquares));
  }

  void store(const Choice &choice, uint8_t *block) const {
    BlockEncoder<Type> encoder(block);
    encoder.putScale(choice.d);
    for (int sub = 0; sub < kSubs; ++sub) {
      encoder.putSubScale(sub, choice.scales[sub], 0);
      const float inverse =
          inverseOf(choice.d * static_cast<float>(choice.scales[sub]));
      for (int i = 0; i < kCount; ++i)
        encoder.putCode(sub * kCount + i, Values::codeOf(Values::nearestTo(
                                              subs[sub].x[i] * inverse)));
    }
  }

  SubBlock<kCount, Values> subs[kSubs];
  float steps[kSubs] = {};
};

} // namespace

void encodeQ3_K(const float *x, uint8_t *block) {
  SymmetricBlock<DataType::Q3_K, 32>().encode(x, block);
}
void encodeQ6_K(const float *x, uint8_t *block) {
  SymmetricBlock<DataType::Q6_K, 128>().encode(x, block);
}

void encodeIq4Xs(const float *x, uint8_t *block) {
  static_assert(BlockEncoder<DataType::IQ4_XS>::format.table == kIq4NlTable);
  SymmetricBlock<DataType::IQ4_XS, 32>().encode(x, block);
}

void encodeIq4Nl(const float *x, uint8_t *block) {
  BlockEncoder<DataType::IQ4_NL> encoder(block);
  constexpr int elements = encoder.format.elements;
  SubBlock<elements, Table> all;
  all.read(x);
  const float d = roundToHalf(all.search().step);
  const float inverse = inverseOf(d);
  encoder.putScale(d);
  for (int i = 0; i < elements; ++i)
    encoder.putCode(i, Table::codeOf(Table::nearestTo(x[i] * inverse)));
}

/// With the largest element among the two largest values, as the specification
/// has it, or a binade below, where none is cut off.
void encodeMxfp4(const float *x, uint8_t *block) {
  BlockEncoder<DataType::MXFP4> encoder(block);
  constexpr int elements = encoder.format.elements;
  const float largest = std::fabs(largestMagnitude(x, elements));
  if (!std::isfinite(largest)) {
    encoder.putScale(largest);
    return;
  }
  if (largest == 0)
    return;
  // Steps whose inverses are finite, and whose values are.
  constexpr int least = -126, most = 124;
  const int exponent = std::clamp(std::ilogb(largest) - 3, least, most);
  SubBlock<elements, E2M1> all;
  all.read(x);
  float step = std::ldexp(1.0f, exponent);
  if (exponent < most && all.errorOf(2 * step) < all.errorOf(step))
    step *= 2;
  encoder.putScale(step);
  for (int i = 0; i < elements; ++i)
    encoder.putCode(i, E2M1::codeOf(x[i] / step));
}

} // namespace kf::quantize
