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

def SplitCpuAttention : Pass<"kf-cpu-split-attention", "::mlir::func::FuncOp"> {
  let summary = "Divide the keys of few rows among the workers";
  let description = [{
    A workgroup of kf.attention takes a KV head of some rows. Where that is
    fewer than there are workers, as for the one row of a decode step, and the
    page table has room for many keys, parts of the keys become workgroups of
    their own, and a second kernel combines what they found.
    ```mlir
    %0 = kf.attention %q, %cache, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32}
        : tensor<1x8x64xf32>, ...
    ```
    becomes, with 8 workers and a cache of 2 heads,
    ```mlir
    %m, %n, %v = kf.attention_partial %q, %cache, %p, %s, %t splits(8)
        {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x8x64xf32>, ...
    %0 = kf.attention_combine %m, %n, %v
        : tensor<1x8x8xf32>, tensor<1x8x8x64xf32>
    ```
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

def LowerCpuByteOps : Pass<"kf-cpu-lower-byte-ops", "::mlir::ModuleOp"> {
  let summary = "Lower dot products and tables of bytes to instructions";
  let description = [{
    `kf.dp4a` becomes what the target's `byte_dot` says: `vpdpbusd`, `sdot` or
    `usdot` alone; `pmaddubsw`, whose pairs of products are added up in 16 bits
    as long as they cannot overflow, and `pmaddwd`; or `pmaddwd` of even and of
    odd bytes. `kf.look_up` becomes `pshufb` or `tbl`, or without either a
    comparison for each entry.
    ```mlir
    %0 = kf.dp4a %sum, %a, %b : vector<16xi32>, vector<64xi8>
    ```
    becomes
    ```mlir
    %0 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%sum, %a, %b)
        : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
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
    Functions that LLVM has no intrinsic for (`math.asinh`, `acosh`, `atanh`,
    `cbrt`, `erfc`, and `erf` of f64), or a less exact one (`expm1`, `log1p`),
    become calls of the C library's, lane by lane. `arith.extf` of vectors of
    f16 becomes integers for a target that has no instruction for it.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // KF_TARGET_LLVMCPU_PASSES_TD
