//===- MatrixUnits.h - What matrix units multiply ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes and types of `MatrixUnit`, which schedules name: the only place
// that says what an instruction of each takes.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_MATRIXUNITS_H
#define KF_DIALECT_KF_IR_MATRIXUNITS_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// The tile that one instruction of a unit multiplies: [lines, step] of its
/// left operand with [step, rows] of its right one. Of warpgroups, `rows` is
/// the least; more are a multiple of it, up to `mostRows`.
struct MatrixUnitShape {
  int64_t threads; ///< that hold the operands and sums together
  int64_t lines, rows, step;
  int64_t mostRows;
};

constexpr MatrixUnitShape getUnitShape(MatrixUnit unit) {
  switch (unit) {
  case MatrixUnit::MmaSync:
    return {32, 16, 8, 16, 8};
  case MatrixUnit::Wgmma:
    return {128, 64, 8, 16, 256};
  case MatrixUnit::Tf32Pairs:
    return {32, 16, 8, 8, 8};
  }
  return {};
}

/// Whether the unit's operands are of `type`. Those of TF32 pairs are f32, of
/// which each is two numbers.
inline bool multiplies(MatrixUnit unit, Type type) {
  return unit == MatrixUnit::Tf32Pairs ? type.isF32()
                                       : type.isF16() || type.isBF16();
}

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_MATRIXUNITS_H
