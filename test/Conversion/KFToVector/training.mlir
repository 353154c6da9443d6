// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Sums of two vectors of each of eight rows, over as many rows as the step has.
// CHECK-LABEL: func.func @wgrad(
// CHECK-SAME:    %[[DY:.*]]: memref<?x33xf32>, %[[X:.*]]: memref<?x40xbf16>, %[[R:.*]]: memref<33x40xf32>
// CHECK:         %[[TOKENS:.*]] = arith.index_cast
// CHECK:         scf.for %[[M:.*]] = %{{.*}} to %[[TOKENS]] {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>)
// CHECK:           vector.load %[[X]][%[[M]], %{{.*}}] : memref<?x40xbf16>, vector<32xbf16>
// CHECK:           memref.load %[[DY]][%[[M]], %{{.*}}]
// CHECK:           math.fma %{{.*}} : vector<32xf32>
// CHECK:         vector.store %{{.*}}, %[[R]]{{.*}}, vector<32xf32>
// CHECK:         math.fma %{{.*}} : vector<8xf32>
kf.kernel @wgrad(%dy: tensor<?x33xf32>, %x: tensor<?x40xbf16>) -> tensor<33x40xf32>
    attributes {schedule = #kf.vector<workgroup = [8], lanes = 16>} {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x33xf32>, tensor<?x40xbf16>
  kf.yield %0 : tensor<33x40xf32>
}

// -----

// Zeros, and then the rows whose ids are those of the workgroup.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME:    %[[IDS:.*]]: memref<?xi32>, %[[X:.*]]: memref<?x16xf32>, %[[R:.*]]: memref<100x16xf32>
// CHECK:         scf.for
// CHECK:           vector.store %{{.*}}, %[[R]]
// CHECK:         scf.for %[[T:.*]] =
// CHECK:           %[[WORD:.*]] = memref.load %[[IDS]][%[[T]]]
// CHECK:           %[[ID:.*]] = arith.index_cast %[[WORD]] : i32 to index
// CHECK:           %[[ROW:.*]] = arith.subi %[[ID]]
// CHECK:           %[[OWN:.*]] = arith.cmpi ult, %[[ROW]]
// CHECK:           scf.if %[[OWN]]
// CHECK:             %[[SUM:.*]] = vector.load %[[R]][%[[ID]], %{{.*}}]
// CHECK:             %[[MORE:.*]] = vector.load %[[X]][%[[T]], %{{.*}}]
// CHECK:             %[[NEXT:.*]] = arith.addf %[[SUM]], %[[MORE]]
// CHECK:             vector.store %[[NEXT]], %[[R]]
kf.kernel @scatter(%ids: tensor<?xi32>, %x: tensor<?x16xf32>) -> tensor<100x16xf32>
    attributes {schedule = #kf.vector<workgroup = [64], lanes = 16>} {
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x16xf32> to tensor<100x16xf32>
  kf.yield %0 : tensor<100x16xf32>
}

// -----

// Ten rounds of a vector of counters, of which the first word is the result.
// CHECK-LABEL: func.func @philox(
// CHECK:         %[[WORDS:.*]]:6 = scf.for {{.*}} -> (vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>, vector<16xi32>)
// CHECK:           %{{.*}}, %{{.*}} = arith.mului_extended {{.*}} : vector<16xi32>
// CHECK:           %{{.*}}, %{{.*}} = arith.mului_extended {{.*}} : vector<16xi32>
// CHECK:         vector.store %[[WORDS]]#0
kf.kernel @philox(%c: tensor<3x16xi32>, %k: tensor<3x16xi32>) -> tensor<3x16xi32>
    attributes {schedule = #kf.vector<workgroup = [1, 16], lanes = 16>} {
  %0 = kf.philox %c, %k, %c, %c key %k, %k : tensor<3x16xi32>
  kf.yield %0 : tensor<3x16xi32>
}
