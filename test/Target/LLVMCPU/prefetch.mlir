// How lines of weights are prefetched follows from the CPU, whatever machine
// this runs on, and schedules of products carry it.
//
// RUN: kf-run emit-mlir %s --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=ONCE
// RUN: kf-run emit-mlir %s --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=HARDWARE
// RUN: kf-run emit-mlir %s --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=TWICE

// ONCE:  kf.target = #kf.cpu_target<cpu = "znver5", int8_dot = true, bf16_dot = true, prefetch = once, workers = 1>
// ONCE:  kf.kernel @matmul_0
// ONCE:  schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = once>
// ONCE:  kf.kernel @softmax_0
// ONCE-NOT: prefetch = once

// HARDWARE:  kf.target = #kf.cpu_target<cpu = "znver4", int8_dot = true, bf16_dot = true, prefetch = hardware, workers = 1>
// HARDWARE:  kf.kernel @matmul_0
// HARDWARE:  schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = hardware>

// TWICE-NOT: prefetch =
func.func @step(%x: tensor<1x1024xf32>) -> tensor<1x2048xf32> {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  %1 = kf.softmax %0 : tensor<1x2048xf32>
  return %1 : tensor<1x2048xf32>
}
