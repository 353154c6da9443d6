// RUN: kf-opt %s | kf-opt | FileCheck %s

// CHECK-LABEL: func.func @losses
func.func @losses(%x: tensor<?x100xbf16, #kf.size<rows>>, %labels: tensor<?xi32, #kf.size<rows>>)
    -> tensor<?xf32, #kf.size<rows>> {
  // CHECK: kf.cross_entropy %{{.*}}, %{{.*}} : tensor<?x100xbf16, #kf.size<rows>>, tensor<?xi32, #kf.size<rows>>
  %0 = kf.cross_entropy %x, %labels : tensor<?x100xbf16, #kf.size<rows>>, tensor<?xi32, #kf.size<rows>>
  return %0 : tensor<?xf32, #kf.size<rows>>
}

// CHECK-LABEL: func.func @sums
func.func @sums(%ids: tensor<?xi32>, %rows: tensor<?x16xf32>, %x: tensor<?x32xf16>) -> (tensor<7x16xf32>, tensor<16x32xf32>) {
  // CHECK: kf.scatter_add %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?x16xf32> to tensor<7x16xf32>
  %0 = kf.scatter_add %ids, %rows : tensor<?xi32>, tensor<?x16xf32> to tensor<7x16xf32>
  // CHECK: kf.matmul_wgrad %{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<?x32xf16>
  %1 = kf.matmul_wgrad %rows, %x : tensor<?x16xf32>, tensor<?x32xf16>
  return %0, %1 : tensor<7x16xf32>, tensor<16x32xf32>
}

// CHECK-LABEL: func.func @products
func.func @products(%dy: tensor<?x32xbf16>, %w: tensor<32x64x!kf.quant<q8_0>>) -> tensor<?x64xbf16> {
  // CHECK: kf.matmul_dgrad %{{.*}}, %{{.*}} : tensor<?x32xbf16>, tensor<32x64x!kf.quant<q8_0>>
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x32xbf16>, tensor<32x64x!kf.quant<q8_0>>
  return %0 : tensor<?x64xbf16>
}

// CHECK-LABEL: func.func @random
func.func @random(%x: tensor<5x16xbf16>, %draw: tensor<4xi32>, %c: tensor<?x3xi32>) -> (tensor<5x16xbf16>, tensor<?x3xi32>) {
  // CHECK: kf.dropout %{{.*}}, %{{.*}} {p = 2.500000e-01 : f32} : tensor<5x16xbf16>, tensor<4xi32>
  %0 = kf.dropout %x, %draw {p = 0.25 : f32} : tensor<5x16xbf16>, tensor<4xi32>
  // CHECK: kf.philox %[[C:.*]], %[[C]], %[[C]], %[[C]] key %[[C]], %[[C]] : tensor<?x3xi32>
  %1 = kf.philox %c, %c, %c, %c key %c, %c : tensor<?x3xi32>
  return %0, %1 : tensor<5x16xbf16>, tensor<?x3xi32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x5x8xbf16>, %k: tensor<2x2x7x8xbf16>, %v: tensor<2x2x7x16xbf16>, %dy: tensor<2x4x5x16xf32>, %m: tensor<5x7xi1>) -> (tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>) {
  // CHECK: kf.attention_qgrad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) {causal, offset = 2 : i64} : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x16xbf16>, tensor<2x4x5x16xf32>, tensor<5x7xi1>
  %dq, %lse, %delta = kf.attention_qgrad %q, %k, %v, %dy mask(%m) {causal, offset = 2 : i64} : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x16xbf16>, tensor<2x4x5x16xf32>, tensor<5x7xi1>
  // CHECK: kf.attention_kvgrad {{.*}} {scale = 5.000000e-01 : f32} : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x16xbf16>, tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
  %dk, %dv = kf.attention_kvgrad %q, %k, %v, %dy, %lse, %delta {scale = 0.5 : f32} : tensor<2x4x5x8xbf16>, tensor<2x2x7x8xbf16>, tensor<2x2x7x16xbf16>, tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
  return %dq, %dk, %dv : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>
}
