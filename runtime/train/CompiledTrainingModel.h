//===- CompiledTrainingModel.h - A decoder that is trained ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decoder on any device whose programs (runtime/model/Training.h) come from
// whoever opens it. What is trained, its gradients and the optimizer's moments
// are buffers of f32 that the programs update in place; the rest of the model
// is what its files have, as kernels read it.
//
//   TrainingOptions options;
//   options.model.path = "model";
//   options.lora = LoraConfig{.rank = 16, .alpha = 32, .targets = {"q_proj"}};
//   auto model = openTraining(options).take(); // kf/Driver/CompiledTraining.h
//   model->accumulate(batch);
//   model->update({.learningRate = 2e-4f, .labels = labels});
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_COMPILEDTRAININGMODEL_H
#define KF_RUNTIME_TRAIN_COMPILEDTRAININGMODEL_H

#include "runtime/devices/OpenDevice.h"
#include "runtime/engine/KVCache.h"
#include "runtime/engine/ProgramRunner.h"
#include "runtime/measure/Profile.h"
#include "runtime/model/Training.h"
#include "runtime/session/OpenModel.h"
#include "runtime/train/TrainingModel.h"
#include "runtime/weights/WeightStore.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What is trained, and how.
struct TrainingOptions {
  ModelChoice model = {};
  bool withTokenizer = true;
  DeviceChoice device = {};
  int64_t rows = 1, length = 512; ///< of all batches: B and T
  /// The adapters; nothing: all weights.
  std::optional<LoraConfig> lora = {};
  OptimizerOptions optimizer = {};
  Recompute recompute = Recompute::Cheap;
  /// Of what A begins as: uniform in [-1/sqrt(in), 1/sqrt(in)), as PEFT has it;
  /// B is 0. Of dropout, too.
  uint64_t seed = 0;
  /// Ends whatever goes on when it is set; may be null. Not owned, as the
  /// observer, which may be null, too.
  CancelFlag cancelled = nullptr;
  Observer *observer = nullptr;
  /// Has every batch and update measured, and added to it; null: none.
  std::shared_ptr<Profile> profile = nullptr;
};

/// The program of a shape.
using TrainingProvider =
    std::function<Result<Executable>(const TrainingShape &shape)>;
/// Makes that for a model and the device that it is trained on, which outlive
/// it.
using OpenTrainingPrograms = std::function<Result<TrainingProvider>(
    const ModelFiles &model, const Device &device,
    const TrainingOptions &options)>;

/// What a model that is trained is made with.
struct TrainingSources {
  OpenDevice device;
  OpenTrainingPrograms programs;
  OpenEmbedded embedded = nullptr; ///< null: the program carries no model
};

/// An error where nothing is trained on devices of this name (Device::name()).
Status checkTrainsOn(std::string_view device);

/// An error where nothing is trained as `options` say, whichever the model: on
/// a device that trains nothing, or all weights, some of which are kept in 8
/// bits.
Status checkTraining(const TrainingOptions &options);
/// The same where `model` is not, as far as that is known without its weights'
/// data: those of checkTrains() and listTrained(), and for all weights those of
/// checkSaves(), or some that the checkpoint has by other names.
Status checkTraining(const TrainingOptions &options, const ModelFiles &model);

/// One thread. Throws nothing.
class CompiledTrainingModel final : public TrainingModel {
public:
  /// Opens the model and the device, gets the programs of gradients and
  /// updates, packs what is frozen, and gives what is trained its first values:
  /// all moments are 0. Errors: those of checkTraining() and openModel(), the
  /// provider's, a device without room.
  static Result<std::unique_ptr<CompiledTrainingModel>>
  open(TrainingOptions options, const TrainingSources &sources);
  ~CompiledTrainingModel() override;

  int64_t batchRows() const override { return options.rows; }
  int64_t batchLength() const override { return options.length; }
  Result<TrainingLoss> accumulate(const TrainingBatch &batch,
                                  CancelFlag cancelled) override;
  Result<double> update(const TrainingUpdate &update) override;
  Result<TrainingLoss> evaluate(const TrainingBatch &batch,
                                CancelFlag cancelled) override;
  std::vector<std::string> stateNames() const override;
  Result<HostTensor> readState(const std::string &name) override;
  Status writeState(const std::string &name, const HostTensor &value) override;
  int64_t updates() const override { return count; }
  void setUpdates(int64_t updates) override { count = updates; }
  Status save(const std::string &path) override;

  const ModelFiles &files() const { return model; }
  Device &device() { return *target; }
  const std::vector<TrainedTensor> &trained() const { return tensors; }
  /// What has been added up since the last update, of trained()[i].
  Result<HostTensor> readGradient(size_t i);
  /// Bytes of what programs hand on within themselves, of all that were made,
  /// and of all frozen weights.
  uint64_t arenaBytes() const;
  uint64_t weightBytes() const { return weights->bytes(); }

private:
  /// A program and its buffers.
  struct Program {
    std::unique_ptr<LoadedProgram> loaded;
    std::unique_ptr<ProgramRunner> runner;
  };
  using Buffers = std::vector<std::unique_ptr<Buffer>>;

  explicit CompiledTrainingModel(TrainingOptions options)
      : options(std::move(options)) {}
  Status openAll(const TrainingSources &sources);
  Status allocate();
  Status initialize();
  Status initializeAdapters();
  Status initializeWeights();
  Result<std::unique_ptr<Program>> make(TrainingPart part);
  OutsideBuffers outsideOf(TrainingPart part) const;
  Result<TrainingLoss> run(Program &program, const TrainingBatch &batch,
                           CancelFlag cancelled);
  Status checkBatch(const TrainingBatch &batch) const;
  /// What the dropout of the next batch is drawn by.
  std::array<uint32_t, kDrawWords> nextDraw();
  /// On the stream.
  Status clearGradients();
  TrainingShape shapeOf(TrainingPart part) const;
  Status write(Buffer &buffer, const HostTensor &value);
  Result<HostTensor> read(Buffer &buffer, const TrainedTensor &tensor);
  /// The buffer of a state, and the tensor that it is of; null for none.
  std::pair<Buffer *, const TrainedTensor *>
  findState(const std::string &name) const;
  Status saveAdapter(const std::string &path);
  Status saveModel(const std::string &path);

  TrainingOptions options;
  std::unique_ptr<Device> target;
  std::unique_ptr<ThreadPool> pool; ///< packs weights; null for none
  ModelFiles model;
  TrainingProvider provide;
  std::vector<TrainedTensor> tensors;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<KVCache> cache; ///< that programs do without
  std::unique_ptr<Stream> stream;
  /// Of each tensor: its values, its gradient, and its moments, one list for
  /// each.
  Buffers values, gradients;
  std::vector<Buffers> moments;
  std::unique_ptr<Program> gradient, loss, optimizer; ///< `loss` once needed
  int64_t count = 0;                                  ///< of updates
  uint32_t added = 0; ///< batches that were added up since the last one
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_COMPILEDTRAININGMODEL_H
