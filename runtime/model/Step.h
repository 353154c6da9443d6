//===- Step.h - The programs that a decoder runs ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What runs a model asks its compiler for, and what import builds: a step in
// programs, each in sizes of its own. T is the number of tokens of the
// step, each a row that belongs to one of its S sequences, of which each has up
// to P pages of the cache; D is the hidden size, L the number of rows that are
// wanted, V the vocabulary, A the number of logits that are adjusted, M that of
// masks. Inputs in their order, caches apart:
//
//   body: what the layers make of the tokens
//     ids, positions, sequences  [T] i32
//     page table                 [S, P] i32    pages of the step's sequences
//     states                     [S] i32       their slots, of models with any
//     adapters                   [T, 1] i32    of models opened with any; 0:
//     none
//     page tables of windows     [S, P] i32    each of one group of layers, of
//     models whose caches have any (LayerCaches.h)
//     -> hidden rows             [T, D] f32    before the final norm; of a
//     stage that is not the model's last, none: they are sent
//
//   head: the final norm and the output matrix, of the wanted rows alone
//     hidden rows                [T, D] f32    the body's, where they are
//     wanted                     [L] i32       numbers of rows
//     -> logits                  [L, V] f32
//
//   choose: what kf.sample takes and gives
//     logits                     [L, V] f32    the head's, where they are
//     temperature                [L] f32
//     top_k                      [L] i32
//     top_p, min_p               [L] f32
//     seed                       [L] i64
//     counter, first, count      [L] i32
//     ids and seen of adjustments      [A] i32
//     bias of adjustments        [A] f32
//     repetition, presence, frequency  [L] f32
//     masked                     [L] i32       rows of the mask; -1: none
//     mask                       [M, ceil(V / 32)] i32
//     -> ids                     [L] i32       that were chosen, or -1
//
//   embed: the final norm of the wanted rows alone
//     hidden rows                [T, D] f32    the body's, where they are
//     wanted                     [L] i32       numbers of rows
//     -> embeddings              [L, D] f32    what the head multiplies
//
// `wanted` are numbers from 0 to T - 1; any other gives what a row of zeros
// does. `sequences` are numbers from 0 to S - 1, of rows of this step's page
// table: a program does not depend on how many sequences there are in all.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_STEP_H
#define KF_RUNTIME_MODEL_STEP_H

#include "runtime/model/ModelConfig.h"
#include "runtime/program/Executable.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The programs of a step: the first three in the order in which they run, and
/// what stands in the place of the last two where embeddings are wanted.
enum class StepPart { Body, Head, Choose, Embed };
inline constexpr StepPart kStepParts[] = {StepPart::Body, StepPart::Head,
                                          StepPart::Choose, StepPart::Embed};
/// "body", "head", "choose", "embed".
std::string_view nameOf(StepPart part);

/// The most rows that a step of `model` can have: a power of two from 64 to
/// 8192. As f32, so many hidden rows, inputs of tokens or gathered parts are at
/// most 128 MiB, as Vulkan devices bind, but there are no fewer than 64.
int64_t mostStepRows(const ModelConfig &model);

/// Columns of the widest row that a layer of `model` hands from one kernel to
/// another, those of all experts that are chosen for it, of products that
/// kernels compute together and gathered parts included; logits are not.
int64_t widestRow(const ModelConfig &model);

/// What a program of a step is compiled for.
struct StepShape {
  StepPart part = StepPart::Body;
  /// The most rows: T of a body, L of the others. 1: always 1, and the body's
  /// S, too, with static shapes; else S may be 1 to T at most.
  int64_t rows = 1;

  auto operator<=>(const StepShape &) const = default;
};

/// The function's and the program's name: "body_512", "head_16", "choose_1".
std::string nameOf(const StepShape &shape);

/// The inputs of a step, those of each part in their order, of which a body's
/// last two may be missing; page tables of windows, which are behind a body's
/// others, and caches are not counted, and an embedding has the head's. Those
/// of `choose` are in the order of kf.sample's operands.
enum StepInput : size_t {
  // Of the body.
  kStepIds,
  kStepPositions,
  kStepSequences,
  kStepPageTable,
  kStepStates,   ///< of models with states alone
  kStepAdapters, ///< of models with adapters alone
  // Of the head.
  kStepHidden,
  kStepWanted,
  // Of the choice.
  kStepLogits,
  kStepTemperature,
  kStepTopK,
  kStepTopP,
  kStepMinP,
  kStepSeed,
  kStepCounter,
  kStepFirst,
  kStepCount,
  kStepAdjustedIds,
  kStepSeen,
  kStepBias,
  kStepRepetition,
  kStepPresence,
  kStepFrequency,
  kStepMasked,
  kStepMask,
  kStepInputCount
};

/// The first input of a part, and the one behind its last.
StepInput firstInput(StepPart part);
StepInput endOfInputs(StepPart part);
/// Whether programs of `model` have it.
bool hasInput(const ModelConfig &model, StepInput input);
/// The number of an input, which `model` has, among those of its part's
/// program; without a model, of one that has all of them.
size_t numberOf(StepInput input);
size_t numberOf(StepInput input, const ModelConfig &model);
/// The number of the page table of window number `table`, from 1 on, among the
/// inputs of a body.
size_t numberOfWindow(int64_t table, const ModelConfig &model);

/// What there are as many of as an input has rows.
enum class StepSize { Tokens, Sequences, Wanted, Adjustments, Masks };

/// An input of a step, but for how wide its rows are.
struct StepColumn {
  DataType type = DataType::I32;
  StepSize rows = StepSize::Tokens;
};
/// What a new option of a step adds to, beside its number.
StepColumn columnOf(StepInput input);

/// How S, A and M are called, and T in the head (`#kf.size`). T of the body,
/// and L, are the tokens of their programs.
inline constexpr char kSequencesSize[] = "sequences";
inline constexpr char kRowsSize[] = "rows";
inline constexpr char kAdjustmentsSize[] = "adjustments";
inline constexpr char kMasksSize[] = "masks";

/// A at most: room for one row that adjusts every token, and for many that
/// adjust a few thousand each; inputs for all tokens of all rows would take
/// tens of megabytes.
int64_t mostAdjustments(int64_t vocabulary, int64_t wanted);

/// Words of a row of the mask: a bit for each token of the vocabulary.
constexpr int64_t maskWords(int64_t vocabulary) {
  return (vocabulary + 31) / 32;
}

/// What a program of a step takes, gives and may have for sizes.
struct StepSignature {
  std::vector<TensorSpec> inputs; ///< by numberOf() and numberOfWindow()
  std::vector<TensorSpec> outputs;
  std::vector<SizeRange> sizes; ///< with names, in the order of their slots
};
StepSignature stepSignature(const StepShape &shape, const ModelConfig &model);

/// The shape that a program was compiled for, by what it takes and gives; by
/// its name, whether logits as wide as hidden rows are embeddings. Errors: one
/// that is no part of a step.
Result<StepShape> stepShapeOf(const Executable &executable);
/// An error unless `executable` takes, gives and keeps what the part `shape` of
/// a step of `model` has to.
Status checkStep(const Executable &executable, const StepShape &shape,
                 const ModelConfig &model);

/// How many of everything one run of a step has.
struct StepCounts {
  int64_t tokens = 1, sequences = 1, wanted = 1, adjustments = 0, masks = 0;
};
/// The counts in the slots of a program's scalars, but for those that are
/// static.
std::array<int64_t, KF_SCALAR_COUNT> stepScalars(const StepShape &shape,
                                                 const StepCounts &counts);

/// Positions of a page of the cache: a multiple of every device's block and
/// tile of keys, and few, so that a short sequence does not hold much that it
/// does not use.
constexpr int64_t kCachePage = 64;

/// Positions of a sequence that a page's number stands for: kCachePage on each
/// of the ranks that share them.
inline int64_t pagePositionsOf(const ModelConfig &model) {
  return kCachePage * model.contextRanks;
}

/// Pages of `page` positions that hold `positions` positions of a sequence.
constexpr int64_t cachePagesOf(int64_t positions, int64_t page = kCachePage) {
  return positions / page + (positions % page > 0);
}
inline int64_t cachePagesOf(int64_t positions, const ModelConfig &model) {
  return cachePagesOf(positions, pagePositionsOf(model));
}

} // namespace kf

#endif // KF_RUNTIME_MODEL_STEP_H
