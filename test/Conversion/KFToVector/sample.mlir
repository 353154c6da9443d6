// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Rows without a choice give -1. Logits are read where they lie, once for
// greedy rows. The others have their candidates bisected for, by keys in the
// order of floats, and draw by Philox.
// CHECK-LABEL: func.func @sample(
// CHECK-SAME:    %[[X:.*]]: memref<?x256xf32>, %[[T:[^:]*]]: memref<?xf32>
// CHECK-SAME:    kf.scratch_bytes = 2432
// CHECK-DAG:     %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant -766435501 : i32
// CHECK-DAG:     %[[SECOND:.*]] = arith.constant -845247145 : i32
// CHECK:         %[[TEMPERATURE:.*]] = memref.load %[[T]]
// CHECK:         %[[TOKEN:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK:           %[[ROW:.*]] = memref.subview %[[X]][%{{.*}}, 0] [1, 256] [1, 1]
// CHECK:           scf.for
// CHECK-COUNT-8:     vector.load %[[ROW]]
// CHECK-COUNT-4:     arith.cmpf uno
// CHECK:             vector.store
// CHECK-NOT:         vector.store
// CHECK:           %[[LARGEST:.*]] = vector.reduction <maxnumf>
// CHECK:           %[[GREEDY:.*]] = arith.cmpf oeq, %[[TEMPERATURE]]
// CHECK-NEXT:      scf.if %[[GREEDY]] -> (i32) {
// CHECK-NOT:         vector.store
// CHECK:             vector.reduction <minsi>
// CHECK:           } else {
// CHECK:             scf.while
// CHECK:               arith.bitcast %{{.*}} : i32 to f32
// CHECK:             arith.mului_extended %{{.*}}, %[[FIRST]]
// CHECK-NEXT:        {{.*}} = arith.mului_extended %{{.*}}, %[[SECOND]]
// CHECK:             arith.mului_extended
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[NONE]]
// CHECK:         memref.store %[[TOKEN]]
kf.kernel @sample(%x: tensor<?x256xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %0 : tensor<?xi32>
}

// -----

// Only a row that has adjustments is copied; entries past the lists and ids
// past the columns are left out.
// CHECK-LABEL: func.func @adjusted(
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 40 : i64
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 256 : index
// CHECK:         %[[ROW:.*]] = memref.subview
// CHECK-NEXT:    %[[INPLACE:.*]] = memref.cast %[[ROW]]
// CHECK:         %[[END:.*]] = arith.minsi %{{.*}}, %[[MOST]]
// CHECK:         %[[BEGIN:.*]] = arith.maxsi
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[BEGIN]], %[[END]]
// CHECK:         scf.if %[[ANY]] -> (memref<?xf32, strided<[1], offset: ?>>) {
// CHECK:           vector.store
// CHECK:           %[[ID:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi ult, %[[ID]], %[[COLUMNS]]
// CHECK-NEXT:      scf.if %[[INSIDE]] {
// CHECK:             arith.divf
// CHECK:             arith.sitofp
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[INPLACE]]
kf.kernel @adjusted(%x: tensor<?x256xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>, %ids: tensor<40xi32>, %bias: tensor<40xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      adjustments(%i, %i, %ids, %ids, %bias) penalties(%f, %f, %f)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<40xi32>, tensor<40xi32>, tensor<40xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  kf.yield %0 : tensor<?xi32>
}

// -----

// Other types are copied always, to f32.
// CHECK-LABEL: func.func @halves(
// CHECK-NOT:     memref.subview
// CHECK:         arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
kf.kernel @halves(%x: tensor<?x256xf16>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      : (tensor<?x256xf16>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %0 : tensor<?xi32>
}

// -----

// Only a row that has a mask is copied, and only words of it that exclude some
// token are looked at bit by bit.
// CHECK-LABEL: func.func @masked(
// CHECK-DAG:     %[[ALL:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[MASKS:.*]] = arith.constant 3 : i32
// CHECK:         %[[IS_MASKED:.*]] = arith.cmpi ult, %{{.*}}, %[[MASKS]]
// CHECK:         scf.if %[[IS_MASKED]] -> (memref<?xf32, strided<[1], offset: ?>>) {
// CHECK:           vector.store
// CHECK:           %[[WORD:.*]] = memref.load %{{.*}} : memref<3x8xi32>
// CHECK-NEXT:      %[[EXCLUDES:.*]] = arith.cmpi ne, %[[WORD]], %[[ALL]]
// CHECK-NEXT:      scf.if %[[EXCLUDES]] {
// CHECK:             arith.shrui %[[WORD]]
// CHECK:             arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK:         } else {
kf.kernel @masked(%x: tensor<?x256xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi32>, %mask: tensor<3x8xi32>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%t) min_p(%t) seed(%s) counter(%k) mask(%masked, %mask)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<3x8xi32>)
  kf.yield %0 : tensor<?xi32>
}
