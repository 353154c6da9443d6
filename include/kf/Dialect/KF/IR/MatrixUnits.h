//===- MatrixUnits.h - What matrix units multiply ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A unit's shape, types, how `#kf.stream` gives it rows, and the schedules that
// there is code for. What else a schedule asks of a unit, as `#kf.flash_mma`
// does of rows, its verifier in KFSchedules.cpp says. Which of them a machine
// has is in Machine.h.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_MATRIXUNITS_H
#define KF_DIALECT_KF_IR_MATRIXUNITS_H

#include "kf/Dialect/KF/IR/KFEnums.h"

#include "mlir/IR/Types.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::kf {

/// The tile that one instruction of a unit multiplies: [lines, step] of its
/// left operand with [step, rows] of its right one. Of warpgroups, `rows` is
/// the least; more are a multiple of it, up to `mostRows`. Of vectors, it is
/// what a lane of 32 bits does. Subgroups have as many
/// threads as the machine says.
struct MatrixUnitShape {
  int64_t threads; ///< that hold the operands and sums together
  int64_t lines, rows, step;
  int64_t mostRows;
};

/// What a unit's operands are.
enum class UnitElements { Halves, F16, BF16, F32, Bytes };

/// For which schedules of GPUs there is code with a unit, as bits. Units of
/// CPUs have none: their code is chosen by DotKind.
enum UnitUse : unsigned {
  kForManyRows = 1, ///< `#kf.mma`
  kForFewRows = 2,  ///< `#kf.stream`
  kForAttention = 4 ///< `#kf.flash_mma`
};

/// What is asked of a unit by its tile, types and uses.
struct MatrixUnitDescription {
  MatrixUnitShape shape;
  UnitElements elements;
  RowForm rows[2]; ///< how it takes rows of products, of which `#kf.stream`
                   ///< asks; the same twice where there is one way
  unsigned uses;   ///< of UnitUse
};

constexpr MatrixUnitDescription describeUnit(MatrixUnit unit) {
  constexpr RowForm f32 = RowForm::F32, split = RowForm::Split,
                    rounded = RowForm::Rounded;
  using enum UnitElements;
  switch (unit) {
  case MatrixUnit::MmaSync:
    return {{32, 16, 8, 16, 8},
            Halves,
            {split, rounded},
            kForManyRows | kForFewRows | kForAttention};
  case MatrixUnit::Wgmma:
    return {{128, 64, 8, 16, 256},
            Halves,
            {rounded, rounded},
            kForManyRows | kForAttention};
  case MatrixUnit::Tf32Pairs: // each f32 is two numbers
    return {{32, 16, 8, 8, 8}, F32, {f32, f32}, kForFewRows};
  case MatrixUnit::Amx: // tdpbf16ps
    return {{1, 16, 16, 32, 16}, BF16, {rounded, rounded}, /*uses=*/0};
  case MatrixUnit::Bf16Pairs: // vdpbf16ps
    return {{1, 1, 1, 2, 1}, BF16, {rounded, rounded}, /*uses=*/0};
  case MatrixUnit::Bytes: // vpdpbusd, pmaddubsw, sdot ...: see ByteDot
    return {{1, 1, 1, 4, 1}, Bytes, {rounded, rounded}, /*uses=*/0};
  case MatrixUnit::CoopF16: // VK_KHR_cooperative_matrix, of a subgroup
    return {{0, 16, 16, 16, 16},
            F16,
            {rounded, rounded},
            kForManyRows | kForAttention};
  case MatrixUnit::CoopBF16:
    return {{0, 16, 16, 16, 16},
            BF16,
            {rounded, rounded},
            kForManyRows | kForAttention};
  }
  return {};
}

constexpr MatrixUnitShape getUnitShape(MatrixUnit unit) {
  return describeUnit(unit).shape;
}

/// Whether the unit takes rows of products so.
constexpr bool takesRows(MatrixUnit unit, RowForm form) {
  const MatrixUnitDescription described = describeUnit(unit);
  return described.rows[0] == form || described.rows[1] == form;
}

/// Whether it is a subgroup's, of a Vulkan device.
constexpr bool isCooperative(MatrixUnit unit) {
  return unit == MatrixUnit::CoopF16 || unit == MatrixUnit::CoopBF16;
}

/// Whether the unit's operands are of `type`.
inline bool multiplies(MatrixUnit unit, Type type) {
  switch (describeUnit(unit).elements) {
  case UnitElements::Halves:
    return type.isF16() || type.isBF16();
  case UnitElements::F16:
    return type.isF16();
  case UnitElements::BF16:
    return type.isBF16();
  case UnitElements::F32:
    return type.isF32();
  case UnitElements::Bytes:
    return type.isInteger(8);
  }
  return false;
}

/// All units that there is such code with, in their order.
inline llvm::SmallVector<MatrixUnit> findUnits(UnitUse use) {
  llvm::SmallVector<MatrixUnit> units;
  for (unsigned i = 0; i <= getMaxEnumValForMatrixUnit(); ++i)
    if (auto unit = symbolizeMatrixUnit(i); describeUnit(*unit).uses & use)
      units.push_back(*unit);
  return units;
}

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_MATRIXUNITS_H
