// RUN: kf-opt %s --kf-set-target=target=cpu:icelake-server --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-select-schedules | FileCheck %s --check-prefix=AVX2
// RUN: not kf-opt %S/Inputs/dense-int8.mlir --kf-set-target=target=cpu:icelake-server --kf-select-schedules 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DENSE

// DENSE: error: schedule cannot run on this CPU: dot = i8 is for matmuls with block-quantized weights

// With VNNI rows of x are rounded to 8 bits; sums of integers take registers
// beside those of floats, so the register tile has fewer rows.
// CHECK-LABEL: kf.kernel @many(
// CHECK-SAME:    tile = [8, 32], lanes = 16, dot = i8>
// AVX2-LABEL:  kf.kernel @many(
// AVX2-SAME:     tile = [4, 16], lanes = 8>
kf.kernel @many(%x: tensor<96x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<96x512xf32> {
  %0 = kf.matmul %x, %w : tensor<96x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<96x512xf32>
}

// CHECK-LABEL: kf.kernel @one(
// CHECK-SAME:    tile = [1, 32], lanes = 16, dot = i8>
// AVX2-LABEL:  kf.kernel @one(
// AVX2-SAME:     tile = [1, 16], lanes = 8>
kf.kernel @one(%x: tensor<1x512xf32>, %w: tensor<512x512x!kf.quant<q4_k>>) -> tensor<1x512xf32> {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<512x512x!kf.quant<q4_k>>
  kf.yield %0 : tensor<1x512xf32>
}
