//===- Checkpoints.h - Training that can go on ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint is a folder, checkpoint-STEP, of two files: state.safetensors
// has the model's states, checkpoint.json says what they are of. It is written
// as checkpoint-STEP.tmp and gets its name when all of it is on the disk, so
// that whatever ends the process, folders with that name are whole. The next
// one that is written removes what was left half made.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_CHECKPOINTS_H
#define KF_RUNTIME_TRAIN_CHECKPOINTS_H

#include "runtime/core/Descriptor.h"
#include "runtime/core/Observer.h"
#include "runtime/train/TrainingModel.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// What a checkpoint is of.
struct CheckpointHead {
  int64_t step = 0; ///< updates until then
  /// The local time that chat templates tell, of the training's begin
  /// (LocalTime.h); empty: unknown.
  std::string time = {};
  /// Whether files of a result in its folder are this training's.
  bool ownsResult = false;
  // What has to be the same for training to go on to the same bits:
  std::string model = {}; ///< a digest
  std::string data = {};  ///< a digest
  /// As they are typed: {"--lora", "16"}.
  std::map<std::string, std::string> options = {};
};

/// The checkpoint at `path`. Errors name the file.
Result<CheckpointHead> readCheckpointHead(const std::string &path);

/// An error that names the first thing in which the checkpoint `saved`, at
/// `path`, is not of the training `now`.
Status checkSameTraining(const std::string &path, const CheckpointHead &saved,
                         const CheckpointHead &now);

/// Gives `model` the states of the checkpoint at `path`, whose head is `head`.
/// Errors name the file or the state; then `model` is of no use.
Status loadCheckpoint(const std::string &path, const CheckpointHead &head,
                      TrainingModel &model);

/// The checkpoints in one folder, which it has for itself. One thread.
class Checkpoints {
public:
  /// Makes the folder where it is missing. `keep` checkpoints stay, at least
  /// one; 0: all. `observer`, which may be null, is warned of checkpoints that
  /// cannot be read. Errors: a folder that cannot be made, or that another
  /// process trains in.
  static Result<Checkpoints> open(const std::string &folder, int64_t keep,
                                  Observer *observer);

  std::string pathOf(int64_t step) const;
  /// Steps of the checkpoints that there are, in order.
  std::vector<int64_t> steps() const;
  /// The one of the highest step that can be read; nothing if there is none.
  std::optional<CheckpointHead> newest() const;

  /// Writes the model's states; then removes checkpoints of the lowest steps.
  Status save(TrainingModel &model, const CheckpointHead &head);

private:
  Checkpoints(std::string folder, int64_t keep, Observer *observer,
              Descriptor lock)
      : folder(std::move(folder)), keep(keep), observer(observer),
        lock(std::move(lock)) {}

  std::string folder;
  int64_t keep;
  Observer *observer;
  Descriptor lock; ///< of the folder
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_CHECKPOINTS_H
