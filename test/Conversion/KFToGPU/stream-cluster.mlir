// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Two workgroups of a cluster have two slices of K each, the last of which is
// behind its end. Both add up elements of what both have found, in their order, when
// they are there, and leave theirs until they are read.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>} {
kf.kernel @parts(%x: tensor<16x192xbf16>, %w: tensor<48x192xbf16, #kf.fragments>) -> tensor<16x48xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 1, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64, parts = 2>} {
  %0 = kf.matmul %x, %w wide : tensor<16x192xbf16>, tensor<48x192xbf16, #kf.fragments>
  kf.yield %0 : tensor<16x48xf32>
}
}
// CHECK-LABEL: gpu.func @parts(
// CHECK-SAME:    %[[RESULT:[a-z0-9]+]]: memref<?xf32>, %{{[a-z0-9]+}}: memref<?xi32>)
// CHECK-SAME:    %[[TOTALS:[a-z0-9]+]] : memref<512xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 2, 2]>
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 1, 1, 2>
// CHECK:         %[[PART:.*]] = gpu.block_id  z
// The first slice of this workgroup: copies of what K has alone.
// CHECK:         %[[FIRST:.*]] = arith.{{muli|shli}} %[[PART]], %c
// CHECK:         arith.select %{{.*}}, %c16_i32, %c0_i32
// CHECK:         nvvm.cp.async.shared.global
// CHECK:         scf.for %[[SLICE:.*]] = %c0 to %c2 step %c1
// CHECK:           arith.addi %[[SLICE]], %[[FIRST]]
// CHECK:           nvvm.mma.sync
// CHECK:           memref.store %{{.*}}, %[[TOTALS]]
// CHECK-COUNT-2: nvvm.mapa %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[PART]], %c32
// CHECK:         %[[START:.*]] = arith.addi %{{.*}}, %[[BEFORE]]
// CHECK:         scf.for %{{.*}} = %[[START]] to %{{.*}} step %c64
// CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr<7> -> f32
// CHECK:           arith.addf
// CHECK:           memref.store %{{.*}}, %[[RESULT]]
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK-NEXT:    gpu.return

// -----

// Three, which are no power of two, have two slices each, and an odd last one.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>} {
kf.kernel @thirds(%x: tensor<16x320xbf16>, %w: tensor<48x320xbf16, #kf.fragments>) -> tensor<16x48xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 1, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<16x320xbf16>, tensor<48x320xbf16, #kf.fragments>
  kf.yield %0 : tensor<16x48xf32>
}
}
// CHECK-LABEL: gpu.func @thirds(
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 2, 3]>
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 1, 1, 3>
// CHECK:         %[[PART:.*]] = gpu.block_id  z
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK-COUNT-3: nvvm.mapa
// CHECK-NOT:     nvvm.mapa
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[PART]], %c32
// CHECK:         %[[START:.*]] = arith.addi %{{.*}}, %[[BEFORE]]
// CHECK:         scf.for %{{.*}} = %[[START]] to %{{.*}} step %c96
// CHECK-COUNT-3:   llvm.load %{{.*}} : !llvm.ptr<7> -> f32
// CHECK-NOT:       !llvm.ptr<7> -> f32

// -----

// Eight, the most, with a slice each, which they go through once.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132>} {
kf.kernel @eighths(%x: tensor<16x512xbf16>, %w: tensor<48x512xbf16, #kf.fragments>) -> tensor<16x48xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 1, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<16x512xbf16>, tensor<48x512xbf16, #kf.fragments>
  kf.yield %0 : tensor<16x48xf32>
}
}
// CHECK-LABEL: gpu.func @eighths(
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 2, 8]>
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 1, 1, 8>
// CHECK-COUNT-8: nvvm.mapa
// CHECK-NOT:     nvvm.mapa
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c256
// CHECK-COUNT-8:   llvm.load %{{.*}} : !llvm.ptr<7> -> f32
// CHECK-NOT:       !llvm.ptr<7> -> f32
