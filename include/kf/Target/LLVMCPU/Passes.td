//===- Passes.td - Passes of the CPU target -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_LLVMCPU_PASSES_TD
#define KF_TARGET_LLVMCPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetCacheLayout : Pass<"kf-set-cache-layout", "::mlir::ModuleOp"> {
  let summary = "Give every KV cache the key block of the target's vectors";
  let description = [{
    With `key-block=16`,
    ```mlir
    !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f32>
    ```
    becomes
    ```mlir
    !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f32, key_block = 16>
    ```
    on every function argument, kernel and dispatch that has it.
  }];
  let options = [
    Option<"keyBlock", "key-block", "int64_t", "16", "keys in a block">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def SelectCpuSchedules : Pass<"kf-cpu-select-schedules", "::mlir::ModuleOp"> {
  let summary = "Choose schedules of kernels for a CPU, and check given ones";
  let description = [{
    A kernel that carries a `#kf.schedule` keeps it, if the CPU can run it; the
    others get one from the shapes of the kernel and the vectors of the target.
    ```mlir
    kf.kernel @k(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) ... { kf.matmul }
    ```
    becomes
    ```mlir
    kf.kernel @k(...) attributes {schedule = #kf.schedule<
        workgroup = [112, 256], tile = [14, 32], vector = 16, unroll = 4>} ...
    ```
  }];
  let options = [
    Option<"lanes", "vector-lanes", "int64_t", "16",
           "f32 lanes of a vector register: 16 (AVX-512), 8 (AVX2), 4">,
    Option<"int8Dot", "int8-dot", "bool", "false",
           "the CPU multiplies bytes: vpdpbusd of AVX-512 VNNI or AVX-VNNI">,
    Option<"workers", "workers", "int64_t", "0",
           "threads that share the workgroups of a kernel; 0: unknown">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def EmitCpuEntryPoints : Pass<"kf-cpu-emit-entry-points", "::mlir::ModuleOp"> {
  let summary = "Wrap vectorized kernels in the ABI that the runtime calls";
  let description = [{
    A function from `convert-kf-to-vector` becomes private; a function of its
    name with the signature of `kf_kernel_fn` (runtime/program/abi.h) loads the
    buffer pointers, describes each buffer as a memref, and calls it.
    ```mlir
    func.func @k(%x: memref<?x64xf32>, ...) attributes {kf.grid = ...}
    ```
    becomes
    ```mlir
    func.func private @k_body(%x: memref<?x64xf32>, ...)
    func.func @k(%bindings: !llvm.ptr, %scalars: !llvm.ptr, %scratch: !llvm.ptr,
                 %workgroup: i64)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def ExpandCpuMath : Pass<"kf-cpu-expand-math", "::mlir::ModuleOp"> {
  let summary = "Expand exp, tanh and erf to polynomials";
  let description = [{
    A call of the C library for each lane would cost more than the vector code
    around it: `math.exp`, `math.tanh` and `math.erf` become MLIR's polynomial
    approximations.
    ```mlir
    %1 = math.exp %0 : vector<16xf32>
    ```
    becomes a sequence of `math.fma` and bit operations on `vector<16xf32>`.
  }];
  let dependentDialects = ["::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // KF_TARGET_LLVMCPU_PASSES_TD
