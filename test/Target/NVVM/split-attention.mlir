// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-nvvm-split-attention))' | FileCheck %s
// RUN: sed 's/, multiprocessors = 132//' %s | kf-opt --pass-pipeline='builtin.module(func.func(kf-nvvm-split-attention))' | FileCheck %s
// RUN: sed 's/#kf.cuda_target<.*>/#kf.reference_target/' %s | not kf-opt --pass-pipeline='builtin.module(func.func(kf-nvvm-split-attention))' 2>&1 | FileCheck %s --check-prefix=OTHER

// Where there are clusters, these have the parts.
// RUN: sed 's/sm_89/sm_90a/' %s | kf-opt --pass-pipeline='builtin.module(func.func(kf-nvvm-split-attention))' | FileCheck %s --check-prefix=CLUSTER

// OTHER: error: the module is for #kf.reference_target, and this pass is for a #kf.cuda_target

!cache = !kf.kv_cache<layers = 8, kv_heads = 8, head_dim = 128, type = f16>

module attributes {kf.target = #kf.cuda_target<chip = "sm_89", multiprocessors = 132>} {

// As many parts of each KV head as there are multiprocessors for it.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %[[Q:.*]]: tensor<1x32x128xf32>
// CHECK:         %[[M:.*]], %[[T:.*]], %[[V:.*]] = kf.attention_partial %[[Q]], %{{.*}} splits(16) {layer = 3 : i64, scale = 1.250000e-01 : f32, window = 1000 : i64}
// CHECK:         %[[R:.*]] = kf.attention_combine %[[M]], %[[T]], %[[V]] : tensor<1x32x16xf32>, tensor<1x32x16x128xf32>
// CHECK:         return %[[R]]
func.func @decode(%q: tensor<1x32x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x128xi32>) -> tensor<1x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32, window = 1000 : i64} : tensor<1x32x128xf32>, !cache, tensor<1xi32>, tensor<1x128xi32>
  return %0 : tensor<1x32x128xf32>
}

// CHECK-LABEL: func.func @chunks(
// CHECK:         kf.attention_partial {{.*}} {chunked, {{.*}}window = 1000 : i64}
func.func @chunks(%q: tensor<1x32x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x128xi32>) -> tensor<1x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32, window = 1000 : i64, chunked} : tensor<1x32x128xf32>, !cache, tensor<1xi32>, tensor<1x128xi32>
  return %0 : tensor<1x32x128xf32>
}

// Of some rows, fewer.
// CHECK-LABEL: func.func @rows(
// CHECK:         splits(4)
func.func @rows(%q: tensor<?x32x128xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<4x128xi32>) -> tensor<?x32x128xf32> attributes {kf.max_tokens = 4 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<?x32x128xf32>, !cache, tensor<?xi32>, tensor<4x128xi32>
  return %0 : tensor<?x32x128xf32>
}

// A part has two pages of the longest context.
// CHECK-LABEL: func.func @pages(
// CHECK:         splits(8)
func.func @pages(%q: tensor<1x32x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x16xi32>) -> tensor<1x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<1x32x128xf32>, !cache, tensor<1xi32>, tensor<1x16xi32>
  return %0 : tensor<1x32x128xf32>
}

// Neither short contexts nor many rows have parts.
// CHECK-LABEL: func.func @short(
// CHECK-NOT:     kf.attention_partial
func.func @short(%q: tensor<1x32x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x15xi32>) -> tensor<1x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<1x32x128xf32>, !cache, tensor<1xi32>, tensor<1x15xi32>
  return %0 : tensor<1x32x128xf32>
}
// CHECK-LABEL: func.func @prefill(
// CHECK-NOT:     kf.attention_partial
func.func @prefill(%q: tensor<?x32x128xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x128xi32>) -> tensor<?x32x128xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<?x32x128xf32>, !cache, tensor<?xi32>, tensor<1x128xi32>
  return %0 : tensor<?x32x128xf32>
}

// CLUSTER-LABEL: func.func @decode(
// CLUSTER-NOT:     kf.attention_partial
// CLUSTER-LABEL: func.func @wide(
// CLUSTER:         splits(16)
// More columns than registers hold: no cluster computes them.
// CHECK-LABEL: func.func @wide(
// CHECK:         splits(16)
func.func @wide(%q: tensor<1x8x264xf32>, %c: !kf.kv_cache<layers = 8, kv_heads = 8, head_dim = 264, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x128xi32>) -> tensor<1x8x264xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<1x8x264xf32>, !kf.kv_cache<layers = 8, kv_heads = 8, head_dim = 264, type = f16>, tensor<1xi32>, tensor<1x128xi32>
  return %0 : tensor<1x8x264xf32>
}
// More parts than two clusters have.
// CHECK-LABEL: func.func @one_head(
// CLUSTER-LABEL: func.func @one_head(
// CLUSTER:         splits(64)
func.func @one_head(%q: tensor<1x8x64xf32>, %c: !kf.kv_cache<layers = 8, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x128xi32>) -> tensor<1x8x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<1x8x64xf32>, !kf.kv_cache<layers = 8, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x128xi32>
  return %0 : tensor<1x8x64xf32>
}

}
