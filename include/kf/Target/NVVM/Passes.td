//===- Passes.td - Passes of the NVVM target ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_NVVM_PASSES_TD
#define KF_TARGET_NVVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandNvvmMath : Pass<"kf-nvvm-expand-math"> {
  let summary = "Expand functions of f32 that NVIDIA GPUs lack";
  let description = [{
    `math.exp`, `math.log`, `math.sin`, `math.cos`, `math.tan`, `math.tanh`,
    `math.erf` and `math.powf` of f32 become additions, multiplications,
    `math.fma` and operations on bits, which every device rounds alike; of f16
    they are computed in f32. So do the functions that GPU targets share
    (`populateGpuMathPatterns`). Infinities, NaNs, signed zeros and denormals
    come out as C's functions give them. The error is below 2 units in the last
    place (exp, log, tanh, erf), 3 (sin and cos, of any angle), 5 (tan) and 16
    (powf); of `arith.remf` there is none. An exponential with `fastmath<afn>`,
    whose last bits do not matter, is the hardware's power of two. The bits of a
    number
    that is rounded to f16 are computed as well: where `cvt.rn.f16.f32` writes a
    register and `st.b8` stores a byte of it, the assembler of CUDA 13.0, which
    is the driver's too, stores another.
    ```mlir
    %y = math.exp %x : f32
    ```
    becomes
    ```mlir
    %t = math.fma %clamped, %log2e, %magic : f32
    %n = arith.subf %t, %magic : f32
    %r = math.fma %n, %ln2, %clamped : f32
    ... math.fma ... arith.shli ... arith.mulf ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect"];
}

def ConvertGPUToNvvm : Pass<"kf-nvvm-convert-gpu", "::mlir::ModuleOp"> {
  let summary = "Lower GPU modules to the NVVM and LLVM dialects for CUDA";
  let description = [{
    In each `gpu.module`, the `gpu.func` becomes an `llvm.func` that CUDA can
    launch: arguments are bare pointers, indices have 64 bits, attributions are
    globals in shared memory. Pointers to what no kernel of the dispatch writes
    (weights, and results of earlier dispatches in the arena) and to results in
    the arena are marked so, as far as all dispatches of the kernel agree.
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<?xf32>, %r: memref<?xf32>, %s: memref<?xi32>)
          workgroup(%m: memref<64xf32, #gpu.address_space<workgroup>>) kernel
          attributes {known_block_size = array<i32: 64, 1, 1>} {
        ... gpu.thread_id x ... gpu.barrier ...
    ```
    becomes
    ```mlir
    gpu.module @k {
      llvm.mlir.global internal @__wg_k_0() {addr_space = 3 : i32} : !llvm.array<64 x f32>
      llvm.func @k(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %r: !llvm.ptr,
                   %s: !llvm.ptr {llvm.noalias, llvm.readonly})
          attributes {gpu.kernel, nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
        ... nvvm.read.ptx.sreg.tid.x ... nvvm.barrier ...
    ```
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def FormNvvmProducts : Pass<"kf-nvvm-form-products", "::mlir::func::FuncOp"> {
  let summary = "Give products of gradients and batches the form that units have";
  let description = [{
    Matrix units multiply what has rows, lines and K, for some batches. So both
    dimensions of batches of a static `kf.batch_matmul` of more than 16 rows
    and K become one, and `kf.matmul_wgrad` of f32, with static rows, becomes a
    `kf.matmul` of both transposed.
    ```mlir
    %0 = kf.batch_matmul %q, %k : tensor<2x4x64x32xf32>, tensor<2x4x64x32xf32>
    %1 = kf.matmul_wgrad %dy, %x : tensor<128x16xf32>, tensor<128x256xf32>
    ```
    becomes
    ```mlir
    %a = tensor.collapse_shape %q [[0, 1], [2], [3]] ...
    %b = tensor.collapse_shape %k [[0, 1], [2], [3]] ...
    %c = kf.batch_matmul %a, %b : tensor<8x64x32xf32>, tensor<8x64x32xf32>
    %0 = tensor.expand_shape %c [[0, 1], [2], [3]] ...
    %d = kf.transpose %dy permutation = [1, 0] : tensor<128x16xf32>
    %e = kf.transpose %x permutation = [1, 0] : tensor<128x256xf32>
    %1 = kf.matmul %d, %e : tensor<16x128xf32>, tensor<256x128xf32>
    ```
  }];
  let dependentDialects = ["::mlir::kf::KFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitNvvmAttention
    : Pass<"kf-nvvm-split-attention", "::mlir::func::FuncOp"> {
  let summary = "Divide the keys of few rows among the multiprocessors";
  let description = [{
    A workgroup of kf.attention takes a KV head of some rows. Where that leaves
    multiprocessors without one, and the page table has room for many keys,
    parts of the keys become workgroups of their own, and a second kernel
    combines what they found. On GPUs with clusters (sm_90), up to 8 parts are
    one, as the schedule says, and the op stays whole.
    ```mlir
    %0 = kf.attention %q, %cache, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32}
        : tensor<1x32x128xf32>, ...
    ```
    becomes, with 108 multiprocessors of sm_80 and a cache of 8 heads,
    ```mlir
    %m, %n, %v = kf.attention_partial %q, %cache, %p, %s, %t splits(13)
        {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x32x128xf32>, ...
    %0 = kf.attention_combine %m, %n, %v
        : tensor<1x32x13xf32>, tensor<1x32x13x128xf32>
    ```
  }];
  let options = [
    Option<"maxTokens", "max-tokens", "int64_t", "512",
           "largest n_tokens of functions without kf.max_tokens">
  ];
  let dependentDialects = ["::mlir::kf::KFDialect"];
}

#endif // KF_TARGET_NVVM_PASSES_TD
