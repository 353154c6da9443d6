// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels))' -split-input-file | FileCheck %s

// One iteration of the forall is one workgroup; the producer is fused into it.
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0 - d1, 14)>
// CHECK-DAG:   #[[COLUMNS:.*]] = affine_map<(d0) -> (-d0 + 96, 64)>
// CHECK-LABEL: kf.kernel @norm_matmul(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64xf32>, %[[W:.*]]: tensor<96x64xf32>)
// CHECK-SAME:    grid = #kf.grid<tokens = [14, 0], counts = [0, 2]>
// CHECK:         %[[R:.*]] = scf.forall (%[[I:.*]], %[[J:.*]]) = (0, 0) to (%{{.*}}, 96) step (14, 64)
// CHECK-DAG:       %[[M:.*]] = affine.min #[[ROWS]](%{{.*}}, %[[I]])
// CHECK-DAG:       %[[N:.*]] = affine.min #[[COLUMNS]](%[[J]])
// CHECK-DAG:       %[[XS:.*]] = tensor.extract_slice %[[X]][%[[I]], 0] [%[[M]], 64] [1, 1]
// CHECK-DAG:       %[[WS:.*]] = tensor.extract_slice %[[W]][%[[J]], 0] [%[[N]], 64] [1, 1]
// CHECK-DAG:       %[[NORM:.*]] = kf.rms_norm %[[XS]], %[[G]]
// CHECK:           %[[P:.*]] = kf.matmul %[[NORM]], %[[WS]]
// CHECK:           tensor.parallel_insert_slice %[[P]] into %{{.*}}[%[[I]], %[[J]]] [%[[M]], %[[N]]] [1, 1]
// CHECK:         kf.yield %[[R]]
kf.kernel @norm_matmul(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<96x64xf32>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [14, 64], tile = [14, 32], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %1 : tensor<?x96xf32>
}

// -----

// The same kernel with another schedule has other loops: three columns of
// workgroups, all of one size, and whole rows.
// CHECK-LABEL: kf.kernel @norm_matmul(
// CHECK-SAME:    grid = #kf.grid<tokens = [0], counts = [3]>
// CHECK:         scf.forall (%[[J:.*]]) = (0) to (96) step (32)
// CHECK-NOT:       affine.min
// CHECK:           tensor.extract_slice %{{.*}}[%[[J]], 0] [32, 64] [1, 1] : tensor<96x64xf32> to tensor<32x64xf32>
// CHECK:           kf.matmul %{{.*}} : tensor<?x64xf32>, tensor<32x64xf32>
kf.kernel @norm_matmul(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<96x64xf32>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 32], tile = [14, 32], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %1 : tensor<?x96xf32>
}

// -----

// An epilogue: the root is the addition, and the product is fused into it.
// CHECK-LABEL: kf.kernel @residual(
// CHECK:         scf.forall
// CHECK:           %[[P:.*]] = kf.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) : tensor<2x64xf32>, tensor<32x64xf32>, tensor<32xf32>
// CHECK:           arith.addf %[[P]], %{{.*}} : tensor<2x32xf32>
kf.kernel @residual(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>,
                    %r: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 32], tile = [2, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w bias(%b) : tensor<4x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %1 = arith.addf %0, %r : tensor<4x64xf32>
  kf.yield %1 : tensor<4x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>

// Heads are tiled by the group that reads one KV head, which is then named.
// CHECK-LABEL: kf.kernel @attention(
// CHECK-SAME:    grid = #kf.grid<tokens = [8, 0], counts = [0, 2]>
// CHECK:         scf.forall (%[[T:.*]], %[[H:.*]]) =
// CHECK:           %[[Q:.*]] = tensor.extract_slice %{{.*}}[%[[T]], %[[H]], 0] [%{{.*}}, 2, 16]
// CHECK:           %[[KV:.*]] = arith.divui %[[H]], %c2
// CHECK:           kf.attention %[[Q]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} kv_head(%[[KV]]) {layer = 0 : i64
kf.kernel @attention(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [4], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// CHECK-LABEL: kf.kernel @append(
// CHECK-SAME:    grid = #kf.grid<tokens = [4], counts = [0]>
// CHECK:         scf.forall (%[[T:.*]]) =
// CHECK:           %[[K:.*]] = tensor.extract_slice %{{.*}}[%[[T]], 0, 0]
// CHECK:           kf.rope %[[K]]
// CHECK:           kf.kv_append
// CHECK:         kf.yield{{$}}
kf.kernel @append(%c: !layer, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [4]>} {
  %0 = kf.rope %k, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  kf.kv_append %c, %0, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x2x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

// Nothing tiled: one workgroup, and a grid without dimensions.
// CHECK-LABEL: kf.kernel @one_workgroup(
// CHECK-SAME:    grid = #kf.grid<tokens = [], counts = []>
// CHECK:         kf.softmax %{{.*}} : tensor<64xf32>
kf.kernel @one_workgroup(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {schedule = #kf.vector<workgroup = [0]>} {
  %0 = kf.softmax %x : tensor<64xf32>
  kf.yield %0 : tensor<64xf32>
}

// A kernel that has a grid is tiled already.
// CHECK-LABEL: kf.kernel @tiled(
// CHECK-NOT:     scf.forall
// CHECK:         kf.yield
kf.kernel @tiled(%x: tensor<64xf32>) -> tensor<64xf32>
    attributes {schedule = #kf.vector<workgroup = [0]>, grid = #kf.grid<tokens = [], counts = []>} {
  %0 = kf.softmax %x : tensor<64xf32>
  kf.yield %0 : tensor<64xf32>
}

// -----

// Every result has a place of its own: rows of one, rows and heads of others,
// and the loop over splits is one that no operand has.
// CHECK-LABEL: kf.kernel @parts(
// CHECK-SAME:    grid = #kf.grid<tokens = [1, 0, 0], counts = [0, 2, 3]>
// CHECK:         %[[R:.*]]:3 = scf.forall (%[[I:.*]], %[[J:.*]], %[[S:.*]]) = (0, 0, 0) to (%{{.*}}, 4, 3) step (1, 2, 1) shared_outs(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>)
// CHECK:           %[[HEAD:.*]] = arith.divui %[[J]]
// CHECK:           %[[M:.*]], %[[T:.*]], %[[V:.*]] = kf.attention_partial %{{.*}} splits(3) tile(%[[HEAD]], %[[S]])
// CHECK:           tensor.parallel_insert_slice %[[M]] into %[[A]][%[[I]], %[[J]], %[[S]]] [%{{.*}}, 2, 1] [1, 1, 1] : tensor<?x2x1xf32> into tensor<?x4x3xf32>
// CHECK:           tensor.parallel_insert_slice %[[T]] into %[[B]]
// CHECK:           tensor.parallel_insert_slice %[[V]] into %[[C]][%[[I]], %[[J]], %[[S]], 0] [%{{.*}}, 2, 1, 16]
// CHECK:         kf.yield %[[R]]#0, %[[R]]#1, %[[R]]#2
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
kf.kernel @parts(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x8xi32>) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2, 1], tile = [2], reduction = 64, lanes = 16>} {
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>
}
