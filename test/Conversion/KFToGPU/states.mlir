// RUN: kf-opt %s --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s

// Threads share the channels of a row, and then the columns of the state, of
// which each reads what it has written.
// CHECK-LABEL: gpu.func @delta(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf32>
// CHECK-SAME:    workgroup(%[[CHANNELS:.*]] : memref<24xf32, #gpu.address_space<workgroup>>)
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c1
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %[[CHANNELS]]
// CHECK:             gpu.barrier
// CHECK:             math.log1p
// CHECK:             scf.for %{{.*}} to %c8 step %c32
// CHECK:               scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:               scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:                 memref.store %{{.*}}, %[[C]]
// CHECK:             gpu.barrier
!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
kf.kernel @delta(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [32]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}
