// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Along the rows: each result sums up vectors, and what is left of a row.
// CHECK-LABEL: func.func @last(
// CHECK-SAME:    %[[X:.*]]: memref<?x5x40xf32>, %[[R:.*]]: memref<?x5xf32>
// CHECK:         scf.for {{.*}} -> (vector<16xf32>)
// CHECK:           vector.load %[[X]]{{.*}}, vector<16xf32>
// CHECK:           arith.addf {{.*}} : vector<16xf32>
// CHECK:         vector.reduction <add>, %{{.*}} : vector<16xf32> into f32
// CHECK:         vector.load %[[X]]{{.*}}, vector<8xf32>
// CHECK:         vector.reduction <add>, %{{.*}} : vector<8xf32> into f32
// CHECK:         vector.store %{{.*}}, %[[R]]{{.*}}, vector<1xf32>
kf.kernel @last(%x: tensor<?x5x40xf32>) -> tensor<?x5xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.reduce(sum) %x dims = [2] : tensor<?x5x40xf32>
  kf.yield %0 : tensor<?x5xf32>
}

// -----

// Across the rows: a vector of results sums up vectors, without a reduction.
// CHECK-LABEL: func.func @middle(
// CHECK-SAME:    %[[X:.*]]: memref<?x5x32xf32>, %[[R:.*]]: memref<?x32xf32>
// CHECK-NOT:     vector.reduction
// CHECK:         scf.for {{.*}} -> (vector<16xf32>)
// CHECK:           vector.load %[[X]]{{.*}}, vector<16xf32>
// CHECK:           arith.maximumf {{.*}} : vector<16xf32>
// CHECK:         vector.store %{{.*}}, %[[R]]{{.*}}, vector<16xf32>
// CHECK-NOT:     vector.reduction
// CHECK:         return
kf.kernel @middle(%x: tensor<?x5x32xf32>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.reduce(max) %x dims = [1] : tensor<?x5x32xf32>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// A weight that is a transpose is read in its own order, a vector of columns.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    memref<2x4x16xf32>, %[[W:.*]]: memref<2x16x32xf32>
// CHECK-NOT:     vector.reduction
// CHECK:         scf.for {{.*}} -> (vector<16xf32>)
// CHECK:           vector.load %[[W]]{{.*}}, vector<16xf32>
// CHECK:           math.fma {{.*}} : vector<16xf32>
kf.kernel @columns(%x: tensor<2x4x16xf32>, %w: tensor<2x16x32xf32>) -> tensor<2x4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1], lanes = 16>} {
  %0 = kf.transpose %w permutation = [0, 2, 1] : tensor<2x16x32xf32>
  %1 = kf.batch_matmul %x, %0 : tensor<2x4x16xf32>, tensor<2x32x16xf32>
  kf.yield %1 : tensor<2x4x32xf32>
}

// -----

// Four vectors of columns at a time, where these are all.
// CHECK-LABEL: func.func @many_columns(
// CHECK-SAME:    memref<2x4x16xf32>, %[[W:.*]]: memref<2x16x128xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c128 step %c64
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4:     math.fma {{.*}} : vector<16xf32>
// CHECK-NOT:         math.fma
// CHECK:             scf.yield
kf.kernel @many_columns(%x: tensor<2x4x16xf32>, %w: tensor<2x16x128xf32>) -> tensor<2x4x128xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1], lanes = 16>} {
  %0 = kf.transpose %w permutation = [0, 2, 1] : tensor<2x16x128xf32>
  %1 = kf.batch_matmul %x, %0 : tensor<2x4x16xf32>, tensor<2x128x16xf32>
  kf.yield %1 : tensor<2x4x128xf32>
}

// -----

// Four rows at a time, and one after the other of those that are left: what is
// read of w is for all of them.
// CHECK-LABEL: func.func @rows_of_columns(
// CHECK-SAME:    memref<2x6x16xf32>, %[[W:.*]]: memref<2x16x32xf32>
// CHECK:         scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:             vector.load %[[W]]{{.*}}, vector<16xf32>
// CHECK-NOT:         vector.load %[[W]]
// CHECK-COUNT-4:     math.fma {{.*}} : vector<16xf32>
// CHECK:             scf.yield
// CHECK:         scf.for %{{.*}} = %c4 to %c6 step %c1
// CHECK:           scf.for {{.*}} -> (vector<16xf32>) {
kf.kernel @rows_of_columns(%x: tensor<2x6x16xf32>, %w: tensor<2x16x32xf32>) -> tensor<2x6x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 6], tile = [4], lanes = 16>} {
  %0 = kf.transpose %w permutation = [0, 2, 1] : tensor<2x16x32xf32>
  %1 = kf.batch_matmul %x, %0 : tensor<2x6x16xf32>, tensor<2x32x16xf32>
  kf.yield %1 : tensor<2x6x32xf32>
}

// -----

// Another is read row by row: each column sums up vectors.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    memref<2x4x16xf32>, %[[W:.*]]: memref<2x32x16xf32>
// CHECK:         vector.load %[[W]]{{.*}}, vector<16xf32>
// CHECK:         arith.mulf {{.*}} : vector<16xf32>
// CHECK:         vector.reduction <add>
kf.kernel @rows(%x: tensor<2x4x16xf32>, %w: tensor<2x32x16xf32>) -> tensor<2x4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1], lanes = 16>} {
  %0 = kf.batch_matmul %x, %w : tensor<2x4x16xf32>, tensor<2x32x16xf32>
  kf.yield %0 : tensor<2x4x32xf32>
}

// -----

// Over a size of the step; a mean divides by it.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:.*]]: memref<?x16xf32>, %[[R:.*]]: memref<16xf32>
// CHECK:         %[[TOKENS:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         scf.for %{{.*}} to %[[TOKENS]] {{.*}} -> (vector<16xf32>)
// CHECK:         %[[COUNT:.*]] = arith.sitofp
// CHECK:         %[[BY:.*]] = vector.broadcast %[[COUNT]]
// CHECK:         arith.divf %{{.*}}, %[[BY]] : vector<16xf32>
kf.kernel @rows(%x: tensor<?x16xf32>) -> tensor<16xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 16], lanes = 16>} {
  %0 = kf.reduce(mean) %x dims = [0] : tensor<?x16xf32>
  kf.yield %0 : tensor<16xf32>
}
