// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Eight threads share a key's product, then neighbouring threads take columns
// of the values. A table for one sequence: no runs to look for.
kf.kernel @decode(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 32, threads = [128]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32>, tensor<1xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<1x4x64xf32>
}
// CHECK-LABEL: gpu.func @decode(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?xf32>, %[[C:[a-z0-9]+]]: memref<?xf32>, %[[P:[a-z0-9]+]]: memref<?xi32>,
// Queries, partial sums, scores and weights of two rows.
// CHECK-SAME:    %[[QUERIES:[a-z0-9]+]] : memref<128xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    %[[PARTIALS:[a-z0-9]+]] : memref<576xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    %[[SCORES:[a-z0-9]+]] : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    %[[WEIGHTS:[a-z0-9]+]] : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK-DAG:     %[[PART:.*]] = arith.remui %[[THREAD:.*]], %c8
// CHECK-DAG:     %[[SLOT:.*]] = arith.divui %[[THREAD]], %c8
// CHECK-DAG:     %[[COLUMN:.*]] = arith.remui %[[THREAD]], %c64
// CHECK-DAG:     %[[GROUP:.*]] = arith.divui %[[THREAD]], %c64
// CHECK-NOT:     scf.while
// A position past the table is taken for the last one of its pages.
// CHECK:         %[[LAST:.*]] = arith.minsi %{{.*}}, %c511
// CHECK:         %[[END:.*]] = arith.addi %[[LAST]], %c1
// CHECK:         memref.store %{{.*}}, %[[QUERIES]]
// CHECK:         gpu.barrier
// CHECK:         %[[SUMS:.*]]:4 = scf.for %[[KEY:.*]] = %c0 to %[[END]] step %c32 iter_args
// A page that the cache has.
// CHECK:           %[[PAGE:.*]] = arith.minui
// CHECK:           scf.for
// CHECK:             memref.load %[[C]]
// CHECK:             memref.load %[[QUERIES]]
// CHECK:             math.fma
// CHECK:           memref.store %{{.*}}, %[[PARTIALS]]
// CHECK:           gpu.barrier
// CHECK:           scf.for
// CHECK-COUNT-8:     memref.load %[[PARTIALS]]
// CHECK:             %[[SEEN:.*]] = arith.cmpi sle
// CHECK:             memref.store %{{.*}}, %[[SCORES]]
// CHECK:           gpu.barrier
// CHECK:           math.exp
// CHECK:           memref.store %{{.*}}, %[[WEIGHTS]]
// CHECK:           gpu.barrier
// Both groups take every other value; a hidden one leaves the sum as it is.
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c2
// CHECK:             %[[V:.*]] = memref.load %[[C]]
// CHECK:             %[[WEIGHT:.*]] = memref.load %[[WEIGHTS]]
// CHECK:             %[[HIDDEN:.*]] = arith.cmpf olt, %[[WEIGHT]]
// CHECK:             %[[MORE:.*]] = math.fma %[[WEIGHT]], %[[V]], %[[SUM:.*]] : f32
// CHECK:             arith.select %[[HIDDEN]], %[[SUM]], %[[MORE]]
// CHECK:         memref.store %[[SUMS]]#0, %[[PARTIALS]]
// CHECK:         gpu.barrier
// CHECK:         arith.divf
// CHECK:         gpu.return

// -----

// Rows of many sequences: runs of neighbours, with a window and queries that
// are normalized and rotated as they are staged.
kf.kernel @runs(%q: tensor<?x4x32xbf16>, %g: tensor<32xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 32, type = bf16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xbf16>
    attributes {schedule = #kf.flash<workgroup = [8, 1], keys = 16, threads = [64]>} {
  %n = kf.rms_norm %q, %g eps(1.0e-6) : tensor<?x4x32xbf16>, tensor<32xf32>
  %r = kf.rope %n, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xbf16>, tensor<?xi32>
  %0 = kf.attention %r, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32, window = 20 : i64} : tensor<?x4x32xbf16>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 32, type = bf16>, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xbf16>
}
// CHECK:       memref.global "private" constant @runs_table_0 : memref<16xf32>
// CHECK:       gpu.func @runs(
// CHECK-SAME:    memref<?xi16>
// CHECK:         scf.while
// CHECK:           arith.cmpi eq
// CHECK:           scf.for
// The window hides keys before the first tile, too.
// CHECK:           arith.subi %{{.*}}, %c19
// The norm of a row, then its columns, rotated.
// CHECK:           gpu.barrier
// CHECK:           memref.get_global @runs_table_0
// CHECK:           math.roundeven
// CHECK:           arith.cmpi sge
// CHECK:           arith.extui %{{.*}} : i16 to i32

// -----

// The same of chunks.
kf.kernel @chunks(%q: tensor<?x4x32xbf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 32, type = bf16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xbf16>
    attributes {schedule = #kf.flash<workgroup = [8, 1], keys = 16, threads = [64]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32, window = 20 : i64, chunked} : tensor<?x4x32xbf16>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 32, type = bf16>, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xbf16>
}
// CHECK-LABEL: gpu.func @chunks(
// CHECK:         %[[INTO:.*]] = arith.remsi %[[FIRST:.*]], %c20 : index
// CHECK:         arith.subi %[[FIRST]], %[[INTO]] : index
// CHECK:         %[[KEY_INTO:.*]] = arith.remsi %[[POSITION:.*]], %c20_i32
// CHECK:         %[[BEGIN:.*]] = arith.subi %[[POSITION]], %[[KEY_INTO]] : i32
// CHECK:         arith.cmpi sge, %{{.*}}, %[[BEGIN]] : i32

// -----

// Blocks: a scale for the columns of a step, and one for each value.
kf.kernel @blocks(%q: tensor<?x2x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.flash<workgroup = [2, 2], keys = 32, threads = [32]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x2x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}
// CHECK-LABEL: gpu.func @blocks(
// CHECK-SAME:    memref<?xi8>
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK:           arith.bitcast %{{.*}} : i16 to f16
// CHECK:           arith.extsi %{{.*}} : i8 to i32
// CHECK:           math.fma

// -----

// So wide that queries are staged in parts, and values summed up in passes.
kf.kernel @wide(%q: tensor<?x1x1030xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 1030, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x1x1030xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 32, threads = [128]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x1x1030xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 1030, type = f32>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x1x1030xf32>
}
// CHECK-LABEL: gpu.func @wide(
// CHECK-SAME:    memref<256xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c32
// CHECK:             scf.for %[[CHUNK:.*]] = %c0 to %c5 step %c1
// CHECK:               gpu.barrier
// CHECK:               arith.muli
// CHECK:               gpu.barrier

// -----

// The result is rounded as it is stored.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32>
kf.kernel @rounded(%q: tensor<1x4x64xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf16>
    attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 32, threads = [128]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !cache, tensor<1xi32>, tensor<1x8xi32>
  %1 = arith.truncf %0 : tensor<1x4x64xf32> to tensor<1x4x64xf16>
  kf.yield %1 : tensor<1x4x64xf16>
}
// CHECK-LABEL: gpu.func @rounded(
// CHECK:         arith.divf
// CHECK:         %[[N:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         memref.store %[[N]], %{{.*}} : memref<?xf16>
