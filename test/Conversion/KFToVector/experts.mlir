// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// One token, one of its experts: panels of an expert, three of them, follow those
// of the one before, and a number that no expert has is that of the nearest.
// CHECK-LABEL: func.func @k(
// CHECK-SAME:    %[[X:.*]]: memref<1x64xf32>, %[[E:.*]]: memref<1x2xi32>, %[[W:.*]]: memref<12x1x64x32xf32>, %[[R:.*]]: memref<1x2x96xf32>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0, 0], counts = [1, 2, 3]>
// CHECK:         %[[ID:.*]] = memref.load %[[E]][%{{.*}}, %{{.*}}] : memref<1x2xi32>
// CHECK-NEXT:    %[[LEAST:.*]] = arith.maxsi %[[ID]], %c0_i32
// CHECK-NEXT:    %[[MOST:.*]] = arith.minsi %[[LEAST]], %c3_i32
// CHECK-NEXT:    %[[EXPERT:.*]] = arith.index_cast %[[MOST]]
// CHECK:         %[[FIRST:.*]] = arith.muli %[[EXPERT]], %c3
// CHECK-NEXT:    %[[PANEL:.*]] = arith.addi %[[FIRST]], %{{.*}}
// CHECK:         vector.load %[[W]][%[[PANEL]], %c0, %{{.*}}, %c0]
// CHECK:         vector.store %{{.*}}, %[[R]][%{{.*}}, %{{.*}}, %{{.*}}]
kf.kernel @k(%x: tensor<1x64xf32>, %e: tensor<1x2xi32>, %w: tensor<1x4x96x64xf32, #kf.layout<panel = 32>>)
    -> tensor<1x2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1, 32], tile = [1, 32, 1], lanes = 16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x64xf32>, tensor<1x2xi32>, tensor<1x4x96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x2x96xf32>
}

// -----

// Of several tokens, pairs of a token and a place are sorted by their experts: they
// are counted, and placed. Rows of an expert come to scratch, 6 at a time.
// CHECK-LABEL: func.func @k(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xf32>, %[[E:.*]]: memref<?x2xi32>, %[[W:.*]]: memref<12x1x64x32xf32>, %[[R:.*]]: memref<?x2x96xf32>
// CHECK-DAG:     %[[ORDER:.*]] = memref.view %{{.*}} to memref<16xi32>
// CHECK-DAG:     %[[ENDS:.*]] = memref.view %{{.*}} to memref<5xi32>
// CHECK-DAG:     %[[ROWS:.*]] = memref.view %{{.*}} to memref<6x80xf32>
// CHECK:         memref.load %[[E]]
// CHECK:         memref.store %{{.*}}, %[[ENDS]]
// CHECK:         memref.store %{{.*}}, %[[ENDS]]
// CHECK:         memref.load %[[E]]
// CHECK:         memref.store %{{.*}}, %[[ORDER]]
// Experts, rows of one:
// CHECK:         scf.for %[[EXPERT:.*]] = %c0 to %c4 step %c1 iter_args(%[[BEGIN:.*]] = %c0) -> (index)
// CHECK:           %[[END:.*]] = memref.load %[[ENDS]][%[[EXPERT]]]
// CHECK:           scf.for %[[AT:.*]] = %[[BEGIN]] to %{{.*}} step %c6
// CHECK:             %[[PAIR:.*]] = memref.load %[[ORDER]]
// CHECK:             vector.load %[[X]]
// CHECK:             vector.store %{{.*}}, %[[ROWS]]
// CHECK:             vector.load %[[W]]
// CHECK:             memref.load %[[ORDER]]
// CHECK:             vector.store %{{.*}}, %[[R]]
kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32, #kf.layout<panel = 32>>)
    -> tensor<?x2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 0, 96], tile = [2, 32, 6], lanes = 16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x2x96xf32>
}

// -----

// What is packed at run time: an expert's panels after another's.
// CHECK-LABEL: func.func @pack(
// CHECK-SAME:    %[[S:.*]]: memref<2x4x40x8xf32>, %[[R:.*]]: memref<8x2x8x32xf32>
// CHECK:         scf.for %[[EXPERT:.*]] = %c0 to %c4 step %c1
// CHECK:           %[[BEFORE:.*]] = arith.muli %[[EXPERT]], %c2
// CHECK:           memref.store %{{.*}}, %[[R]]
kf.kernel @pack(%w: tensor<2x4x40x8xf32>) -> tensor<2x4x40x8xf32, #kf.layout<panel = 32>>
    attributes {schedule = #kf.vector<workgroup = [0, 0, 32], lanes = 1>} {
  %0 = kf.pack %w : tensor<2x4x40x8xf32> to tensor<2x4x40x8xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<2x4x40x8xf32, #kf.layout<panel = 32>>
}

// -----

// Weights of experts that a core's cache holds are not in it: all layers' are
// read in turns.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     memref.prefetch
// CHECK:         return
kf.kernel @small(%x: tensor<?x64xf32>, %e: tensor<?x1xi32>, %w: tensor<1x4x96x64xf32, #kf.layout<panel = 32>>)
    -> tensor<?x1x96xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 0, 96], tile = [2, 32, 2], lanes = 16, prefetch = hardware>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x1xi32>, tensor<1x4x96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x1x96xf32>
}
