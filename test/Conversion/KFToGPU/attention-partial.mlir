// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>

// A workgroup is a part of a KV head's keys: whole pages, of those that the row
// sees. What a part has is -inf without keys, as one thread says.
// CHECK-LABEL: gpu.func @partial(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: memref<?xf32>, %[[C:[a-z0-9]+]]: memref<?xf32>, %{{[a-z0-9]+}}: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xi32>, %{{[a-z0-9]+}}: memref<?xi32>, %[[M:[a-z0-9]+]]: memref<?xf32>, %[[T:[a-z0-9]+]]: memref<?xf32>, %[[V:[a-z0-9]+]]: memref<?xf32>
// CHECK:         %[[PART:.*]] = gpu.block_id  z
// CHECK:         %[[SHARE:.*]] = arith.divui %{{.*}}, %c3
// CHECK:         arith.muli %[[PART]], %[[SHARE]]
// CHECK:         scf.for
// CHECK:           math.fma
// CHECK:         scf.if
// CHECK:           arith.select
// CHECK:           memref.store %{{.*}}, %[[M]]
// CHECK:           memref.store %{{.*}}, %[[T]]
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[V]]
kf.kernel @partial(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x8xi32>) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>)
    attributes {schedule = #kf.flash<workgroup = [1, 2, 1], keys = 32, threads = [64]>} {
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x16xf32>
}

// -----

// A thread weighs all parts of its element.
// CHECK-LABEL: gpu.func @combine(
// CHECK:         %[[MOST:.*]] = scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:           arith.maximumf
// CHECK:         arith.cmpf oeq, %[[MOST]]
// CHECK:         scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK:           math.exp
// CHECK:           math.fma
// CHECK:         arith.divf
kf.kernel @combine(%m: tensor<?x4x8xf32>, %t: tensor<?x4x8xf32>, %v: tensor<?x4x8x16xf32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.simt<workgroup = [4], threads = [64]>} {
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x8xf32>, tensor<?x4x8x16xf32>
  kf.yield %0 : tensor<?x4x16xf32>
}
