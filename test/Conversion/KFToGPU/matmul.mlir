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
// CHECK-COUNT-2:     math.fma
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
// CHECK-COUNT-16:    math.fma
// CHECK-NOT:         math.fma
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

// -----

// 16 threads along x share each sum: they read neighbours of a row of the
// weight, 4 at a time, and what is left over of 200 one by one. Their parts go
// through workgroup memory, 17 floats apart, and one thread adds and stores
// each of the 2 x 3 x 2 elements.
kf.kernel @shared(%x: tensor<2x200xf32>, %w: tensor<40x200xbf16>) -> tensor<2x40xf32>
    attributes {schedule = #kf.simt<workgroup = [2, 6], threads = [16, 2], tile = [2, 3], unroll = 4, sums = shared>} {
  %0 = kf.matmul %x, %w : tensor<2x200xf32>, tensor<40x200xbf16>
  kf.yield %0 : tensor<2x40xf32>
}
// CHECK-LABEL: gpu.func @shared
// CHECK-SAME:    workgroup(%[[PARTS:.*]] : memref<204xf32, #gpu.address_space<workgroup>>)
// CHECK-DAG:     %[[X:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[Y:.*]] = gpu.thread_id y
// CHECK:         %[[MOST:.*]]:6 = scf.for %{{.*}} = %[[X]] to %c192 step %c64 iter_args
// CHECK-COUNT-24:  math.fma
// CHECK-NOT:       math.fma
// CHECK:         %[[REST:.*]] = arith.addi %[[X]], %c192
// CHECK:         %[[SUMS:.*]]:6 = scf.for %{{.*}} = %[[REST]] to %c200 step %c16 iter_args(%{{.*}} = %[[MOST]]#0
// CHECK-COUNT-6:   math.fma
// CHECK-NOT:       math.fma
// CHECK-COUNT-6: memref.store %[[SUMS]]#{{.*}}, %[[PARTS]]
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         arith.cmpi ult, %{{.*}}, %c12
// CHECK:         scf.if
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args
// CHECK:             memref.load %[[PARTS]]
// CHECK:           scf.if
// CHECK:             memref.store

// -----

// Eight elements at a time; barriers keep their parts apart.
kf.kernel @many_shared(%x: tensor<9x32xf32>, %w: tensor<2x40x32xf16>) -> tensor<9x40xf32>
    attributes {schedule = #kf.simt<workgroup = [9, 1], threads = [8, 1], tile = [9, 1], unroll = 1, sums = shared>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<9x32xf32>, tensor<2x40x32xf16>
  kf.yield %0 : tensor<9x40xf32>
}
// CHECK-LABEL: gpu.func @many_shared
// CHECK-SAME:    workgroup(%[[PARTS:.*]] : memref<144xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-18: math.fma
// CHECK-COUNT-16: memref.store %{{.*}}, %[[PARTS]]
// CHECK:         gpu.barrier
// CHECK:         memref.store %{{.*}}, %arg2
// CHECK:         gpu.barrier
// CHECK-COUNT-2: memref.store %{{.*}}, %[[PARTS]]
// CHECK:         gpu.barrier
// CHECK-NOT:     gpu.barrier

// -----

// Elements of 8 bits are widened one by one, and sums scaled.
kf.kernel @float8(%x: tensor<1x64xf32>, %w: tensor<40x64xf8E4M3FN>, %s: tensor<40xf32>) -> tensor<1x40xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 8], threads = [8, 4], tile = [1, 2], sums = shared>} {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<40xf32>) : tensor<1x64xf32>, tensor<40x64xf8E4M3FN>
  kf.yield %0 : tensor<1x40xf32>
}
// CHECK-LABEL: gpu.func @float8
// CHECK-SAME:    %{{.*}}: memref<?xf32>, %[[W:[a-z0-9]+]]: memref<?xi8>, %[[S:[a-z0-9]+]]: memref<?xf32>
// CHECK:         %[[CODE:.*]] = memref.load %[[W]]
// CHECK:         arith.extui %[[CODE]] : i8 to i32
// CHECK-NOT:     f16
// CHECK:         arith.uitofp %{{.*}} : i32 to f32
// CHECK:         math.fma
// CHECK:         %[[SCALE:.*]] = memref.load %[[S]]
// CHECK:         arith.mulf %{{.*}}, %[[SCALE]]
