// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// A workgroup of a cluster takes whole pages of a token's keys, and leaves what
// it has found in its memory. Behind a barrier, each adds up some elements of
// all, in their order, and what is not finite is for the first.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>} {
kf.kernel @parts(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers, parts = 3>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<1x4x64xf32>
}
}
// CHECK-LABEL: gpu.func @parts(
// CHECK-SAME:    %[[RESULT:[a-z0-9]+]]: memref<?xf32>, %{{[a-z0-9]+}}: memref<?xi32>)
// Sums, maxima and totals of four warps, and of all of them, of 8 rows each.
// CHECK-SAME:    %[[MEMORY:[a-z0-9]+]] : memref<10560xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-SAME:    %[[FLAG:[a-z0-9]+]] : memref<1xi32, #gpu.address_space<workgroup>>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 2, 3]>
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 1, 1, 3>
// CHECK:         %[[PART:.*]] = gpu.block_id  z
// CHECK:         nvvm.shfl.sync {{ ?}}bfly
// CHECK:         %[[SHARE:.*]] = arith.divui %{{.*}}, %c3
// CHECK:         arith.muli %[[PART]], %[[SHARE]]
// CHECK:         scf.for
// CHECK:           nvvm.mma.sync
// CHECK:         gpu.barrier
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}} : memref<512xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.store %{{.*}} : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK:         memref.store %{{.*}} : memref<8xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-9: nvvm.mapa %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         scf.for
// CHECK-COUNT-9:   llvm.load %{{.*}} : !llvm.ptr<7> -> f32
// CHECK-COUNT-3:   llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK:           memref.store %{{.*}}, %[[RESULT]]
// CHECK:           scf.if
// CHECK:             nvvm.mapa
// CHECK:             llvm.store %{{.*}} : i32, !llvm.ptr<7>
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[FLAG]]
// CHECK:         scf.if
// CHECK:           math.exp
