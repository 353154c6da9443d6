// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector)' -split-input-file | FileCheck %s

// Rows are normalized, and rounded by units of 32: codes, a scale, a sum. Of two
// units, magnitudes are folded to two lanes, and so are codes. Those are the
// last bits of a float, whose sum with 1.5 * 2^23 rounds it; a mask makes NaN 0.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xf32>, %[[G:.*]]: memref<64xf32>, %[[C:.*]]: memref<?x64xi8> {llvm.noalias}, %[[S:.*]]: memref<?x2xf32> {llvm.noalias}, %[[T:.*]]: memref<?x2xi32> {llvm.noalias}
// CHECK:         %[[MASKS:.*]] = memref.view {{.*}} to memref<8xi32>
// CHECK:         %[[FACTORS:.*]] = memref.view {{.*}} to memref<8xf32>
// CHECK:         math.sqrt
// CHECK-NOT:     memref.prefetch
// CHECK-COUNT-2: arith.maxsi %{{.*}} : vector<16xi32>
// CHECK-NEXT:    vector.shuffle %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]
// CHECK-NEXT:    vector.shuffle %{{.*}} [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31]
// CHECK:         %[[MOST:.*]] = arith.maxsi %{{.*}} : vector<2xi32>
// CHECK-NEXT:    %[[LARGEST:.*]] = vector.bitcast %[[MOST]] : vector<2xi32> to vector<2xf32>
// CHECK:         arith.mulf %[[LARGEST]], %{{.*}} : vector<2xf32>
// CHECK:         vector.store %{{.*}}, %[[S]]{{.*}} vector<2xf32>
// CHECK:         vector.store %{{.*}}, %[[FACTORS]]
// CHECK-NEXT:    vector.store %{{.*}}, %[[MASKS]]
// CHECK:         memref.load %[[FACTORS]]
// CHECK:         %[[SCALED:.*]] = arith.mulf
// CHECK-NEXT:    %[[BITS:.*]] = vector.bitcast %[[SCALED]]
// CHECK-NEXT:    %[[MASK:.*]] = memref.load %[[MASKS]]
// CHECK-NEXT:    %[[LANES:.*]] = vector.broadcast %[[MASK]]
// CHECK-NEXT:    arith.andi %[[BITS]], %[[LANES]]
// CHECK:         %[[BASE:.*]] = arith.constant 0x4B400000 : f32
// CHECK-NEXT:    %[[WIDE:.*]] = vector.broadcast %[[BASE]] : f32 to vector<16xf32>
// CHECK-NEXT:    arith.addf %{{.*}}, %[[WIDE]]
// CHECK-COUNT-4: vector.store %{{.*}}, %[[C]]{{.*}} : memref<?x64xi8>, vector<16xi8>
// CHECK:         %[[SUMS:.*]] = arith.addi %{{.*}} : vector<2xi32>
// CHECK:         %[[BASES:.*]] = arith.constant dense<1744830464> : vector<2xi32>
// CHECK-NEXT:    arith.subi %[[SUMS]], %[[BASES]]
// CHECK:         vector.store %{{.*}}, %[[T]]{{.*}} vector<2xi32>
kf.kernel @rows(%x: tensor<?x64xf32>, %g: tensor<64xf32>) -> (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %c, %s, %t = kf.quantize_rows %0 group(32) : tensor<?x64xf32>
  kf.yield %c, %s, %t : tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>
}

// -----

// 8 units at once, two times; then 2 and 1. A sum for each 16 elements. Lines of
// an argument are prefetched, 1024 elements ahead.
// CHECK-LABEL: func.func @left_over(
// CHECK-SAME:    %[[X:.*]]: memref<?x608xf32>, %[[C:.*]]: memref<?x608xi8> {llvm.noalias}, %[[S:.*]]: memref<?x19xf32> {llvm.noalias}, %[[T:.*]]: memref<?x38xi32> {llvm.noalias}
// CHECK:          scf.for %{{.*}} = %{{.*}} to %c16{{[_0-9]*}} step %c8
// CHECK:            %[[AHEAD:.*]] = arith.constant 1024 : index
// CHECK-NEXT:       arith.addi %{{.*}}, %[[AHEAD]]
// CHECK-COUNT-16:   memref.prefetch %[[X]]{{.*}}, read, locality<3>, data
// CHECK-NOT:        memref.prefetch
// CHECK:            vector.store %{{.*}}, %[[S]]{{.*}} vector<8xf32>
// CHECK-COUNT-16:   vector.store %{{.*}}, %[[C]]
// CHECK:            vector.store %{{.*}}, %[[T]]{{.*}} vector<16xi32>
// CHECK:          vector.store %{{.*}}, %[[S]][%{{.*}}, %c16{{[_0-9]*}}] : {{.*}} vector<2xf32>
// CHECK-COUNT-4:  vector.store %{{.*}}, %[[C]]
// CHECK:          vector.store %{{.*}}, %[[T]][%{{.*}}, %c32{{[_0-9]*}}] : {{.*}} vector<4xi32>
// CHECK:          vector.store %{{.*}}, %[[S]][%{{.*}}, %c18{{[_0-9]*}}] : {{.*}} vector<1xf32>
// CHECK-COUNT-2:  vector.store %{{.*}}, %[[C]]
// CHECK:          vector.store %{{.*}}, %[[T]][%{{.*}}, %c36{{[_0-9]*}}] : {{.*}} vector<2xi32>
kf.kernel @left_over(%x: tensor<?x608xf32>) -> (tensor<?x608xi8>, tensor<?x19xf32>, tensor<?x38xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %c, %s, %t = kf.quantize_rows %x group(16) : tensor<?x608xf32>
  kf.yield %c, %s, %t : tensor<?x608xi8>, tensor<?x19xf32>, tensor<?x38xi32>
}

// -----

// The product copies them to where its rows do not share sets of the nearest
// cache.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[C:.*]]: memref<?x64xi8>, %[[W:.*]]: memref<3x1x2x1088xi8>, %[[S:.*]]: memref<?x2xf32>, %[[T:.*]]: memref<?x2xi32>
// CHECK-DAG:     %[[CODES:.*]] = memref.view {{.*}} to memref<4x64xi8>
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<4x2xf32>
// CHECK-NOT:     arith.divf
// CHECK:         vector.load %[[C]]
// CHECK:         vector.store %{{.*}}, %[[CODES]]
// CHECK:         vector.load %[[S]]
// CHECK:         vector.store %{{.*}}, %[[SCALES]]
// CHECK:         vector.load %[[T]]
// CHECK-NOT:     vector.store %{{.*}}, %[[SCALES]]
// CHECK:         vector.load %[[CODES]]{{.*}} : memref<4x64xi8>, vector<4xi8>
// CHECK:         kf.dp4a
// CHECK:         memref.load %[[SCALES]]
kf.kernel @product(%x: tensor<?x64xi8>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// One row is read in place.
// CHECK-LABEL: func.func @one_row(
// CHECK-SAME:    %[[C:.*]]: memref<1x64xi8>, %{{.*}}: memref<3x1x2x1088xi8>, %[[S:.*]]: memref<1x2xf32>
// CHECK:         vector.load %[[C]]{{.*}} : memref<1x64xi8>, vector<4xi8>
// CHECK:         kf.dp4a
// CHECK:         memref.load %[[S]]
kf.kernel @one_row(%x: tensor<1x64xi8>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>, %s: tensor<1x2xf32>, %t: tensor<1x2xi32>) -> tensor<1x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x scales(%s : tensor<1x2xf32>) sums(%t : tensor<1x2xi32>), %w : tensor<1x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x96xf32>
}

// -----

// Where the machine does not multiply bytes, codes are made floats again.
// CHECK-LABEL: func.func @widened(
// CHECK:         arith.sitofp %{{.*}} : vector<16xi8> to vector<16xf32>
// CHECK-NOT:     kf.dp4a
kf.kernel @widened(%x: tensor<?x64xi8>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  %0 = kf.matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}
