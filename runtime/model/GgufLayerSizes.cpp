//===- GgufLayerSizes.cpp - Sizes of a GGUF file's layers -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufLayerSizes.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/LayerSizeFields.h"
#include "runtime/model/ModelFamily.h"

#include <algorithm>

using namespace kf;

/// `name`, which values have to be as large as keys by `keys`.
static Status checkValues(const GgufNumbers &numbers, std::string_view name,
                          int64_t keys) {
  KF_ASSIGN_OR_RETURN(const int64_t values, numbers.size(name, kMaxSize, keys));
  if (values == keys)
    return Status();
  return Status::error(numbers.valueOf(name, std::to_string(values)) +
                           ", but keys have " + std::to_string(keys) +
                           "; heads of two sizes are not supported",
                       StatusCode::Unsupported);
}

Status kf::readGgufLayerHeads(const GgufNumbers &numbers,
                              const std::vector<bool> &slides,
                              ModelConfig &config) {
  KF_ASSIGN_OR_RETURN(config.heads, numbers.layerSize("attention.head_count",
                                                      config.layers, kMaxSize));
  KF_ASSIGN_OR_RETURN(const int64_t fullDim,
                      numbers.size("attention.key_length", kMaxHeadDim));
  KF_ASSIGN_OR_RETURN(config.headDim,
                      numbers.size(kGgufSlidingKey, kMaxHeadDim));
  KF_RETURN_IF_ERROR(checkValues(numbers, "attention.value_length", fullDim));
  KF_RETURN_IF_ERROR(checkValues(numbers, kGgufSlidingValue, config.headDim));
  KF_ASSIGN_OR_RETURN(const std::vector<int64_t> kvHeads,
                      numbers.layerSizes("attention.head_count_kv",
                                         config.layers, kMaxSize,
                                         config.heads));
  for (const int64_t count : kvHeads)
    if (config.heads % count != 0)
      return Status::error(numbers.valueOf("attention.head_count",
                                           std::to_string(config.heads)) +
                           ", which is not a multiple of " +
                           inQuotes(numbers.keyOf("attention.head_count_kv")) +
                           " " + std::to_string(count));
  for (const int64_t dim : {fullDim, config.headDim})
    if (dim % 2 != 0 || config.heads * dim > kMaxSize)
      return Status::error("heads of " + std::to_string(dim) +
                           " elements, by " +
                           inQuotes(numbers.keyOf("attention.key_length")) +
                           " or " + inQuotes(numbers.keyOf(kGgufSlidingKey)) +
                           ", are not of an even number, or more than " +
                           std::to_string(kMaxSize) + " elements together");
  const auto first = std::ranges::find(slides, true);
  config.kvHeads = kvHeads[first == slides.end() ? 0 : first - slides.begin()];
  for (size_t i = 0; i < slides.size(); ++i) {
    LayerConfig &layer = config.layerConfigs[i];
    const int64_t dim = slides[i] ? config.headDim : fullDim;
    layer.headDim = dim == config.headDim ? 0 : dim;
    layer.kvHeads = kvHeads[i] == config.kvHeads ? 0 : kvHeads[i];
  }
  return Status();
}

Status kf::readGgufLayerSizes(const Gguf &gguf, const GgufNumbers &numbers,
                              const std::vector<bool> &slides,
                              ModelConfig &config) {
  const LayerSizeFields &fields = familyOf(config.architecture).sizes;
  if (!fields.sharing)
    return Status();
  KF_ASSIGN_OR_RETURN(
      const std::vector<int64_t> widths,
      numbers.layerSizes("feed_forward_length", config.layers, kMaxSize));
  KF_ASSIGN_OR_RETURN(const uint64_t sharing,
                      gguf.getUnsigned(numbers.keyOf(kGgufSharing), 0));
  if (sharing >= static_cast<uint64_t>(config.layers))
    return Status::error(
        numbers.valueOf(kGgufSharing, std::to_string(sharing)) + ", but all " +
        "layers are " + std::to_string(config.layers));
  for (size_t i = 0; i < slides.size(); ++i)
    if (widths[i] != config.intermediateSize)
      config.layerConfigs[i].intermediateSize = widths[i];
  KF_RETURN_IF_ERROR(shareKeys("metadata " +
                                   inQuotes(numbers.keyOf(kGgufSharing)) + " " +
                                   std::to_string(sharing) + " has ",
                               static_cast<int64_t>(sharing), slides, config));
  if (fields.valuesAreKeys)
    for (size_t i = 0; i < slides.size(); ++i) {
      LayerConfig &layer = config.layerConfigs[i];
      layer.valuesAreKeys =
          !slides[i] && !layer.keysOf &&
          !gguf.lookUpTensor("blk." + std::to_string(i) + ".attn_v.weight");
    }
  return Status();
}
