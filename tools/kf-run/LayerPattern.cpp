//===- LayerPattern.cpp - What a model's layers do otherwise --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerPattern.h"

#include <algorithm>

using namespace kf;

namespace {

/// Whether layers are said to be alike: all but whose keys they attend to, and
/// how wide their blocks are.
bool isAlike(const LayerConfig &a, const LayerConfig &b) {
  return a.keyWindow() == b.keyWindow() && a.isLinear == b.isLinear &&
         a.headDim == b.headDim && a.kvHeads == b.kvHeads &&
         a.rope.has_value() == b.rope.has_value();
}

/// The fewest layers that, in turn, are what all are.
size_t periodOf(const std::vector<LayerConfig> &layers) {
  for (size_t period = 1; period < layers.size(); ++period) {
    bool repeats = true;
    for (size_t i = period; i < layers.size() && repeats; ++i)
      repeats = isAlike(layers[i], layers[i - period]);
    if (repeats)
      return period;
  }
  return layers.size();
}

/// Whether nothing of a layer has to be said: it has no window, and what of
/// isAlike() may be the model's is.
bool isPlain(const LayerConfig &layer, const ModelConfig &config) {
  return layer.window == 0 && !layer.isLinear &&
         layer.headDim == config.headDim && layer.kvHeads == config.kvHeads;
}

/// "with a window of 512" or "with chunks of 8192", and what else is not the
/// model's.
std::string textOf(const LayerConfig &layer, const ModelConfig &config) {
  if (config.hasStates())
    return layer.isLinear ? "with linear attention" : "with attention to all";
  const bool someHaveOne =
      std::ranges::any_of(config.layerConfigs, [](const LayerConfig &other) {
        return other.window > 0;
      });
  const char *kind = layer.chunked ? "with chunks of " : "with a window of ";
  std::string text = layer.window  ? kind + std::to_string(layer.window)
                     : someHaveOne ? "without"
                                   : "without a window";
  if (!layer.rope && config.layerConfigs.front().rope)
    text += " or RoPE";
  if (layer.queryGrowth)
    text += ", with queries that grow by position";
  if (layer.headDim != config.headDim)
    text += ", heads of " + std::to_string(layer.headDim);
  if (layer.kvHeads != config.kvHeads)
    text += ", " + std::to_string(layer.kvHeads) + " for keys and values";
  return text;
}

} // namespace

std::vector<std::string> kf::layerPattern(const ModelConfig &config) {
  std::vector<LayerConfig> layers;
  for (int64_t i = 0; i < config.layers; ++i)
    layers.push_back(config.layer(i));
  auto countIf = [&](auto holds) {
    return std::to_string(std::ranges::count_if(layers, holds));
  };
  std::vector<std::string> lines;
  const size_t period = periodOf(layers);
  if (period > 1 || !isPlain(layers.front(), config)) {
    std::string text;
    for (size_t i = 0; i < period;) {
      size_t end = i;
      while (end < period && isAlike(layers[end], layers[i]))
        ++end;
      text += (text.empty() ? "" : ", ") +
              (period == 1 ? "all" : std::to_string(end - i)) + " " +
              textOf(layers[i], config);
      i = end;
    }
    lines.push_back(text +
                    (period > 1 && period < layers.size() ? ", in turn" : ""));
  }
  if (std::string sharing = countIf(
          [](const LayerConfig &layer) { return layer.keysOf.has_value(); });
      sharing != "0")
    lines.push_back("the last " + sharing +
                    " attend to the keys of earlier ones");
  if (std::string wider = countIf([&](const LayerConfig &layer) {
        return layer.intermediateSize != config.intermediateSize;
      });
      wider != "0")
    lines.push_back(wider + " with a feed-forward of another width");
  if (config.hasStates())
    lines.push_back(countIf(&LayerConfig::isLinear) + " with " +
                    std::to_string(config.linear.valueHeads) + " states of " +
                    std::to_string(config.linear.keyDim) + " x " +
                    std::to_string(config.linear.valueDim) + " each");
  if (config.streams.count > 1)
    lines.push_back("around " + std::to_string(config.streams.count) +
                    " streams, of which one is computed");
  if (std::string cut = countIf([](const LayerConfig &layer) {
        return layer.gateCutoff.has_value();
      });
      cut != "0")
    lines.push_back(cut + " with gates of which few count");
  if (config.tokenInputWidth)
    lines.push_back("all with an input of the token, " +
                    std::to_string(config.tokenInputWidth) + " wide");
  return lines;
}
