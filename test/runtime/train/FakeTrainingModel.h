//===- FakeTrainingModel.h - A small model to train in tests ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_TRAIN_FAKETRAININGMODEL_H
#define KF_TEST_RUNTIME_TRAIN_FAKETRAININGMODEL_H

#include "runtime/train/TrainingModel.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kf::test {

/// The logits behind a token are its row of a matrix [tokens, tokens], which
/// gradient descent with momentum changes. Computed on the host, always in the
/// same order.
class FakeTrainingModel : public TrainingModel {
public:
  FakeTrainingModel(int64_t rows, int64_t length, size_t tokens)
      : weights(tokens * tokens), momentum(tokens * tokens), rows(rows),
        length(length), tokens(tokens), gradient(tokens * tokens) {}

  int64_t batchRows() const override { return rows; }
  int64_t batchLength() const override { return length; }

  Result<TrainingLoss> accumulate(const TrainingBatch &batch,
                                  CancelFlag cancelled) override {
    if (onAccumulate)
      onAccumulate();
    if (isCancelled(cancelled))
      return Status::cancelled();
    ++accumulated;
    return run(batch, &gradient);
  }
  Result<TrainingLoss> evaluate(const TrainingBatch &batch,
                                CancelFlag cancelled) override {
    if (isCancelled(cancelled))
      return Status::cancelled();
    KF_RETURN_IF_ERROR(evaluation);
    return run(batch, nullptr);
  }
  Result<double> update(const TrainingUpdate &update) override {
    double squares = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const float mean = gradient[i] / static_cast<float>(update.labels);
      squares += static_cast<double>(mean) * mean;
      momentum[i] = 0.9f * momentum[i] + mean;
      weights[i] -= update.learningRate * momentum[i];
      gradient[i] = 0;
    }
    ++count;
    return std::sqrt(squares) * normFactor;
  }

  std::vector<std::string> stateNames() const override {
    return {"weights", "momentum"};
  }
  Result<HostTensor> readState(const std::string &name) override {
    const std::vector<float> &state = name == "weights" ? weights : momentum;
    const auto side = static_cast<int64_t>(tokens);
    KF_ASSIGN_OR_RETURN(HostTensor tensor,
                        HostTensor::zeros(DataType::F32, {side, side}));
    std::ranges::copy(state, tensor.data<float>());
    return tensor;
  }
  Status writeState(const std::string &name, const HostTensor &value) override {
    std::vector<float> &state = name == "weights" ? weights : momentum;
    if (value.type != DataType::F32 ||
        value.elementCount() != static_cast<int64_t>(state.size()))
      return Status::error("state '" + name + "' is of another shape");
    state.assign(value.data<float>(), value.data<float>() + state.size());
    return Status();
  }
  int64_t updates() const override { return count; }
  void setUpdates(int64_t updates) override { count = updates; }
  Status save(const std::string &) override { return Status(); }

  std::function<void()> onAccumulate; ///< before each batch, if it is set
  Status evaluation;                  ///< what evaluations fail with
  double lossFactor = 1;              ///< of what is reported
  double normFactor = 1;              ///< likewise
  int64_t accumulated = 0;            ///< batches
  std::vector<float> weights;         // [tokens, tokens]
  std::vector<float> momentum;        // [tokens, tokens]

private:
  TrainingLoss run(const TrainingBatch &batch, std::vector<float> *into) const {
    TrainingLoss loss;
    for (size_t at = 0; at < batch.ids.size(); ++at) {
      if (batch.labels[at] == kNoLabel)
        continue;
      const size_t row = static_cast<size_t>(batch.ids[at]) * tokens;
      const auto label = static_cast<size_t>(batch.labels[at]);
      double sum = 0;
      for (size_t i = 0; i < tokens; ++i)
        sum += std::exp(static_cast<double>(weights[row + i]));
      loss.sum += (std::log(sum) - weights[row + label]) * lossFactor;
      ++loss.labels;
      for (size_t i = 0; into && i < tokens; ++i)
        (*into)[row + i] += static_cast<float>(
            std::exp(static_cast<double>(weights[row + i])) / sum -
            (i == label ? 1 : 0));
    }
    return loss;
  }

  int64_t rows, length;
  size_t tokens;
  std::vector<float> gradient; // [tokens, tokens]
  int64_t count = 0;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_TRAIN_FAKETRAININGMODEL_H
