// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// A row is stored if the table has its sequence and position, and the cache the
// page. Threads share the elements of all heads; keys are rotated on the way.
kf.kernel @append(%c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %r = kf.rope %k, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64, style = #kf.rope_style<interleaved>} : tensor<?x2x32xf32>, tensor<?xi32>
  kf.kv_append %c, %r, %v, %p, %s, %t {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<2x4xi32>
  kf.yield
}
// CHECK:       memref.global "private" constant @append_table_0 : memref<8xf32>
// CHECK:       gpu.func @append(%[[C:[a-z0-9]+]]: memref<?xf16>,
// CHECK:         %[[SEQUENCE:.*]] = arith.cmpi ult, %{{.*}}, %c2
// CHECK:         %[[POSITION:.*]] = arith.cmpi ult, %{{.*}}, %c256
// CHECK:         %[[INSIDE:.*]] = arith.andi %[[SEQUENCE]], %[[POSITION]]
// CHECK:         scf.if %[[INSIDE]] {
// CHECK:           %[[EXISTS:.*]] = arith.cmpi ult
// CHECK:           scf.if %[[EXISTS]] {
// CHECK:             scf.for %{{.*}} = %{{.*}} to %c64 step %c64
// Columns past the rotated ones stay as they are.
// CHECK:               scf.if
// CHECK:                 memref.get_global @append_table_0
// CHECK:                 arith.sitofp
// CHECK:               arith.truncf %{{.*}} : f32 to f16
// CHECK:               memref.store %{{.*}}, %[[C]]

// -----

// A thread rounds a block: its largest magnitude, the scale, the codes.
kf.kernel @blocks(%c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  kf.kv_append %c, %k, %v, %p, %s, %t {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}
// CHECK-LABEL: gpu.func @blocks(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xi8>
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c4 step %c64
// CHECK:           %[[LARGEST:.*]] = scf.for
// CHECK:             math.absf
// CHECK:             arith.maximumf
// CHECK:           %[[HELD:.*]] = arith.cmpf olt, %[[LARGEST]], %cst
// CHECK:           %[[QUOTIENT:.*]] = arith.divf %[[LARGEST]], %cst
// CHECK:           %[[SCALE:.*]] = arith.select %[[HELD]], %[[QUOTIENT]], %cst
// CHECK:           arith.truncf %[[SCALE]] : f32 to f16
// CHECK-COUNT-2:   memref.store %{{.*}}, %[[C]]
// CHECK:           scf.for
// CHECK:             arith.fptosi
// CHECK:             memref.store %{{.*}}, %[[C]]

// -----

// Heads that are normalized come one after another.
kf.kernel @normalized(%c: !kf.kv_cache<layers = 1, kv_heads = 3, head_dim = 32, type = f32>, %k: tensor<?x3x32xf32>, %v: tensor<?x3x32xf32>, %g: tensor<32xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [32]>} {
  %n = kf.rms_norm %k, %g eps(1.0e-6) : tensor<?x3x32xf32>, tensor<32xf32>
  kf.kv_append %c, %n, %v, %p, %s, %t {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 3, head_dim = 32, type = f32>, tensor<?x3x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}
// CHECK-LABEL: gpu.func @normalized(
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK:           gpu.barrier
// CHECK:           math.sqrt
// CHECK:           memref.store
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c96 step %c32

// -----

// Elements that a thread has together are read while the page is looked up.
kf.kernel @early(%c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [32], unroll = 2>} {
  kf.kv_append %c, %k, %v, %p, %s, %t {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<2x4xi32>
  kf.yield
}
// CHECK-LABEL: gpu.func @early(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf16>, %[[K:[a-z0-9]+]]: memref<?xf32>, %[[V:[a-z0-9]+]]: memref<?xf32>
// CHECK-COUNT-2: memref.load %[[K]]
// CHECK-COUNT-2: memref.load %[[V]]
// CHECK:         gpu.barrier
// CHECK:         scf.if
// CHECK:           scf.if
// CHECK-COUNT-4:     memref.store %{{.*}}, %[[C]]
// CHECK-NOT:     memref.load %[[V]]
