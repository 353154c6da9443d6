// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Seeds are read as words. Rows without a choice give -1; greedy ones take the
// lowest id of the largest logit; the others draw by Philox. Logits are compared
// by integers.
kf.kernel @sample(%x: tensor<?x256xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) -> tensor<?xi32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [16]>} {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %0 : tensor<?xi32>
}
// CHECK-LABEL: gpu.func @sample(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>
// CHECK-NOT:     i64
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant -766435501 : i32
// CHECK-DAG:     %[[SECOND:.*]] = arith.constant -845247145 : i32
// CHECK-DAG:     %[[NONE:.*]] = arith.constant -1 : i32
// CHECK:         %[[TOKEN:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK:           arith.maxsi
// CHECK:           scf.if %{{.*}} -> (i32) {
// CHECK:             arith.minui
// CHECK:           } else {
// CHECK:             arith.mului_extended %{{.*}}, %[[FIRST]]
// CHECK-NEXT:        {{.*}} = arith.mului_extended %{{.*}}, %[[SECOND]]
// A bound comes from largest logits of 8 pairs of threads, for a top-k of up to
// 6, or from bins of weights.
// CHECK:             %[[IS_FEW:.*]] = arith.cmpi sle, %{{.*}}, %c6_i32
// CHECK:             scf.if %{{.*}} -> (i32, i32, i32, i32, i32) {
// CHECK:               scf.for %{{.*}} = %c0
// CHECK:                 arith.cmpi sge
// CHECK:               arith.maxsi
// CHECK:             } else {
// CHECK:               scf.if %{{.*}} -> (i32, i32, i32, i32) {
// CHECK:                 arith.mului_extended
// CHECK:                 %[[OLD:.*]] = memref.atomic_rmw addi %[[WEIGHT:[^,]*]], %{{.*}}[%[[BIN:.*]]]
// CHECK:                 %[[SUM:.*]] = arith.addi %[[OLD]], %[[WEIGHT]]
// CHECK:                 arith.cmpi ult, %[[SUM]], %[[WEIGHT]]
// CHECK:                 memref.atomic_rmw addi %c1{{.*}}, %{{.*}}[%[[BIN]]]
// CHECK:               scf.while
// What is not below it is copied, as far as there are threads.
// CHECK:             %[[COUNT:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK:               %[[NUMBER:.*]] = memref.atomic_rmw addi %c1{{.*}}, %[[COPIED:.*]][%c0]
// CHECK:               arith.cmpi slt, %[[NUMBER]], %c16_i32
// CHECK:               memref.load %[[COPIED]][%c0]
// CHECK:             arith.cmpi sle, %[[COUNT]], %c16_i32
// CHECK:             scf.if %{{.*}} -> (i32) {
// CHECK-NOT:           scf.while
// CHECK:               arith.minui
// CHECK:             } else {
// Else the row is bisected: top-k counts, top-p sums up weights.
// CHECK:               scf.if %{{.*}} -> (i32, i32) {
// CHECK:                 scf.while
// CHECK:               scf.if %{{.*}} -> (i32, i32) {
// CHECK:                 scf.while
// CHECK:                   arith.mului_extended
// CHECK:               scf.while
// CHECK:                 gpu.barrier
// CHECK:           scf.yield %[[NONE]]
// CHECK:         memref.store %[[TOKEN]]

// -----

// A bit for each id tells whether it may be in the row's part of the lists,
// which ends where they do. Threads mark ids side by side, and sort entries,
// one each, with what becomes of their logits.
kf.kernel @adjusted(%x: tensor<?x256xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>, %ids: tensor<40xi32>, %bias: tensor<40xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [4]>} {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      adjustments(%i, %i, %ids, %ids, %bias) penalties(%f, %f, %f)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<40xi32>, tensor<40xi32>, tensor<40xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  kf.yield %0 : tensor<?xi32>
}
// CHECK-LABEL: gpu.func @adjusted(
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xf32>, %{{[a-z0-9]+}}: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xi32>)
// CHECK-SAME:    %[[MARKS:[a-z0-9]+]] : memref<8xi32, #gpu.address_space<workgroup>>, %[[ENTRIES:[a-z0-9]+]] : memref<4xi32, #gpu.address_space<workgroup>>
// CHECK:         %[[BEGIN:.*]] = arith.minsi %{{.*}}, %c40
// CHECK:         arith.subi %c40{{.*}}, %[[BEGIN]]
// CHECK:         memref.store %c0{{.*}}, %[[MARKS]]
// CHECK:         gpu.barrier
// CHECK:         scf.for %{{.*}} = %thread_id_x to
// CHECK:           %[[BIT:.*]] = arith.shli
// CHECK:           memref.atomic_rmw ori %[[BIT]], %[[MARKS]]
// CHECK:         %[[SORTED:.*]] = arith.cmpi ule, %{{.*}}, %c4 : index
// CHECK:           %[[SEEN:.*]]:2 = scf.for
// CHECK:             scf.if %{{.*}} -> (f32) {
// CHECK:               arith.divf
// CHECK:           %[[RANK:.*]] = arith.index_cast %[[SEEN]]#0
// CHECK:           memref.store %{{.*}}, %[[ENTRIES]][%[[RANK]]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[MARKS]]
// CHECK:         scf.if %{{.*}} -> (f32) {
// CHECK:           scf.if %[[SORTED]] -> (f32) {
// CHECK:             scf.while
// CHECK:             memref.load %[[ENTRIES]]
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               arith.cmpi eq
// CHECK:               arith.divf

// -----

// A thread asks for several logits of its group's part before it looks at one.
// Where none of them is marked, they are as they are; else it takes one after
// another.
kf.kernel @batches(%x: tensor<?x5000xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>, %ids: tensor<40xi32>, %bias: tensor<40xf32>) -> tensor<?xi32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 4>} {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      adjustments(%i, %i, %ids, %ids, %bias) penalties(%f, %f, %f)
      : (tensor<?x5000xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<40xi32>, tensor<40xi32>, tensor<40xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  kf.yield %0 : tensor<?xi32>
}
// CHECK-LABEL: gpu.func @batches(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>
// CHECK-DAG:     arith.remui %[[T:.*]], %c32
// CHECK-DAG:     arith.divui %[[T]], %c32
// CHECK:         scf.for %{{.*}} step %c128 iter_args
// CHECK-COUNT-4:   memref.load %[[X]]
// CHECK:           %[[ANY:.*]] = scf.if %{{.*}} -> (i1) {
// CHECK-COUNT-3:     arith.ori
// CHECK:           scf.if %[[ANY]] -> (i32, i32) {
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %c128 step %c32
// CHECK:           } else {
// CHECK-NOT:         memref.load %[[X]]
// CHECK:             scf.yield
// CHECK:         scf.for %{{.*}} step %c32 iter_args

// -----

// A row without a mask pays one branch for each batch of logits.
kf.kernel @masked(%x: tensor<?x256xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi32>, %mask: tensor<3x8xi32>) -> tensor<?xi32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [16], unroll = 4>} {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%t) min_p(%t) seed(%s) counter(%k) mask(%masked, %mask)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<3x8xi32>)
  kf.yield %0 : tensor<?xi32>
}
// CHECK-LABEL: gpu.func @masked(
// CHECK-DAG:     %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[MASKS:.*]] = arith.constant 3 : i32
// CHECK:         %[[IS_MASKED:.*]] = arith.cmpi ult, %{{.*}}, %[[MASKS]]
// CHECK-COUNT-4:   memref.load
// CHECK:           scf.if %[[IS_MASKED]] -> (i32, i32) {
// CHECK-NEXT:        scf.for
// CHECK:               scf.if %[[IS_MASKED]] -> (f32) {
// CHECK:                 arith.shrui
// CHECK:                 arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
