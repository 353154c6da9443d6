//===- StepPlan.cpp - What a step reads and what is wanted ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepPlan.h"

using namespace kf;

StepCounts StepPlan::counts() const {
  StepCounts counts;
  counts.tokens = rows();
  counts.sequences = static_cast<int64_t>(pages.size());
  counts.wanted = wanted();
  counts.adjustments = adjustments();
  counts.masks = masks();
  return counts;
}

void StepPlan::addSequence(const PagedSequence &sequence) {
  pages.push_back(sequence.pages());
  if (!sequence.windowPages().empty())
    windowPages.push_back(sequence.windowPages());
}

void StepPlan::addRow(int32_t id, int64_t position, int32_t adapter) {
  add(kStepIds, id);
  add(kStepPositions, static_cast<int32_t>(position));
  add(kStepSequences, static_cast<int32_t>(pages.size()) - 1);
  add(kStepAdapters, adapter);
}

void StepPlan::choose(const SampleSettings &settings,
                      const SamplePenalties &penalties,
                      std::span<const LogitAdjustment> adjustments,
                      std::span<const uint32_t> allowed) {
  add(kStepTemperature, settings.temperature);
  add(kStepTopK, settings.topK);
  add(kStepTopP, settings.topP);
  add(kStepMinP, settings.minP);
  add(kStepSeed, settings.seed);
  add(kStepCounter, settings.counter);
  add(kStepFirst, static_cast<int32_t>(this->adjustments()));
  add(kStepCount, static_cast<int32_t>(adjustments.size()));
  for (const LogitAdjustment &adjustment : adjustments) {
    add(kStepAdjustedIds, adjustment.id);
    add(kStepSeen, adjustment.seen);
    add(kStepBias, adjustment.bias);
  }
  add(kStepRepetition, penalties.repetition);
  add(kStepPresence, penalties.presence);
  add(kStepFrequency, penalties.frequency);
  add(kStepMasked, allowed.empty() ? -1 : maskCount++);
  add(kStepMask, allowed);
}

void StepPlan::clear() {
  for (std::vector<std::byte> &column : columns)
    column.clear();
  pages.clear();
  windowPages.clear();
  copies.clear();
  logitRows.clear();
  embeddedRows.clear();
  fetchedRows.clear();
  maskCount = 0;
}
