//===- KFSchedules.cpp - Schedules and targets ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "kf/Dialect/KF/IR/MatrixUnits.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

namespace {
/// Checks the fields of a schedule, and reports the first that is wrong.
class FieldChecks {
public:
  explicit FieldChecks(function_ref<InFlightDiagnostic()> emitError)
      : emitError(emitError) {}

  void inRange(StringRef field, ArrayRef<int64_t> sizes, int64_t low,
               int64_t high) {
    for (int64_t size : sizes)
      if (size < low || size > high)
        return report(field + " has " + Twine(size) + ", which is not in [" +
                      Twine(low) + ", " + Twine(high) + "]");
  }
  void check(bool holds, const Twine &message) {
    if (!holds)
      report(message);
  }
  bool hasFailed() const { return hasReported; }
  LogicalResult result() const { return success(!hasReported); }

private:
  void report(const Twine &message) {
    if (!hasReported)
      emitError() << "schedule: " << message;
    hasReported = true;
  }

  function_ref<InFlightDiagnostic()> emitError;
  bool hasReported = false;
};
} // namespace

/// Checks that there is code for `use` with `unit`.
static void checkUnit(FieldChecks &checks, MatrixUnit unit, UnitUse use) {
  const SmallVector<MatrixUnit> units = findUnits(use);
  std::string names;
  for (MatrixUnit known : units) {
    if (!names.empty())
      names += known == units.back() ? " or " : ", ";
    names += stringifyMatrixUnit(known);
  }
  checks.check(llvm::is_contained(units, unit), "unit is " + Twine(names) +
                                                    ", found " +
                                                    stringifyMatrixUnit(unit));
}

static void checkThreads(FieldChecks &checks, ArrayRef<int64_t> threads) {
  checks.check(!threads.empty() && threads.size() <= 3,
               "threads has one to 3 entries, found " + Twine(threads.size()));
  checks.inRange("threads", threads, 1, maxTile);
}

LogicalResult VectorScheduleAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> workgroup,
    ArrayRef<int64_t> tile, int64_t reduction, int64_t lanes, int64_t unroll,
    int64_t accumulators, DotKind dot, PrefetchKind prefetch,
    int64_t hardwareRows, PanelUse panels, RowDivision rowTiles,
    GroupOrder groups) {
  FieldChecks checks(emitError);
  checks.inRange("workgroup", workgroup, 0, maxSize);
  checks.inRange("tile", tile, 1, maxTile);
  checks.inRange("reduction", reduction, 0, maxSize);
  checks.check(lanes > 0 && llvm::isPowerOf2_64(lanes) && lanes <= 64,
               "lanes must be a power of two up to 64, found " + Twine(lanes));
  checks.check(unroll > 0 && unroll <= 64 && accumulators > 0 &&
                   accumulators <= unroll,
               "needs 1 <= accumulators <= unroll <= 64, found accumulators " +
                   Twine(accumulators) + ", unroll " + Twine(unroll));
  checks.inRange("hardware_rows", hardwareRows, 0, maxTile);
  const bool isOfBytes = multipliesBytes(dot);
  const bool isEven = rowTiles == RowDivision::Even;
  checks.check(hardwareRows == 0 || isOfBytes,
               "hardware_rows is for dot = i8 or s8, found dot = " +
                   stringifyDotKind(dot));
  checks.check(hardwareRows == 0 || (prefetch == PrefetchKind::Twice &&
                                     panels != PanelUse::Unpacked),
               "hardware_rows needs prefetch = twice and panels that are not "
               "unpacked");
  checks.check(dot != DotKind::BF16 || (panels == PanelUse::Apart && !isEven),
               "panels and row_tiles are not for dot = bf16, which unpacks "
               "panels for whole tiles");
  checks.check(!isEven || tile.empty() || tile[0] > 1,
               "row_tiles = even needs a tile of two rows or more, found 1");
  checks.check(panels != PanelUse::Shared || (isOfBytes && isEven),
               "panels = shared needs dot = i8 or s8 and row_tiles = even");
  checks.check(panels != PanelUse::Unpacked || !isEven,
               "panels = unpacked needs row_tiles = whole");
  checks.check(groups == GroupOrder::Together || dot == DotKind::F32 ||
                   dot == DotKind::BF16Pairs,
               "groups is for dot = f32 and bf16_pairs; dot = " +
                   stringifyDotKind(dot) + " takes them in turn");
  return checks.result();
}

LogicalResult
SimtScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         ArrayRef<int64_t> workgroup, ArrayRef<int64_t> threads,
                         ArrayRef<int64_t> tile, int64_t reduction,
                         int64_t unroll, SumOwner sums) {
  FieldChecks checks(emitError);
  checks.inRange("workgroup", workgroup, 0, maxSize);
  checkThreads(checks, threads);
  checks.inRange("tile", tile, 1, maxTile);
  checks.inRange("reduction", reduction, 0, maxSize);
  checks.inRange("unroll", unroll, 1, 64);
  // Without a tile it is a reduction's, which all threads share.
  if (sums == SumOwner::Own || tile.empty() || checks.hasFailed())
    return checks.result();
  checks.check(threads.size() > 1 && threads[0] > 1 &&
                   (threads.size() == 2 || threads[2] == 1),
               "sums = shared needs threads = [2 or more, y]");
  if (checks.hasFailed())
    return failure();
  checks.check(
      tile.size() == 2 && workgroup.size() == 2 && workgroup[0] == tile[0] &&
          workgroup[1] == tile[1] * threads[1],
      "sums = shared needs tile = [rows, columns] and workgroup = [rows, "
      "columns times threads along y]");
  checks.check(reduction == 0,
               "reduction is for operands that are staged, and sums = shared "
               "stages none, found " +
                   Twine(reduction));
  return checks.result();
}

LogicalResult
MmaScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<int64_t> workgroup, ArrayRef<int64_t> warps,
                        int64_t reduction, int64_t stages, MatrixUnit unit,
                        int64_t parts, int64_t shares) {
  FieldChecks checks(emitError);
  checks.check((workgroup.size() == 2 ||
                (workgroup.size() == 3 && workgroup.front() == 1)) &&
                   warps.size() == 2,
               "workgroup and warps are [rows, columns], or of batches "
               "workgroup is [1, rows, columns]");
  checks.inRange("workgroup", workgroup, 1, maxTile);
  checks.inRange("warps", warps, 1, 32);
  checks.check(
      llvm::isPowerOf2_64(reduction) && reduction >= 16 && reduction <= 128,
      "reduction must be 16, 32, 64 or 128, found " + Twine(reduction));
  checks.inRange("stages", stages, 2, 8);
  checks.inRange("parts", parts, 1, kMostClusterParts);
  const bool isOfSubgroups = isCooperative(unit);
  checkUnit(checks, unit, kForManyRows);
  checks.check(!isOfSubgroups || (reduction == 32 && stages == 2 && parts == 1),
               Twine("unit = ") + stringifyMatrixUnit(unit) +
                   " needs reduction = 32, stages = 2 and parts = 1, found "
                   "reduction = " +
                   Twine(reduction) + ", stages = " + Twine(stages) +
                   " and parts = " + Twine(parts));
  checks.inRange("shares", shares, 1, 32);
  if (shares > 1 && !checks.hasFailed())
    checks.check(isOfSubgroups && warps[0] == 1 && warps[1] == 1,
                 "shares are of unit = coop_f16 or coop_bf16, with warps = "
                 "[1, 1], found unit = " +
                     stringifyMatrixUnit(unit) + " and warps = [" +
                     Twine(warps[0]) + ", " + Twine(warps[1]) + "]");
  if (unit != MatrixUnit::Wgmma || checks.hasFailed())
    return checks.result();
  const int64_t most = getUnitShape(unit).mostRows;
  checks.check(warps[0] == 1 && warps[1] % 4 == 0,
               "unit = wgmma needs warps = [1, a multiple of 4], found [" +
                   Twine(warps[0]) + ", " + Twine(warps[1]) + "]");
  const int64_t rows = workgroup.end()[-2];
  checks.check(rows <= most, "unit = wgmma needs at most " + Twine(most) +
                                 " rows in workgroup, found " + Twine(rows));
  checks.check(reduction == 64,
               "unit = wgmma needs reduction = 64, found " + Twine(reduction));
  checks.check(stages >= 3, "unit = wgmma needs stages of 3 or more, found " +
                                Twine(stages));
  return checks.result();
}

LogicalResult
StreamScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           ArrayRef<int64_t> workgroup, int64_t warps,
                           int64_t tiles, int64_t stages, MatrixUnit unit,
                           RowForm rows, OperandPlace held, int64_t blockWarps,
                           int64_t blocks, int64_t reduction, int64_t parts) {
  FieldChecks checks(emitError);
  checks.check(
      workgroup.size() == 2 || (workgroup.size() == 3 && workgroup[1] == 1),
      "workgroup is [rows, columns], or [rows, 1, columns] of experts");
  checks.inRange("workgroup", workgroup, 1, maxTile);
  checks.inRange("warps", warps, 1, 32);
  checks.inRange("tiles", tiles, 1, 32);
  checks.inRange("stages", stages, 2, 16);
  checks.inRange("block_warps", blockWarps, 1, 32);
  checks.inRange("blocks", blocks, 1, 2);
  checks.inRange("reduction", reduction, 0, maxSize);
  checks.inRange("parts", parts, 1, kMostClusterParts);
  checkUnit(checks, unit, kForFewRows);
  const auto [form, other] = describeUnit(unit).rows;
  std::string forms = stringifyRowForm(form).str();
  if (other != form)
    forms += " or " + stringifyRowForm(other).str();
  checks.check(takesRows(unit, rows),
               Twine("unit = ") + stringifyMatrixUnit(unit) + " takes rows = " +
                   forms + ", found rows = " + stringifyRowForm(rows));
  const OperandPlace place = rows == RowForm::Rounded && workgroup.size() == 2
                                 ? OperandPlace::Registers
                                 : OperandPlace::Shared;
  checks.check(held == place,
               Twine("rows = ") + stringifyRowForm(rows) +
                   " are held = " + stringifyOperandPlace(place) +
                   ", found held = " + stringifyOperandPlace(held));
  checks.check(
      parts == 1 || held == OperandPlace::Registers,
      "parts are for held = registers, found held = shared and parts = " +
          Twine(parts));
  checks.check(held == OperandPlace::Shared || blockWarps * blocks == 1,
               "block_warps and blocks are for held = shared, found held = "
               "registers");
  checks.check(blockWarps < 1 || warps % blockWarps == 0,
               "block_warps (" + Twine(blockWarps) + ") must divide warps (" +
                   Twine(warps) + ")");
  return checks.result();
}

LogicalResult
LanesScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          ArrayRef<int64_t> workgroup, int64_t warps,
                          int64_t tiles, int64_t blockWarps, int64_t reduction,
                          int64_t rounds, LaneCodes) {
  FieldChecks checks(emitError);
  checks.check(workgroup.size() == 2 || workgroup.size() == 3,
               "workgroup is [rows, columns], or [rows, 1, columns] of an "
               "expert_matmul");
  checks.inRange("workgroup", workgroup, 1, maxTile);
  checks.inRange("warps", warps, 1, 32);
  checks.inRange("tiles", tiles, 1, 32);
  checks.inRange("block_warps", blockWarps, 1, 32);
  checks.inRange("reduction", reduction, 0, maxSize);
  checks.inRange("rounds", rounds, 1, maxTile);
  checks.check(blockWarps < 1 || warps % blockWarps == 0,
               "block_warps (" + Twine(blockWarps) + ") must divide warps (" +
                   Twine(warps) + ")");
  return checks.result();
}

LogicalResult
FlashScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          ArrayRef<int64_t> workgroup, int64_t keys,
                          ArrayRef<int64_t> threads) {
  FieldChecks checks(emitError);
  checks.inRange("workgroup", workgroup, 0, maxSize);
  checks.inRange("keys", keys, 1, maxTile);
  checkThreads(checks, threads);
  return checks.result();
}

LogicalResult
FlashMmaScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                             ArrayRef<int64_t> workgroup, int64_t keys,
                             ArrayRef<int64_t> threads, MatrixUnit unit,
                             RowForm rows, OperandPlace held, int64_t parts) {
  FieldChecks checks(emitError);
  checks.inRange("workgroup", workgroup, 0, maxSize);
  checks.inRange("parts", parts, 1, kMostClusterParts);
  checks.check(keys == 16 || keys == 32 || keys == 64,
               "keys must be 16, 32 or 64, found " + Twine(keys));
  const bool isOfSubgroups = isCooperative(unit);
  checks.check(threads.size() == 3 && (isOfSubgroups || threads[0] == 32),
               isOfSubgroups
                   ? "threads must be [a subgroup's, warps of rows, 1]"
                   : "threads must be [32, warps of rows, warps of keys]");
  checks.inRange("threads", threads, 1, isOfSubgroups ? 128 : 32);
  checkUnit(checks, unit, kForAttention);
  checks.check(rows != RowForm::F32, "rows are split or rounded, found f32");
  if (checks.hasFailed())
    return failure();
  const bool isShared = held == OperandPlace::Shared;
  checks.check(isShared == (rows == RowForm::Rounded),
               Twine("rows = ") + stringifyRowForm(rows) +
                   " are held = " + (isShared ? "registers" : "shared") +
                   ", found held = " + stringifyOperandPlace(held));
  if (isOfSubgroups) {
    checks.check(isShared && threads[2] == 1 && parts == 1,
                 Twine("unit = ") + stringifyMatrixUnit(unit) +
                     " needs held = shared, threads = [subgroup, warps, 1] and "
                     "parts = 1, found held = " +
                     stringifyOperandPlace(held) + ", threads = [" +
                     Twine(threads[0]) + ", " + Twine(threads[1]) + ", " +
                     Twine(threads[2]) + "] and parts = " + Twine(parts));
    return checks.result();
  }
  checks.check(!isShared || (threads[1] > 1 && threads[2] == 1),
               "held = shared needs threads = [32, 2 or more, 1], found [32, " +
                   Twine(threads[1]) + ", " + Twine(threads[2]) + "]");
  checks.check(
      parts == 1 || !isShared,
      "parts are for held = registers, found held = shared and parts = " +
          Twine(parts));
  if (unit == MatrixUnit::Wgmma) {
    checks.check(isShared, "unit = wgmma needs held = shared, found registers");
    checks.check(threads[1] % 4 == 0,
                 "unit = wgmma needs threads = [32, a multiple of 4, 1], found "
                 "[32, " +
                     Twine(threads[1]) + ", " + Twine(threads[2]) + "]");
  }
  return checks.result();
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

TargetAttrInterface mlir::kf::getTarget(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  Attribute target = module ? module->getAttr(kTargetAttrName) : Attribute();
  if (!target)
    op->emitError("the module does not say what it is compiled for; run "
                  "kf-set-target, as in --kf-set-target=target=cpu");
  return dyn_cast_if_present<TargetAttrInterface>(target);
}

LogicalResult
CpuTargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef,
                      StringRef, int64_t lanes, int64_t registers, bool,
                      ByteDot, bool amx, bool bf16Dot, PrefetchKind,
                      int64_t workers) {
  if (!llvm::isPowerOf2_64(lanes) || lanes < 4 || lanes > 16)
    return emitError() << "cpu_target: lanes must be 4, 8 or 16, found "
                       << lanes;
  if (registers != 0 && registers != 16 && registers != 32)
    return emitError() << "cpu_target: registers must be 16 or 32, or 0 where "
                          "that follows from the lanes, found "
                       << registers;
  if (amx && lanes != 16)
    return emitError() << "cpu_target: amx needs lanes = 16, found " << lanes;
  if (bf16Dot && lanes != 16)
    return emitError() << "cpu_target: bf16_dot needs lanes = 16, found "
                       << lanes;
  if (workers < 0 || workers > maxTile)
    return emitError() << "cpu_target: workers must be in [0, " << maxTile
                       << "], found " << workers;
  return success();
}

LogicalResult
VulkanTargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t threads, int64_t memory, int64_t subgroup,
                         bool, bool, ArrayRef<Type> types, bool, bool,
                         ArrayRef<Type> matrices, int64_t multiprocessors) {
  if (threads < 1 || threads > maxTile)
    return emitError() << "vulkan_target: threads must be in [1, " << maxTile
                       << "], found " << threads;
  if (memory < 0 || memory > maxSize)
    return emitError() << "vulkan_target: memory must be in [0, " << maxSize
                       << "], found " << memory;
  if (subgroup < 1 || subgroup > 128)
    return emitError() << "vulkan_target: subgroup must be in [1, 128], found "
                       << subgroup;
  for (Type type : types)
    if (!type.isF16() && !type.isSignlessInteger(8) &&
        !type.isSignlessInteger(16) && !type.isSignlessInteger(64))
      return emitError() << "vulkan_target: types are f16, i8, i16 and i64, "
                            "found "
                         << type;
  for (Type type : matrices)
    if (!type.isF16() && !type.isBF16() && !type.isSignlessInteger(8))
      return emitError() << "vulkan_target: matrices are of f16, bf16 and i8, "
                            "found "
                         << type;
  if (multiprocessors < 0 || multiprocessors > maxTile)
    return emitError() << "vulkan_target: multiprocessors must be in [0, "
                       << maxTile << "], found " << multiprocessors;
  return success();
}

std::optional<unsigned> CudaTargetAttr::parseNumber(StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_"))
    return std::nullopt;
  chip.consume_back("a") || chip.consume_back("f");
  if (chip.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

LogicalResult
CudaTargetAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       StringRef chip, int64_t multiprocessors,
                       int64_t memory) {
  std::optional<unsigned> number = parseNumber(chip);
  if (!number || *number < 80 || *number > 999)
    return emitError() << "cuda_target: chip must be sm_80 or later, as in "
                          "sm_90a, found '"
                       << chip << "'";
  if (multiprocessors < 0 || multiprocessors > maxTile)
    return emitError() << "cuda_target: multiprocessors must be in [0, "
                       << maxTile << "], found " << multiprocessors;
  if (memory < 0 || memory > maxSize)
    return emitError() << "cuda_target: memory must be in [0, " << maxSize
                       << "], found " << memory;
  return success();
}
