// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-nvvm-form-products))' | FileCheck %s

// CHECK-LABEL: func.func @batches(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x64x32xf32>, %[[K:.*]]: tensor<2x4x48x32xf32>
// CHECK-DAG:     %[[A:.*]] = tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] : tensor<2x4x64x32xf32> into tensor<8x64x32xf32>
// CHECK-DAG:     %[[B:.*]] = tensor.collapse_shape %[[K]] {{\[\[}}0, 1], [2], [3]] : tensor<2x4x48x32xf32> into tensor<8x48x32xf32>
// CHECK:         %[[C:.*]] = kf.batch_matmul %[[A]], %[[B]] {kf.recomputed} : tensor<8x64x32xf32>, tensor<8x48x32xf32>
// CHECK:         %[[R:.*]] = tensor.expand_shape %[[C]] {{\[\[}}0, 1], [2], [3]] output_shape [2, 4, 64, 48]
// CHECK:         return %[[R]]
func.func @batches(%q: tensor<2x4x64x32xf32>, %k: tensor<2x4x48x32xf32>) -> tensor<2x4x64x48xf32> {
  %0 = kf.batch_matmul %q, %k {kf.recomputed} : tensor<2x4x64x32xf32>, tensor<2x4x48x32xf32>
  return %0 : tensor<2x4x64x48xf32>
}

// CHECK-LABEL: func.func @gradient(
// CHECK-SAME:    %[[DY:.*]]: tensor<256x16xf32>, %[[X:.*]]: tensor<256x256xf32>
// CHECK-DAG:     %[[A:.*]] = kf.transpose %[[DY]] permutation = [1, 0]
// CHECK-DAG:     %[[B:.*]] = kf.transpose %[[X]] permutation = [1, 0]
// CHECK:         %[[R:.*]] = kf.matmul %[[A]], %[[B]] : tensor<16x256xf32>, tensor<256x256xf32>
// CHECK:         return %[[R]]
func.func @gradient(%dy: tensor<256x16xf32>, %x: tensor<256x256xf32>) -> tensor<16x256xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<256x16xf32>, tensor<256x256xf32>
  return %0 : tensor<16x256xf32>
}

// A small one stays with threads.
// CHECK-LABEL: func.func @small_gradient(
// CHECK:         kf.matmul_wgrad
func.func @small_gradient(%dy: tensor<255x16xf32>, %x: tensor<255x256xf32>) -> tensor<16x256xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<255x16xf32>, tensor<255x256xf32>
  return %0 : tensor<16x256xf32>
}

// Rows of a step, and batches of them, stay.
// CHECK-LABEL: func.func @steps(
// CHECK:         kf.matmul_wgrad
// CHECK:         kf.batch_matmul {{.*}} : tensor<?x4x8x32xf32>
func.func @steps(%dy: tensor<?x16xf32>, %x: tensor<?x256xf32>, %q: tensor<?x4x8x32xf32>, %k: tensor<?x4x8x32xf32>) -> (tensor<16x256xf32>, tensor<?x4x8x8xf32>) {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x16xf32>, tensor<?x256xf32>
  %1 = kf.batch_matmul %q, %k : tensor<?x4x8x32xf32>, tensor<?x4x8x32xf32>
  return %0, %1 : tensor<16x256xf32>, tensor<?x4x8x8xf32>
}

// So do batches with few rows, or a short K, which are for threads.
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     collapse_shape
// CHECK:         kf.batch_matmul {{.*}} : tensor<2x4x16x32xf32>
// CHECK:         kf.batch_matmul {{.*}} : tensor<2x4x64x8xf32>
// CHECK:         return
func.func @few(%q: tensor<2x4x16x32xf32>, %k: tensor<2x4x48x32xf32>, %p: tensor<2x4x64x8xf32>, %v: tensor<2x4x48x8xf32>) -> (tensor<2x4x16x48xf32>, tensor<2x4x64x48xf32>) {
  %0 = kf.batch_matmul %q, %k : tensor<2x4x16x32xf32>, tensor<2x4x48x32xf32>
  %1 = kf.batch_matmul %p, %v : tensor<2x4x64x8xf32>, tensor<2x4x48x8xf32>
  return %0, %1 : tensor<2x4x16x48xf32>, tensor<2x4x64x48xf32>
}

// And factors of unlike types, which units do not multiply.
// CHECK-LABEL: func.func @unlike(
// CHECK-NOT:     collapse_shape
// CHECK:         kf.batch_matmul {{.*}} : tensor<2x4x64x32xf32>, tensor<2x4x48x32xbf16>
// CHECK:         return
func.func @unlike(%q: tensor<2x4x64x32xf32>, %k: tensor<2x4x48x32xbf16>) -> tensor<2x4x64x48xf32> {
  %0 = kf.batch_matmul %q, %k : tensor<2x4x64x32xf32>, tensor<2x4x48x32xbf16>
  return %0 : tensor<2x4x64x48xf32>
}
