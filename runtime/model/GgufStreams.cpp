//===- GgufStreams.cpp - What a GGUF file says of streams -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufStreams.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/ModelFamily.h"

#include <cmath>

using namespace kf;

/// The rows of the matrix `name`.
static Result<int64_t> rowsOf(const Gguf &gguf, std::string_view name) {
  const GgufTensor *tensor = gguf.lookUpTensor(name);
  if (!tensor)
    return Status::error("no tensor " + inQuotes(name));
  if (tensor->shape.size() != 2 || tensor->shape.front() < 1 ||
      tensor->shape.front() > kMaxSize)
    return Status::error("tensor " + inQuotes(name) + " is no matrix of 1 to " +
                         std::to_string(kMaxSize) + " rows");
  return tensor->shape.front();
}

/// Where it is cut off at all, a layer's gate has a finite number.
static Status readCutoffs(const Gguf &gguf, const GgufNumbers &numbers,
                          ModelConfig &config) {
  const std::string key = numbers.keyOf(kGgufCutoffs);
  KF_ASSIGN_OR_RETURN(const std::vector<float> cutoffs, gguf.getFloats(key));
  if (cutoffs.size() != config.layerConfigs.size())
    return Status::error("metadata " + inQuotes(key) + " is an array of " +
                         std::to_string(cutoffs.size()) + " numbers for " +
                         std::to_string(config.layers) + " layers");
  for (size_t i = 0; i < cutoffs.size(); ++i) {
    if (std::isnan(cutoffs[i]) || (std::isinf(cutoffs[i]) && cutoffs[i] > 0))
      return Status::error("metadata " + inQuotes(key) + " has " +
                           spellNumber(cutoffs[i]) + " for layer " +
                           std::to_string(i) +
                           ", but a finite number, or -inf, is expected");
    if (std::isfinite(cutoffs[i]))
      config.layerConfigs[i].gateCutoff = cutoffs[i];
  }
  return Status();
}

Status kf::readGgufStreams(const Gguf &gguf, const GgufNumbers &numbers,
                           ModelConfig &config) {
  const Family &family = familyOf(config.architecture);
  if (!family.tokenInputWidth)
    return Status();
  KF_ASSIGN_OR_RETURN(const uint64_t width,
                      gguf.getUnsigned(numbers.keyOf(kGgufTokenInputs), 0));
  if (width > static_cast<uint64_t>(kMaxSize / config.layers))
    return Status::error(
        numbers.valueOf(kGgufTokenInputs, std::to_string(width)) + ", but " +
        std::to_string(config.layers) + " layers have at most " +
        std::to_string(kMaxSize) + " columns");
  config.tokenInputWidth = static_cast<int64_t>(width);
  if (width > 0) {
    KF_ASSIGN_OR_RETURN(config.tokenInputVocab,
                        rowsOf(gguf, "per_layer_token_embd.weight"));
  }
  if (!family.streams.count)
    return Status();
  if (width == 0)
    return Status::error(numbers.valueOf(kGgufTokenInputs, "0") +
                         ", but streams need inputs of tokens");
  StreamsConfig &streams = config.streams;
  KF_ASSIGN_OR_RETURN(streams.count, numbers.size(kGgufStreams, kMaxStreams));
  if (const int64_t pairs = streams.count * streams.count * config.layers;
      streams.count < 2 || pairs > kMaxStreamPairs)
    return Status::error(
        numbers.valueOf(kGgufStreams, std::to_string(streams.count)) +
        ", but 2 to " + std::to_string(kMaxStreams) +
        " streams are possible, and their square times the layers at most " +
        std::to_string(kMaxStreamPairs));
  KF_ASSIGN_OR_RETURN(const uint64_t active,
                      gguf.getUnsigned(numbers.keyOf(kGgufActiveStream)));
  if (active >= static_cast<uint64_t>(streams.count))
    return Status::error(
        numbers.valueOf(kGgufActiveStream, std::to_string(active)) + ", but " +
        inQuotes(numbers.keyOf(kGgufStreams)) + " is " +
        std::to_string(streams.count));
  streams.active = static_cast<int64_t>(active);
  streams.scaled = true;
  KF_ASSIGN_OR_RETURN(config.narrowWidth,
                      rowsOf(gguf, "blk.0.laurel_l.weight"));
  return readCutoffs(gguf, numbers, config);
}
