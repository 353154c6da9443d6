// RUN: kf-opt %s -kf-form-kernels -kf-check-updates -split-input-file | FileCheck %s

// The kernel that reads the argument says which of its operands that is.
// CHECK-LABEL: kf.program @add_up(
// CHECK-SAME:      -> (tensor<4x8xf32> {kf.updates = 2 : i64})
// CHECK:         kf.dispatch @mul_add_0(%arg0, %arg2)
// CHECK-LABEL: kf.kernel @mul_add_0(
// CHECK-SAME:      -> (tensor<4x8xf32> {kf.updates = 1 : i64})
func.func @add_up(%x: tensor<4x8xf32>, %y: tensor<4xf32>, %sum: tensor<4x8xf32>)
    -> (tensor<4x8xf32> {kf.updates = 2 : i64}) {
  %0 = arith.mulf %x, %x : tensor<4x8xf32>
  %1 = arith.addf %sum, %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// Kernels before it may read the argument as they like, and those behind it read
// what it has made. One that does not read it need not know.
// CHECK-LABEL: kf.program @last(
// CHECK-SAME:      -> (tensor<4x8xf32> {kf.updates = 0 : i64}, tensor<4xf32>)
// CHECK:         %[[SUMS:.*]] = kf.dispatch @reduce_0(%arg0)
// CHECK:         %[[NEW:.*]] = kf.dispatch @sub_0(%[[SUMS]])
// CHECK:         kf.dispatch @reduce_1(%[[NEW]])
func.func @last(%x: tensor<4x8xf32>)
    -> (tensor<4x8xf32> {kf.updates = 0 : i64}, tensor<4xf32>) {
  %0 = kf.reduce(sum) %x dims = [1] keep_dims : tensor<4x8xf32>
  %1 = kf.broadcast %0 : tensor<4x1xf32> to tensor<4x8xf32>
  %2 = arith.subf %1, %1 : tensor<4x8xf32>
  %3 = kf.reduce(sum) %2 dims = [1] : tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4xf32>
}
