// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Each workgroup stores its token's keys, turned, and values of its KV head,
// and reads the cache behind a barrier.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @one(%q: tensor<1x4x64xf32>, %k: tensor<1x2x64xf32>, %v: tensor<1x2x64xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers>} {
  %kr = kf.rope %k, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<1x2x64xf32>, tensor<1xi32>
  kf.kv_append %c, %kr, %v, %p, %s, %t {layer = 0 : i64} : !cache, tensor<1x2x64xf32>, tensor<1xi32>, tensor<1x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !cache, tensor<1xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<1x4x64xf32>
}
}
// CHECK-LABEL: gpu.func @one(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<?xf32>, %[[K:[a-z0-9]+]]: memref<?xf32>, %[[V:[a-z0-9]+]]: memref<?xf32>, %[[C:[a-z0-9]+]]: memref<?xf16>
// CHECK:         %[[HEAD:.*]] = gpu.block_id  y
// CHECK-NOT:     gpu.barrier
// CHECK:         scf.for %{{.*}} to %c128 step %c128
// CHECK:           scf.if
// CHECK:             memref.get_global
// CHECK:             memref.load %[[K]]
// CHECK:           else
// CHECK:             memref.load %[[V]]
// CHECK:           scf.if
// CHECK:             scf.if
// CHECK:               memref.store %{{.*}}, %[[C]]
// CHECK-NOT:     nvvm.vote
// CHECK:         gpu.barrier
// CHECK:         nvvm.mma.sync

// -----

// Of more rows, lanes look for others of the sequence.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
kf.kernel @rows(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> (tensor<?x4x2xf32>, tensor<?x4x2xf32>, tensor<?x4x2x64xf32>)
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2, 1], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers>} {
  kf.kv_append %c, %k, %v, %p, %s, %t {layer = 0 : i64} : !cache, tensor<?x2x64xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0, %1, %2 = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x64xf32>, !cache, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0, %1, %2 : tensor<?x4x2xf32>, tensor<?x4x2xf32>, tensor<?x4x2x64xf32>
}
}
// CHECK-LABEL: gpu.func @rows(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf16>
// CHECK:         memref.store %{{.*}}, %[[C]]
// CHECK:         scf.for
// CHECK:           %[[OTHERS:.*]] = nvvm.vote.sync
// CHECK:           math.ctpop %[[OTHERS]]
// CHECK:           scf.for
// CHECK:             math.cttz
// CHECK:             memref.store %{{.*}}, %[[C]]
// CHECK:         gpu.barrier
// CHECK:         nvvm.mma.sync

// -----

// A workgroup rounds its result as it stores it. One KV head: the tile is all
// there is.
!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @rounded(%q: tensor<1x4x64xf32>, %k: tensor<1x1x64xf32>, %v: tensor<1x1x64xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf16>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers>} {
  kf.kv_append %c, %k, %v, %p, %s, %t {layer = 0 : i64} : !cache, tensor<1x1x64xf32>, tensor<1xi32>, tensor<1x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !cache, tensor<1xi32>, tensor<1x8xi32>
  %1 = arith.truncf %0 : tensor<1x4x64xf32> to tensor<1x4x64xf16>
  kf.yield %1 : tensor<1x4x64xf16>
}
}
// CHECK-LABEL: gpu.func @rounded(
// CHECK-SAME:    memref<?xf16>, %{{[a-z0-9]+}}: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xi32>, %[[R:[a-z0-9]+]]: memref<?xf16>
// CHECK:         nvvm.mma.sync
// CHECK:         %[[N:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         memref.store %[[N]], %[[R]]
