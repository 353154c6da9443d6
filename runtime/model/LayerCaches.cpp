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

using namespace kf;

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
}

int64_t kf::statePagesOf(const ModelConfig &config) {
  return std::min(cachePagesOf(config.maxPositions), kStatePages);
}

int64_t kf::cachedStates(const ModelConfig &config, int64_t pages) {
  if (!config.hasStates())
    return 0;
  const LayerCaches caches(config);
  const auto states =
      std::ranges::find_if(caches.specs(), &CacheSpec::isOfStates);
  return states == caches.specs().end() ? 0 : states->slots(pages);
}

int64_t kf::pagesOfSequence(const ModelConfig &config, int64_t positions) {
  const int64_t pages = cachePagesOf(positions);
  return config.hasStates() ? std::max(pages, statePagesOf(config)) : pages;
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
