// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Threads stride over all elements of the tile, whose rows may be fewer than
// the schedule's at the end of the tokens.
kf.kernel @elementwise(%x: tensor<?x100xf32>, %y: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.simt<workgroup = [10], threads = [64]>} {
  %0 = arith.addf %x, %y : tensor<?x100xf32>
  %1 = kf.activation(silu) %0 : tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
// CHECK:       gpu.module @elementwise
// CHECK:       gpu.func @elementwise(%[[X:[a-z0-9]+]]: memref<?xf32>, %[[Y:[a-z0-9]+]]: memref<?xf32>,
// CHECK-SAME:    %[[R:[a-z0-9]+]]: memref<?xf32>, %[[SCALARS:[a-z0-9]+]]: memref<?xi32>) kernel
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [10], counts = [0]>
// CHECK-SAME:    known_block_size = array<i32: 64, 1, 1>
// CHECK-DAG:     %[[THREAD:.*]] = gpu.thread_id x
// CHECK-DAG:     %[[BLOCK:.*]] = gpu.block_id x
// CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[BLOCK]], %c10
// CHECK:         %[[WORD:.*]] = memref.load %[[SCALARS]][%c0]
// CHECK:         %[[TOKENS:.*]] = arith.index_cast %[[WORD]]
// CHECK:         %[[ROWS:.*]] = affine.min #{{.*}}()[%[[TOKENS]], %[[FIRST]]]
// CHECK:         %[[COUNT:.*]] = arith.muli %[[ROWS]], %c100
// CHECK:         scf.for %[[I:.*]] = %[[THREAD]] to %[[COUNT]] step %c64 {
// CHECK:           %[[COLUMN:.*]] = arith.remui %[[I]], %c100
// CHECK:           %[[ROW:.*]] = arith.divui %[[I]], %c100
// CHECK:           memref.load %[[X]]
// CHECK:           memref.load %[[Y]]
// CHECK:           arith.addf
// CHECK:           math.exp
// CHECK:           arith.divf
// CHECK:           memref.store %{{.*}}, %[[R]]

// -----

// One row after another; its statistics through workgroup memory.
kf.kernel @norm(%x: tensor<?x100xf32>, %w: tensor<100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.simt<workgroup = [2], threads = [48]>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x100xf32>, tensor<100xf32>
  kf.yield %0 : tensor<?x100xf32>
}
// CHECK-LABEL: gpu.func @norm
// CHECK-SAME:    workgroup(%[[SUMS:.*]] : memref<48xf32, #gpu.address_space<workgroup>>)
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         scf.for
// CHECK:           %[[OWN:.*]] = scf.for %{{.*}} = %[[THREAD]] to %c100 step %c48 iter_args
// CHECK:             arith.mulf
// CHECK:             arith.addf
// CHECK:           memref.store %[[OWN]], %[[SUMS]][%[[THREAD]]]
// CHECK:           gpu.barrier
// Halves of 64, 32, ..., of which the first has fewer than its 32 partners.
// CHECK:           scf.for %[[STEP:.*]] = %c0 to %c6 step %c1 {
// CHECK:             %[[HALF:.*]] = arith.shrui %c32, %[[STEP]]
// CHECK:             %[[PARTNER:.*]] = arith.addi %[[THREAD]], %[[HALF]]
// CHECK:             arith.cmpi ult, %[[THREAD]], %[[HALF]]
// CHECK:             arith.cmpi ult, %[[PARTNER]], %c48
// CHECK:             scf.if
// CHECK:             gpu.barrier
// CHECK:           memref.load %[[SUMS]][%c0]
// CHECK:           gpu.barrier
// CHECK:           math.sqrt
// CHECK:           scf.for %{{.*}} = %[[THREAD]] to %c100 step %c48 {

// -----

// One thread needs neither workgroup memory nor barriers.
kf.kernel @alone(%x: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [1]>} {
  %0 = kf.softmax %x : tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}
// CHECK-LABEL: gpu.func @alone
// CHECK-NOT:     workgroup(
// CHECK-NOT:     gpu.barrier
// CHECK:         gpu.return

// -----

// The grid's dimensions are blocks along x and y.
kf.kernel @heads(%x: tensor<?x6x16xf32>, %w: tensor<16xf32>) -> tensor<?x6x16xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [16]>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x6x16xf32>, tensor<16xf32>
  kf.yield %0 : tensor<?x6x16xf32>
}
// CHECK-LABEL: gpu.func @heads
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [1, 0], counts = [0, 6]>
// CHECK-DAG:     gpu.block_id x
// CHECK-DAG:     gpu.block_id y

// -----

// A maximum, then the lowest index that holds it; thread 0 stores it.
kf.kernel @argmax(%x: tensor<?x100xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.argmax %x : tensor<?x100xf32>
  kf.yield %0 : tensor<?xi32>
}
// CHECK-LABEL: gpu.func @argmax
// CHECK-SAME:    memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    memref<64xi32, #gpu.address_space<workgroup>>
// CHECK:         arith.maxnumf
// CHECK:         arith.minui
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0 : index
// CHECK:         scf.if %[[FIRST]] {
// CHECK:           memref.store

// -----

// An id outside the table reads row 0 and gives zeros.
kf.kernel @embedding(%ids: tensor<?xi32>, %table: tensor<10x8xf32>) -> tensor<?x8xf32>
    attributes {schedule = #kf.simt<workgroup = [4], threads = [32]>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<10x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
// CHECK-LABEL: gpu.func @embedding
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %[[ID:.*]], %c10
// CHECK:         %[[SAFE:.*]] = arith.select %[[INSIDE]], %[[ID]], %c0
// CHECK:         %[[VALUE:.*]] = memref.load
// CHECK:         arith.select %[[INSIDE]], %[[VALUE]], %cst
