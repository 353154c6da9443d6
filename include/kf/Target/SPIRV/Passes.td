//===- Passes.td - Passes of the SPIR-V target ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_SPIRV_PASSES_TD
#define KF_TARGET_SPIRV_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGPUToSpirv : Pass<"kf-spirv-convert-gpu", "::mlir::ModuleOp"> {
  let summary = "Lower GPU modules to SPIR-V modules for Vulkan";
  let description = [{
    Each `gpu.module` becomes a `spirv.module` whose entry point has the name of
    the `gpu.func`: arguments are storage buffers, bindings 0, 1, ... of set 0;
    indices have 32 bits; `math.erf`, which SPIR-V lacks, is a polynomial.
    ```mlir
    gpu.module @k { gpu.func @k(%x: memref<?xf32>, ...) kernel ... }
    ```
    becomes
    ```mlir
    spirv.module @k Logical GLSL450 {
      spirv.func @k(%x: !spirv.ptr<!spirv.struct<(!spirv.rtarray<f32, stride=4>
          [0])>, StorageBuffer> {spirv.interface_var_abi = ...}, ...)
    ```
    A `gpu.module` may carry a `spirv.target_env` of its own; the default is
    SPIR-V 1.3 with the Shader capability, which every Vulkan 1.1 device has.
  }];
  let dependentDialects = ["::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::spirv::SPIRVDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // KF_TARGET_SPIRV_PASSES_TD
