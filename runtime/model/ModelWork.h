//===- ModelWork.h - What a decoder has to read and compute -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The least that steps of a decoder can do with, from its configuration and its
// tensors alone: what time they take is held against it. Of experts it is what
// rows are to be expected to need that choose them independently and at random:
// of a step with one row, it is just what the row chooses.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_MODELWORK_H
#define KF_RUNTIME_MODEL_MODELWORK_H

#include "runtime/core/KeyWindow.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <vector>

namespace kf {

/// Of one step or several. A multiply-add is two operations.
struct StepWork {
  double bytes = 0;           ///< of weights and cached keys and values, read
  double floatOperations = 0; ///< of plain floats, attention's among them
  double blockOperations = 0; ///< of products with block-quantized weights
  /// Of products with weights of bf16: some of floatOperations.
  double bf16Operations = 0;
};

/// Immutable: any thread.
class ModelWork {
public:
  /// The work of `config`'s decoder with `source`'s tensors and a cache of
  /// `cacheType`. Errors: those of findTensors().
  static Result<ModelWork> of(const ModelConfig &config,
                              const WeightSource &source, DataType cacheType);

  /// `sequences` sequences, which hold `depth` tokens each, read `tokens` more
  /// each, in steps of up to `rows` rows; what follows the last is wanted.
  StepWork prompt(int64_t sequences, int64_t depth, int64_t tokens,
                  int64_t rows) const;
  /// They read `tokens` each, in as many steps.
  StepWork decode(int64_t sequences, int64_t depth, int64_t tokens) const;

  uint64_t parameters() const { return elements; } ///< of all tensors
  uint64_t tensorBytes() const { return bytes; }   ///< as they are stored
  /// What most bytes of the matrices are of.
  DataType weightType() const { return mostType; }

private:
  ModelWork() = default;
  /// What a row at `position` attends to, in all layers together.
  StepWork keysOf(int64_t position) const;
  /// The part of all experts that some of `rows` rows choose.
  double shareOfExperts(int64_t rows) const;

  uint64_t elements = 0, bytes = 0;
  DataType mostType = DataType::F32;
  struct LayerKeys {
    KeyWindow window;
    double bytes = 0;      ///< of a position's key and value
    double operations = 0; ///< of a row with one position
  };
  std::vector<LayerKeys> layerKeys;
  /// Of all states of a sequence: bytes of reading and writing them, and
  /// operations of a row.
  double stateBytes = 0, stateOperations = 0;
  double chosenShare = 0; ///< of experts, by one row
  double weightBytes = 0; ///< that each step reads
  double expertBytes = 0; ///< of all experts, of which it reads a share
  double headBytes = 0;   ///< that steps with wanted rows read as well
  double rowBytes = 0;    ///< of tables, for each row
  // Elements of matrices that a row is multiplied by: of the layers, with a
  // share of the experts', and of the output.
  double layerFloats = 0, layerBlocks = 0, headFloats = 0, headBlocks = 0;
  double layerBf16 = 0, headBf16 = 0; ///< of the floats
};

} // namespace kf

#endif // KF_RUNTIME_MODEL_MODELWORK_H
