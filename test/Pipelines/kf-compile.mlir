// Every phase at once is the phases one by one.
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-compile -o %t.all
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program --kf-schedule --kf-lower -o %t.each
// RUN: diff %t.all %t.each
// RUN: FileCheck %s < %t.all

// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-compile=max-tokens=7 | FileCheck %s --check-prefix=TOKENS
// RUN: kf-opt %s --kf-set-target=target=reference --kf-compile | FileCheck %s --check-prefix=REFERENCE
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-compile | FileCheck %s --check-prefix=VULKAN

// And the phases are passes that can be run alone, upstream's too.
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cpu:x86-64-v4},func.func(kf-expand-mlp,kf-fuse-projections),canonicalize,cse,kf-form-kernels,kf-bound-tokens,kf-set-layouts,kf-select-schedules,kf.program(kf-plan-memory),kf.kernel(kf-tile-kernels),convert-kf-to-vector,kf-cpu-emit-entry-points,canonicalize,cse,kf-cpu-expand-math,expand-strided-metadata,lower-affine,convert-scf-to-cf,convert-vector-to-llvm,convert-math-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,symbol-dce,strip-debuginfo)' \
// RUN:   | FileCheck %s --check-prefix=PASSES

// CHECK: llvm.func @matmul_1(

// TOKENS: kf.program @norm{{.*}}max_tokens = 7 : i64

// REFERENCE: kf.program @norm
// REFERENCE: kf.kernel @rms_norm_0
// REFERENCE-NOT: schedule =

// VULKAN: kf.program @norm
// VULKAN: spirv.module

// PASSES: llvm.func @rms_norm_0(
func.func @norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>) -> tensor<?x64xf32> {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  return %0 : tensor<?x64xf32>
}
