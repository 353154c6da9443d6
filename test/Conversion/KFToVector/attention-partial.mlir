// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector)' -split-input-file | FileCheck %s

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>

// A workgroup is a part of a KV head's keys: whole pages, of those that the row
// sees. What a part has is -inf without keys.
// CHECK-LABEL: func.func @partial(
// CHECK-SAME:    %[[M:[a-z0-9]*]]: memref<?x4x3xf32> {llvm.noalias}, %[[T:[a-z0-9]*]]: memref<?x4x3xf32> {llvm.noalias}, %[[V:[a-z0-9]*]]: memref<?x4x3x16xf32> {llvm.noalias}
// CHECK-DAG:     %[[SPLITS:.*]] = arith.constant 3 : index
// CHECK:         arith.remui %{{.*}}, %[[SPLITS]]
// CHECK:         arith.divui %{{.*}}, %{{.*}} : index
// CHECK:         scf.for
// CHECK:           vector.fma
// CHECK:         %[[HAS:.*]] = arith.cmpi slt
// CHECK:         arith.constant 0xFF800000 : f32
// CHECK:         %[[MAX:.*]] = arith.select %[[HAS]]
// CHECK:         memref.store %[[MAX]], %[[M]]
// CHECK:         memref.store %{{.*}}, %[[T]]
// CHECK:         vector.store %{{.*}}, %[[V]]
kf.kernel @partial(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x8xi32>) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2, 1], tile = [2], reduction = 64, lanes = 16>} {
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>
}

// -----

// CHECK-LABEL: func.func @combine(
// CHECK:         vector.reduction <maximumf>
// CHECK:         math.exp
// CHECK:         vector.reduction <add>
// CHECK:         arith.divf
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           vector.fma
kf.kernel @combine(%m: tensor<?x4x8xf32>, %t: tensor<?x4x8xf32>, %v: tensor<?x4x8x16xf32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x8xf32>, tensor<?x4x8x16xf32>
  kf.yield %0 : tensor<?x4x16xf32>
}
