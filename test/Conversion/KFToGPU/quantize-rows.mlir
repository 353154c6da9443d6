// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Rows are normalized, and rounded by units of 32, a thread each: a scale,
// codes, a sum.
// CHECK-LABEL: gpu.func @rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[G:[a-z0-9]+]]: memref<?xf32>, %[[C:[a-z0-9]+]]: memref<?xi8>, %[[S:[a-z0-9]+]]: memref<?xf32>, %[[T:[a-z0-9]+]]: memref<?xi32>
// CHECK:         math.sqrt
// CHECK:         %[[MOST:.*]] = scf.for %{{.*}} = %c0 to %c32
// CHECK:           arith.maximumf
// CHECK:         arith.mulf %[[MOST]]
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:         scf.for %{{.*}} = %c0 to %c32
// CHECK:           math.roundeven
// CHECK:           memref.store %{{.*}}, %[[C]]
// CHECK:         memref.store %{{.*}}, %[[T]]
kf.kernel @rows(%x: tensor<?x128xf32>, %g: tensor<128xf32>) -> (tensor<?x128xi8>, tensor<?x4xf32>, tensor<?x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x128xf32>, tensor<128xf32>
  %c, %s, %t = kf.quantize_rows %0 group(32) : tensor<?x128xf32>
  kf.yield %c, %s, %t : tensor<?x128xi8>, tensor<?x4xf32>, tensor<?x4xi32>
}

// -----

// The product makes floats of codes as it reads them.
// CHECK-LABEL: gpu.func @product(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xi8>, %[[S:[a-z0-9]+]]: memref<?xf32>, %[[T:[a-z0-9]+]]: memref<?xi32>
// CHECK:         %[[CODE:.*]] = memref.load %[[C]]
// CHECK:         %[[SCALE:.*]] = memref.load %[[S]]
// CHECK:         %[[WIDE:.*]] = arith.extsi %[[CODE]]
// CHECK:         %[[FLOAT:.*]] = arith.sitofp %[[WIDE]]
// CHECK:         arith.mulf %[[FLOAT]], %[[SCALE]]
kf.kernel @product(%x: tensor<4x64xi8>, %s: tensor<4x2xf32>, %t: tensor<4x2xi32>, %w: tensor<8x64x!kf.quant<q8_0>>) -> tensor<4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 8], tile = [1, 1], reduction = 32, threads = [8]>} {
  %0 = kf.matmul %x scales(%s : tensor<4x2xf32>) sums(%t : tensor<4x2xi32>), %w : tensor<4x64xi8>, tensor<8x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x8xf32>
}
