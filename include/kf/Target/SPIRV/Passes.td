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

def ExpandFloat16 : Pass<"kf-spirv-expand-float16", "::mlir::ModuleOp"> {
  let summary = "Compute conversions of f16 in GPU modules with integers";
  let description = [{
    Rounding to f16 becomes integer code, since SPIR-V leaves open which way it
    goes. Without `has-float16`, for devices that have no f16, buffers of f16
    become buffers of i16 and widening is integer code too. Either is exact for
    every number, infinity and NaN.
    ```mlir
    %h = arith.truncf %x : f32 to f16
    memref.store %h, %m[%i] : memref<?xf16>
    ```
    becomes
    ```mlir
    %bits = ... arith.trunci ... : i32 to i16
    memref.store %bits, %m[%i] : memref<?xi16>
    ```
  }];
  let options = [
    Option<"hasFloat16", "has-float16", "bool", "false",
           "whether the device has f16 and i16 in buffers and registers">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ExpandBits : Pass<"kf-spirv-expand-bits", "::mlir::ModuleOp"> {
  let summary = "Compute arithmetic on i1 in GPU modules with words";
  let description = [{
    SPIR-V has logic on i1, but no arithmetic.
    ```mlir
    %0 = arith.muli %a, %b : i1
    ```
    becomes
    ```mlir
    %1 = arith.extui %a : i1 to i32
    %2 = arith.extui %b : i1 to i32
    %3 = arith.muli %1, %2 : i32
    %0 = arith.trunci %3 : i32 to i1
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ConvertGPUToSpirv : Pass<"kf-spirv-convert-gpu", "::mlir::ModuleOp"> {
  let summary = "Lower GPU modules to SPIR-V modules for Vulkan";
  let description = [{
    Each `gpu.module` becomes a `spirv.module` whose entry point has the name of
    the `gpu.func`: arguments are storage buffers, bindings 0, 1, ... of set 0;
    indices have 32 bits; functions that GLSL lacks, or has not as exact, are
    arithmetic.
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
    SPIR-V 1.3 with the Shader capability, which every Vulkan 1.1 device has,
    and those that `types` asks for. Buffers of other integers narrower than 32
    bits become buffers of words, into which parts are stored atomically, so
    that threads may store to neighbours.

    Kernels that widen f16 keep its subnormal numbers, by the execution mode
    DenormPreserve, and all kernels those of f32 with `denorm-preserve`. Without
    it, a device may take them for zeros.
  }];
  let options = [
    ListOption<"types", "types", "std::string",
               "types that the device has, in buffers and registers, besides "
               "f32 and i32: f16, i8, i16, i64">,
    Option<"denormPreserve", "denorm-preserve", "bool", "false",
           "whether the device can keep the subnormal numbers of f32">
  ];
  let dependentDialects = ["::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::spirv::SPIRVDialect",
                           "::mlir::vector::VectorDialect"];
}

def CompleteVCE : Pass<"kf-spirv-complete-vce", "::mlir::spirv::ModuleOp"> {
  let summary = "Add the capabilities that spirv-update-vce does not find";
  let description = [{
    Of cooperative matrices of bf16, it finds those that the matrices and the
    type need, but not the one of both.
    ```mlir
    spirv.module @k Logical Vulkan requires #spirv.vce<v1.6, [..., BFloat16TypeKHR], [...]>
    ```
    becomes
    ```mlir
    spirv.module @k Logical Vulkan requires #spirv.vce<v1.6, [..., BFloat16TypeKHR, BFloat16CooperativeMatrixKHR], [...]>
    ```
  }];
}

#endif // KF_TARGET_SPIRV_PASSES_TD
