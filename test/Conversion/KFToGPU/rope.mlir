// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Each thread rotates its element: the pair's other one is read, too. The
// frequencies are a constant; the angle is reduced by parts of pi / 2 whose
// products are exact.
kf.kernel @half(%x: tensor<?x2x32xf32>, %p: tensor<?xi32>, %f: tensor<16xf32>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x2x32xf32>, tensor<?xi32>, tensor<16xf32>
  kf.yield %0 : tensor<?x2x32xf32>
}
// CHECK:       memref.global "private" constant @half_table_0 : memref<16xf32> = dense<[1.000000e+00, 0.562341332,
// CHECK:       gpu.func @half(%[[X:[a-z0-9]+]]: memref<?xf32>, %[[P:[a-z0-9]+]]: memref<?xi32>, %[[F:[a-z0-9]+]]: memref<?xf32>
// CHECK-DAG:     arith.constant -1.562500e+00 : f32
// CHECK:         scf.for
// CHECK:           %[[TABLE:.*]] = memref.get_global @half_table_0
// CHECK:           %[[ANGLE:.*]] = memref.load %[[TABLE]]
// CHECK:           %[[FACTOR:.*]] = memref.load %[[F]]
// CHECK:           arith.divf %[[ANGLE]], %[[FACTOR]]
// CHECK:           memref.load %[[P]]
// CHECK:           math.roundeven
// CHECK-COUNT-4:   math.fma
// CHECK-COUNT-2:   memref.load %[[X]]
// CHECK:           memref.store

// -----

// Columns behind rotary_dim stay. What a branch has computed of x, such as its
// rows' largest element, is not at hand in the other one.
kf.kernel @partial(%x: tensor<3x2x32xf32>, %p: tensor<3xi32>) -> tensor<3x2x32xf32>
    attributes {schedule = #kf.simt<workgroup = [0], threads = [64]>} {
  %0 = kf.reduce(max) %x dims = [2] : tensor<3x2x32xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [3, 2, 1] : tensor<3x2xf32> into tensor<3x2x1xf32>
  %2 = kf.broadcast %1 : tensor<3x2x1xf32> to tensor<3x2x32xf32>
  %3 = arith.subf %x, %2 : tensor<3x2x32xf32>
  %4 = kf.rope %3, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<3x2x32xf32>, tensor<3xi32>
  kf.yield %4 : tensor<3x2x32xf32>
}
// CHECK-LABEL: gpu.func @partial
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK-NOT:       scf.for
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             arith.maximumf
// CHECK:           arith.subf
