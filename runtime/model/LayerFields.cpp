//===- LayerFields.cpp - What config.json says of single layers -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LayerFields.h"

#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/LatentFields.h"
#include "runtime/model/LayerSizeFields.h"
#include "runtime/model/LinearFields.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/UnsupportedFields.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

using namespace kf;
using nlohmann::json;

namespace {

//===----------------------------------------------------------------------===//
// RoPE
//===----------------------------------------------------------------------===//

/// The RoPE of layers without a window, and of those with one.
struct Ropes {
  RopeConfig full, sliding;
};

class RopeReader {
public:
  /// `fullDim` and `slidingDim` are the sizes of the heads of layers without a
  /// window, and of those with one.
  RopeReader(const ConfigReader &reader, const Family &family,
             const ModelConfig &config, int64_t fullDim, int64_t slidingDim)
      : file(reader), family(family), config(config), fullDim(fullDim),
        slidingDim(slidingDim) {}

  Result<Ropes> read();

private:
  Result<RopeConfig> readObject(const json &object, const std::string &name,
                                double theta, int64_t headDim);
  Status readScaling(const ConfigReader &reader, const std::string &type,
                     RopeConfig &rope);
  Status readDynamic(const ConfigReader &reader, RopeConfig &rope);
  Status readLlama3(const ConfigReader &reader, RopeConfig &rope);
  Status readYarn(const ConfigReader &reader, RopeConfig &rope);
  Status readLongRope(const ConfigReader &reader, RopeConfig &rope);
  static Status readProportional(const ConfigReader &reader, RopeConfig &rope);
  Result<int64_t> readOriginalContext(const ConfigReader &reader) const;
  static Result<int64_t> dimOf(double part, int64_t headDim);
  Result<Ropes> withDims(Ropes ropes) const;
  Result<double> partOf(const ConfigReader &reader) const;

  const ConfigReader &file;
  const Family &family;
  const ModelConfig &config;
  int64_t fullDim, slidingDim;
  double theta = 0, part = 1; ///< of the file, outside of objects
  bool isInterleaved = false;
};

/// A number from `least` to `most`, or `fallback` where there is none.
Result<double> numberOr(const ConfigReader &reader, std::string_view key,
                        double least, double most, double fallback) {
  if (!reader.contains(key))
    return fallback;
  return reader.number(key, least, most);
}

Result<double> readTheta(const ConfigReader &reader, double fallback) {
  return numberOr(reader, "rope_theta", kMinRopeBase, kMaxRopeBase, fallback);
}

Result<int64_t> RopeReader::dimOf(double part, int64_t headDim) {
  const auto dim = static_cast<int64_t>(static_cast<double>(headDim) * part);
  if (dim < 2 || dim % 2 != 0)
    return Status::error("'partial_rotary_factor' " + spellNumber(part) +
                         " of heads of " + std::to_string(headDim) +
                         " elements are " + std::to_string(dim) +
                         "; rotary embedding needs an even number");
  return dim;
}

/// The part of heads that `reader` says is turned, or else the file.
Result<double> RopeReader::partOf(const ConfigReader &reader) const {
  if (!family.partialRotary) {
    KF_RETURN_IF_ERROR(
        checkNeutral(reader, "partial_rotary_factor", NeutralValue::One));
    return part;
  }
  if (!reader.find("partial_rotary_factor"))
    return part;
  return reader.number("partial_rotary_factor", 0, 1, /*above=*/true);
}

/// Reads `object`, which is either the file's rope_scaling (older style), its
/// rope_parameters, or one of the objects in these. It may be without a theta.
Result<RopeConfig> RopeReader::readObject(const json &object,
                                          const std::string &name, double theta,
                                          int64_t headDim) {
  if (!object.is_object())
    return Status::error("'" + name + "' is " + shortDump(object) +
                         ", but an object is expected");
  ConfigReader reader(object, name + ".");
  RopeConfig rope;
  rope.interleaved = isInterleaved;
  KF_ASSIGN_OR_RETURN(std::string type, reader.text("type", "default"));
  KF_ASSIGN_OR_RETURN(type, reader.text("rope_type", type));
  if (type == "su") // an older name
    type = "longrope";
  KF_ASSIGN_OR_RETURN(rope.theta, readTheta(reader, theta));

  using Names = std::span<const std::string_view>;
  static constexpr std::string_view ofAll[] = {
      "rope_type",
      "type",
      "rope_theta",
      "factor",
      "low_freq_factor",
      "high_freq_factor",
      "original_max_position_embeddings",
      "partial_rotary_factor"};
  static constexpr std::string_view ofYarn[] = {
      "attention_factor", "beta_fast", "beta_slow",
      "mscale",           "truncate",  "mscale_all_dim"};
  static constexpr std::string_view ofLongRope[] = {
      "attention_factor", "short_factor", "long_factor"};
  const std::pair<const char *, Names> types[] = {
      {"default", {}},     {"linear", {}},   {"dynamic", {}},
      {"llama3", {}},      {"yarn", ofYarn}, {"longrope", ofLongRope},
      {"proportional", {}}};
  const auto *found =
      std::ranges::find(types, type, &std::pair<const char *, Names>::first);
  if (found == std::end(types) ||
      (type == "proportional" && !family.proportionalRope))
    return Status::error(
        "'" + name + "' has rope_type " + inQuotes(type) +
            ", which is not supported (supported: default, "
            "linear, dynamic, llama3, yarn, longrope" +
            (family.proportionalRope ? ", proportional)" : ")"),
        StatusCode::Unsupported);
  auto isMixing = [&](const std::string &key) {
    return family.mixesPositions &&
           (key == "mrope_section" || key == "mrope_interleaved");
  };
  for (const auto &[key, value] : object.items())
    if (!value.is_null() && !isMixing(key) &&
        std::ranges::find(ofAll, key) == std::end(ofAll) &&
        std::ranges::find(found->second, key) == found->second.end())
      return Status::error("'" + name + "' has a field " + inQuotes(key) +
                               ", which is not supported",
                           StatusCode::Unsupported);
  double turned = 1;
  if (type != "proportional") {
    KF_ASSIGN_OR_RETURN(turned, partOf(reader));
  }
  KF_ASSIGN_OR_RETURN(rope.dim, dimOf(turned, headDim));
  KF_RETURN_IF_ERROR(readScaling(reader, type, rope));
  // Where all of a head is turned, it is in attention's scale.
  const double scaled = config.attentionScale * rope.magnitude * rope.magnitude;
  if (!std::isnormal(static_cast<float>(scaled)))
    return Status::error("'" + name + "' of type " + inQuotes(type) +
                         ": attention's scale times the square of its "
                         "attention factor is " +
                         spellNumber(scaled) +
                         ", which is beyond the range of f32");
  return rope;
}

Status RopeReader::readScaling(const ConfigReader &reader,
                               const std::string &type, RopeConfig &rope) {
  if (type == "default")
    return Status();
  if (type == "longrope")
    return readLongRope(reader, rope);
  if (type == "proportional")
    return readProportional(reader, rope);
  KF_ASSIGN_OR_RETURN(rope.factor,
                      reader.number("factor", kMinRopeBase, kMaxRopeBase));
  if (type == "dynamic")
    return readDynamic(reader, rope);
  if (type == "llama3")
    return readLlama3(reader, rope);
  if (type == "yarn")
    return readYarn(reader, rope);
  rope.scaling = RopeConfig::Scaling::Linear;
  return Status();
}

/// Frequencies follow the length of a text that is longer than
/// max_position_embeddings, where no context is: the others are not scaled.
Status RopeReader::readDynamic(const ConfigReader &reader, RopeConfig &rope) {
  rope.factor = 1;
  const char *key = "original_max_position_embeddings";
  if (!reader.find(key))
    return Status();
  KF_ASSIGN_OR_RETURN(const int64_t original,
                      reader.integer(key, 1, kMaxPositions));
  return original == config.maxPositions
             ? Status()
             : reader.unexpected(key, "max_position_embeddings, " +
                                          std::to_string(config.maxPositions) +
                                          ", with rope_type dynamic");
}

Status RopeReader::readLlama3(const ConfigReader &reader, RopeConfig &rope) {
  rope.scaling = RopeConfig::Scaling::Llama3;
  KF_ASSIGN_OR_RETURN(rope.lowFreqFactor, reader.positive("low_freq_factor"));
  KF_ASSIGN_OR_RETURN(rope.highFreqFactor, reader.positive("high_freq_factor"));
  KF_ASSIGN_OR_RETURN(
      rope.originalContext,
      reader.integer("original_max_position_embeddings", 1, kMaxPositions));
  if (rope.highFreqFactor < rope.lowFreqFactor)
    return reader.unexpected("high_freq_factor",
                             "a number that is not below low_freq_factor");
  return Status();
}

Status RopeReader::readYarn(const ConfigReader &reader, RopeConfig &rope) {
  rope.scaling = RopeConfig::Scaling::Yarn;
  if (rope.theta <= 1)
    return Status::error("a 'rope_theta' of 1 has no yarn scaling");
  KF_ASSIGN_OR_RETURN(rope.originalContext, readOriginalContext(reader));
  KF_ASSIGN_OR_RETURN(rope.betaFast,
                      numberOr(reader, "beta_fast", kMinYarn, kMaxYarn, 32));
  KF_ASSIGN_OR_RETURN(rope.betaSlow,
                      numberOr(reader, "beta_slow", kMinYarn, kMaxYarn, 1));
  KF_ASSIGN_OR_RETURN(rope.truncate, reader.boolean("truncate", true));
  // 0 counts as absent.
  KF_ASSIGN_OR_RETURN(const double scale,
                      numberOr(reader, "mscale", 0, kMaxYarn, 0));
  KF_ASSIGN_OR_RETURN(const double scaleOfAll,
                      numberOr(reader, "mscale_all_dim", 0, kMaxYarn, 0));
  const double otherwise = scale > 0 && scaleOfAll > 0
                               ? yarnMagnitude(rope.factor, scale) /
                                     yarnMagnitude(rope.factor, scaleOfAll)
                               : yarnMagnitude(rope.factor);
  KF_ASSIGN_OR_RETURN(rope.magnitude, numberOr(reader, "attention_factor",
                                               kMinYarn, kMaxYarn, otherwise));
  return Status();
}

/// A table of `count` numbers.
Result<std::vector<float>> readFactors(const ConfigReader &reader,
                                       const char *key, int64_t count) {
  const std::string expected = "a list of " + std::to_string(count) +
                               " numbers from " + spellNumber(kMinLongRope) +
                               " to " + spellNumber(kMaxLongRope);
  const json *list = reader.find(key);
  if (!list || !list->is_array() || list->size() != static_cast<size_t>(count))
    return list ? reader.unexpected(key, expected)
                : Status::error("a longrope scaling without '" +
                                std::string(key) + "', " + expected);
  std::vector<float> factors;
  for (const json &entry : *list) {
    const double factor = entry.is_number() ? entry.get<double>() : NAN;
    if (!(factor >= kMinLongRope && factor <= kMaxLongRope))
      return reader.unexpected(key, expected);
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

Status RopeReader::readLongRope(const ConfigReader &reader, RopeConfig &rope) {
  rope.scaling = RopeConfig::Scaling::LongRope;
  KF_ASSIGN_OR_RETURN(rope.originalContext, readOriginalContext(reader));
  KF_ASSIGN_OR_RETURN(rope.shortFactors,
                      readFactors(reader, "short_factor", rope.dim / 2));
  KF_ASSIGN_OR_RETURN(rope.longFactors,
                      readFactors(reader, "long_factor", rope.dim / 2));
  rope.isLong = config.maxPositions > rope.originalContext;
  const double original = static_cast<double>(rope.originalContext);
  KF_ASSIGN_OR_RETURN(
      const double factor,
      numberOr(reader, "factor", kMinRopeBase, kMaxRopeBase,
               static_cast<double>(config.maxPositions) / original));
  const double otherwise =
      factor <= 1 || original <= 1
          ? 1
          : std::sqrt(1 + std::log(factor) / std::log(original));
  KF_ASSIGN_OR_RETURN(rope.magnitude, numberOr(reader, "attention_factor",
                                               kMinYarn, kMaxYarn, otherwise));
  return Status();
}

Status RopeReader::readProportional(const ConfigReader &reader,
                                    RopeConfig &rope) {
  rope.scaling = RopeConfig::Scaling::Proportional;
  KF_ASSIGN_OR_RETURN(rope.turnedShare,
                      numberOr(reader, "partial_rotary_factor", 0, 1, 1));
  KF_ASSIGN_OR_RETURN(
      rope.factor, numberOr(reader, "factor", kMinRopeBase, kMaxRopeBase, 1));
  return Status();
}

/// The positions that a model was trained with before its RoPE was scaled. What
/// stands outside of the object counts, as in transformers.
Result<int64_t>
RopeReader::readOriginalContext(const ConfigReader &reader) const {
  const char *name = "original_max_position_embeddings";
  KF_ASSIGN_OR_RETURN(int64_t inside, reader.integer(name, 1, kMaxPositions,
                                                     config.maxPositions));
  return file.integer(name, 1, kMaxPositions, inside);
}

Result<Ropes> RopeReader::read() {
  KF_ASSIGN_OR_RETURN(theta, readTheta(file, family.defaultTheta));
  part = family.defaultRotaryPart;
  KF_ASSIGN_OR_RETURN(part, partOf(file));
  isInterleaved = family.interleavedRope;
  if (family.interleavedField) {
    KF_ASSIGN_OR_RETURN(isInterleaved,
                        file.boolean(family.interleavedField, isInterleaved));
  }
  RopeConfig plain;
  plain.theta = theta;
  plain.interleaved = isInterleaved;
  const json *older = file.find("rope_scaling");
  const json *newer = file.find("rope_parameters");
  const json otherwise =
      family.defaultRope ? json::parse(family.defaultRope) : json();
  if (!older && !newer && family.defaultRope && !file.isNull("rope_scaling") &&
      !file.isNull("rope_parameters"))
    newer = &otherwise;
  Ropes ropes = {plain, plain};
  if (family.slidingTheta) {
    KF_ASSIGN_OR_RETURN(ropes.sliding.theta,
                        numberOr(file, family.slidingTheta, kMinRopeBase,
                                 kMaxRopeBase, family.defaultSlidingTheta));
  }
  const Ropes unscaled = ropes;
  if (older) {
    KF_ASSIGN_OR_RETURN(ropes.full,
                        readObject(*older, "rope_scaling", theta, fullDim));
    if (!family.ropeByType)
      ropes.sliding = ropes.full;
  }
  if (!newer)
    return withDims(std::move(ropes));
  Ropes parameters = unscaled;
  const std::string name = "rope_parameters";
  if (family.ropeByType && newer->is_object() &&
      (newer->contains("full_attention") ||
       newer->contains("sliding_attention"))) {
    for (const auto &[key, value] : newer->items()) {
      if (value.is_null())
        continue;
      if (key != "full_attention" && key != "sliding_attention")
        return Status::error("'" + name + "' has a field " + inQuotes(key) +
                                 ", which is not supported (supported: "
                                 "full_attention, sliding_attention)",
                             StatusCode::Unsupported);
      const bool isFull = key == "full_attention";
      RopeConfig &rope = isFull ? parameters.full : parameters.sliding;
      KF_ASSIGN_OR_RETURN(rope, readObject(value, name + "." + key, rope.theta,
                                           isFull ? fullDim : slidingDim));
    }
  } else {
    KF_ASSIGN_OR_RETURN(parameters.full,
                        readObject(*newer, name, theta, fullDim));
    if (!family.ropeByType)
      parameters.sliding = parameters.full;
    else if (!family.slidingTheta)
      parameters.sliding.theta = parameters.full.theta;
  }
  KF_ASSIGN_OR_RETURN(parameters, withDims(std::move(parameters)));
  if (!older)
    return parameters;
  KF_ASSIGN_OR_RETURN(ropes, withDims(std::move(ropes)));
  if (parameters.full != ropes.full || parameters.sliding != ropes.sliding)
    return Status::error("'rope_scaling' and 'rope_parameters' disagree");
  return parameters;
}

/// `ropes`, where those that no object describes turn what the file says.
Result<Ropes> RopeReader::withDims(Ropes ropes) const {
  for (auto [rope, headDim] :
       {std::pair(&ropes.full, fullDim), std::pair(&ropes.sliding, slidingDim)})
    if (rope->dim == 0) {
      KF_ASSIGN_OR_RETURN(rope->dim, dimOf(part, headDim));
    }
  return ropes;
}

//===----------------------------------------------------------------------===//
// Which layers
//===----------------------------------------------------------------------===//

/// The window of layers that have one; 0 where none has.
Result<int64_t> readWindow(const ConfigReader &reader, const Family &family) {
  if (family.windows == WindowRule::Never)
    return 0;
  if (family.windows != WindowRule::Always) {
    KF_ASSIGN_OR_RETURN(bool used, reader.boolean("use_sliding_window", false));
    if (!used)
      return 0;
  }
  const char *name = family.windowField;
  if (!reader.find(name))
    return reader.isNull(name) ? 0 : family.defaultWindow;
  return reader.integer(name, 1, kMaxPositions);
}

/// Which layers turn queries and keys.
Result<std::vector<bool>> readTurned(const ConfigReader &reader,
                                     const Family &family, int64_t layers) {
  std::vector<bool> turned(layers, family.turned != TurnedLayers::None);
  if (family.turned != TurnedLayers::Listed)
    return turned;
  // An empty list says nothing.
  const json *list = reader.find("no_rope_layers");
  if (!list || (list->is_array() && list->empty())) {
    KF_ASSIGN_OR_RETURN(
        int64_t interval,
        reader.integer("no_rope_layer_interval", 1, kMaxLayers, 4));
    for (int64_t i = 0; i < layers; ++i)
      turned[i] = (i + 1) % interval != 0;
    return turned;
  }
  const std::string expected = "a list of 0 or 1 for each layer";
  if (!list->is_array() || list->size() != static_cast<size_t>(layers))
    return reader.unexpected("no_rope_layers", expected);
  for (int64_t i = 0; i < layers; ++i) {
    const json &entry = (*list)[i];
    if (!entry.is_number_integer() || (entry != 0 && entry != 1))
      return reader.unexpected("no_rope_layers", expected);
    turned[i] = entry == 1;
  }
  return turned;
}

/// Which layers have the window, where layer_types does not say it.
Result<std::vector<bool>> slidingByDefault(const ConfigReader &reader,
                                           const Family &family,
                                           const std::vector<bool> &turned) {
  const auto layers = static_cast<int64_t>(turned.size());
  std::vector<bool> slides(layers, true);
  if (family.fullLayers) {
    int64_t pattern = family.fullLayers;
    if (family.fullLayersField) {
      KF_ASSIGN_OR_RETURN(pattern,
                          reader.integer(family.fullLayersField, 1, kMaxLayers,
                                         family.fullLayers));
    }
    for (int64_t i = 0; i < layers; ++i)
      slides[i] = (i + 1) % pattern != 0;
  } else if (family.turned == TurnedLayers::Listed) {
    for (int64_t i = 0; i < layers; ++i)
      slides[i] = turned[i] == family.chunked;
  } else if (family.windows == WindowRule::IfUsed) {
    KF_ASSIGN_OR_RETURN(int64_t full,
                        reader.integer("max_window_layers", 0, kMaxLayers, 28));
    std::fill_n(slides.begin(), std::min(full, layers), false);
  }
  return slides;
}

Status readLayerTypes(const json &types, const Family &family, int64_t window,
                      std::vector<bool> &slides) {
  const std::string sliding =
      family.chunked ? "chunked_attention" : "sliding_attention";
  for (size_t i = 0; i < slides.size(); ++i) {
    const json &type = types[i];
    slides[i] = isText(type, sliding);
    if (!slides[i] && !isText(type, "full_attention"))
      return Status::error("'layer_types' has " + shortDump(type) +
                               ", which is not supported (supported: "
                               "full_attention, " +
                               sliding + ")",
                           StatusCode::Unsupported);
    if (slides[i] && window == 0)
      return Status::error("'layer_types' has \"" + sliding +
                           "\", but the model has no " +
                           (family.chunked ? "chunks" : "sliding window"));
  }
  return Status();
}

/// How queries grow in layers that do not turn them; nothing where they do not.
Result<std::optional<QueryGrowth>>
readQueryGrowth(const ConfigReader &reader, const QueryGrowthFields &fields) {
  if (!fields.used)
    return std::optional<QueryGrowth>();
  // Older files have a number, of which 0 alone is false.
  bool isUsed = true;
  if (const json *used = reader.find(fields.used); used && used->is_number()) {
    isUsed = *used != 0;
  } else {
    KF_ASSIGN_OR_RETURN(isUsed, reader.boolean(fields.used, true));
  }
  if (!isUsed)
    return std::optional<QueryGrowth>();
  QueryGrowth growth;
  KF_ASSIGN_OR_RETURN(
      growth.scale,
      numberOr(reader, fields.scale, 0, kMaxQueryGrowth, fields.defaultScale));
  KF_ASSIGN_OR_RETURN(
      growth.period,
      reader.integer(fields.period, 1, kMaxPositions, fields.defaultPeriod));
  return std::optional(growth);
}

/// An error unless the field `name`, if it is there, says that every so many-th
/// layer has no window, and `slides` the same.
Status checkAgrees(const ConfigReader &reader, const char *name,
                   const std::vector<bool> &slides) {
  if (!reader.contains(name))
    return Status();
  KF_ASSIGN_OR_RETURN(const int64_t period,
                      reader.integer(name, 1, kMaxLayers));
  for (size_t i = 0; i < slides.size(); ++i)
    if (slides[i] != ((i + 1) % static_cast<size_t>(period) != 0))
      return Status::error(
          reader.quoted(name) + ", but layer " + std::to_string(i) + " has " +
          (slides[i] ? "a" : "no") + " window by 'layer_types' or its default");
  return Status();
}

/// What can be turned of heads of layers that have a window, or have none; of
/// the model's, where there are no such layers.
int64_t turnedOf(const ModelConfig &config, const std::vector<bool> &slides,
                 bool sliding) {
  if (config.latent.width)
    return config.latent.turnedDim;
  const auto found = std::ranges::find(slides, sliding);
  return found == slides.end() ? config.headDim
                               : config.layer(found - slides.begin()).headDim;
}

} // namespace

Status kf::readLayers(const ConfigReader &reader, const Family &family,
                      ModelConfig &config) {
  KF_ASSIGN_OR_RETURN(const int64_t window, readWindow(reader, family));
  KF_ASSIGN_OR_RETURN(const std::vector<bool> turned,
                      readTurned(reader, family, config.layers));
  KF_ASSIGN_OR_RETURN(std::vector<bool> slides,
                      slidingByDefault(reader, family, turned));
  KF_ASSIGN_OR_RETURN(const std::vector<bool> linear,
                      readLinearLayers(reader, family, config.layers));
  if (const json *types = reader.find("layer_types");
      types && !family.linear.areRead) {
    if (!types->is_array() ||
        types->size() != static_cast<size_t>(config.layers))
      return reader.unexpected("layer_types", "a list of one entry a layer");
    KF_RETURN_IF_ERROR(readLayerTypes(*types, family, window, slides));
  } else if (family.windows == WindowRule::ListedIfUsed && window != 0) {
    return Status::error(reader.quoted("use_sliding_window") +
                         ", but nothing says which layers have the window; "
                         "'layer_types' is expected");
  } else if (family.fullLayers && window == 0 &&
             std::ranges::find(slides, true) != slides.end()) {
    return Status::error(reader.quoted(family.windowField) +
                         ", but some layers have a window; give it, or "
                         "'layer_types' without \"sliding_attention\"");
  }
  if (family.lastIsFull && slides.back()) {
    slides.back() = false;
    if (reader.contains("layer_types"))
      config.warnings.push_back(
          "config.json: the last of 'layer_types' is \"sliding_attention\", "
          "which counts as \"full_attention\", as in transformers");
  }
  if (family.agreeingField)
    KF_RETURN_IF_ERROR(checkAgrees(reader, family.agreeingField, slides));
  config.layerConfigs.resize(config.layers);
  KF_RETURN_IF_ERROR(readLayerSizes(reader, family, slides, config));
  Ropes ropes;
  if (family.turned != TurnedLayers::None) {
    KF_ASSIGN_OR_RETURN(ropes, RopeReader(reader, family, config,
                                          turnedOf(config, slides, false),
                                          turnedOf(config, slides, true))
                                   .read());
  }
  if (config.latent.width) {
    KF_ASSIGN_OR_RETURN(config.attentionScale,
                        latentScale(reader, config, ropes.full));
  }
  if (config.qkNorm == QkNorm::Turned && ropes.full.magnitude != 1)
    return Status::error(
        "RoPE's attention factor of " + spellNumber(ropes.full.magnitude) +
            " is not supported where norms of queries and keys "
            "are behind RoPE, as '" +
            family.qkNormField + "' says",
        StatusCode::Unsupported);
  KF_ASSIGN_OR_RETURN(const std::optional<QueryGrowth> growth,
                      readQueryGrowth(reader, family.queryGrowth));
  for (int64_t i = 0; i < config.layers; ++i) {
    LayerConfig &layer = config.layerConfigs[i];
    layer.window = slides[i] ? window : 0;
    layer.chunked = slides[i] && window > 0 && family.chunked;
    layer.isLinear = linear[i];
    const bool hasRope =
        family.turned == TurnedLayers::Sliding ? slides[i] : turned[i];
    if (hasRope && !layer.isLinear)
      layer.rope = slides[i] ? ropes.sliding : ropes.full;
    else
      layer.queryGrowth = growth;
  }
  return Status();
}
