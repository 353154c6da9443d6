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
    Functions that LLVM has no intrinsic for (`math.asinh`, `acosh`, `atanh`,
    `cbrt`, `erfc`, and `erf` of f64), or a less exact one (`expm1`, `log1p`),
    become calls of the C library's, lane by lane.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // KF_TARGET_LLVMCPU_PASSES_TD
