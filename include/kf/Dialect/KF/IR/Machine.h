//===- Machine.h - What the machine of a target has -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one account of a machine: targets give it (TargetAttrInterface), and
// passes, emitters, policies and cost models ask it. How long something takes
// is no part of it: that is measured (MachineRates, and the costs of tiles of
// lib/Target), or estimated from what stands here.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_MACHINE_H
#define KF_DIALECT_KF_IR_MACHINE_H

#include "kf/Dialect/KF/IR/KFEnums.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::kf {

/// What a multiprocessor of a GPU has, for all workgroups that it holds.
struct Multiprocessor {
  int64_t lanes = 128; ///< multiply-adds of f32 in a cycle
  int64_t threads = 2048, workgroups = 32;
  int64_t registers = 65536; ///< of 32 bits
  int64_t memory = 98304;    ///< bytes of workgroup memory
  /// Bytes of it that are read in a cycle, and multiply-adds of a MmaSync.
  int64_t memoryBytesPerCycle = 128, mmaProductsPerCycle = 1024;
};

/// Bytes of the caches that a core of a CPU has, or of its share in them.
struct CacheSizes {
  int64_t first = 32 * 1024, second = 1024 * 1024, third = 16 * 1024 * 1024;
};

/// Workgroups of the largest cluster that every GPU with clusters has.
inline constexpr int64_t kMostClusterParts = 8;

/// Of a GPU or a CPU. What stands here is a usual GPU's without units, for
/// those that do not tell; what another kind of machine has, nobody asks for.
struct MachineDescription {
  StringRef name = "GPU"; ///< of the kind, for messages: "Vulkan"
  /// By which costs of tiles are looked up: "sm_90a"; empty: there are none of
  /// this kind of machine. The text is the target's attribute's.
  StringRef chip;

  /// What multiplies tiles or narrow vectors; none: lanes do.
  SmallVector<MatrixUnit, 4> units;
  bool has(MatrixUnit unit) const { return llvm::is_contained(units, unit); }
  /// Multiply-adds of 16-bit floats that a multiprocessor's `unit`, which it
  /// has, does in a cycle.
  int64_t productsPerCycle(MatrixUnit unit) const {
    return (unit == MatrixUnit::Wgmma ? 2 : 1) * ofEach.mmaProductsPerCycle;
  }

  // Of one workgroup of a GPU.
  int64_t threads = 256;  ///< at most
  int64_t memory = 16384; ///< bytes of workgroup memory, at most
  int64_t registersOfThread = 255;
  int64_t indexBits = 64; ///< of an index into a buffer
  /// Bits of the integers in registers beside 1 and 32; all where it is empty.
  std::optional<SmallVector<int64_t>> integers = std::nullopt;

  // Of a GPU.
  int64_t multiprocessors = 64; ///< of a CPU: threads that share workgroups
  Multiprocessor ofEach;
  /// Workgroups of the largest cluster, which read one another's workgroup
  /// memory; 1: there are no clusters.
  int64_t clusterWorkgroups = 1;
  bool hasClusters() const { return clusterWorkgroups > 1; }
  /// Bytes that one instruction copies to workgroup memory while threads go on
  /// (cp.async); 0: threads copy themselves.
  int64_t asyncCopyBytes = 0;
  /// Threads of a warp, which exchange registers; 0: they cannot.
  int64_t warpThreads = 0;
  /// Threads of a subgroup, whose cooperative matrices are units; 0: there are
  /// none of these.
  int64_t subgroupThreads = 0;
  /// Whether a kernel can begin early, and wait for those before it
  /// (griddepcontrol).
  bool hasDependentLaunch = false;
  /// Whether an instruction makes f16 of f8E4M3FN, in the code that is written.
  bool convertsFloat8 = false;
  /// Whether threads compute with f16, subnormal ones too, and with i16, where
  /// there are no units. A Vulkan device without is taken for a CPU: one that
  /// has them keeps sums in registers at barriers in loops, and has room for
  /// more vectors on their way.
  bool hasHalves = false;
  /// Whether a kernel can say how many of its workgroups are to share a
  /// multiprocessor's registers (minctasm).
  bool sharesRegisters = true;

  // Of a CPU.
  int64_t vectorLanes = 0, vectorRegisters = 0; ///< of f32; 0: not a CPU
  bool fusesMultiplyAdd = true;                 ///< of vectors of f32
  CacheSizes caches;

  /// Where nobody has measured (MachineRates): cycles a second, and bytes that
  /// a multiprocessor, or a core, reads of memory in one.
  double usualHertz = 1.5e9, usualReadBytesPerSecond = 1.5e10;
};

/// The machine that the module around `op` is for; where it does not say, a
/// usual GPU without units.
MachineDescription getMachine(Operation *op);

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_MACHINE_H
