// RUN: kf-opt %s | kf-opt | FileCheck %s

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<3x4xf32>, %r: tensor<?x4xi8>, %s: tensor<f32>) {
  // CHECK: kf.transpose %{{.*}} permutation = [1, 0] : tensor<3x4xf32>
  %0 = kf.transpose %x permutation = [1, 0] : tensor<3x4xf32>
  // CHECK: kf.broadcast %{{.*}} : tensor<4x3xf32> to tensor<2x4x3xf32>
  %1 = kf.broadcast %0 : tensor<4x3xf32> to tensor<2x4x3xf32>
  // CHECK: kf.broadcast %{{.*}} : tensor<f32> to tensor<2x2xf32>
  %2 = kf.broadcast %s : tensor<f32> to tensor<2x2xf32>
  // CHECK: kf.iota dim = 1 : tensor<3x4xi64>
  %3 = kf.iota dim = 1 : tensor<3x4xi64>
  // CHECK: kf.copy %{{.*}} : tensor<?x4xi8>
  %4 = kf.copy %r : tensor<?x4xi8>
  return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: tensor<2x3x4xf32>, %r: tensor<?x4xi32>) -> (tensor<3xf32>, tensor<?x1xi32>) {
  // CHECK: kf.reduce(sum) %{{.*}} dims = [0, 2] : tensor<2x3x4xf32>
  %0 = kf.reduce(sum) %x dims = [0, 2] : tensor<2x3x4xf32>
  // CHECK: kf.reduce(max) %{{.*}} dims = [1] keep_dims : tensor<?x4xi32>
  %1 = kf.reduce(max) %r dims = [1] keep_dims : tensor<?x4xi32>
  // CHECK: kf.reduce(sum) %{{.*}} dims = [0] : tensor<?x4xi32>
  %2 = kf.reduce(sum) %r dims = [0] : tensor<?x4xi32>
  return %0, %1 : tensor<3xf32>, tensor<?x1xi32>
}

// CHECK-LABEL: func.func @products
func.func @products(%q: tensor<2x4x5x8xf32>, %k: tensor<2x1x7x8xf32>, %x: tensor<2x5x8xf16>, %w: tensor<2x7x8xf16>) -> tensor<2x4x5x7xf32> {
  // CHECK: kf.matmul %{{.*}}, %{{.*}} : tensor<2x4x5x8xf32>, tensor<2x1x7x8xf32>
  %0 = kf.matmul %q, %k : tensor<2x4x5x8xf32>, tensor<2x1x7x8xf32>
  // CHECK: kf.batch_matmul %{{.*}}, %{{.*}} : tensor<2x5x8xf16>, tensor<2x7x8xf16>
  %1 = kf.batch_matmul %x, %w : tensor<2x5x8xf16>, tensor<2x7x8xf16>
  return %0 : tensor<2x4x5x7xf32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x5x8xf32>, %k: tensor<2x2x7x8xf32>, %v: tensor<2x2x7x16xf32>, %m: tensor<5x7xi1>, %c: tensor<5x1x4xf32>) -> tensor<2x4x5x16xf32> {
  // CHECK: kf.scaled_dot_product_attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) {causal, offset = 2 : i64, softcap = 3.000000e+01 : f32, window = 3 : i64}
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {causal, softcap = 30.0 : f32, window = 3 : i64, offset = 2 : i64}
      : tensor<2x4x5x8xf32>, tensor<2x2x7x8xf32>, tensor<2x2x7x16xf32>, tensor<5x7xi1>
  // CHECK: kf.rotary_embedding %{{.*}}, %{{.*}}, %{{.*}} {style = #kf.rope_style<interleaved>} : tensor<2x5x4x8xf32>, tensor<5x1x4xf32>
  %t = kf.transpose %q permutation = [0, 2, 1, 3] : tensor<2x4x5x8xf32>
  %1 = kf.rotary_embedding %t, %c, %c {style = #kf.rope_style<interleaved>} : tensor<2x5x4x8xf32>, tensor<5x1x4xf32>
  return %0 : tensor<2x4x5x16xf32>
}
