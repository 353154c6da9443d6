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

// -----

// A thread asks for its batch of a row before it adds anything up, keeps it for
// the result, and stores once it has all of it. What is missing in the last of
// its columns changes no sum.
kf.kernel @held(%x: tensor<?x200xf32>, %w: tensor<200xf32>) -> tensor<?x200xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 4>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x200xf32>, tensor<200xf32>
  kf.yield %0 : tensor<?x200xf32>
}
// CHECK-LABEL: gpu.func @held(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[W:[a-z0-9]+]]: memref<?xf32>, %[[R:[a-z0-9]+]]: memref<?xf32>
// CHECK:         %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c200
// CHECK-COUNT-4: memref.load %[[X]]
// CHECK-NOT:     memref.load %[[X]]
// CHECK:         arith.select %[[INSIDE]], %{{.*}}, %cst
// CHECK:         gpu.barrier
// CHECK-NOT:     memref.load %[[X]]
// CHECK-COUNT-4: memref.load %[[W]]
// CHECK-COUNT-3: memref.store %{{.*}}, %[[R]]
// CHECK:         scf.if %[[INSIDE]] {
// CHECK-NEXT:      memref.store %{{.*}}, %[[R]]

// -----

// Rows that are longer, in batches; of the rest, all columns but the last are
// there.
kf.kernel @long(%x: tensor<?x300xf32>, %w: tensor<300xf32>) -> tensor<?x300xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [32], unroll = 4>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x300xf32>, tensor<300xf32>
  kf.yield %0 : tensor<?x300xf32>
}
// CHECK-LABEL: gpu.func @long(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c256 step %c128 iter_args
// CHECK-COUNT-4:   memref.load %[[X]]
// CHECK:         arith.cmpi ult, %{{.*}}, %c300
// CHECK-COUNT-2: memref.load %[[X]]
// CHECK-NOT:     memref.load %[[X]]
// CHECK:         gpu.barrier

// -----

// Elements of a tile that the end of the tokens may cut off.
kf.kernel @batches(%x: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.simt<workgroup = [4], threads = [64], unroll = 2>} {
  %0 = kf.activation(relu) %x : tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}
// CHECK-LABEL: gpu.func @batches(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[R:[a-z0-9]+]]: memref<?xf32>
// CHECK:         scf.for %[[FIRST:.*]] = %c0 to %[[COUNT:.*]] step %c128 {
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult, %[[NUMBER:.*]], %[[COUNT]]
// CHECK:           arith.select %[[INSIDE]], %[[NUMBER]], %[[FIRST]]
// CHECK-COUNT-2:   memref.load %[[X]]
// CHECK-COUNT-2:   memref.store %{{.*}}, %[[R]]

// -----

// Warps of an NVIDIA GPU add up what their lanes have, and then what they left.
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @warps(%x: tensor<?x400xf32>) -> tensor<?x400xf32>
      attributes {schedule = #kf.simt<workgroup = [1], threads = [96], unroll = 8>} {
    %0 = kf.softmax %x : tensor<?x400xf32>
    kf.yield %0 : tensor<?x400xf32>
  }
}
// CHECK-LABEL: gpu.func @warps(
// CHECK-SAME:    workgroup(%[[SUMS:.*]] : memref<96xf32, #gpu.address_space<workgroup>>)
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK:         memref.store %{{.*}}, %[[SUMS]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[SUMS]]
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK-NOT:     nvvm.shfl
// CHECK:         gpu.barrier
