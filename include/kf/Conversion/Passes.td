//===- Passes.td - Index of the conversion passes -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_PASSES_TD
#define KF_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKFToVector : Pass<"convert-kf-to-vector", "::mlir::ModuleOp"> {
  let summary = "Vectorize tiled kernels into functions on memrefs";
  let description = [{
    Each tiled `kf.kernel` becomes a `func.func` that computes one workgroup.
    Its arguments are the kernel's operands and results as memrefs, the scalar
    buffer, the thread's scratch memory and the workgroup's number; programs are
    left as they are. Register tiles, vector widths and unrolling are those of
    the kernel's `#kf.vector`.
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {
        grid = #kf.grid<tokens = [16], counts = [0]>,
        schedule = #kf.vector<workgroup = [16], lanes = 16>} {
      ... scf.forall ... kf.softmax ...
    }
    ```
    becomes
    ```mlir
    func.func @k(%x: memref<?x64xf32>, %r: memref<?x64xf32>,
                 %scalars: memref<8xi64>, %scratch: memref<?xi8>,
                 %workgroup: index)
        attributes {kf.grid = ..., kf.scratch_bytes = 0 : i64} {
      ... scf.for ... vector.load ... math.exp ... vector.store ...
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::kf::KFDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertKFToGPU : Pass<"convert-kf-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Emit tiled kernels as functions for a GPU";
  let description = [{
    Each tiled `kf.kernel` becomes a `gpu.module` with one `gpu.func` that
    computes one workgroup. Its arguments are the kernel's operands and results
    as flat memrefs, then the scalar buffer as 32-bit words. Dimensions 0, 1, 2
    of the kernel's grid are the blocks along x, y, z. Threads, register tiles
    and the step of the reduction are those of the kernel's `#kf.simt`, or, of
    attention, `#kf.flash`. By `#kf.flash_mma`, `#kf.mma` and `#kf.stream`, ops
    of the NVVM dialect copy and multiply, on the pointers that NVVM's lowering
    makes of the memrefs. By `#kf.mma` on cooperative matrices, subgroups of
    Vulkan devices wait for their own threads alone by an op of the SPIR-V
    dialect. Where the module's target can, a kernel waits itself
    for those before it, behind what only reads weights. Programs are left as
    they are.
    ```mlir
    kf.kernel @k(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {
        grid = #kf.grid<tokens = [1], counts = [0]>,
        schedule = #kf.simt<workgroup = [1], threads = [64]>} {
      ... scf.forall ... kf.softmax ...
    }
    ```
    becomes
    ```mlir
    gpu.module @k {
      gpu.func @k(%x: memref<?xf32>, %r: memref<?xf32>, %scalars: memref<?xi32>)
          workgroup(%partials: memref<64xf32, #gpu.address_space<workgroup>>)
          kernel attributes {known_block_size = array<i32: 64, 1, 1>, ...} {
        ... gpu.thread_id x ... scf.for ... gpu.barrier ...
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::spirv::SPIRVDialect", "::mlir::vector::VectorDialect"];
}

#endif // KF_CONVERSION_PASSES_TD
