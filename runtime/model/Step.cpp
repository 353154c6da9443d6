//===- Step.cpp - The programs that a decoder runs ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Step.h"

#include "runtime/model/LayerCaches.h"

#include <algorithm>
#include <bit>

using namespace kf;

namespace {

/// Elements of the lists of adjustments that many rows share: three lists of
/// 256 KiB.
constexpr int64_t kSharedAdjustments = int64_t(1) << 16;

/// Elements of the hidden rows of a step, or of those that ranks gather: 128
/// MiB.
constexpr int64_t kMostHidden = int64_t(1) << 25;
constexpr int64_t kFewestMostRows = 64, kMostRows = 8192;

/// The sizes of a program, each a number or an extent that stands for its slot;
/// 0: it has none.
struct StepExtents {
  explicit StepExtents(const StepShape &shape) {
    const int64_t own = shape.rows == 1 ? 1 : extentOfSlot(KF_SCALAR_N_TOKENS);
    switch (shape.part) {
    case StepPart::Body:
      at(StepSize::Tokens) = own;
      at(StepSize::Sequences) = shape.rows == 1 ? 1 : slot(0);
      break;
    case StepPart::Head:
    case StepPart::Embed:
      at(StepSize::Tokens) = slot(0);
      at(StepSize::Wanted) = own;
      break;
    case StepPart::Choose:
      at(StepSize::Wanted) = own;
      at(StepSize::Adjustments) = slot(0);
      at(StepSize::Masks) = slot(1);
      break;
    }
  }

  int64_t &at(StepSize size) { return extents[static_cast<size_t>(size)]; }
  int64_t of(StepSize size) const { return extents[static_cast<size_t>(size)]; }

private:
  static int64_t slot(int64_t named) {
    return extentOfSlot(KF_SCALAR_NAMED_SIZES + named);
  }

  std::array<int64_t, 5> extents = {};
};

} // namespace

std::string_view kf::nameOf(StepPart part) {
  static constexpr std::string_view names[] = {"body", "head", "choose",
                                               "embed"};
  return names[static_cast<size_t>(part)];
}

std::string kf::nameOf(const StepShape &shape) {
  return std::string(nameOf(shape.part)) + "_" + std::to_string(shape.rows);
}

/// Columns of what ranks that share positions gather of a row, at most: of each
/// rank and head values, the largest score and the sum of weights. 0 of one
/// rank.
static int64_t gatheredRow(const ModelConfig &model) {
  int64_t widest = 0;
  for (int64_t number = 0; model.contextRanks > 1 && number < model.layers;
       ++number)
    widest = std::max(widest, model.contextRanks * model.heads *
                                  (model.layer(number).headDim + 2));
  return widest;
}

int64_t kf::mostStepRows(const ModelConfig &model) {
  const uint64_t rows = static_cast<uint64_t>(
      kMostHidden /
      std::max({model.hiddenSize, model.layers * model.tokenInputWidth,
                gatheredRow(model), int64_t(1)}));
  return std::clamp(static_cast<int64_t>(std::bit_floor(rows)), kFewestMostRows,
                    kMostRows);
}

int64_t kf::widestRow(const ModelConfig &model) {
  int64_t widest =
      std::max({model.hiddenSize * model.streams.count,
                model.layers * model.tokenInputWidth, gatheredRow(model)});
  for (int64_t number = 0; number < model.layers; ++number) {
    const LayerConfig layer = model.layer(number);
    if (layer.isLinear) {
      const LinearAttentionConfig &linear = model.linear;
      widest = std::max(widest, linear.channels() +
                                    linear.valueHeads * (linear.valueDim + 2));
    } else if (const LatentConfig &latent = model.latent; latent.width) {
      widest = std::max(widest,
                        model.heads * (std::max(latent.width, latent.plainDim) +
                                       latent.turnedDim));
    } else {
      const int64_t queries =
          (model.gatedAttention ? 2 : 1) * model.heads * layer.headDim;
      widest = std::max(widest, queries + 2 * layer.kvHeads * layer.headDim);
    }
    if (!layer.hasExperts || model.experts.besideBlock)
      widest = std::max(widest, layer.intermediateSize);
    if (layer.hasExperts) {
      const ExpertsConfig &experts = model.experts;
      widest = std::max(
          {widest, experts.sharedWidth,
           experts.chosen * std::max(experts.width, model.hiddenSize)});
    }
  }
  return widest;
}

StepInput kf::firstInput(StepPart part) {
  static constexpr StepInput first[] = {kStepIds, kStepHidden, kStepLogits,
                                        kStepHidden};
  return first[static_cast<size_t>(part)];
}

StepInput kf::endOfInputs(StepPart part) {
  static constexpr StepInput end[] = {kStepHidden, kStepLogits, kStepInputCount,
                                      kStepLogits};
  return end[static_cast<size_t>(part)];
}

size_t kf::numberOf(StepInput input) {
  const StepPart part = input >= kStepLogits   ? StepPart::Choose
                        : input >= kStepHidden ? StepPart::Head
                                               : StepPart::Body;
  return input - firstInput(part);
}

bool kf::hasInput(const ModelConfig &model, StepInput input) {
  if (input == kStepStates)
    return model.hasStates();
  return input != kStepAdapters || model.adapters.count > 0;
}

size_t kf::numberOf(StepInput input, const ModelConfig &model) {
  const bool lacksStates = input == kStepAdapters && !model.hasStates();
  return numberOf(input) - (lacksStates ? 1 : 0);
}

size_t kf::numberOfWindow(int64_t table, const ModelConfig &model) {
  size_t before = static_cast<size_t>(table) - 1;
  for (size_t input = kStepIds; input < endOfInputs(StepPart::Body); ++input)
    before += hasInput(model, static_cast<StepInput>(input));
  return before;
}

int64_t kf::mostAdjustments(int64_t vocabulary, int64_t wanted) {
  // The product is formed only where it is below the limit.
  const int64_t all = vocabulary > kSharedAdjustments / wanted
                          ? kSharedAdjustments
                          : vocabulary * wanted;
  return std::max(vocabulary, all);
}

StepColumn kf::columnOf(StepInput input) {
  static constexpr std::array<StepColumn, kStepInputCount> columns = [] {
    std::array<StepColumn, kStepInputCount> all;
    auto are = [&](StepSize rows, DataType type,
                   std::initializer_list<StepInput> inputs) {
      for (StepInput input : inputs)
        all[input] = {type, rows};
    };
    are(StepSize::Tokens, DataType::I32,
        {kStepIds, kStepPositions, kStepSequences, kStepAdapters});
    are(StepSize::Sequences, DataType::I32, {kStepPageTable, kStepStates});
    are(StepSize::Wanted, DataType::I32,
        {kStepWanted, kStepTopK, kStepCounter, kStepFirst, kStepCount,
         kStepMasked});
    are(StepSize::Wanted, DataType::F32,
        {kStepTemperature, kStepTopP, kStepMinP, kStepRepetition, kStepPresence,
         kStepFrequency});
    are(StepSize::Wanted, DataType::I64, {kStepSeed});
    are(StepSize::Tokens, DataType::F32, {kStepHidden});
    are(StepSize::Wanted, DataType::F32, {kStepLogits});
    are(StepSize::Adjustments, DataType::I32, {kStepAdjustedIds, kStepSeen});
    are(StepSize::Adjustments, DataType::F32, {kStepBias});
    are(StepSize::Masks, DataType::I32, {kStepMask});
    return all;
  }();
  return columns[input];
}

/// How wide the rows of an input are; 0 for single elements.
static int64_t widthOf(StepInput input, const ModelConfig &model) {
  switch (input) {
  case kStepPageTable:
    return cachePagesOf(model.maxPositions, model);
  case kStepAdapters:
    return 1; // as kf.expert_matmul takes them
  case kStepHidden:
    return model.hiddenSize;
  case kStepLogits:
    return model.vocabSize;
  case kStepMask:
    return maskWords(model.vocabSize);
  default:
    return 0;
  }
}

/// What there may be of the sizes with a name, in the order of their slots.
static std::vector<SizeRange> namedSizes(const StepShape &shape,
                                         const ModelConfig &model) {
  switch (shape.part) {
  case StepPart::Body:
    if (shape.rows == 1)
      return {};
    return {{kSequencesSize, 1, shape.rows}};
  case StepPart::Head:
  case StepPart::Embed:
    return {{kRowsSize, 1, mostStepRows(model)}};
  case StepPart::Choose:
    return {{kAdjustmentsSize, 0, mostAdjustments(model.vocabSize, shape.rows)},
            {kMasksSize, 0, shape.rows}};
  }
  return {};
}

StepSignature kf::stepSignature(const StepShape &shape,
                                const ModelConfig &model) {
  const StepExtents extents(shape);
  auto specOf = [&](StepInput input) {
    const StepColumn column = columnOf(input);
    TensorSpec spec = {column.type, {extents.of(column.rows)}};
    if (const int64_t width = widthOf(input, model))
      spec.shape.push_back(width);
    return spec;
  };
  StepSignature signature;
  for (size_t input = firstInput(shape.part); input < endOfInputs(shape.part);
       ++input)
    if (hasInput(model, static_cast<StepInput>(input)))
      signature.inputs.push_back(specOf(static_cast<StepInput>(input)));
  switch (shape.part) {
  case StepPart::Body:
    signature.inputs.resize(
        signature.inputs.size() +
            static_cast<size_t>(cacheWindowsOf(model).moreTables()),
        specOf(kStepPageTable));
    if (model.stage.isLast())
      signature.outputs = {specOf(kStepHidden)};
    break;
  case StepPart::Head:
    signature.outputs = {specOf(kStepLogits)};
    break;
  case StepPart::Choose:
    signature.outputs = {{DataType::I32, {extents.of(StepSize::Wanted)}}};
    break;
  case StepPart::Embed:
    signature.outputs = {
        {DataType::F32, {extents.of(StepSize::Wanted), model.hiddenSize}}};
    break;
  }
  signature.sizes = namedSizes(shape, model);
  return signature;
}

/// Whether what takes a head's inputs gives embeddings: rows as wide as hidden
/// ones, and not those of a vocabulary that happens to be as large.
static bool isEmbedding(const Executable &executable) {
  const std::vector<int64_t> &hidden = executable.inputs.front().shape,
                             &given = executable.outputs.front().shape;
  return hidden.size() == 2 && given.size() == 2 && hidden[1] == given[1] &&
         executable.programName.starts_with(nameOf(StepPart::Embed));
}

/// What tells a body from a choice.
static_assert(kStepHidden - kStepIds + kMostWindowTables <
                  kStepInputCount - kStepLogits,
              "a body has fewer inputs than a choice");

Result<StepShape> kf::stepShapeOf(const Executable &executable) {
  for (StepPart part : {StepPart::Body, StepPart::Head, StepPart::Choose}) {
    const size_t all = endOfInputs(part) - firstInput(part);
    // A body may lack two, and have page tables of windows.
    const bool isBody = part == StepPart::Body;
    const size_t least = all - (isBody ? 2 : 0),
                 most = all + (isBody ? kMostWindowTables : 0);
    const bool fits =
        executable.inputs.size() >= least && executable.inputs.size() <= most;
    if (!fits || executable.outputs.size() != 1 || executable.maxTokens < 1)
      continue;
    const bool embeds = part == StepPart::Head && isEmbedding(executable);
    return StepShape{embeds ? StepPart::Embed : part, executable.maxTokens};
  }
  return Status::error("the program '" + executable.programName +
                       "' is no part of a model's step");
}

Status kf::checkStep(const Executable &executable, const StepShape &shape,
                     const ModelConfig &model) {
  const StepSignature wanted = stepSignature(shape, model);
  const bool fits = executable.inputs == wanted.inputs &&
                    executable.outputs == wanted.outputs &&
                    executable.maxTokens == shape.rows &&
                    executable.namedSizes == wanted.sizes &&
                    executable.ranks == model.rankCount();
  std::vector<CacheSpec> caches;
  if (shape.part == StepPart::Body)
    caches = LayerCaches(model).specs();
  // How elements are stored, the program says.
  const bool fitCaches = std::ranges::equal(
      executable.caches, caches, [](const CacheSpec &has, CacheSpec cache) {
        cache.type = has.type;
        cache.keyBlock = has.keyBlock;
        return has == cache;
      });
  if (fits && fitCaches)
    return Status();
  return Status::error("the program '" + executable.programName +
                           "' that was compiled for '" + nameOf(shape) +
                           "' does not fit the model",
                       StatusCode::Internal);
}

std::array<int64_t, KF_SCALAR_COUNT> kf::stepScalars(const StepShape &shape,
                                                     const StepCounts &counts) {
  const StepExtents extents(shape);
  std::array<int64_t, KF_SCALAR_COUNT> scalars = {};
  scalars[KF_SCALAR_N_TOKENS] =
      shape.part == StepPart::Body ? counts.tokens : counts.wanted;
  for (auto [size, count] :
       {std::pair(StepSize::Tokens, counts.tokens),
        std::pair(StepSize::Sequences, counts.sequences),
        std::pair(StepSize::Wanted, counts.wanted),
        std::pair(StepSize::Adjustments, counts.adjustments),
        std::pair(StepSize::Masks, counts.masks)})
    if (isSizeExtent(extents.of(size)))
      scalars[slotOfExtent(extents.of(size))] = count;
  return scalars;
}
