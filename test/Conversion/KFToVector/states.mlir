// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' | FileCheck %s

// A workgroup has a sequence and a head, whose state stays in the cache. A slot
// that does not exist is the last one.
// CHECK-LABEL: func.func @delta(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf32>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [1, 0], counts = [0, 4], size = sequences>
// CHECK:         %[[SLOTS:.*]] = arith.divui %{{.*}}, %c2
// CHECK:         arith.minui
// The convolution's lines of the head lie tap by tap.
// CHECK-COUNT-3: scf.for
// CHECK:         scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c1
// CHECK:           %[[OWN:.*]] = arith.cmpi eq
// CHECK-NEXT:      scf.if %[[OWN]] {
// CHECK:             %[[FIRST:.*]] = arith.cmpi eq
// CHECK:             scf.if %[[FIRST]] {
// CHECK:               vector.store %{{.*}}, %[[C]]
// CHECK:             math.log1p
// CHECK:             scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:               vector.fma
// CHECK:             scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:               vector.store %{{.*}}, %[[C]]
!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
module attributes {kf.sizes = ["sequences"]} {
kf.kernel @delta(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<?xi32, #kf.size<sequences>>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1], lanes = 8>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<?xi32, #kf.size<sequences>>
  kf.yield %0 : tensor<?x4x8xf32>
}
}
