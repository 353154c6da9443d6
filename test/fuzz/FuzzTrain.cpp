//===- FuzzTrain.cpp - A file of examples to train on ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/BatchFile.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/train/TrainingBatches.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

static constexpr int64_t kLength = 64;

/// Whether an example can be part of a batch once it is cut to the length of a
/// row.
static bool isSound(const TrainingExample &example, int64_t vocabulary) {
  return example.ids.size() == example.counts.size() &&
         std::ranges::all_of(example.ids, [&](int32_t id) {
           return id >= 0 && id < vocabulary;
         });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const ModelFiles model =
      openModelFiles(KF_SOURCE_DIR "/models/kf-stories", true).take();
  static const ExampleEncoder encoder =
      ExampleEncoder::open(model, {}, /*trainOnPrompt=*/false).take();
  BatchReader lines({reinterpret_cast<const char *>(data), size});
  std::vector<TrainingExample> examples;
  while (const std::optional<std::string_view> line = lines.nextLine()) {
    const Result<ExampleSource> source = parseExample(*line);
    if (!source.ok()) {
      if (source.message().find('\n') != std::string::npos)
        std::abort();
      continue;
    }
    std::vector<TrainingExample> made;
    if (!encoder.encode(*source, made).ok())
      continue;
    for (TrainingExample &example : made) {
      if (!isSound(example, model.config.vocabSize))
        std::abort();
      const auto length =
          std::min(example.ids.size(), static_cast<size_t>(kLength) + 1);
      example.ids.resize(length);
      example.counts.resize(length);
      if (length > 1)
        examples.push_back(std::move(example));
    }
  }
  if (examples.empty())
    return 0;
  // All tokens of all examples are in one epoch.
  TrainingBatches batches(examples,
                          {.rows = 2, .length = kLength, .epochs = 1});
  size_t places = 0;
  for (const TrainingExample &example : examples)
    places += example.ids.size() - 1;
  for (int64_t i = 0; i < batches.count(); ++i)
    places -= static_cast<size_t>(std::ranges::count_if(
        batches.batch(i).examples, [](int32_t number) { return number >= 0; }));
  if (places != 0)
    std::abort();
  return 0;
}
