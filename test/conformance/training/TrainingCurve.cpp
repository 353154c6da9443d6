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
// BATCHES is a file of i32: steps, B and T, then ids, positions, examples and
// labels, each [steps, B, T]. RANK 0 trains all weights; else adapters of that
// rank for all products, whose first values go to FOLDER. Writes for each step
// its mean loss, the gradients' norm, and seconds.
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledTraining.h"

#include "runtime/core/MappedFile.h"
#include "runtime/core/Stopwatch.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace kf;

namespace {

/// The i32 numbers of a batch's columns, one behind the other.
class Batches {
public:
  explicit Batches(MappedFile file) : file(std::move(file)) {}

  int64_t steps() const { return numbers()[0]; }
  int64_t rows() const { return numbers()[1]; }
  int64_t length() const { return numbers()[2]; }
  TrainingBatch get(int64_t step) const {
    TrainingBatch batch;
    batch.rows = rows();
    batch.length = length();
    const int64_t tokens = rows() * length();
    const int32_t *at = numbers() + 3 + step * tokens;
    for (std::vector<int32_t> *column :
         {&batch.ids, &batch.positions, &batch.examples, &batch.labels}) {
      column->assign(at, at + tokens);
      at += steps() * tokens;
    }
    return batch;
  }

private:
  const int32_t *numbers() const {
    return reinterpret_cast<const int32_t *>(file.text().data());
  }

  MappedFile file;
};

Status run(char **arguments) {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(arguments[2]));
  const Batches batches(std::move(file));
  TrainingOptions options;
  options.model.path = arguments[1];
  options.withTokenizer = false;
  options.rows = batches.rows();
  options.length = batches.length();
  const auto profile = std::make_shared<Profile>();
  options.profile = profile;
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
  for (int64_t i = 0; i < batches.steps(); ++i) {
    const TrainingBatch batch = batches.get(i);
    Stopwatch watch;
    KF_ASSIGN_OR_RETURN(const TrainingLoss loss,
                        model->accumulate(batch, nullptr));
    KF_ASSIGN_OR_RETURN(
        const double norm,
        model->update({.learningRate = rate, .labels = loss.labels}));
    std::printf("%.9g %.9g %.4f\n", loss.mean(), norm, watch.seconds());
    std::fflush(stdout);
  }
  std::fputs(profile->table({}).c_str(), stderr);
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
