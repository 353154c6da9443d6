// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Threads share the pairs of a token, 16 of each head: one of 64 has the same pair
// of half of 8 heads, which share the angle. The frequencies are a constant; the
// angle is reduced by parts of pi / 2 whose products are exact, and a large one
// by the bits of 2 / pi. Pairs are read before the first is stored.
kf.kernel @half(%x: tensor<?x8x32xf32>, %p: tensor<?xi32>, %f: tensor<16xf32>) -> tensor<?x8x32xf16>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 2>} {
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x8x32xf32>, tensor<?xi32>, tensor<16xf32>
  %1 = arith.truncf %0 : tensor<?x8x32xf32> to tensor<?x8x32xf16>
  kf.yield %1 : tensor<?x8x32xf16>
}
// CHECK:       memref.global "private" constant @half_table_0 : memref<16xf32> = dense<[1.000000e+00, 0.562341332,
// CHECK:       gpu.func @half(%[[X:[a-z0-9]+]]: memref<?xf32>, %[[P:[a-z0-9]+]]: memref<?xi32>, %[[F:[a-z0-9]+]]: memref<?xf32>, %[[R:[a-z0-9]+]]: memref<?xf16>
// CHECK-DAG:     arith.constant -1.562500e+00 : f32
// CHECK:         scf.for
// CHECK:           %[[PAIR:.*]] = arith.remui %{{.*}}, %c16
// CHECK:           %[[TABLE:.*]] = memref.get_global @half_table_0
// CHECK:           %[[ANGLE:.*]] = memref.load %[[TABLE]][%[[PAIR]]]
// CHECK:           %[[FACTOR:.*]] = memref.load %[[F]][%[[PAIR]]]
// CHECK:           arith.divf %[[ANGLE]], %[[FACTOR]]
// CHECK:           memref.load %[[P]]
// CHECK:           math.roundeven
// CHECK-COUNT-4:   math.fma
// CHECK:           %[[LARGE:.*]] = arith.cmpf ogt, %{{.*}}, %cst{{.*}} : f32
// CHECK:           %[[REDUCED:.*]]:2 = scf.if %[[LARGE]] -> (i32, f32) {
// CHECK:             arith.bitcast %{{.*}} : f32 to i32
// CHECK:           arith.andi %[[REDUCED]]#0, %c1
// CHECK:           %[[SECOND:.*]] = arith.addi %[[PAIR]], %c16
// CHECK:           %[[HEAD:.*]] = arith.divui %{{.*}}, %c16
// CHECK:           scf.for %{{.*}} = %[[HEAD]] to %c8 step %c8
// CHECK-COUNT-4:     memref.load %[[X]]
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[R]]

// -----

// Neighbours are pairs; columns behind rotary_dim are copied.
kf.kernel @interleaved(%x: tensor<3x2x32xf32>, %p: tensor<3xi32>) -> tensor<3x2x32xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.rope %x, %p {rotary_dim = 24 : i64, theta = 1.0e4 : f64, style = #kf.rope_style<interleaved>} : tensor<3x2x32xf32>, tensor<3xi32>
  kf.yield %0 : tensor<3x2x32xf32>
}
// 12 pairs, of which 16 threads have 4 at a time: three.
// CHECK-LABEL: gpu.func @interleaved(
// CHECK:         %[[PAIR:.*]] = arith.remui %{{.*}}, %c4
// CHECK:         %[[FIRST:.*]] = arith.muli %[[PAIR]], %c2
// CHECK:         arith.addi %[[FIRST]], %c1
// CHECK:         scf.for %{{.*}} to %c2 step %c16
// CHECK:         math.roundeven
// CHECK:         scf.for %{{.*}} to %c2 step %c16
// CHECK:         math.roundeven
// CHECK:         scf.for %{{.*}} to %c2 step %c16
// CHECK-NOT:     math.roundeven
// CHECK:         scf.for %{{.*}} to %c16 step %c64
// CHECK:           %[[KEPT:.*]] = memref.load
// CHECK:           memref.store %[[KEPT]]

// -----

// 13 pairs, of which 64 threads have one at a time, are a loop.
kf.kernel @prime(%x: tensor<3x2x26xf32>, %p: tensor<3xi32>) -> tensor<3x2x26xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.rope %x, %p {rotary_dim = 26 : i64, theta = 1.0e4 : f64} : tensor<3x2x26xf32>, tensor<3xi32>
  kf.yield %0 : tensor<3x2x26xf32>
}
// CHECK-LABEL: gpu.func @prime(
// CHECK:         scf.for %[[PAIR:.*]] = %c0 to %c13 step %c1
// CHECK:           math.roundeven
// CHECK:           scf.for %{{.*}} to %c2 step %c64
// CHECK-NOT:     math.roundeven

// -----

// An append rotates elements where it reads them. Columns behind rotary_dim
// stay. What a branch has computed of x, such as its rows' largest element, is
// not at hand in the other one.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32>
kf.kernel @partial(%x: tensor<3x2x32xf32>, %c: !cache, %p: tensor<3xi32>, %s: tensor<3xi32>, %t: tensor<1x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [0], threads = [64]>} {
  %0 = kf.reduce(max) %x dims = [2] : tensor<3x2x32xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [3, 2, 1] : tensor<3x2xf32> into tensor<3x2x1xf32>
  %2 = kf.broadcast %1 : tensor<3x2x1xf32> to tensor<3x2x32xf32>
  %3 = arith.subf %x, %2 : tensor<3x2x32xf32>
  %4 = kf.rope %3, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<3x2x32xf32>, tensor<3xi32>
  kf.kv_append %c, %4, %x, %p, %s, %t {layer = 0 : i64} : !cache, tensor<3x2x32xf32>, tensor<3xi32>, tensor<1x4xi32>
  kf.yield
}
// CHECK-LABEL: gpu.func @partial
// CHECK:         scf.if %{{.*}} -> (f32) {
// CHECK:           math.roundeven
// CHECK:           scf.for
// CHECK:             arith.maximumf
// CHECK-NOT:       scf.for
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             arith.maximumf
// CHECK:           arith.subf
