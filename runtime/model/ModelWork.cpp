//===- ModelWork.cpp - What a decoder has to read and compute -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ModelWork.h"

#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace kf;

namespace {

double elementsOf(const TensorView &view) {
  double count = 1;
  for (int64_t dim : view.shape)
    count *= static_cast<double>(dim);
  return count;
}

} // namespace

Result<ModelWork> ModelWork::of(const ModelConfig &config,
                                const WeightSource &source,
                                DataType cacheType) {
  ModelWork work;
  const TensorNames &names = tensorNames(config);
  auto isCalled = [](const ListedTensor &tensor, std::string_view name) {
    return !name.empty() && tensor.key == std::string(name) + ".weight";
  };
  std::map<DataType, uint64_t> matrixBytes;
  if (config.experts.count > 0)
    work.chosenShare = static_cast<double>(config.experts.chosen) /
                       static_cast<double>(config.experts.count);
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(config, source));
  for (const ListedTensor &tensor : tensors) {
    KF_ASSIGN_OR_RETURN(const TensorView view, source.describe(tensor.name));
    const double count = elementsOf(view);
    const double bytes = static_cast<double>(view.bytes);
    work.bytes += view.bytes;
    // Of adapters a step reads those of its rows: little, beside the others.
    if (tensor.role == ListedTensor::Role::Adapter)
      continue;
    work.elements += static_cast<uint64_t>(count);
    const bool isHead =
        isCalled(tensor, config.tiedEmbeddings ? names.embedding : names.head);
    if (tensor.isTable)
      work.rowBytes += bytes / static_cast<double>(view.shape.front());
    if (isHead)
      work.headBytes += bytes;
    else if (!tensor.isTable)
      (tensor.ofExpert ? work.expertBytes : work.weightBytes) += bytes;
    if (tensor.role != ListedTensor::Role::Matrix &&
        tensor.role != ListedTensor::Role::Router)
      continue;
    matrixBytes[view.type] += view.bytes;
    const double used = count * (tensor.ofExpert ? work.chosenShare : 1);
    const double bf16 = view.type == DataType::BF16 ? used : 0;
    if (isHead) {
      (isBlock(view.type) ? work.headBlocks : work.headFloats) += used;
      work.headBf16 += bf16;
    } else if (!tensor.isTable) {
      (isBlock(view.type) ? work.layerBlocks : work.layerFloats) += used;
      work.layerBf16 += bf16;
    }
  }
  work.mostType =
      std::ranges::max_element(matrixBytes, {}, [](const auto &entry) {
        return entry.second;
      })->first;
  const double elementBytes = static_cast<double>(bytesPerBlock(cacheType)) /
                              static_cast<double>(elementsPerBlock(cacheType));
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig layer = config.layer(i);
    if (layer.isLinear) {
      // A state is read and written, and takes as many operations, whatever the
      // position is.
      const auto heads = static_cast<double>(config.linear.valueHeads);
      work.stateBytes += 2 * heads *
                         static_cast<double>(config.linear.stateElements()) *
                         sizeof(float);
      work.stateOperations +=
          heads * static_cast<double>(config.linear.rowOperations());
      continue;
    }
    const double width = static_cast<double>(layer.headDim);
    const double kvHeads = static_cast<double>(layer.kvHeads);
    // A product with the key and one with the value.
    work.layerKeys.push_back({layer.keyWindow(),
                              2 * width * kvHeads * elementBytes,
                              4 * width * static_cast<double>(config.heads)});
  }
  return work;
}

StepWork ModelWork::keysOf(int64_t position) const {
  StepWork work;
  for (const LayerKeys &layer : layerKeys) {
    const auto keys =
        static_cast<double>(position + 1 - layer.window.firstOf(position));
    work.bytes += keys * layer.bytes;
    work.floatOperations += keys * layer.operations;
  }
  return work;
}

double ModelWork::shareOfExperts(int64_t rows) const {
  return 1 - std::pow(1 - chosenShare, static_cast<double>(rows));
}

StepWork ModelWork::prompt(int64_t sequences, int64_t depth, int64_t tokens,
                           int64_t rows) const {
  const double all =
      static_cast<double>(sequences) * static_cast<double>(tokens);
  const double wanted = static_cast<double>(sequences);
  const int64_t steps = (sequences * tokens + rows - 1) / rows;
  double keyBytes = 0, keyOperations = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    const StepWork keys = keysOf(depth + i);
    keyOperations += keys.floatOperations;
    // Rows of a step share the keys that they read.
    if (i + 1 == tokens || (i + 1) % rows == 0)
      keyBytes += keys.bytes;
  }
  // A step reads and writes each state that it has rows of once.
  const double touched = std::max(static_cast<double>(steps), wanted);
  StepWork work;
  // Sequences come one after the other: steps with the last row of one.
  const int64_t wantedSteps = std::min(sequences, steps);
  const double shares = static_cast<double>(steps - 1) * shareOfExperts(rows) +
                        shareOfExperts(sequences * tokens - (steps - 1) * rows);
  work.bytes = weightBytes * static_cast<double>(steps) + expertBytes * shares +
               headBytes * static_cast<double>(wantedSteps) + rowBytes * all +
               keyBytes * wanted + stateBytes * touched;
  work.floatOperations = 2 * (layerFloats * all + headFloats * wanted) +
                         keyOperations * wanted + stateOperations * all;
  work.blockOperations = 2 * (layerBlocks * all + headBlocks * wanted);
  work.bf16Operations = 2 * (layerBf16 * all + headBf16 * wanted);
  return work;
}

StepWork ModelWork::decode(int64_t sequences, int64_t depth,
                           int64_t tokens) const {
  StepWork work;
  for (int64_t i = 0; i < tokens; ++i) {
    const StepWork step = prompt(sequences, depth + i, 1, sequences);
    work.bytes += step.bytes;
    work.floatOperations += step.floatOperations;
    work.blockOperations += step.blockOperations;
    work.bf16Operations += step.bf16Operations;
  }
  return work;
}
