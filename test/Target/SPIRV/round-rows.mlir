// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=vulkan:h200},kf-select-rows,func.func(kf-round-rows))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=vulkan:rdna3},kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=HALF
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=vulkan:h200},kf-select-rows{max-tokens=4},func.func(kf-round-rows))' | FileCheck %s --check-prefix=FEW
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=vulkan},kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=NONE
// Subgroups of 128 threads are too many for the vectors of a unit's rows.
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target="#kf.vulkan_target<threads = 1024, memory = 32768, subgroup = 128, shuffle = true, types = [f16, i16], matrices = [f16, bf16], multiprocessors = 8>"},kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=NONE

// FEW-NOT:  kf.round_half
// FEW-NOT:  arith.truncf
// NONE-NOT: kf.round_half
// NONE-NOT: arith.truncf

// CHECK-LABEL: func.func @bf16(
// CHECK:         %[[R:.*]] = arith.truncf %{{.*}} : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK:         kf.matmul %[[R]], %{{.*}} wide : tensor<?x64xbf16>, tensor<96x64xbf16>
// HALF-LABEL: func.func @bf16(
// HALF-NOT:     arith.truncf
// HALF:         return
func.func @bf16(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %w = kf.weight ["w"] : tensor<96x64xbf16>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @blocks(
// CHECK:         %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<?x64xf32>
// CHECK:         kf.matmul %[[R]] outliers(%[[O]] : tensor<?x64xf32>), %{{.*}} wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<q8_0>>
// HALF-LABEL: func.func @blocks(
// HALF:         kf.round_half
func.func @blocks(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %w = kf.weight ["w"] : tensor<96x64x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  return %0 : tensor<?x96xf32>
}

// What is not packed, or has rows that are no whole vectors, stays as it is.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     kf.round_half
// CHECK:         return
func.func @plain(%x: tensor<?x64xf32>, %w: tensor<96x64xf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf16>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @odd(
// CHECK-NOT:     kf.round_half
// CHECK:         return
func.func @odd(%x: tensor<?x60xf32>) -> tensor<?x96xf32> {
  %w = kf.weight ["w"] : tensor<96x60xf16>
  %0 = kf.matmul %x, %w : tensor<?x60xf32>, tensor<96x60xf16>
  return %0 : tensor<?x96xf32>
}

// Four rows are multiplied by threads.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     kf.round_half
// CHECK:         return
func.func @rows(%x: tensor<4x64xf32>) -> tensor<4x96xf32> {
  %w = kf.weight ["w"] : tensor<96x64xf16>
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf16>
  return %0 : tensor<4x96xf32>
}

// Five are not.
// CHECK-LABEL: func.func @few(
// CHECK:         kf.round_half
// FEW-LABEL: func.func @few(
// FEW:         kf.round_half
func.func @few(%x: tensor<5x64xf32>) -> tensor<5x96xf32> {
  %w = kf.weight ["w"] : tensor<96x64xf16>
  %0 = kf.matmul %x, %w : tensor<5x64xf32>, tensor<96x64xf16>
  return %0 : tensor<5x96xf32>
}
