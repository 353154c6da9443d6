// RUN: kf-opt %s --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s

// Threads share the channels of a row, and then the columns of the state, which
// they hold from the first row to the last one.
// CHECK-LABEL: gpu.func @delta(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf32>
// CHECK-SAME:    workgroup(%[[CHANNELS:.*]] : memref<24xf32, #gpu.address_space<workgroup>>)
// CHECK:         memref.load %[[C]]
// CHECK:         %[[STATE:.*]]:9 = scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c1 iter_args
// CHECK:           scf.if {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32) {
// CHECK:             memref.store %{{.*}}, %[[CHANNELS]]
// CHECK:             gpu.barrier
// CHECK:             math.log1p
// CHECK-NOT:         memref.load %[[C]]
// CHECK:             gpu.barrier
// CHECK:         arith.andi %[[STATE]]#8
// CHECK:         scf.if
// CHECK:           memref.store %[[STATE]]#0, %[[C]]

// Several threads have a column, and add up what they find.
// CHECK-LABEL: gpu.func @parts(
// CHECK-SAME:    memref<24xf32, #gpu.address_space<workgroup>>, %[[SUMS:.*]] : memref<128xf32, #gpu.address_space<workgroup>>)
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           scf.if {{.*}} -> (f32, f32) {
// CHECK:             gpu.barrier
// CHECK-COUNT-3:     memref.store %{{.*}}, %[[SUMS]]
// CHECK:             gpu.barrier
// CHECK-COUNT-12:    memref.load %[[SUMS]]
// CHECK:             memref.store %{{.*}}, %[[SUMS]]
// CHECK:             gpu.barrier
// CHECK-COUNT-4:     memref.load %[[SUMS]]
// CHECK:             gpu.barrier

// A head with more columns than threads stays in the cache.
// CHECK-LABEL: gpu.func @few(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK:           gpu.barrier
// CHECK:             scf.for %{{.*}} to %c8 step %c4
// CHECK:               scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:               scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:                 memref.store %{{.*}}, %[[C]]
// CHECK:           gpu.barrier

// As many threads as this have no registers for 8 rows of a column each.
// CHECK-LABEL: gpu.func @many(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK:                 memref.store %{{.*}}, %[[C]]
!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
kf.kernel @delta(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [32]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}

kf.kernel @parts(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [8, 4]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}

kf.kernel @few(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [4]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}

!wide = !kf.state_cache<layers = 1, heads = 1, elements = 9232, slot_pages = 2>
kf.kernel @many(%c: !wide, %q: tensor<?x1x8xf32>, %v: tensor<?x1x1024xf32>, %a: tensor<?x1xf32>, %w: tensor<1040x1x2xf32>, %d: tensor<1xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x1x1024xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [1024]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x1x8xf32>, tensor<?x1x1024xf32>, tensor<?x1xf32>, tensor<1040x1x2xf32>, tensor<1xf32>, tensor<1xf32>, !wide, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x1x1024xf32>
}
