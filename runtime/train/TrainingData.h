//===- TrainingData.h - Examples of a file ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a file is, its name says: a .txt file is one text, which is cut into
// pieces; a .json file is an array of what a line of other files has
// (ExampleFile.h).
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_TRAININGDATA_H
#define KF_RUNTIME_TRAIN_TRAININGDATA_H

#include "runtime/core/Observer.h"
#include "runtime/train/ExampleEncoder.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kf {

/// Examples that fit in a row, each with a token that counts behind the first.
struct TrainingData {
  std::vector<TrainingExample> examples;
  // Of those that were read:
  int64_t cut = 0;     ///< whose end is left out
  int64_t tooLong = 0; ///< left out
  int64_t empty = 0;   ///< left out, since nothing of them counts

  /// Tokens of all examples, and how many of them are learnt.
  int64_t tokens() const;
  int64_t labels() const;
  /// Of the examples in their order: SHA-256, in hexadecimal digits.
  std::string digest() const;
};

/// What is done with an example that is longer than a row.
enum class LongExamples {
  Cut, ///< its end is left out
  Drop ///< it is left out
};

struct TrainingDataOptions {
  /// The tokens of a row. An example has one more at most: its last token is
  /// none that is read.
  int64_t length = 0;
  LongExamples longExamples = LongExamples::Cut;
  CancelFlag cancelled = nullptr;
  Observer *observer = nullptr; ///< is told how far it is
};

/// Reads the file `path`. Errors name the file and the line: what is no
/// example, and the encoder's; a file without a token to learn;
/// Status::cancelled().
Result<TrainingData> readTrainingData(const std::string &path,
                                      const ExampleEncoder &encoder,
                                      const TrainingDataOptions &options);

/// Takes `share` of the examples, at least one and not all of them, out of
/// `data`, chosen by `seed`. Errors: fewer than two examples.
Result<TrainingData> splitTrainingData(TrainingData &data, double share,
                                       uint64_t seed);

} // namespace kf

#endif // KF_RUNTIME_TRAIN_TRAININGDATA_H
