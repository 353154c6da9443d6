//===- TrainingCurve.cpp - Losses of a training, a line each --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What curve.py compares with PyTorch:
//
//   kf_training_curve MODEL BATCHES RATE TYPE RANK FOLDER
//
// BATCHES is a safetensors file of ids, positions, examples and labels, each
// [steps, B, T] of i32. RANK 0 trains all weights; else adapters of that rank
// for all products, whose first values go to FOLDER. Writes for each step its
// mean loss, the gradients' norm, and seconds.
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledTraining.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/io/Safetensors.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace kf;

namespace {

/// [steps, B, T]
struct Column {
  TensorView view;
  std::vector<int32_t> step(int64_t number) const {
    const auto count = static_cast<size_t>(view.shape[1] * view.shape[2]);
    const auto *data = static_cast<const int32_t *>(view.data) +
                       count * static_cast<size_t>(number);
    return {data, data + count};
  }
};

Status run(char **arguments) {
  KF_ASSIGN_OR_RETURN(const auto file, openSafetensors(arguments[2]));
  std::vector<Column> columns;
  for (const char *name : {"ids", "positions", "examples", "labels"}) {
    KF_ASSIGN_OR_RETURN(const TensorView view, file->find(name));
    columns.push_back({view});
  }
  TrainingOptions options;
  options.model.path = arguments[1];
  options.withTokenizer = false;
  options.rows = columns[0].view.shape[1];
  options.length = columns[0].view.shape[2];
  const auto rate = static_cast<float>(std::atof(arguments[3]));
  if (const int64_t rank = std::atoll(arguments[5]))
    options.lora = LoraConfig{.rank = rank,
                              .alpha = 2 * static_cast<double>(rank),
                              .targets = {std::string(kAllLinear)}};
  Stopwatch opening;
  KF_ASSIGN_OR_RETURN(const auto model,
                      openTraining(options, {.activationType = arguments[4]}));
  std::fprintf(stderr, "opened in %.2f s, arena %.1f MiB, weights %.1f MiB\n",
               opening.seconds(),
               static_cast<double>(model->arenaBytes()) / (1 << 20),
               static_cast<double>(model->weightBytes()) / (1 << 20));
  if (options.lora)
    KF_RETURN_IF_ERROR(model->save(arguments[6]));
  for (int64_t i = 0; i < columns[0].view.shape[0]; ++i) {
    const TrainingBatch batch = {options.rows,       options.length,
                                 columns[0].step(i), columns[1].step(i),
                                 columns[2].step(i), columns[3].step(i)};
    Stopwatch watch;
    KF_ASSIGN_OR_RETURN(const TrainingLoss loss,
                        model->accumulate(batch, nullptr));
    KF_ASSIGN_OR_RETURN(
        const double norm,
        model->update({.learningRate = rate, .labels = loss.labels}));
    std::printf("%.9g %.9g %.4f\n", loss.mean(), norm, watch.seconds());
    std::fflush(stdout);
  }
  return Status();
}

} // namespace

int main(int count, char **arguments) {
  if (count != 7) {
    std::fprintf(stderr, "usage: kf_training_curve MODEL BATCHES RATE TYPE "
                         "RANK FOLDER\n");
    return 2;
  }
  const Status status = run(arguments);
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
