//===- EnginePrograms.cpp - Which programs steps run ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs come in few sizes, so that whatever requests there are, and however
// many, a few compilations serve them. What a size depends on is the number of
// rows that a program has to have room for, and nothing else.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Engine.h"

#include <algorithm>

using namespace kf;

namespace {

/// Rows of the middle program: few enough for a short prompt to compile and run
/// quickly, and as many as mostly generate at once.
constexpr int64_t kFewRows = 16;
/// Rows of others, for as many as generate where there are many; the smallest
/// where rows are taken in tiles, as all are for a single prompt then.
constexpr int64_t kTileRows = 32, kSomeRows = 64, kManyRows = 128,
                  kMostManyRows = kMostChosenPerStep;
/// Rows of those between, where tiles have 48, 80, 96 and 192 rows, too, and
/// registers hold 24 of products with blocks: a few sequences more make a step
/// a little longer. With other weights, 24 rows are tiles of 32 and gain next
/// to nothing. Only where there are more sequences than the size before has
/// rows.
struct Between {
  int64_t rows, before;
};
constexpr Between kBetween[] = {{24, kFewRows},
                                {48, kTileRows},
                                {80, kSomeRows},
                                {96, 80},
                                {192, kManyRows}};
/// Rows of each sequence, on average, in a step of many that generate.
constexpr int64_t kRowsOfEach = 2;
/// Rows of the one for prompts, also where there is a larger one: tiles for so
/// many would be too few of a shorter prompt.
constexpr int64_t kPromptRows = 512;
/// What larger ones have times as many rows as.
constexpr int64_t kGrowth = 4;
/// Elements of what is computed at once for the host: 128 MiB.
constexpr int64_t kMostForHost = int64_t(1) << 25;

/// The smallest size with room for `rows`, where `parallel` sequences generate.
int64_t sizeFor(int64_t rows, int64_t parallel, const Device &device) {
  const bool inTiles = device.takesRowsInTiles();
  int64_t found = kPromptRows;
  while (found < rows)
    found *= kGrowth;
  auto offer = [&](int64_t size, bool exists) {
    if (rows <= size && exists)
      found = std::min(found, size);
  };
  for (int64_t size : {int64_t(1), kFewRows, kSomeRows})
    offer(size, true);
  offer(kTileRows, inTiles);
  for (int64_t size : {kManyRows, kMostManyRows})
    offer(size, parallel > size / 2 || (inTiles && parallel == 1));
  for (const Between &size : kBetween)
    offer(size.rows, device.hasTilesBetween() && parallel > size.before);
  return found;
}

} // namespace

std::vector<int64_t> kf::programRows(int64_t mostRows, int64_t parallel,
                                     const ModelConfig &model,
                                     const Device &device) {
  const int64_t most = mostStepRows(model);
  std::vector<int64_t> sizes = {1};
  while (sizes.back() < std::min(mostRows, most))
    sizes.push_back(
        std::min(sizeFor(sizes.back() + 1, parallel, device), most));
  return sizes;
}

int64_t kf::promptRowsOf(const ModelConfig &model, const Device &device) {
  const int64_t rows = std::min(device.promptRows(), mostStepRows(model));
  const uint64_t bytesOfRow =
      sizeof(float) * static_cast<uint64_t>(widestRow(model));
  if (rows > kPromptRows &&
      device.mostTensorBytes() / static_cast<uint64_t>(rows) < bytesOfRow)
    return kPromptRows;
  return rows;
}

bool kf::isForGenerating(int64_t rows) {
  return rows > kFewRows && rows < kPromptRows;
}

/// Rows behind which a step may choose a token, whatever there is room for.
int64_t Engine::mostChoices() const {
  const size_t drafts = options.ngrams       ? options.ngrams->most
                        : options.draftModel ? options.draftModel->mostTokens()
                                             : 0;
  return options.parallel * static_cast<int64_t>(1 + drafts);
}

/// The most rows behind which a step chooses a token: of a program whose logits
/// the device can have in one tensor.
int64_t Engine::chosenPerStep() const {
  int64_t most = 1;
  if (const StepShape *largest = decoder.largestShape(StepPart::Choose)) {
    most = largest->rows;
  } else {
    const ModelConfig &config = decoder.config();
    const uint64_t room =
        decoder.device().mostTensorBytes() /
        (sizeof(float) * static_cast<uint64_t>(config.vocabSize));
    for (int64_t size : programRows(kMostChosenPerStep, mostChoices(), config,
                                    decoder.device()))
      if (static_cast<uint64_t>(size) <= room)
        most = size;
  }
  return std::min({most, kMostChosenPerStep, mostChoices(), rowsPerStep()});
}

/// The smallest body for a step. Sequences that generate take many steps alike,
/// and programs for more rows leave threads without work. A prompt takes few:
/// one that is there already is better than one that would have to be compiled.
/// Those for more than kSomeRows that generate are for steps of them: rows of
/// prompts share keys, which larger ones read once for several rows. Where
/// there are few programs, the smallest of them.
int64_t Engine::bodyRows(int64_t rows, size_t sequences) const {
  if (const StepShape *given = decoder.smallestShape(StepPart::Body, rows))
    return given->rows;
  if (rows == 1)
    return 1;
  const bool isPrompt = sequences == 1;
  const bool generate = rows <= kRowsOfEach * static_cast<int64_t>(sequences);
  std::vector<int64_t> sizes = programRows(rowsPerStep(), parallel(),
                                           decoder.config(), decoder.device());
  // In a program for one sequence, rows of a prompt share keys whatever there
  // are of them.
  const bool isLone = parallel() == 1 && isPrompt;
  std::erase_if(sizes, [&, largest = sizes.back()](int64_t size) {
    const bool isForOthers = isForGenerating(size) && !isLone &&
                             (isPrompt || (size > kSomeRows && !generate));
    return size < rows || (isForOthers && size != largest);
  });
  if (isPrompt)
    for (int64_t size : sizes)
      if (decoder.hasProgram({StepPart::Body, size}))
        return size;
  return sizes.front();
}

/// The smallest head, and what chooses behind it, for `chosen` tokens.
int64_t Engine::headRows(int64_t chosen) const {
  if (const StepShape *given = decoder.smallestShape(StepPart::Choose, chosen))
    return given->rows;
  return sizeFor(chosen, mostChoices(), decoder.device());
}

/// The program of `part` for `rows` rows whose logits or embeddings the host
/// gets, as far as it has room. One that is there already is better than one
/// that would have to be compiled.
int64_t Engine::rowsForHost(StepPart part, int64_t rows) const {
  if (const StepShape *largest = decoder.largestShape(part)) {
    const StepShape *given = decoder.smallestShape(part, rows);
    return (given ? given : largest)->rows;
  }
  const ModelConfig &config = decoder.config();
  const int64_t width =
      part == StepPart::Head ? config.vocabSize : config.hiddenSize;
  const int64_t most = std::max<int64_t>(kMostForHost / width, 1);
  std::vector<int64_t> sizes =
      programRows(rowsPerStep(), parallel(), config, decoder.device());
  std::erase_if(sizes, [&](int64_t size) { return size > most && size != 1; });
  for (int64_t size : sizes)
    if (size >= rows && decoder.hasProgram({part, size}))
      return size;
  for (int64_t size : sizes)
    if (size >= rows)
      return size;
  return sizes.back();
}

std::vector<StepShape> Engine::shapesToPrepare() const {
  std::vector<StepShape> shapes;
  auto add = [&](StepPart part, int64_t rows) {
    const StepShape shape = {part, rows};
    if (std::ranges::find(shapes, shape) == shapes.end())
      shapes.push_back(shape);
  };
  // What several sequences take is what one takes, and more.
  for (int64_t size : programRows(rowsPerStep(), parallel(), decoder.config(),
                                  decoder.device())) {
    const int64_t rows = std::min(size, rowsPerStep());
    for (int64_t sequences : {int64_t(2), rows})
      add(StepPart::Body,
          bodyRows(rows,
                   static_cast<size_t>(std::min(sequences, options.parallel))));
  }
  for (StepPart part : {StepPart::Head, StepPart::Choose})
    for (int64_t rows : programRows(chosenPerStep(), mostChoices(),
                                    decoder.config(), decoder.device()))
      add(part, headRows(std::min(rows, chosenPerStep())));
  return shapes;
}

Status Engine::prepare(const StepShape &shape) { return makeReady(shape); }
