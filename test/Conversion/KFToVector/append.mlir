// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// A row is stored if the table has its sequence and position, and the cache the
// page. Keys are stored one by one, in blocks of 16 positions; values as a
// vector, after all keys of the page.
// CHECK-LABEL: func.func @append(
// CHECK-SAME:    %[[C:.*]]: memref<?xbf16>, %[[K:.*]]: memref<?x1x16xf32>, %[[P:.*]]: memref<?xi32>, %[[S:.*]]: memref<?xi32>, %[[T:.*]]: memref<3x4xi32>, %[[SCALARS:.*]]: memref<8xi64>
// CHECK:         memref.load %[[SCALARS]][%c1]
// CHECK-NEXT:    %[[PAGES:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         %[[AT:.*]] = memref.load %[[P]]
// CHECK-NEXT:    %[[POSITION:.*]] = arith.index_cast %[[AT]] : i32 to index
// CHECK-NEXT:    %[[OF:.*]] = memref.load %[[S]]
// CHECK-NEXT:    %[[SEQUENCE:.*]] = arith.index_cast %[[OF]] : i32 to index
// CHECK-NEXT:    %[[KNOWN:.*]] = arith.cmpi ult, %[[SEQUENCE]], %c3
// CHECK-NEXT:    %[[INSIDE:.*]] = arith.cmpi ult, %[[POSITION]], %c256
// CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %[[KNOWN]], %[[INSIDE]]
// CHECK-NEXT:    scf.if %[[BOTH]] {
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.divui %[[POSITION]], %c64
// CHECK-NEXT:      %[[ENTRY:.*]] = memref.load %[[T]][%[[SEQUENCE]], %[[NUMBER]]]
// CHECK-NEXT:      %[[PAGE:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
// CHECK-NEXT:      %[[EXISTS:.*]] = arith.cmpi ult, %[[PAGE]], %[[PAGES]]
// CHECK-NEXT:      scf.if %[[EXISTS]] {
// CHECK-NEXT:        arith.muli %[[PAGE]], %c2048
// CHECK-NEXT:        arith.remui %[[POSITION]], %c64
// CHECK:           vector.load %[[K]]
// CHECK-COUNT-16:  memref.store %{{.*}}, %[[C]]
// CHECK:           %[[V:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:      vector.store %[[V]], %[[C]]
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = bf16, key_block = 16>
kf.kernel @append(%c: !layer, %k: tensor<?x1x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<3x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x1x16xf32>, tensor<?xi32>, tensor<3x4xi32>
  kf.yield
}

// -----

// Keys are normalized and rotated on their way.
// CHECK-LABEL: func.func @fused(
// CHECK:         math.sqrt
// CHECK:         memref.store %{{.*}} : memref<?xf32>
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 8>
kf.kernel @fused(%c: !layer, %k: tensor<?x2x16xf32>, %g: tensor<16xf32>, %v: tensor<?x2x16xf32>,
                 %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 8>} {
  %0 = kf.rms_norm %k, %g eps(1.0e-6) : tensor<?x2x16xf32>, tensor<16xf32>
  %1 = kf.rope %0, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  kf.kv_append %c, %1, %v, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x2x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

// Blocks: a row is computed first; then each block of 32 gets its scale, and
// codes of one byte, keys one by one.
// CHECK-LABEL: func.func @blocks(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xi8>, %[[K:[a-z0-9]+]]: memref<?x1x64xf32>
// CHECK:         vector.load %[[K]]
// CHECK-NEXT:    vector.store
// CHECK:         scf.for %{{.*}} = %c0 to %c2
// CHECK-COUNT-2:   math.absf
// CHECK:           %[[LARGEST:.*]] = vector.reduction <maximumf>
// CHECK-NEXT:      %[[HELD:.*]] = arith.cmpf olt, %[[LARGEST]], %cst
// CHECK-NEXT:      %[[QUOTIENT:.*]] = arith.divf %[[LARGEST]], %cst{{.*}} : f32
// CHECK-NEXT:      %[[SCALE:.*]] = arith.select %[[HELD]], %[[QUOTIENT]], %cst
// CHECK:           %[[HALF:.*]] = arith.truncf %[[SCALE]] : f32 to f16
// CHECK-NEXT:      %[[ONE:.*]] = vector.broadcast %[[HALF]] : f16 to vector<1xf16>
// CHECK-NEXT:      %[[BYTES:.*]] = vector.bitcast %[[ONE]] : vector<1xf16> to vector<2xi8>
// CHECK:           vector.store %[[BYTES]], %[[C]]
// CHECK:           arith.maxnumf
// CHECK:           arith.minnumf
// CHECK:           arith.fptosi
// CHECK:           arith.trunci %{{.*}} : vector<16xi32> to vector<16xi8>
// CHECK-COUNT-32:  memref.store %{{.*}}, %[[C]]
// The value's row:
// CHECK:         scf.for %{{.*}} = %c0 to %c2
// CHECK-COUNT-3:   vector.store %{{.*}}, %[[C]]
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>, key_block = 16>
kf.kernel @blocks(%c: !layer, %k: tensor<?x1x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x1x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}
