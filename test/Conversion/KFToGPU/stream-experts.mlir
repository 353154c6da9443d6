// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Of one token, a workgroup has a place among its experts, whose number says
// where copies of the weight begin; there is no list.
kf.kernel @one(%x: tensor<1x256xf32>, %e: tensor<1x3xi32>, %w: tensor<1x5x32x256xbf16, #kf.fragments>) -> tensor<1x3x32xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 1, 32], warps = 4, tiles = 2, stages = 3, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x256xf32>, tensor<1x3xi32>, tensor<1x5x32x256xbf16, #kf.fragments>
  kf.yield %0 : tensor<1x3x32xf32>
}
// CHECK-LABEL: gpu.func @one
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 3, 1]>
// CHECK-NOT:     nvvm.vote
// CHECK:         %[[NUMBER:.*]] = memref.load %arg1
// CHECK:         %[[AT_LEAST:.*]] = arith.maxsi %[[NUMBER]], %c0_i32
// CHECK:         arith.minsi %[[AT_LEAST]], %c4_i32
// CHECK:         nvvm.cp.async.shared.global
// CHECK:         nvvm.mma.sync

// -----

// Of more, numbers of the window go to workgroup memory; a warp counts those
// before a place of the tile, and lists those behind it where it leads. Groups
// are multiplied one after the other: rounded, with one term of x.
kf.kernel @many(%x: tensor<?x2x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x5x32x64xf16, #kf.fragments>, %p: tensor<?x2x32xf32>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.stream<workgroup = [32, 1, 32], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = shared, block_warps = 2, reduction = 32>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x64xf32>, tensor<?x2xi32>, tensor<1x5x32x64xf16, #kf.fragments>
  %1 = arith.mulf %0, %p : tensor<?x2x32xf32>
  kf.yield %1 : tensor<?x2x32xf32>
}
// CHECK-LABEL: gpu.func @many
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<128xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:      %[[PLACES:[a-z0-9]+]] : memref<1056xi32, #gpu.address_space<workgroup>>,
// CHECK-SAME:      %[[NUMBERS:[a-z0-9]+]] : memref<4096xi32, #gpu.address_space<workgroup>>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [32, 0, 0], counts = [0, 2, 1]>
// CHECK:         memref.store %{{.*}}, %[[NUMBERS]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[NUMBERS]]
// CHECK:         nvvm.vote.sync ballot
// CHECK:         memref.store %{{.*}}, %[[PLACES]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           memref.load %[[PLACES]]
// CHECK:           scf.if
// CHECK:             gpu.barrier
// CHECK-COUNT-4:     nvvm.mma.sync

// -----

// Rounded rows are no smaller than x is, or f16 has fewer bits of small ones.
// Sums of x are of what codes are multiplied with: of rounded elements, before
// pairs are scaled whose codes are a power of two too large.
kf.kernel @rounded_codes(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>, %w: tensor<1x5x32x256x!kf.quant<q4_k>, #kf.fragments>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.stream<workgroup = [32, 1, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = shared, block_warps = 2, reduction = 256>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x5x32x256x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<?x2x32xf32>
}
// CHECK-LABEL: gpu.func @rounded_codes
// CHECK-NOT:     3.906250e-03
