//===- LayerCaches.cpp - Where layers keep keys and values ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LayerCaches.h"

#include "runtime/model/Step.h"

#include <algorithm>
#include <optional>

using namespace kf;

namespace {

/// Pages for the rows of a step, where pages are few: prompts are read in
/// chunks of as many positions at least.
constexpr int64_t kStepPages = 4;

/// What layers keep keys and values of their own for.
struct KeyLayers {
  explicit KeyLayers(const ModelConfig &config)
      : isWindowed(static_cast<size_t>(config.layers)) {
    for (int64_t i = 0; i < config.layers; ++i) {
      const LayerConfig layer = config.layer(i);
      if (!layer.keysOf)
        isWindowed[static_cast<size_t>(i)] = layer.window > 0;
      else if (layer.window == 0)
        isWindowed[static_cast<size_t>(*layer.keysOf)] = false;
      own += !layer.keysOf;
      widest = std::max(widest, layer.window);
    }
    windowed = std::ranges::count(isWindowed, true);
  }

  int64_t others() const { return own - windowed; }
  /// Layers of a group. Groups of windows are many for the sake of those that
  /// attend to all, whose pages are as large.
  int64_t ofGroup() const {
    return others() == 0
               ? own
               : std::max(others(), (windowed + kMostWindowTables - 1) /
                                        kMostWindowTables);
  }

  std::vector<bool> isWindowed; ///< its keys are seen in windows alone
  int64_t own = 0;              ///< layers with keys of their own
  int64_t windowed = 0;         ///< of them, those that isWindowed says
  int64_t widest = 0;           ///< the most positions of a window
};

/// Whether all layers keep keys and values of one size, and nothing else.
bool areAlike(const ModelConfig &config) {
  const LayerConfig first = config.layer(0);
  for (int64_t i = 1; i < config.layers; ++i)
    if (const LayerConfig layer = config.layer(i);
        !layer.keysOf &&
        (layer.kvHeads != first.kvHeads || layer.headDim != first.headDim))
      return false;
  return !config.hasStates();
}

} // namespace

int64_t CacheWindows::pagesKept() const {
  return cachePagesOf(positions + kCachePage) + 1;
}

int64_t CacheWindows::firstSeen(int64_t position) const {
  return std::max<int64_t>(position + 1 - positions, 0) / kCachePage;
}

int64_t CacheWindows::firstKept(int64_t length) const {
  return firstSeen(std::max<int64_t>(length - kCachePage, 0));
}

CacheWindows kf::cacheWindowsOf(const ModelConfig &config) {
  if (config.stage.count > 1 || config.contextRanks > 1 || !areAlike(config))
    return {};
  const KeyLayers layers(config);
  if (layers.own == 0)
    return {};
  const CacheWindows windows = {
      .tables = (layers.windowed + layers.ofGroup() - 1) / layers.ofGroup(),
      .positions = layers.widest,
      .areAll = layers.others() == 0};
  // What no sequence is longer than is never given back.
  const bool areWorthIt =
      layers.windowed >= layers.others() &&
      windows.positions < config.maxPositions &&
      windows.pagesKept() < cachePagesOf(config.maxPositions, config);
  return areWorthIt ? windows : CacheWindows();
}

/// Layers that attend to all positions are a group, and those with windows fill
/// one after the other.
void LayerCaches::placeInGroups(const ModelConfig &config) {
  const KeyLayers layers(config);
  CacheSpec &cache = caches.front();
  cache.layers = layers.ofGroup();
  int64_t windowed = 0, others = 0;
  for (int64_t i = 0; i < config.layers; ++i) {
    Place &place = places[static_cast<size_t>(i)];
    if (const std::optional<int64_t> keys = config.layer(i).keysOf) {
      place = of(*keys);
    } else if (layers.isWindowed[static_cast<size_t>(i)]) {
      place.table = 1 + windowed / cache.layers;
      place.layer = windowed++ % cache.layers;
    } else {
      place.layer = others++;
    }
  }
}

LayerCaches::LayerCaches(const ModelConfig &config, DataType type) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig layer = config.layer(i);
    if (layer.keysOf) {
      places.push_back(of(*layer.keysOf));
      continue;
    }
    CacheSpec wanted;
    if (layer.isLinear) {
      wanted = CacheSpec::ofStates(/*layers=*/0, config.linear.valueHeads,
                                   config.linear.stateElements(),
                                   statePagesOf(config));
    } else {
      wanted.type = type;
      wanted.kvHeads = layer.kvHeads;
      wanted.headDim = layer.headDim;
      wanted.page = kCachePage;
    }
    auto found = std::ranges::find_if(caches, [&](const CacheSpec &cache) {
      return cache.isOfStates() == wanted.isOfStates() &&
             cache.kvHeads == wanted.kvHeads && cache.headDim == wanted.headDim;
    });
    if (found == caches.end())
      found = caches.insert(caches.end(), wanted);
    places.push_back(
        {static_cast<size_t>(found - caches.begin()), found->layers++});
  }
  if (cacheWindowsOf(config).moreTables() > 0)
    placeInGroups(config);
}

int64_t kf::statePagesOf(const ModelConfig &config) {
  return std::min(cachePagesOf(config.maxPositions, config), kStatePages);
}

int64_t kf::cachedStates(const ModelConfig &config, int64_t pages) {
  if (!config.hasStates())
    return 0;
  const LayerCaches caches(config);
  const auto states =
      std::ranges::find_if(caches.specs(), &CacheSpec::isOfStates);
  return states == caches.specs().end() ? 0 : states->slots(pages);
}

/// Pages of keys and values that a sequence of `pages` pages of positions has.
static int64_t pagesOfKeys(const CacheWindows &windows, int64_t pages) {
  return (windows.areAll ? 0 : pages) +
         windows.tables * std::min(pages, windows.pagesKept() + kStepPages);
}

int64_t kf::pagesOfSequence(const ModelConfig &config, int64_t positions) {
  const int64_t pages =
      pagesOfKeys(cacheWindowsOf(config), cachePagesOf(positions, config));
  return config.hasStates() ? std::max(pages, statePagesOf(config)) : pages;
}

int64_t kf::pagesOfSequences(const ModelConfig &config, int64_t positions,
                             int64_t sequences, int64_t rows) {
  const CacheWindows windows = cacheWindowsOf(config);
  const int64_t pages = cachePagesOf(positions, config);
  // Those of windows that each sequence lacks at most, and those of a step.
  const int64_t lacking =
      std::max<int64_t>(pages - windows.pagesKept() - kStepPages, 0);
  const int64_t step =
      std::max<int64_t>(cachePagesOf(rows, config) - kStepPages, 0);
  return sequences * pagesOfSequence(config, positions) +
         windows.tables * std::min(sequences * lacking, step);
}

int64_t kf::positionsWithin(const ModelConfig &config, int64_t pages) {
  const CacheWindows windows = cacheWindowsOf(config);
  int64_t least = 0, most = windows.areAll
                                ? cachePagesOf(config.maxPositions, config)
                                : pages;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (pagesOfKeys(windows, middle) <= pages)
      least = middle;
    else
      most = middle - 1;
  }
  return least * pagePositionsOf(config);
}

int64_t kf::positionsOf(const ModelConfig &config, int64_t pages,
                        int64_t context, int64_t sequences) {
  const CacheWindows windows = cacheWindowsOf(config);
  const int64_t ofContext = pagesOfKeys(windows, cachePagesOf(context, config));
  // Fewer than the windows of one sequence see hold nothing but its beginning.
  if (windows.areAll && pages < ofContext)
    return pages * pagePositionsOf(config);
  const __int128 each = cachePagesOf(context, config);
  __int128 whole = pages * each / ofContext;
  if (windows.tables > 0)
    whole = std::min(whole, sequences * each);
  return static_cast<int64_t>(
      std::min<__int128>(whole * pagePositionsOf(config), INT64_MAX));
}

/// Sequences of one model need most beside those of another where a length has
/// all pages of a kind: between these, both grow evenly, and so their ratio
/// does nothing but grow or shrink.
int64_t kf::pagesBeside(const ModelConfig &config, const ModelConfig &other,
                        int64_t pages, int64_t context) {
  const CacheWindows own = cacheWindowsOf(config),
                     others = cacheWindowsOf(other);
  const int64_t longest = cachePagesOf(context, config);
  int64_t most = 0;
  for (const int64_t length : {int64_t(1), own.pagesKept() + kStepPages,
                               others.pagesKept() + kStepPages, longest}) {
    const int64_t each = std::min(length, longest);
    const __int128 needed =
        static_cast<__int128>(pages) * pagesOfKeys(own, each);
    const int64_t share = pagesOfKeys(others, each);
    most = std::max(most, static_cast<int64_t>((needed + share - 1) / share));
  }
  return most;
}

Result<int64_t> LayerCaches::bytes(int64_t pages) const {
  int64_t sum = 0;
  for (const CacheSpec &cache : caches) {
    KF_ASSIGN_OR_RETURN(const int64_t bytes, cache.bytes(pages));
    if (__builtin_add_overflow(sum, bytes, &sum))
      return Status::error("the KV caches of " + std::to_string(pages) +
                           " pages are too large");
  }
  return sum;
}
