// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-nvvm-round-rows))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-nvvm-round-rows{max-tokens=4}))' | FileCheck %s --check-prefix=FEW

// CHECK-LABEL: func.func @bf16(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<96x64xbf16>
// CHECK:         %[[R:.*]] = arith.truncf %[[X]] : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK:         %[[P:.*]] = kf.matmul %[[R]], %[[W]] wide : tensor<?x64xbf16>, tensor<96x64xbf16>
// CHECK:         return %[[P]] : tensor<?x96xf32>
// FEW-NOT: arith.truncf %{{.*}} : tensor<?x64xf32>
func.func @bf16(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @gated(
// CHECK:         %[[R:.*]] = arith.truncf %{{.*}} : tensor<5x64xf32> to tensor<5x64xf16>
// CHECK:         kf.matmul %[[R]], %{{.*}} bias(%{{.*}}) glu(silu) wide : tensor<5x64xf16>, tensor<2x96x64xf16>, tensor<2x96xf32>
func.func @gated(%x: tensor<5x64xf32>, %w: tensor<2x96x64xf16>, %b: tensor<2x96xf32>) -> tensor<5x96xf32> {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<5x64xf32>, tensor<2x96x64xf16>, tensor<2x96xf32>
  return %0 : tensor<5x96xf32>
}

// CHECK-LABEL: func.func @blocks(
// CHECK:         arith.truncf %{{.*}} : tensor<?x64xf32> to tensor<?x64xf16>
// CHECK:         kf.matmul %{{.*}}, %{{.*}} wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<q8_0>>
func.func @blocks(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  return %0 : tensor<?x96xf32>
}

// Where the weight is read as it is stored, matrix units take more than 16 rows.
// CHECK-LABEL: func.func @stored(
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<16x64xf32>, tensor<96x64x!kf.quant<q5_0>>
// CHECK:         kf.matmul %{{.*}}, %{{.*}} wide : tensor<17x64xf16>, tensor<96x64x!kf.quant<q5_0>>
func.func @stored(%x: tensor<16x64xf32>, %y: tensor<17x64xf32>, %w: tensor<96x64x!kf.quant<q5_0>>) -> (tensor<16x96xf32>, tensor<17x96xf32>) {
  %0 = kf.matmul %x, %w : tensor<16x64xf32>, tensor<96x64x!kf.quant<q5_0>>
  %1 = kf.matmul %y, %w : tensor<17x64xf32>, tensor<96x64x!kf.quant<q5_0>>
  return %0, %1 : tensor<16x96xf32>, tensor<17x96xf32>
}

// Rows are counted by the size that has their name.
// CHECK-LABEL: func.func @few_wanted(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @few_wanted(%x: tensor<?x64xf32, #kf.size<wanted>>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32, #kf.size<wanted>>
    attributes {kf.size_ranges = [#kf.size_range<wanted, most = 4>]} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32, #kf.size<wanted>>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32, #kf.size<wanted>>
}

// Matrix units have nothing for f32; rows of 16 bits need no rounding.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @others(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %h: tensor<?x64xf16>, %v: tensor<96x64xf16>) -> (tensor<?x96xf32>, tensor<?x96xf16>) {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  %1 = kf.matmul %h, %v : tensor<?x64xf16>, tensor<96x64xf16>
  return %0, %1 : tensor<?x96xf32>, tensor<?x96xf16>
}
