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

StepSignature kf::stepSignature(const StepShape &shape,
                                const ModelConfig &model) {
  const StepExtents extents(shape);
  const bool samples = shape.output == StepOutput::Ids;
  auto rows = [](DataType type, int64_t extent) {
    return TensorSpec{type, {extent}};
  };
  const TensorSpec ids = rows(DataType::I32, extents.tokens),
                   perWanted = rows(DataType::I32, extents.wanted),
                   setting = rows(DataType::F32, extents.wanted),
                   adjustment = rows(DataType::I32, extents.adjustments);
  StepSignature signature;
  std::vector<TensorSpec> &inputs = signature.inputs;
  inputs.resize(samples ? kStepInputCount : kStepWanted + 1);
  inputs[kStepIds] = inputs[kStepPositions] = inputs[kStepSequences] = ids;
  inputs[kStepPageTable] = {
      DataType::I32, {extents.sequences, cachePagesOf(model.maxPositions)}};
  inputs[kStepWanted] = perWanted;
  if (samples) {
    for (StepInput input : {kStepTemperature, kStepTopP, kStepMinP,
                            kStepRepetition, kStepPresence, kStepFrequency})
      inputs[input] = setting;
    for (StepInput input :
         {kStepTopK, kStepCounter, kStepFirst, kStepCount, kStepMasked})
      inputs[input] = perWanted;
    inputs[kStepMask] = {DataType::I32,
                         {extents.masks, maskWords(model.vocabSize)}};
    inputs[kStepSeed] = rows(DataType::I64, extents.wanted);
    inputs[kStepAdjustedIds] = inputs[kStepSeen] = adjustment;
    inputs[kStepBias] = rows(DataType::F32, extents.adjustments);
    signature.outputs = {perWanted};
  } else {
    signature.outputs = {{DataType::F32, {extents.wanted, model.vocabSize}}};
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
