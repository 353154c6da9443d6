//===- Codegen.h - kf kernels to PTX ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_NVVM_CODEGEN_H
#define KF_TARGET_NVVM_CODEGEN_H

#include "kf/Dialect/KF/IR/KF.h"
#include "runtime/core/Cancellation.h"
#include "runtime/program/Executable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Name of the entry point of every kernel's PTX.
inline constexpr llvm::StringLiteral kCudaEntryPoint = "kf_kernel";

/// On a kernel's llvm.func: all of its threads wait for the kernels before it.
inline constexpr llvm::StringLiteral kCudaWaitsAttrName = "kf.waits";

/// Bytes of shared memory that a kernel's variables may take; with more, they
/// are in what its launches give it.
inline constexpr int64_t kCudaStaticSharedBytes = 48 * 1024;

/// Bytes of shared memory that a launch may give a block of `chip`; of one that
/// is not known, what every chip has.
int64_t getCudaSharedBytes(StringRef chip);

/// What an NVIDIA GPU has, by its chip and by what the target says.
MachineDescription describeCudaMachine(CudaTargetAttr target);

/// An error unless code can be generated for `chip`, which is named as LLVM and
/// ptxas do: "sm_80" or later, with 'a' or 'f' behind for one that runs on this
/// chip, or its family, alone. The error lists what is accepted.
llvm::Error checkCudaChip(StringRef chip);

/// Adds the passes from tiled kernels to one gpu.module a kernel that holds an
/// llvm.func.
void buildNvvmCodegenPipeline(OpPassManager &passes);

/// Generates PTX for `chip` from the kernels of `module`, which went through
/// the pipeline above, as the binary of `executable`: for each kernel in order
/// its length, of 64 bits, low byte first, and the text, which ends in a NUL.
/// Sets workgroup sizes and shared memory of its kernels. Emits a diagnostic on
/// failure; once `cancelled` is set, it fails before the next kernel.
LogicalResult serializeForCuda(ModuleOp module, ::kf::Executable &executable,
                               StringRef chip,
                               ::kf::CancelFlag cancelled = nullptr);

} // namespace mlir::kf

#endif // KF_TARGET_NVVM_CODEGEN_H
