//===- TrainingModel.h - What a training loop asks of a model ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model that is trained, as the loop sees it: it reads batches, whose
// gradients it adds up, and then changes its weights. What these weights are,
// and where they lie, it alone knows.
//
//   for (const TrainingBatch &batch : step)        // gradient accumulation
//     loss += model.accumulate(batch).take();
//   model.update({.learningRate = 2e-4f, .labels = loss.labels});
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGMODEL_H
#define KF_RUNTIME_TRAIN_TRAININGMODEL_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// The label of a token that does not count.
inline constexpr int32_t kNoLabel = -100;

/// B rows of T tokens. Each row holds examples one behind the other, and at its
/// end what is left over. [B * T] each, row after row.
struct TrainingBatch {
  int64_t rows = 0;   ///< B
  int64_t length = 0; ///< T
  std::vector<int32_t> ids;
  /// Of a token in its example, from 0.
  std::vector<int32_t> positions;
  /// Which example of its row a token belongs to, from 0: it sees those of its
  /// own example alone, up to itself. Of what is left over -1.
  std::vector<int32_t> examples;
  /// The token that should follow, or kNoLabel.
  std::vector<int32_t> labels;
};

/// A sum of losses.
struct TrainingLoss {
  double sum = 0;     ///< of the negative log-likelihood of each label, in nats
  int64_t labels = 0; ///< how many there are

  double mean() const { return labels ? sum / static_cast<double>(labels) : 0; }
  TrainingLoss &operator+=(const TrainingLoss &other) {
    sum += other.sum;
    labels += other.labels;
    return *this;
  }
};

/// What an update does with the gradients that have been added up.
struct TrainingUpdate {
  float learningRate = 0;
  /// What the sum of gradients is divided by: the labels of all batches since
  /// the last update.
  int64_t labels = 1;
};

/// What is trained. One thread.
class TrainingModel {
public:
  virtual ~TrainingModel() = default;

  /// Of all batches: the model's programs are for these sizes.
  virtual int64_t batchRows() const = 0;
  virtual int64_t batchLength() const = 0;

  /// The loss of a batch of these sizes, whose gradient is added to those since
  /// the last update. Errors: a batch of another size and ids that are no
  /// tokens, which leave what has been added up; a loss that is not finite:
  /// then, and where it is cancelled, that is cleared.
  virtual Result<TrainingLoss> accumulate(const TrainingBatch &batch,
                                          CancelFlag cancelled = nullptr) = 0;
  /// Changes the weights, clears the gradients, and gives their global norm
  /// before clipping (of the mean over labels). Errors: no labels, a rate that
  /// is below 0 or not finite, and a norm that is not finite: then nothing is
  /// changed, and the update does not count.
  virtual Result<double> update(const TrainingUpdate &update) = 0;
  /// The loss of a batch, which changes nothing. Errors: as accumulate().
  virtual Result<TrainingLoss> evaluate(const TrainingBatch &batch,
                                        CancelFlag cancelled = nullptr) = 0;

  /// All that a checkpoint keeps, in a fixed order: what is trained, and what
  /// the optimizer has of it, as the last update has left it, also where
  /// batches have been read since, or one was cancelled.
  virtual std::vector<std::string> stateNames() const = 0;
  virtual Result<HostTensor> readState(const std::string &name) = 0;
  /// Errors: no such state, another type or shape.
  virtual Status writeState(const std::string &name,
                            const HostTensor &value) = 0;
  /// How often update() has changed weights, which a checkpoint keeps as well.
  virtual int64_t updates() const = 0;
  virtual void setUpdates(int64_t count) = 0;

  /// Writes the result as others read it, to the folder `path`: an adapter in
  /// PEFT's format, or a model.
  virtual Status save(const std::string &path) = 0;
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGMODEL_H
