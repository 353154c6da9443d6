// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Code computes in f32, whatever the buffers hold. Of bf16 they hold the bits,
// rounded to nearest even; a NaN stays one.
kf.kernel @bf16(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.activation(relu) %x : tensor<?x8xbf16>
  kf.yield %0 : tensor<?x8xbf16>
}
// CHECK-LABEL: gpu.func @bf16
// CHECK-SAME:    %[[X:.*]]: memref<?xi16>, %[[Y:.*]]: memref<?xi16>, %{{.*}}: memref<?xi32>)
// CHECK:         %[[STORED:.*]] = memref.load %[[X]]
// CHECK:         %[[WORD:.*]] = arith.extui %[[STORED]] : i16 to i32
// CHECK:         %[[HIGH:.*]] = arith.shli %[[WORD]], %c16_i32
// CHECK:         arith.bitcast %[[HIGH]] : i32 to f32
// CHECK:         %[[RESULT:.*]] = arith.maximumf
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[RESULT]] : f32 to i32
// CHECK:         arith.cmpi ugt, %{{.*}}, %c2139095040_i32
// CHECK:         %[[HALF:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK:         memref.store %[[HALF]], %[[Y]]

// -----

kf.kernel @f16(%x: tensor<?x8xf16>, %w: tensor<8xbf16>) -> tensor<?x8xf16>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x8xf16>, tensor<8xbf16>
  kf.yield %0 : tensor<?x8xf16>
}
// CHECK-LABEL: gpu.func @f16
// CHECK-SAME:    %[[X:.*]]: memref<?xf16>, %{{.*}}: memref<?xi16>, %[[Y:.*]]: memref<?xf16>
// CHECK-SAME:    memref<8xf32, #gpu.address_space<workgroup>>
// CHECK:         %[[STORED:.*]] = memref.load %[[X]]
// CHECK:         arith.extf %[[STORED]] : f16 to f32
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         memref.store %[[ROUNDED]], %[[Y]]

// -----

// Rows of blocks are bytes: each element has its block, and in it its code and
// the scale, which are 18 bytes a block of q4_0.
kf.kernel @blocks(%ids: tensor<?xi32>, %t: tensor<10x64x!kf.quant<q4_0>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<10x64x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x64xf32>
}
// CHECK-LABEL: gpu.func @blocks
// CHECK-SAME:    %{{.*}}: memref<?xi32>, %[[T:.*]]: memref<?xi8>, %{{.*}}: memref<?xf32>
// CHECK:         %[[BLOCK:.*]] = arith.divui %[[COLUMN:.*]], %c32
// CHECK:         %[[ELEMENT:.*]] = arith.remui %[[COLUMN]], %c32
// CHECK:         %[[INROW:.*]] = arith.muli %[[BLOCK]], %c18
// CHECK:         %[[ROW:.*]] = arith.muli %{{.*}}, %c36
// CHECK:         %[[BASE:.*]] = arith.addi %[[ROW]], %[[INROW]]
// CHECK:         memref.load %[[T]][%[[BASE]]]
// CHECK:         arith.bitcast %{{.*}} : i16 to f16
// CHECK:         %[[PLACE:.*]] = arith.remui %[[ELEMENT]], %c16
// CHECK:         arith.shrui
// CHECK:         arith.andi %{{.*}}, %c15_i32
// CHECK:         arith.subi %{{.*}}, %c8_i32
// CHECK:         arith.sitofp

// -----

// The table of values is words in the code.
kf.kernel @table(%ids: tensor<?xi32>, %t: tensor<10x64x!kf.quant<iq4_nl>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<10x64x!kf.quant<iq4_nl>>
  kf.yield %0 : tensor<?x64xf32>
}
// CHECK-LABEL: gpu.func @table
// CHECK-COUNT-3: arith.select %{{.*}} : i32
// CHECK:         arith.shrsi %{{.*}}, %c24_i32
