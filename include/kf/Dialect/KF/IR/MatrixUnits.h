//===- MatrixUnits.h - What matrix units multiply ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shapes and types of `MatrixUnit`: the only place that says what an
// instruction of each takes. Which of them a machine has is in Machine.h.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_MATRIXUNITS_H
#define KF_DIALECT_KF_IR_MATRIXUNITS_H

#include "kf/Dialect/KF/IR/KFEnums.h"

#include "mlir/IR/Types.h"

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

constexpr MatrixUnitShape getUnitShape(MatrixUnit unit) {
  switch (unit) {
  case MatrixUnit::MmaSync:
    return {32, 16, 8, 16, 8};
  case MatrixUnit::Wgmma:
    return {128, 64, 8, 16, 256};
  case MatrixUnit::Tf32Pairs:
    return {32, 16, 8, 8, 8};
  case MatrixUnit::Amx: // tdpbf16ps
    return {1, 16, 16, 32, 16};
  case MatrixUnit::Bf16Pairs: // vdpbf16ps
    return {1, 1, 1, 2, 1};
  case MatrixUnit::Bytes: // vpdpbusd, pmaddubsw, sdot ...: see ByteDot
    return {1, 1, 1, 4, 1};
  case MatrixUnit::CoopF16: // VK_KHR_cooperative_matrix, of a subgroup
  case MatrixUnit::CoopBF16:
    return {0, 16, 16, 16, 16};
  }
  return {};
}

/// Whether it is a subgroup's, of a Vulkan device.
constexpr bool isCooperative(MatrixUnit unit) {
  return unit == MatrixUnit::CoopF16 || unit == MatrixUnit::CoopBF16;
}

/// Whether the unit's operands are of `type`. Those of TF32 pairs are f32, of
/// which each is two numbers.
inline bool multiplies(MatrixUnit unit, Type type) {
  switch (unit) {
  case MatrixUnit::MmaSync:
  case MatrixUnit::Wgmma:
    return type.isF16() || type.isBF16();
  case MatrixUnit::Tf32Pairs:
    return type.isF32();
  case MatrixUnit::Amx:
  case MatrixUnit::Bf16Pairs:
    return type.isBF16();
  case MatrixUnit::Bytes:
    return type.isInteger(8);
  case MatrixUnit::CoopF16:
    return type.isF16();
  case MatrixUnit::CoopBF16:
    return type.isBF16();
  }
  return false;
}

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_MATRIXUNITS_H
