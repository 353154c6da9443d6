// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-set-layouts | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-set-layouts | FileCheck %s --check-prefix=EIGHT
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-set-layouts | FileCheck %s --check-prefix=ROWS
// RUN: not kf-opt %s --kf-set-layouts 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: the module does not say what it is compiled for; run kf-set-target, as in --kf-set-target=target=cpu
// ROWS-NOT: key_block

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f32>
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>

// CHECK-LABEL: func.func @function(
// CHECK-SAME:    tensor<?x4x16xf32>
// CHECK-SAME:    !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
// CHECK:         kf.attention {{.*}}<layers = 2, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
// EIGHT-LABEL: func.func @function(
// EIGHT-SAME:    key_block = 8>
func.func @function(%q: tensor<?x4x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x16xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x16xf32>
}

// CHECK-LABEL: kf.kernel @kernel(
// CHECK-SAME:    !kf.kv_cache<layers = 1, {{.*}}, key_block = 16>
// CHECK:         kf.kv_append {{.*}} key_block = 16>
kf.kernel @kernel(%c: !layer, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x2x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// CHECK-LABEL: kf.program @program(
// CHECK:         kf.cache_layer {{.*}} key_block = 16> to {{.*}} key_block = 16>
// CHECK:         kf.dispatch @kernel({{.*}} key_block = 16>
kf.program @program(%c: !cache, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>)
    attributes {max_tokens = 8 : i64} {
  %0 = kf.cache_layer %c[1] : !cache to !layer
  kf.dispatch @kernel(%0, %k, %p, %sp, %pt) : (!layer, tensor<?x2x16xf32>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> ()
  kf.yield
}
