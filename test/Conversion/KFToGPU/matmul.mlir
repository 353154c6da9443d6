// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Blocks of 8 along K go through workgroup memory; a thread keeps 2 x 1 sums.
kf.kernel @plain(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [16, 16], threads = [16, 8], tile = [2, 1], reduction = 8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  %1 = arith.addf %0, %r : tensor<?x40xf32>
  kf.yield %1 : tensor<?x40xf32>
}
// CHECK-LABEL: gpu.func @plain
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<144xf32, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[W:.*]] : memref<144xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [16, 0], counts = [0, 3]>
// CHECK-SAME:    known_block_size = array<i32: 16, 8, 1>
// CHECK:         %[[SUMS:.*]]:2 = scf.for %[[K:.*]] = %c0 to %c64 step %c8 iter_args
// CHECK:           scf.for
// CHECK:             arith.select
// CHECK:             memref.store %{{.*}}, %[[X]]
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %[[W]]
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK-COUNT-2:     arith.mulf
// CHECK:           gpu.barrier
// CHECK:         scf.if
// CHECK:           arith.addf %[[SUMS]]#0
// CHECK:           memref.store
// CHECK:         scf.if
// CHECK:           arith.addf %[[SUMS]]#1
// CHECK:           memref.store

// -----

// Another schedule, another loop nest.
kf.kernel @unrolled(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [8, 32], threads = [8, 4], tile = [2, 4], reduction = 32, unroll = 2>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}
// CHECK-LABEL: gpu.func @unrolled
// CHECK-SAME:    memref<264xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    memref<1056xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK:           scf.for %{{.*}} = %c0 to %c32 step %c2 iter_args
// CHECK-COUNT-16:    arith.mulf
// CHECK-NOT:         arith.mulf
// CHECK:           gpu.barrier

// -----

// Both matrices of a gated product are staged; biases and the gate follow.
kf.kernel @gated(%x: tensor<?x64xf32>, %w: tensor<2x40x64xf32>, %b: tensor<2x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [16, 16], threads = [16, 16], tile = [1, 1], reduction = 8>} {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<?x64xf32>, tensor<2x40x64xf32>, tensor<2x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}
// CHECK-LABEL: gpu.func @gated
// CHECK-SAME:    memref<288xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[SUMS:.*]]:2 = scf.for
// CHECK:         arith.addf %[[SUMS]]#0
// CHECK:         math.exp
// CHECK:         arith.addf %[[SUMS]]#1

// -----

// A norm in front: one factor a row of the tile, in workgroup memory.
kf.kernel @normed(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [16, 16], threads = [16, 16], tile = [1, 1], reduction = 8>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %1 : tensor<?x40xf32>
}
// CHECK-LABEL: gpu.func @normed
// CHECK-SAME:    workgroup(%[[FACTORS:.*]] : memref<16xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for
// CHECK:           math.sqrt
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %[[FACTORS]]
// CHECK:         gpu.barrier
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c8
// CHECK:           memref.load %[[FACTORS]]

// -----

// An extent of K that is no multiple of the step: zeros past its end.
kf.kernel @edge(%x: tensor<3x5xf32>, %w: tensor<7x5xf32>) -> tensor<3x7xf32>
    attributes {schedule = #kf.simt<workgroup = [4, 8], threads = [8, 4], tile = [1, 1], reduction = 4>} {
  %0 = kf.matmul %x, %w : tensor<3x5xf32>, tensor<7x5xf32>
  kf.yield %0 : tensor<3x7xf32>
}
// CHECK-LABEL: gpu.func @edge
// CHECK:         scf.for %[[K:.*]] = %c0 to %c5 step %c4
// CHECK:           %[[POSITION:.*]] = arith.addi %[[K]]
// CHECK:           arith.cmpi ult, %[[POSITION]], %c5
