//===- Codegen.h - kf kernels to SPIR-V -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_SPIRV_CODEGEN_H
#define KF_TARGET_SPIRV_CODEGEN_H

#include "runtime/program/Executable.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::kf {

/// Adds the passes from tiled kernels to one spirv.module a kernel, for a
/// device that has `types` (f16, i8, i16, i64) besides f32 and i32, and that
/// can keep the subnormal numbers of f32 if `denormPreserve`.
void buildSpirvCodegenPipeline(OpPassManager &passes,
                               ArrayRef<std::string> types = {},
                               bool denormPreserve = false);

/// Serializes the kernels of `module`, which went through the pipeline above,
/// to the binary of `executable` (see VulkanDevice.h for its form), and sets
/// workgroup sizes and workgroup memory of its kernels. Emits a diagnostic on
/// failure.
LogicalResult serializeForVulkan(ModuleOp module, ::kf::Executable &executable);

} // namespace mlir::kf

#endif // KF_TARGET_SPIRV_CODEGEN_H
