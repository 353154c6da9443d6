//===- OpTable.cpp - From op names to reference functions -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/OpTable.h"

#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kf::reference {

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

namespace {

Status wrongType(const char *name, const char *expected) {
  return Status::error(std::string("attribute '") + name + "' is not " +
                       expected);
}

/// A JSON number that an int64_t holds.
std::optional<int64_t> toInteger(const nlohmann::json &value) {
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  if (!value.is_number_integer())
    return std::nullopt;
  return value.get<int64_t>();
}

} // namespace

Result<const nlohmann::json *> Attributes::any(const char *name) const {
  auto found = object.find(name);
  if (found == object.end())
    return Status::error(std::string("attribute '") + name + "' is missing");
  return &*found;
}

Result<double> Attributes::number(const char *name) const {
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value, any(name));
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    return wrongType(name, "a finite number");
  return value->get<double>();
}

Result<double> Attributes::number(const char *name, double fallback) const {
  return has(name) ? number(name) : Result<double>(fallback);
}

Result<int64_t> Attributes::integer(const char *name) const {
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value, any(name));
  std::optional<int64_t> integer = toInteger(*value);
  if (!integer)
    return wrongType(name, "a 64-bit integer");
  return *integer;
}

Result<int64_t> Attributes::integer(const char *name, int64_t fallback) const {
  return has(name) ? integer(name) : Result<int64_t>(fallback);
}

Result<std::string> Attributes::keyword(const char *name) const {
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value, any(name));
  if (!value->is_string())
    return wrongType(name, "a keyword");
  return value->get<std::string>();
}

Result<std::vector<int64_t>> Attributes::integers(const char *name) const {
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value, any(name));
  if (!value->is_array())
    return wrongType(name, "an array of 64-bit integers");
  std::vector<int64_t> integers;
  for (const nlohmann::json &element : *value) {
    std::optional<int64_t> integer = toInteger(element);
    if (!integer)
      return wrongType(name, "an array of 64-bit integers");
    integers.push_back(*integer);
  }
  return integers;
}

Result<Attributes> Attributes::members(const char *name) const {
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value, any(name));
  if (!value->is_object())
    return wrongType(name, "an object");
  return Attributes(*value);
}

//===----------------------------------------------------------------------===//
// One function per op
//===----------------------------------------------------------------------===//

namespace {

/// MLIR's ShapedType::kDynamic.
constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

/// A constant without data in the IR may not ask for more than this.
constexpr int64_t kMaxSplatElements = int64_t(1) << 28;

template <typename Enum, size_t N>
Result<Enum> parseKeyword(const Attributes &attributes, const char *name,
                          const std::pair<const char *, Enum> (&known)[N]) {
  KF_ASSIGN_OR_RETURN(std::string word, attributes.keyword(name));
  std::string words;
  for (const auto &[spelling, value] : known) {
    if (word == spelling)
      return value;
    words += (words.empty() ? "" : ", ") + std::string(spelling);
  }
  return Status::error(std::string("attribute '") + name + "' is '" + word +
                       "'; known are " + words);
}

Result<Activation> parseActivation(const Attributes &attributes,
                                   const char *name) {
  constexpr std::pair<const char *, Activation> kinds[] = {
      {"identity", Activation::Identity},
      {"silu", Activation::Silu},
      {"gelu", Activation::Gelu},
      {"gelu_tanh", Activation::GeluTanh},
      {"relu", Activation::Relu}};
  return parseKeyword(attributes, name, kinds);
}

Result<Evaluate> prepareEmbedding(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return embedding(call.tensor(0), call.tensor(1));
  });
}

/// Which of an op's operands are there: its place among them, or nothing.
/// `known` has a letter for each, a capital one where it may be absent. Without
/// operandSegmentSizes, the last ones are.
Result<std::vector<std::optional<size_t>>>
operandPlaces(const OpSite &site, std::string_view known) {
  if (!site.attributes.has("operandSegmentSizes")) {
    std::vector<std::optional<size_t>> first(known.size());
    for (size_t i = 0; i < std::min(known.size(), site.operandCount); ++i)
      first[i] = i;
    return first;
  }
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> segments,
                      site.attributes.integers("operandSegmentSizes"));
  if (segments.size() != known.size())
    return Status::error("attribute 'operandSegmentSizes' is not an array of " +
                         std::to_string(known.size()) + " integers");
  std::vector<std::optional<size_t>> places;
  size_t next = 0;
  for (size_t i = 0; i < known.size(); ++i) {
    bool isRequired = known[i] >= 'a';
    if (segments[i] != 1 && (segments[i] != 0 || isRequired))
      return wrongType("operandSegmentSizes", "0 or 1 for each operand");
    places.push_back(segments[i] ? std::optional(next++) : std::nullopt);
  }
  if (next != site.operandCount)
    return Status::error("attribute 'operandSegmentSizes' counts " +
                         std::to_string(next) + " operands of " +
                         std::to_string(site.operandCount));
  return places;
}

Result<Evaluate> prepareMatmul(const OpSite &site) {
  std::optional<Activation> glu;
  if (site.attributes.has("glu")) {
    KF_ASSIGN_OR_RETURN(glu, parseActivation(site.attributes, "glu"));
  }
  // x, w, bias, scales, sums, weight_scales, outliers.
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "ttTTTTT"));
  if (places[3].has_value() != places[4].has_value())
    return Status::error("scales and sums come together");
  return Evaluate([glu, places](const OpCall &call) -> Result<Tensor> {
    auto at = [&](size_t i) {
      return places[i] ? &call.tensor(*places[i]) : nullptr;
    };
    if (at(5) && (at(0)->rank() > 2 || at(3)))
      return Status::error("weight_scales go with plain rows alone");
    if (at(6)) {
      if (at(0)->rank() > 2 || at(3))
        return Status::error("outliers go with rows of f16 alone");
      KF_ASSIGN_OR_RETURN(Tensor x, insertOutliers(*at(0), *at(6)));
      return matmul(x.view(), *at(1), at(2), glu, at(5));
    }
    if (!glu && at(0)->rank() > 2)
      return batchMatmul(*at(0), *at(1), at(2));
    if (at(0)->rank() > 2) { // gated rows of all batches
      TensorView rows = *at(0);
      rows.shape = {rows.rows(), rows.columns()};
      KF_ASSIGN_OR_RETURN(Tensor product, matmul(rows, *at(1), at(2), glu));
      std::vector<int64_t> shape = at(0)->shape;
      shape.back() = product.shape[1];
      product.shape = shape;
      return product;
    }
    if (!at(3))
      return matmul(*at(0), *at(1), at(2), glu, at(5));
    KF_ASSIGN_OR_RETURN(Tensor x, scaleRows(*at(0), *at(3)));
    return matmul(x.view(), *at(1), at(2), glu);
  });
}

Result<Evaluate> prepareRoute(const OpSite &site) {
  RouteOptions options;
  KF_ASSIGN_OR_RETURN(options.top, site.attributes.integer("top"));
  options.sigmoid = site.attributes.has("sigmoid");
  options.normalized = site.attributes.has("normalized");
  if (site.attributes.has("groups")) {
    KF_ASSIGN_OR_RETURN(options.groups, site.attributes.integer("groups"));
    KF_ASSIGN_OR_RETURN(options.keptGroups,
                        site.attributes.integer("kept_groups"));
    if (options.groups < 1)
      return wrongType("groups", "positive");
  }
  // logits, bias, scales.
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "tTT"));
  return Evaluate([options, places](const OpCall &call) {
    auto at = [&](size_t i) {
      return places[i] ? &call.tensor(*places[i]) : nullptr;
    };
    return route(*at(0), options, at(2), at(1));
  });
}

Result<GluClamp> parseClamp(const Attributes &attributes) {
  KF_ASSIGN_OR_RETURN(const double limit, attributes.number("limit"));
  KF_ASSIGN_OR_RETURN(const double alpha, attributes.number("alpha"));
  if (!(limit > 0) || !(alpha > 0) || !std::isfinite(limit) ||
      !std::isfinite(alpha))
    return Status::error("limit and alpha must be positive and finite");
  return GluClamp{static_cast<float>(limit), static_cast<float>(alpha)};
}

Result<Evaluate> prepareExpertMatmul(const OpSite &site) {
  std::optional<Glu> glu;
  if (site.attributes.has("glu")) {
    glu.emplace();
    KF_ASSIGN_OR_RETURN(glu->activation,
                        parseActivation(site.attributes, "glu"));
  }
  if (site.attributes.has("clamp")) {
    if (!glu || glu->activation != Activation::Silu)
      return Status::error("attribute 'clamp' is for glu(silu)");
    KF_ASSIGN_OR_RETURN(Attributes members, site.attributes.members("clamp"));
    Result<GluClamp> clamp = parseClamp(members);
    if (!clamp)
      return clamp.status().in("attribute 'clamp'");
    glu->clamp = *clamp;
  }
  // x, experts, w, bias, scales, sums.
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "tttTTT"));
  if (places[4].has_value() != places[5].has_value())
    return Status::error("scales and sums come together");
  return Evaluate([glu, places](const OpCall &call) -> Result<Tensor> {
    auto at = [&](size_t i) {
      return places[i] ? &call.tensor(*places[i]) : nullptr;
    };
    if (!at(4))
      return expertMatmul(*at(0), *at(1), *at(2), at(3), glu);
    KF_ASSIGN_OR_RETURN(Tensor x, scaleRows(*at(0), *at(4)));
    return expertMatmul(x.view(), *at(1), *at(2), at(3), glu);
  });
}

Result<Evaluate> prepareMlp(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(Activation kind,
                      parseActivation(site.attributes, "activation"));
  // x, gate, up, down, gate_bias, up_bias, down_bias.
  KF_RETURN_IF_ERROR(site.attributes.any("operandSegmentSizes").status());
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "tTttTTT"));
  return Evaluate([places, kind](const OpCall &call) {
    auto at = [&](size_t i) {
      return places[i] ? &call.tensor(*places[i]) : nullptr;
    };
    return mlp(*at(0), {at(1), at(2), at(3), at(4), at(5), at(6)}, kind);
  });
}

Result<Evaluate> prepareRmsNorm(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(double eps, site.attributes.number("eps"));
  const bool centered = site.attributes.has("zero_centered");
  return Evaluate([eps, centered](const OpCall &call) {
    return rmsNorm(call.tensor(0), call.tensor(1), static_cast<float>(eps),
                   centered);
  });
}

Result<Evaluate> prepareLayerNorm(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(double eps, site.attributes.number("eps"));
  return Evaluate([eps](const OpCall &call) {
    return layerNorm(call.tensor(0), call.tensor(1), call.optionalTensor(2),
                     static_cast<float>(eps));
  });
}

Result<Evaluate> prepareSoftmax(const OpSite &) {
  return Evaluate([](const OpCall &call) { return softmax(call.tensor(0)); });
}

Result<Evaluate> prepareActivation(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(Activation kind,
                      parseActivation(site.attributes, "kind"));
  return Evaluate(
      [kind](const OpCall &call) { return activation(kind, call.tensor(0)); });
}

Result<RopeScaling> parseScaling(const Attributes &attributes) {
  constexpr std::pair<const char *, RopeScaling::Kind> kinds[] = {
      {"linear", RopeScaling::Kind::Linear},
      {"llama3", RopeScaling::Kind::Llama3}};
  RopeScaling scaling;
  KF_ASSIGN_OR_RETURN(scaling.kind, parseKeyword(attributes, "kind", kinds));
  KF_ASSIGN_OR_RETURN(scaling.factor, attributes.number("factor"));
  if (!(scaling.factor > 0))
    return wrongType("factor", "positive");
  if (scaling.kind == RopeScaling::Kind::Linear)
    return scaling;
  KF_ASSIGN_OR_RETURN(scaling.lowFreqFactor,
                      attributes.number("low_freq_factor"));
  KF_ASSIGN_OR_RETURN(scaling.highFreqFactor,
                      attributes.number("high_freq_factor"));
  KF_ASSIGN_OR_RETURN(scaling.originalContext,
                      attributes.integer("original_context"));
  if (!(scaling.lowFreqFactor > 0) ||
      !(scaling.highFreqFactor >= scaling.lowFreqFactor) ||
      scaling.originalContext < 1)
    return Status::error("llama3 scaling needs 0 < low_freq_factor <= "
                         "high_freq_factor and a positive original_context");
  return scaling;
}

constexpr std::pair<const char *, RopeStyle> kRopeStyles[] = {
    {"half", RopeStyle::Half}, {"interleaved", RopeStyle::Interleaved}};

Result<Evaluate> prepareRope(const OpSite &site) {
  RopeOptions options;
  KF_ASSIGN_OR_RETURN(options.theta, site.attributes.number("theta"));
  KF_ASSIGN_OR_RETURN(options.rotaryDim, site.attributes.integer("rotary_dim"));
  if (site.attributes.has("style")) {
    KF_ASSIGN_OR_RETURN(options.style,
                        parseKeyword(site.attributes, "style", kRopeStyles));
  }
  if (site.attributes.has("scaling")) {
    KF_ASSIGN_OR_RETURN(Attributes members, site.attributes.members("scaling"));
    Result<RopeScaling> scaling = parseScaling(members);
    if (!scaling)
      return scaling.status().in("attribute 'scaling'");
    options.scaling = *scaling;
  }
  if (site.attributes.has("magnitude")) {
    KF_ASSIGN_OR_RETURN(options.magnitude, site.attributes.number("magnitude"));
    if (!(options.magnitude > 0))
      return wrongType("magnitude", "positive");
  }
  return Evaluate([options](const OpCall &call) {
    return rope(call.tensor(0), call.tensor(1), call.optionalTensor(2),
                options);
  });
}

Result<AttentionOptions> parseAttention(const Attributes &attributes) {
  AttentionOptions options;
  KF_ASSIGN_OR_RETURN(options.layer, attributes.integer("layer"));
  KF_ASSIGN_OR_RETURN(double scale, attributes.number("scale"));
  options.scale = static_cast<float>(scale);
  if (attributes.has("window")) {
    KF_ASSIGN_OR_RETURN(const int64_t window, attributes.integer("window"));
    if (window < 1)
      return wrongType("window", "a positive number of keys");
    options.window.size = static_cast<uint64_t>(window);
  }
  options.window.chunked = attributes.has("chunked");
  if (attributes.has("softcap")) {
    KF_ASSIGN_OR_RETURN(double softcap, attributes.number("softcap"));
    options.softcap = static_cast<float>(softcap);
  }
  return options;
}

Result<Evaluate> prepareAttention(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(AttentionOptions options,
                      parseAttention(site.attributes));
  // Behind what there is always: sinks, and no KV head of a tile.
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "tctttTT"));
  return Evaluate([options, sinks = places[5]](const OpCall &call) {
    return attention(call.tensor(0), call.cache(1),
                     {call.tensor(2), call.tensor(3), call.tensor(4)}, options,
                     sinks ? &call.tensor(*sinks) : nullptr);
  });
}

Result<Evaluate> prepareAttentionPartial(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(AttentionOptions options,
                      parseAttention(site.attributes));
  KF_ASSIGN_OR_RETURN(int64_t splits, site.attributes.integer("splits"));
  return Evaluate([options, splits](const OpCall &call) {
    return attentionPartial(call.tensor(0), call.cache(1),
                            {call.tensor(2), call.tensor(3), call.tensor(4)},
                            options, splits);
  });
}

Result<Evaluate> prepareAttentionCombine(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return attentionCombine(call.tensor(0), call.tensor(1), call.tensor(2),
                            call.optionalTensor(3));
  });
}

Result<Evaluate> prepareKVAppend(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(int64_t layer, site.attributes.integer("layer"));
  return Evaluate([layer](const OpCall &call) -> Result<Tensor> {
    KF_RETURN_IF_ERROR(
        kvAppend(call.cache(0), call.tensor(1), call.tensor(2),
                 {call.tensor(3), call.tensor(4), call.tensor(5)}, layer));
    return Tensor();
  });
}

Result<Evaluate> prepareGatedDelta(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(int64_t layer, site.attributes.integer("layer"));
  return Evaluate([layer](const OpCall &call) {
    return gatedDelta({call.tensor(0), call.tensor(1), call.tensor(2),
                       call.tensor(3), call.tensor(4), call.tensor(5),
                       call.tensor(6), call.tensor(7), call.tensor(9),
                       call.tensor(10), call.tensor(11)},
                      call.cache(8), layer);
  });
}

Result<Evaluate> prepareArgmax(const OpSite &) {
  return Evaluate([](const OpCall &call) { return argmax(call.tensor(0)); });
}

Result<Evaluate> prepareSample(const OpSite &site) {
  constexpr size_t adjustments = 7, mask = 15, all = 17;
  KF_ASSIGN_OR_RETURN(auto places, operandPlaces(site, "tttttttTTTTTTTTTT"));
  for (auto [first, end] : {std::pair(adjustments, mask), std::pair(mask, all)})
    for (size_t i = first; i < end; ++i)
      if (places[i].has_value() != places[first].has_value())
        return Status::error("operands of adjustments come together, and those "
                             "of a mask");
  return Evaluate([places](const OpCall &call) {
    auto at = [&](size_t i) {
      return places[i] ? &call.tensor(*places[i]) : nullptr;
    };
    SampleOperands operands = {at(1), at(2), at(3), at(4), at(5), at(6)};
    if (at(adjustments))
      operands.adjustments = {at(7),  at(8),  at(9),  at(10),
                              at(11), at(12), at(13), at(14)};
    if (at(mask))
      operands.mask = {at(15), at(16)};
    return sample(call.tensor(0), operands);
  });
}

Result<Evaluate> prepareQuantize(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(std::string name, site.attributes.keyword("format"));
  Result<DataType> format = parseDataType(name);
  if (!format || !isBlock(*format))
    return Status::error("unknown block format '" + name + "'");
  return Evaluate([format = *format](const OpCall &call) {
    return quantize(call.tensor(0), format);
  });
}

Result<Evaluate> prepareQuantizeRows(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(int64_t group, site.attributes.integer("group"));
  return Evaluate([group](const OpCall &call) {
    return quantizeRows(call.tensor(0), group);
  });
}

Result<Evaluate> prepareRoundHalf(const OpSite &) {
  return Evaluate([](const OpCall &call) { return roundHalf(call.tensor(0)); });
}

Result<Evaluate> prepareDequantize(const OpSite &) {
  return Evaluate(
      [](const OpCall &call) { return dequantize(call.tensor(0)); });
}

Result<Evaluate> prepareCrossEntropy(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return crossEntropy(call.tensor(0), call.tensor(1));
  });
}

Result<Evaluate> prepareDropout(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(const double p, site.attributes.number("p"));
  return Evaluate([p = static_cast<float>(p)](const OpCall &call) {
    return dropout(call.tensor(0), call.tensor(1), p);
  });
}

Result<Evaluate> preparePhilox(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return philoxWords({call.tensor(0), call.tensor(1), call.tensor(2),
                        call.tensor(3), call.tensor(4), call.tensor(5)});
  });
}

Result<Evaluate> prepareScatterAdd(const OpSite &site) {
  if (site.result->shape.size() != 2 || site.result->shape[0] < 1)
    return Status::error("C3: its result is no static matrix");
  return Evaluate([count = site.result->shape[0]](const OpCall &call) {
    return scatterAdd(call.tensor(0), call.tensor(1), count);
  });
}

Result<Evaluate> prepareMatmulDgrad(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return matmulDgrad(call.tensor(0), call.tensor(1));
  });
}

Result<Evaluate> prepareMatmulWgrad(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return matmulWgrad(call.tensor(0), call.tensor(1));
  });
}

Result<Evaluate> prepareBatchMatmul(const OpSite &) {
  return Evaluate([](const OpCall &call) {
    return batchMatmul(call.tensor(0), call.tensor(1));
  });
}

/// Options of attention to tensors, whose scale may follow from the first.
struct PlainAttentionSite {
  PlainAttentionOptions options;
  std::optional<double> scale;

  PlainAttentionOptions of(const OpCall &call) const {
    PlainAttentionOptions all = options;
    all.scale = static_cast<float>(scale.value_or(
        1.0 / std::sqrt(static_cast<double>(call.tensor(0).columns()))));
    return all;
  }
};

Result<PlainAttentionSite> parsePlainAttention(const OpSite &site) {
  PlainAttentionSite parsed;
  PlainAttentionOptions &options = parsed.options;
  options.causal = site.attributes.has("causal");
  KF_ASSIGN_OR_RETURN(options.offset, site.attributes.integer("offset", 0));
  if (site.attributes.has("scale")) {
    KF_ASSIGN_OR_RETURN(parsed.scale, site.attributes.number("scale"));
  }
  if (site.attributes.has("softcap")) {
    KF_ASSIGN_OR_RETURN(double softcap, site.attributes.number("softcap"));
    options.softcap = static_cast<float>(softcap);
  }
  if (site.attributes.has("window")) {
    KF_ASSIGN_OR_RETURN(options.window, site.attributes.integer("window"));
  }
  // Sums of what a file says must not overflow.
  constexpr int64_t most = int64_t(1) << 31;
  if (options.offset < -most || options.offset > most)
    return wrongType("offset", "a number of keys");
  if (options.window.value_or(1) < 1 || options.window.value_or(1) > most)
    return wrongType("window", "a positive number of keys");
  return parsed;
}

Result<Evaluate> preparePlainAttention(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(PlainAttentionSite parsed, parsePlainAttention(site));
  return Evaluate([parsed](const OpCall &call) {
    return plainAttention(call.tensor(0), call.tensor(1), call.tensor(2),
                          call.optionalTensor(3), parsed.of(call));
  });
}

Result<Evaluate> prepareAttentionQgrad(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(PlainAttentionSite parsed, parsePlainAttention(site));
  return Evaluate([parsed](const OpCall &call) {
    return attentionQgrad(call.tensor(0), call.tensor(1), call.tensor(2),
                          call.tensor(3), call.optionalTensor(4),
                          parsed.of(call));
  });
}

Result<Evaluate> prepareAttentionKvgrad(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(PlainAttentionSite parsed, parsePlainAttention(site));
  return Evaluate([parsed](const OpCall &call) {
    return attentionKvgrad(call.tensor(0), call.tensor(1), call.tensor(2),
                           call.tensor(3), call.optionalTensor(6),
                           parsed.of(call));
  });
}

Result<Evaluate> prepareRotaryEmbedding(const OpSite &site) {
  RopeStyle style = RopeStyle::Half;
  if (site.attributes.has("style")) {
    KF_ASSIGN_OR_RETURN(style,
                        parseKeyword(site.attributes, "style", kRopeStyles));
  }
  return Evaluate([style](const OpCall &call) {
    return rotate(call.tensor(0), call.tensor(1), call.tensor(2), style);
  });
}

Result<Evaluate> prepareReduce(const OpSite &site) {
  constexpr std::pair<const char *, Reduction> kinds[] = {
      {"sum", Reduction::Sum},
      {"prod", Reduction::Prod},
      {"max", Reduction::Max},
      {"min", Reduction::Min},
      {"mean", Reduction::Mean}};
  KF_ASSIGN_OR_RETURN(Reduction kind,
                      parseKeyword(site.attributes, "kind", kinds));
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                      site.attributes.integers("dims"));
  return Evaluate([kind, dims, type = *site.result](const OpCall &call) {
    return reduce(kind, call.tensor(0), dims, type.resolve(call.scalars));
  });
}

Result<Evaluate> prepareTranspose(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> permutation,
                      site.attributes.integers("permutation"));
  return Evaluate([permutation](const OpCall &call) {
    return transpose(call.tensor(0), permutation);
  });
}

Result<Evaluate> prepareBroadcast(const OpSite &site) {
  return Evaluate([type = *site.result](const OpCall &call) {
    return broadcast(call.tensor(0), type.resolve(call.scalars));
  });
}

Result<Evaluate> prepareConcat(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(int64_t dim, site.attributes.integer("dim"));
  return Evaluate([dim](const OpCall &call) {
    std::vector<TensorView> parts;
    for (size_t i = 0; i < call.operands.size(); ++i)
      parts.push_back(call.tensor(i));
    return concat(parts, dim);
  });
}

Result<Evaluate> prepareIota(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(int64_t dim, site.attributes.integer("dim"));
  return Evaluate([dim, type = *site.result](const OpCall &call) {
    return iota(type.type, type.resolve(call.scalars), dim);
  });
}

/// An element of a constant: a number, or the text of one that JSON lacks.
Result<double> parseElement(const nlohmann::json &element) {
  if (element.is_number())
    return element.get<double>();
  if (element == "inf" || element == "-inf")
    return (element == "inf" ? 1 : -1) *
           std::numeric_limits<double>::infinity();
  if (element == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  return wrongType("value", "made of numbers");
}

/// Writes `element` as element `i` of a constant.
Status writeElement(const nlohmann::json &element, Tensor &constant,
                    int64_t i) {
  if (isReal(constant.type)) {
    KF_ASSIGN_OR_RETURN(double value, parseElement(element));
    putReal(constant, i, value);
    return Status();
  }
  std::optional<int64_t> integer = toInteger(element);
  if (!integer)
    return wrongType("value", "made of integers");
  const size_t size = sizeOf(constant.type);
  const int64_t rest = *integer >> (size * 8 - 1);
  if (constant.type != DataType::I1 && size < 8 && rest != 0 && rest != -1)
    return wrongType("value", "made of integers of the constant's type");
  putInteger(constant, i, *integer);
  return Status();
}

/// arith.constant: `value` is one number for all elements, or one for each.
Result<Evaluate> prepareConstant(const OpSite &site) {
  const ValueType &type = *site.result;
  if (type.cache || isBlock(type.type) || type.type == DataType::U8 ||
      type.type == DataType::F8E4M3)
    return Status::error("a constant of floats or integers is expected");
  KF_ASSIGN_OR_RETURN(const nlohmann::json *value,
                      site.attributes.any("value"));
  const bool splat = !value->is_array();
  KF_ASSIGN_OR_RETURN(
      Tensor list,
      Tensor::zeros(type.type, {splat ? 1 : int64_t(value->size())}));
  for (int64_t i = 0; i < list.shape[0]; ++i)
    KF_RETURN_IF_ERROR(writeElement(
        splat ? *value : (*value)[static_cast<size_t>(i)], list, i));
  return Evaluate([type, list, splat](const OpCall &call) -> Result<Tensor> {
    std::vector<int64_t> shape = type.resolve(call.scalars);
    KF_ASSIGN_OR_RETURN(int64_t count, checkedElementCount(shape, 8));
    if (splat ? count > kMaxSplatElements : count != list.shape[0])
      return Status::error("a constant of type " + describe(type.type, shape) +
                           " has " + std::to_string(list.shape[0]) +
                           " elements");
    if (splat)
      return broadcast({list.type, {}, list.bytes.data()}, shape);
    return reshape(list.view(), shape);
  });
}

/// tensor.extract_slice, which may drop dimensions of size 1.
Result<Evaluate> prepareExtractSlice(const OpSite &site) {
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                      site.attributes.integers("static_offsets"));
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                      site.attributes.integers("static_sizes"));
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                      site.attributes.integers("static_strides"));
  for (const std::vector<int64_t> *fixed : {&offsets, &strides})
    for (int64_t value : *fixed)
      if (value == kDynamic)
        return Status::error("offsets and strides that are not constant have "
                             "no reference");
  if (site.result->shape.empty() && std::ranges::count(sizes, kDynamic) > 0)
    return Status::error("a size that is not constant has no reference in a "
                         "result of rank 0");
  return Evaluate([offsets, sizes, strides,
                   type = *site.result](const OpCall &call) -> Result<Tensor> {
    std::vector<int64_t> resolved = sizes;
    // What has no constant extent has the result's.
    const std::vector<int64_t> shape = type.resolve(call.scalars);
    for (int64_t &size : resolved)
      if (size == kDynamic)
        size = shape.front();
    KF_ASSIGN_OR_RETURN(
        Tensor slice, extractSlice(call.tensor(0), offsets, resolved, strides));
    return reshape(slice.view(), shape);
  });
}

/// tensor.expand_shape and collapse_shape: the result type says it all. So it
/// does for kf.pack, as every tensor lies in the order of its shape here.
Result<Evaluate> prepareReshape(const OpSite &site) {
  return Evaluate([type = *site.result](const OpCall &call) {
    return reshape(call.tensor(0), type.resolve(call.scalars));
  });
}

constexpr OpEntry kOps[] = {
    {"kf.embedding", "tt", 1, prepareEmbedding},
    {"kf.matmul", "ttTTTTT", 1, prepareMatmul},
    {"kf.route", "tTT", 2, prepareRoute},
    {"kf.expert_matmul", "tttTTT", 1, prepareExpertMatmul},
    {"kf.mlp", "tttTTTT", 1, prepareMlp},
    {"kf.rms_norm", "tt", 1, prepareRmsNorm},
    {"kf.layer_norm", "ttT", 1, prepareLayerNorm},
    {"kf.softmax", "t", 1, prepareSoftmax},
    {"kf.activation", "t", 1, prepareActivation},
    {"kf.rope", "ttT", 1, prepareRope},
    {"kf.attention", "tctttT", 1, prepareAttention},
    {"kf.attention_partial", "tcttt", 3, prepareAttentionPartial},
    {"kf.attention_combine", "tttT", 1, prepareAttentionCombine},
    {"kf.kv_append", "cttttt", 0, prepareKVAppend},
    {"kf.gated_delta", "ttttttttcttt", 1, prepareGatedDelta},
    {"kf.argmax", "t", 1, prepareArgmax},
    {"kf.sample", "tttttttTTTTTTTTTT", 1, prepareSample},
    {"kf.quantize", "t", 1, prepareQuantize},
    {"kf.quantize_rows", "t", 3, prepareQuantizeRows},
    {"kf.round_half", "t", 2, prepareRoundHalf},
    {"kf.dequantize", "t", 1, prepareDequantize},
    {"kf.pack", "t", 1, prepareReshape},
    {"kf.cross_entropy", "tt", 1, prepareCrossEntropy},
    {"kf.dropout", "tt", 1, prepareDropout},
    {"kf.philox", "tttttt", 1, preparePhilox},
    {"kf.scatter_add", "tt", 1, prepareScatterAdd},
    {"kf.matmul_dgrad", "tt", 1, prepareMatmulDgrad},
    {"kf.matmul_wgrad", "tt", 1, prepareMatmulWgrad},
    {"kf.batch_matmul", "tt", 1, prepareBatchMatmul},
    {"kf.scaled_dot_product_attention", "tttT", 1, preparePlainAttention},
    {"kf.attention_qgrad", "ttttT", 3, prepareAttentionQgrad},
    {"kf.attention_kvgrad", "ttttttT", 2, prepareAttentionKvgrad},
    {"kf.rotary_embedding", "ttt", 1, prepareRotaryEmbedding},
    {"kf.reduce", "t", 1, prepareReduce},
    {"kf.transpose", "t", 1, prepareTranspose},
    {"kf.broadcast", "t", 1, prepareBroadcast},
    {"kf.iota", "", 1, prepareIota},
    {"arith.constant", "", 1, prepareConstant},
    {"tensor.extract_slice", "t", 1, prepareExtractSlice},
    {"tensor.expand_shape", "t", 1, prepareReshape},
    {"tensor.collapse_shape", "t", 1, prepareReshape},
    {"tensor.cast", "t", 1, prepareReshape},
    {"tensor.concat", "t*", 1, prepareConcat},
};

/// Elementwise ops, which have the name of their function.
Result<Evaluate> prepareScalarOp(const OpSite &site) {
  const ScalarOp &op = *findScalarOp(site.name);
  int64_t predicate = 0;
  if (hasPredicate(op)) {
    KF_ASSIGN_OR_RETURN(predicate, site.attributes.integer("predicate"));
    if (!hasPredicate(op, predicate))
      return wrongType("predicate", "one of the op's");
  }
  return Evaluate(
      [&op, predicate, type = site.result->type](const OpCall &call) {
        std::vector<TensorView> operands;
        for (size_t i = 0; i < call.operands.size(); ++i)
          operands.push_back(call.tensor(i));
        return apply(op, operands, type, predicate);
      });
}

constexpr OpEntry kScalarEntries[] = {
    {"", "t", 1, prepareScalarOp},
    {"", "tt", 1, prepareScalarOp},
    {"", "ttt", 1, prepareScalarOp},
};

} // namespace

const OpEntry *findOp(std::string_view name) {
  for (const OpEntry &entry : kOps)
    if (entry.name == name)
      return &entry;
  if (const ScalarOp *op = findScalarOp(name))
    return &kScalarEntries[operandCount(*op) - 1];
  return nullptr;
}

} // namespace kf::reference
