//===- StreamFields.cpp - What config.json says of streams ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/StreamFields.h"

#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"

#include <cmath>
#include <numbers>
#include <vector>

using namespace kf;
using nlohmann::json;

double kf::normalQuantile(double probability) {
  // Halving finds it: the probability grows with the number.
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    const double below = std::erfc(-middle / std::numbers::sqrt2) / 2;
    (below < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// The field's value for each layer.
static Result<std::vector<double>> readSparsity(const ConfigReader &reader,
                                                const StreamFields &fields,
                                                int64_t layers) {
  const auto count = static_cast<size_t>(layers);
  const json *value = reader.find(fields.sparsity);
  std::vector<double> sparsity(count, 0);
  if (!value) {
    for (int64_t i = 0; i < fields.sparseLayers && fields.sparseLayers < layers;
         ++i)
      sparsity[static_cast<size_t>(i)] = fields.defaultSparsity;
    return sparsity;
  }
  if (value->is_array() && value->size() != count)
    return reader.unexpected(fields.sparsity,
                             "a list of one number for each layer");
  for (size_t i = 0; i < count; ++i) {
    const json &one = value->is_array() ? (*value)[i] : *value;
    const double share = one.is_number() ? one.get<double>() : NAN;
    if (!(share >= 0 && share < 1))
      return reader.unexpected(
          fields.sparsity,
          "a number from 0 to below 1, or a list of one for each layer,");
    sparsity[i] = share;
  }
  return sparsity;
}

Status kf::readStreams(const ConfigReader &reader, const Family &family,
                       ModelConfig &config) {
  const StreamFields &fields = family.streams;
  if (!fields.count)
    return Status();
  StreamsConfig &streams = config.streams;
  KF_ASSIGN_OR_RETURN(
      streams.count,
      reader.integer(fields.count, 2, kMaxStreams, fields.defaultCount));
  if (const int64_t pairs = streams.count * streams.count * config.layers;
      pairs > kMaxStreamPairs)
    return Status::error("'" + std::string(fields.count) + "' is " +
                         std::to_string(streams.count) +
                         ", whose square times 'num_hidden_layers' " +
                         std::to_string(config.layers) + " is " +
                         std::to_string(pairs) + "; at most " +
                         std::to_string(kMaxStreamPairs) + " is possible");
  KF_ASSIGN_OR_RETURN(streams.active,
                      reader.integer(fields.active, 0, streams.count - 1, 0));
  KF_ASSIGN_OR_RETURN(streams.scaled, reader.boolean(fields.scaled, true));
  KF_ASSIGN_OR_RETURN(config.narrowWidth,
                      reader.integer(fields.narrowWidth, 1, kMaxSize,
                                     fields.defaultNarrowWidth));
  KF_ASSIGN_OR_RETURN(const std::vector<double> sparsity,
                      readSparsity(reader, fields, config.layers));
  for (size_t i = 0; i < sparsity.size(); ++i)
    if (sparsity[i] > 0)
      config.layerConfigs[i].gateCutoff = normalQuantile(sparsity[i]);
  return Status();
}
