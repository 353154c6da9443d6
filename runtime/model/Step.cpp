//===- Step.cpp - The programs that a decoder runs ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Step.h"

#include <algorithm>

using namespace kf;

namespace {

/// Elements of the lists of adjustments that many rows share: three lists of
/// 256 KiB.
constexpr int64_t kSharedAdjustments = int64_t(1) << 16;

/// The sizes of a step, each a number or an extent that stands for its slot.
struct StepExtents {
  explicit StepExtents(const StepShape &shape) {
    if (shape.tokens != 1) {
      tokens = extentOfSlot(KF_SCALAR_N_TOKENS);
      sequences = nextSlot();
    }
    if (shape.wanted != 1)
      wanted = nextSlot();
    if (shape.output == StepOutput::Ids) {
      adjustments = nextSlot();
      masks = nextSlot();
    }
  }

  int64_t of(StepSize size) const {
    switch (size) {
    case StepSize::Tokens:
      return tokens;
    case StepSize::Sequences:
      return sequences;
    case StepSize::Wanted:
      return wanted;
    case StepSize::Adjustments:
      return adjustments;
    case StepSize::Masks:
      return masks;
    }
    return 0;
  }

  int64_t tokens = 1, sequences = 1, wanted = 1, adjustments = 0, masks = 0;

private:
  int64_t nextSlot() { return extentOfSlot(KF_SCALAR_NAMED_SIZES + named++); }
  int64_t named = 0;
};

} // namespace

std::string kf::nameOf(const StepShape &shape) {
  std::string name = "step_" + std::to_string(shape.tokens);
  if (shape.wanted != 1)
    name += "_" + std::to_string(shape.wanted);
  return shape.output == StepOutput::Logits ? name + "_logits" : name;
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
        {kStepIds, kStepPositions, kStepSequences});
    are(StepSize::Sequences, DataType::I32, {kStepPageTable});
    are(StepSize::Wanted, DataType::I32,
        {kStepWanted, kStepTopK, kStepCounter, kStepFirst, kStepCount,
         kStepMasked});
    are(StepSize::Wanted, DataType::F32,
        {kStepTemperature, kStepTopP, kStepMinP, kStepRepetition, kStepPresence,
         kStepFrequency});
    are(StepSize::Wanted, DataType::I64, {kStepSeed});
    are(StepSize::Adjustments, DataType::I32, {kStepAdjustedIds, kStepSeen});
    are(StepSize::Adjustments, DataType::F32, {kStepBias});
    are(StepSize::Masks, DataType::I32, {kStepMask});
    return all;
  }();
  return columns[input];
}

StepSignature kf::stepSignature(const StepShape &shape,
                                const ModelConfig &model) {
  const StepExtents extents(shape);
  const bool samples = shape.output == StepOutput::Ids;
  StepSignature signature;
  const size_t count = samples ? kStepInputCount : kStepWanted + 1;
  for (size_t i = 0; i < count; ++i) {
    const StepColumn column = columnOf(static_cast<StepInput>(i));
    signature.inputs.push_back({column.type, {extents.of(column.rows)}});
  }
  signature.inputs[kStepPageTable].shape.push_back(
      cachePagesOf(model.maxPositions));
  if (samples) {
    signature.inputs[kStepMask].shape.push_back(maskWords(model.vocabSize));
    signature.outputs = {{DataType::I32, {extents.of(StepSize::Wanted)}}};
  } else {
    signature.outputs = {
        {DataType::F32, {extents.of(StepSize::Wanted), model.vocabSize}}};
  }
  if (shape.tokens != 1)
    signature.sizes.push_back({kSequencesSize, 1, shape.tokens});
  if (shape.wanted != 1)
    signature.sizes.push_back({kWantedSize, 0, shape.wanted});
  if (samples) {
    signature.sizes.push_back(
        {kAdjustmentsSize, 0, mostAdjustments(model.vocabSize, shape.wanted)});
    signature.sizes.push_back({kMasksSize, 0, shape.wanted});
  }
  return signature;
}

Result<StepShape> kf::stepShapeOf(const Executable &executable) {
  StepShape shape;
  shape.tokens = executable.maxTokens;
  const bool hasRows = executable.outputs.size() == 1 &&
                       !executable.outputs[0].shape.empty() &&
                       executable.inputs.size() > kStepWanted;
  const Status notOne = Status::error("the program '" + executable.programName +
                                      "' is no step of a model");
  if (!hasRows)
    return notOne;
  shape.output = executable.inputs.size() == kStepWanted + 1
                     ? StepOutput::Logits
                     : StepOutput::Ids;
  shape.wanted =
      resolveShape(executable.outputs[0].shape, executable.largestSizes())[0];
  if (shape.wanted < 1)
    return notOne;
  return shape;
}

Status kf::checkStep(const Executable &executable, const StepShape &shape,
                     const ModelConfig &model) {
  const StepSignature wanted = stepSignature(shape, model);
  bool fits = executable.inputs == wanted.inputs &&
              executable.outputs == wanted.outputs &&
              executable.maxTokens == shape.tokens &&
              executable.namedSizes == wanted.sizes &&
              executable.caches.size() == 1;
  for (const CacheSpec &cache : executable.caches)
    fits &= cache.layers == model.layers && cache.kvHeads == model.kvHeads &&
            cache.headDim == model.headDim && cache.page == kCachePage;
  if (fits)
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
  scalars[KF_SCALAR_N_TOKENS] = counts.tokens;
  for (auto [extent, count] :
       {std::pair(extents.sequences, counts.sequences),
        std::pair(extents.wanted, counts.wanted),
        std::pair(extents.adjustments, counts.adjustments),
        std::pair(extents.masks, counts.masks)})
    if (isSizeExtent(extent))
      scalars[slotOfExtent(extent)] = count;
  return scalars;
}
