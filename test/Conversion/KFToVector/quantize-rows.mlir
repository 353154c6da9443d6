// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector)' -split-input-file | FileCheck %s

// Rows are normalized, and rounded by units of 32: codes, a scale, a sum.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xf32>, %[[G:.*]]: memref<64xf32>, %[[C:.*]]: memref<?x64xi8> {llvm.noalias}, %[[S:.*]]: memref<?x2xf32> {llvm.noalias}, %[[T:.*]]: memref<?x2xi32> {llvm.noalias}
// CHECK:         math.sqrt
// CHECK:         %[[MOST:.*]] = vector.reduction <maxsi>
// CHECK:         %[[LARGEST:.*]] = arith.bitcast %[[MOST]] : i32 to f32
// CHECK:         arith.mulf %[[LARGEST]], %{{.*}} : f32
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:         math.roundeven
// CHECK:         vector.store %{{.*}}, %[[C]]{{.*}} : memref<?x64xi8>, vector<16xi8>
// CHECK:         vector.store %{{.*}}, %[[C]]{{.*}} : memref<?x64xi8>, vector<16xi8>
// CHECK:         vector.reduction <add>, %{{.*}} : vector<16xi32> into i32
// CHECK:         memref.store %{{.*}}, %[[T]]
kf.kernel @rows(%x: tensor<?x64xf32>, %g: tensor<64xf32>) -> (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %c, %s, %t = kf.quantize_rows %0 group(32) : tensor<?x64xf32>
  kf.yield %c, %s, %t : tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>
}

// -----

// The product copies them, to have room for the rows of its last register tile,
// whose scales become 0.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[C:.*]]: memref<?x64xi8>, %[[W:.*]]: memref<3x1x2x1088xi8>, %[[S:.*]]: memref<?x2xf32>, %[[T:.*]]: memref<?x2xi32>
// CHECK-DAG:     %[[CODES:.*]] = memref.view {{.*}} to memref<4x64xi8>
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<4x2xf32>
// CHECK-NOT:     math.roundeven
// CHECK:         vector.load %[[C]]
// CHECK:         vector.store %{{.*}}, %[[CODES]]
// CHECK:         vector.load %[[S]]
// CHECK:         vector.store %{{.*}}, %[[SCALES]]
// CHECK:         vector.load %[[T]]
// CHECK:         scf.for
// CHECK:           vector.store %{{.*}}, %[[SCALES]]
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
