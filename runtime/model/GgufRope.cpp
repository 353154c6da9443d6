//===- GgufRope.cpp - How a GGUF file's queries and keys turn -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufRope.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufLatent.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/RopeFactors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace kf;

namespace {

constexpr std::string_view kType = "rope.scaling.type";
constexpr std::string_view kFactor = "rope.scaling.factor";
constexpr std::string_view kMagnitude = "rope.scaling.attn_factor";
constexpr std::string_view kOriginal = "rope.scaling.original_context_length";

class RopeReader {
public:
  RopeReader(const Gguf &gguf, const GgufNumbers &numbers, ModelConfig &config)
      : gguf(gguf), numbers(numbers), config(config),
        family(familyOf(config.architecture)) {}

  Result<GgufRopes> read() {
    RopeConfig rope;
    rope.interleaved = isInterleavedInGguf(config.architecture);
    KF_ASSIGN_OR_RETURN(rope.theta, readTheta("rope.freq_base", rope.theta));
    KF_ASSIGN_OR_RETURN(rope.dim, readDim("rope.dimension_count", fullDim()));
    GgufRopes ropes = {rope, rope};
    KF_RETURN_IF_ERROR(readScaling(ropes.full));
    KF_RETURN_IF_ERROR(readFrequencies(ropes.full));
    if (family.sizes.fullHeadDim) {
      KF_ASSIGN_OR_RETURN(ropes.sliding.dim,
                          readDim(kGgufSlidingTurned, config.headDim));
    }
    if (!family.ropeByType) {
      ropes.sliding = ropes.full;
      return ropes;
    }
    KF_ASSIGN_OR_RETURN(
        ropes.sliding.theta,
        readTheta("rope.freq_base_swa", family.slidingTheta
                                            ? family.defaultSlidingTheta
                                            : rope.theta));
    return ropes;
  }

private:
  Result<double> readTheta(std::string_view name, double fallback) const {
    return numbers.number(name, kMinRopeBase, kMaxRopeBase, fallback);
  }

  /// Elements that may turn, in a head of a layer without a window.
  int64_t fullDim() const {
    if (config.latent.width)
      return config.latent.turnedDim;
    const auto full =
        std::ranges::find(config.layerConfigs, 0, &LayerConfig::window);
    return full == config.layerConfigs.end()
               ? config.headDim
               : config.layer(full - config.layerConfigs.begin()).headDim;
  }

  /// How many elements of a head turn, which has `headDim`.
  Result<int64_t> readDim(std::string_view name, int64_t headDim) const {
    KF_ASSIGN_OR_RETURN(int64_t dim, numbers.size(name, kMaxSize, headDim));
    const std::string value = numbers.valueOf(name, std::to_string(dim)) +
                              ", but heads have " + std::to_string(headDim) +
                              " elements";
    if (dim != headDim && !family.partialRotary)
      return Status::error(value + "; rotating a part of them is not supported",
                           StatusCode::Unsupported);
    if (dim > headDim)
      return Status::error(value);
    if (dim % 2 == 0)
      return dim;
    if (dim == headDim)
      return Status::error("a head dimension of " + std::to_string(dim) +
                           " is odd; rotary embedding needs an even one");
    return Status::error(value + "; rotary embedding needs an even number");
  }

  Status readScaling(RopeConfig &rope) {
    // As llama.cpp has it, a factor alone scales linearly, and 0 is none.
    KF_ASSIGN_OR_RETURN(std::string_view type,
                        gguf.getString(numbers.keyOf(kType), "linear"));
    const bool mayBeLong = config.architecture == Architecture::Phi3;
    // Older files of Phi-3 have the tables and no word of them.
    if (mayBeLong && (type == "longrope" || hasLongTable())) {
      KF_RETURN_IF_ERROR(checkNoOtherScaling(type));
      KF_RETURN_IF_ERROR(readLongRope(rope));
      return checkScale(rope);
    }
    if (type == "yarn") {
      KF_RETURN_IF_ERROR(readYarn(rope));
      if (config.latent.width)
        return readGgufLatentYarn(numbers, rope, config);
      return checkScale(rope);
    }
    if (type != "none" && type != "linear")
      return Status::error("metadata " + inQuotes(numbers.keyOf(kType)) +
                               " is " + inQuotes(type) +
                               ", which is not supported (supported: none, "
                               "linear, yarn" +
                               (mayBeLong ? ", longrope)" : ")"),
                           StatusCode::Unsupported);
    for (std::string_view key : {kMagnitude, kGgufYarnMagnitude}) {
      KF_ASSIGN_OR_RETURN(double magnitude,
                          gguf.getFloat(numbers.keyOf(key), 1));
      if (magnitude != 1)
        return Status::error(
            numbers.valueOf(key, spellNumber(magnitude)) +
                ", which changes the arithmetic in a way that is not supported",
            StatusCode::Unsupported);
    }
    KF_ASSIGN_OR_RETURN(double factor, readLinearFactor());
    if (type == "none" || factor == 0 || factor == 1)
      return Status();
    rope.scaling = RopeConfig::Scaling::Linear;
    rope.factor = factor;
    return Status();
  }

  std::string_view linearKey() const {
    return numbers.contains(kFactor) ? kFactor : "rope.scale_linear";
  }
  Result<double> readLinearFactor() const {
    return numbers.number(linearKey(), kMinRopeBase, kMaxRopeBase, 0);
  }

  /// Whether the file has any of LongRoPE's tables.
  bool hasLongTable() const {
    return gguf.lookUpTensor(kGgufLongFactors) ||
           gguf.lookUpTensor(kGgufShortFactors);
  }

  /// An error where LongRoPE's tables are beside a scaling of another kind,
  /// which `type` is or a factor asks for.
  Status checkNoOtherScaling(std::string_view type) const {
    const std::string beside =
        ", which is not supported beside LongRoPE's tables, such as " +
        inQuotes(kGgufLongFactors);
    if (numbers.contains(kType) && type != "longrope")
      return Status::error("metadata " + inQuotes(numbers.keyOf(kType)) +
                               " is " + inQuotes(type) + beside,
                           StatusCode::Unsupported);
    KF_ASSIGN_OR_RETURN(const double factor, readLinearFactor());
    if (factor == 0 || factor == 1)
      return Status();
    return Status::error(numbers.valueOf(linearKey(), spellNumber(factor)) +
                             beside,
                         StatusCode::Unsupported);
  }

  Status readYarn(RopeConfig &rope) const {
    rope.scaling = RopeConfig::Scaling::Yarn;
    rope.truncate = isYarnTruncatedInGguf(config.architecture);
    if (rope.theta <= 1)
      return Status::error(numbers.valueOf("rope.freq_base", "1") +
                           ", of which there is no yarn scaling");
    KF_ASSIGN_OR_RETURN(rope.factor,
                        numbers.number(kFactor, kMinRopeBase, kMaxRopeBase));
    KF_ASSIGN_OR_RETURN(
        rope.originalContext,
        numbers.size(kOriginal, kMaxPositions, config.maxPositions));
    KF_ASSIGN_OR_RETURN(rope.betaFast,
                        numbers.number("rope.scaling.yarn_beta_fast", kMinYarn,
                                       kMaxYarn, rope.betaFast));
    KF_ASSIGN_OR_RETURN(rope.betaSlow,
                        numbers.number("rope.scaling.yarn_beta_slow", kMinYarn,
                                       kMaxYarn, rope.betaSlow));
    // What the converter of llama.cpp found in config.json is all of it;
    // attn_factor is what llama.cpp multiplies the usual one by.
    KF_ASSIGN_OR_RETURN(rope.magnitude,
                        numbers.number(kGgufYarnMagnitude, kMinYarn, kMaxYarn,
                                       yarnMagnitude(rope.factor)));
    KF_ASSIGN_OR_RETURN(double more,
                        numbers.number(kMagnitude, kMinYarn, kMaxYarn, 1));
    rope.magnitude *= more;
    return Status();
  }

  Status readLongRope(RopeConfig &rope) const {
    rope.scaling = RopeConfig::Scaling::LongRope;
    KF_ASSIGN_OR_RETURN(rope.originalContext,
                        numbers.size(kOriginal, kMaxPositions));
    KF_ASSIGN_OR_RETURN(rope.magnitude,
                        numbers.number(kMagnitude, kMinYarn, kMaxYarn));
    KF_ASSIGN_OR_RETURN(rope.shortFactors,
                        readTable(kGgufShortFactors, rope.dim / 2));
    KF_ASSIGN_OR_RETURN(rope.longFactors,
                        readTable(kGgufLongFactors, rope.dim / 2));
    rope.isLong = config.maxPositions > rope.originalContext;
    return Status();
  }

  /// An error unless `tensor` has `count` numbers of F32.
  static Status checkTable(const GgufTensor &tensor, int64_t count) {
    if (tensor.shape == std::vector<int64_t>{count} &&
        tensor.typeNumber == findGgmlType(DataType::F32)->number)
      return Status();
    return Status::error("tensor " + inQuotes(tensor.name) + " is not of " +
                         std::to_string(count) +
                         " F32, one for each pair of a head's elements");
  }

  /// One of LongRoPE's tables, of `count` numbers.
  Result<std::vector<float>> readTable(std::string_view name,
                                       int64_t count) const {
    const GgufTensor *tensor = gguf.lookUpTensor(name);
    if (!tensor)
      return Status::error("there is no tensor " + inQuotes(name) +
                           ", which LongRoPE needs");
    KF_RETURN_IF_ERROR(checkTable(*tensor, count));
    KF_ASSIGN_OR_RETURN(TensorView view, gguf.find(std::string(name)));
    std::vector<float> factors(static_cast<size_t>(count));
    std::memcpy(factors.data(), view.data, view.bytes);
    for (const float factor : factors)
      if (!(factor >= kMinLongRope && factor <= kMaxLongRope))
        return Status::error("tensor " + inQuotes(name) + " has " +
                             spellNumber(factor) + ", but numbers from " +
                             spellNumber(kMinLongRope) + " to " +
                             spellNumber(kMaxLongRope) + " are expected");
    return factors;
  }

  /// The factors of frequencies that LLaMA 3's scaling makes.
  Status readFrequencies(RopeConfig &rope) const {
    const GgufTensor *factors = gguf.lookUpTensor("rope_freqs.weight");
    if (!factors)
      return Status();
    if (rope.scaling != RopeConfig::Scaling::None &&
        rope.scaling != RopeConfig::Scaling::Linear)
      return Status::error("tensor 'rope_freqs.weight' beside yarn or longrope "
                           "is not supported",
                           StatusCode::Unsupported);
    rope.frequencyFactors = true;
    return checkTable(*factors, rope.dim / 2);
  }

  /// Where all of a head turns, the magnitude is in attention's scale.
  Status checkScale(const RopeConfig &rope) const {
    const double scaled =
        config.attentionScale * rope.magnitude * rope.magnitude;
    if (std::isnormal(static_cast<float>(scaled)))
      return Status();
    return Status::error("attention's scale times the square of RoPE's "
                         "magnitude, which metadata " +
                         inQuotes(numbers.keyOf(kMagnitude)) + " makes, is " +
                         spellNumber(scaled) +
                         ", which is beyond the range of f32");
  }

  const Gguf &gguf;
  const GgufNumbers &numbers;
  ModelConfig &config;
  const Family &family;
};

} // namespace

Result<GgufRopes> kf::readGgufRopes(const Gguf &gguf,
                                    const GgufNumbers &numbers,
                                    ModelConfig &config) {
  return RopeReader(gguf, numbers, config).read();
}
