// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate{accumulate})' | FileCheck %s

// An argument more for each gradient, which the sum of both updates.
// CHECK-LABEL: func.func @f(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<32x64xf32>, %{{.*}}: tensor<?xi32>, %{{.*}}: tensor<4xbf16>, %[[SUM:.*]]: tensor<32x64xf32>, %[[UNREAD:.*]]: tensor<4xf32>)
// CHECK-SAME:      -> (tensor<f32>, tensor<32x64xf32> {kf.updates = 4 : i64}, tensor<4xf32> {kf.updates = 5 : i64})
// CHECK:         %[[DW:.*]] = kf.matmul_wgrad
// CHECK:         %[[NEW:.*]] = arith.addf %[[SUM]], %[[DW]] : tensor<32x64xf32>
// CHECK:         return %{{.*}}, %[[NEW]], %{{.*}} :
func.func @f(%x: tensor<?x64xf32>, %w: tensor<32x64xf32> {kf.gradient},
             %labels: tensor<?xi32>, %y: tensor<4xbf16> {kf.gradient}) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64xf32>
  %1 = kf.cross_entropy %0, %labels : tensor<?x32xf32>, tensor<?xi32>
  %2 = kf.reduce(sum) %1 dims = [0] : tensor<?xf32>
  return %2 : tensor<f32>
}

// Each as soon as it is there, so that what it is made of can go: the sum for the
// last layer is not behind the gradients of the first.
// CHECK-LABEL: func.func @layers(
// CHECK:         %[[LAST:.*]] = kf.matmul_wgrad
// CHECK-NEXT:    arith.addf %{{.*}}, %[[LAST]]
// CHECK:         %[[FIRST:.*]] = kf.matmul_wgrad
// CHECK-NEXT:    arith.addf %{{.*}}, %[[FIRST]]
// CHECK-NEXT:    return
func.func @layers(%x: tensor<?x64xf32>, %v: tensor<48x64xf32> {kf.gradient},
                  %w: tensor<32x48xf32> {kf.gradient},
                  %labels: tensor<?xi32>) -> tensor<f32> {
  %0 = kf.matmul %x, %v : tensor<?x64xf32>, tensor<48x64xf32>
  %1 = kf.matmul %0, %w : tensor<?x48xf32>, tensor<32x48xf32>
  %2 = kf.cross_entropy %1, %labels : tensor<?x32xf32>, tensor<?xi32>
  %3 = kf.reduce(sum) %2 dims = [0] : tensor<?xf32>
  return %3 : tensor<f32>
}
