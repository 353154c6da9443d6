// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-cpu-split-attention))' | FileCheck %s
// RUN: sed 's/workers = 8/workers = 2/' %s | kf-opt --pass-pipeline='builtin.module(func.func(kf-cpu-split-attention))' | FileCheck %s --check-prefix=FEW
// RUN: sed 's/#kf.cpu_target<.*>/#kf.reference_target/' %s | not kf-opt --pass-pipeline='builtin.module(func.func(kf-cpu-split-attention))' 2>&1 | FileCheck %s --check-prefix=OTHER

// OTHER: error: the module is for #kf.reference_target, and this pass is for a #kf.cpu_target

// RUN: sed 's/workers = 8/workers = 65536/; s/1x64xi32/1x1048576xi32/' %s | kf-opt --pass-pipeline='builtin.module(func.func(kf-cpu-split-attention))' | FileCheck %s --check-prefix=MANY

// However many workers there are, one workgroup combines the parts.
// MANY: kf.attention_partial {{.*}} splits(1024)

// With two workers, both KV heads have one.
// FEW-NOT: kf.attention_partial

!cache = !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>

module attributes {kf.target = #kf.cpu_target<cpu = "native", workers = 8>} {

// Two parts for each of eight workers, two KV heads: eight parts of the keys.
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x8x64xf32>
// CHECK:         %[[M:.*]], %[[T:.*]], %[[V:.*]] = kf.attention_partial %[[Q]], %{{.*}} splits(8) {layer = 3 : i64, scale = 1.250000e-01 : f32, window = 1000 : i64}
// CHECK:         %[[R:.*]] = kf.attention_combine %[[M]], %[[T]], %[[V]] : tensor<?x8x8xf32>, tensor<?x8x8x64xf32>
// CHECK:         return %[[R]] : tensor<?x8x64xf32>
func.func @decode(%q: tensor<?x8x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x8x64xf32> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32, window = 1000 : i64} : tensor<?x8x64xf32>, !cache, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x8x64xf32>
}

// Sinks are of no part.
// CHECK-LABEL: func.func @sinks(
// CHECK-SAME:    %[[SINKS:[a-z0-9]+]]: tensor<8xf32>)
// CHECK:         kf.attention_partial {{.*}} splits(8) {layer = 3
// CHECK:         kf.attention_combine {{.*}} sinks(%[[SINKS]] : tensor<8xf32>)
func.func @sinks(%q: tensor<?x8x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>, %k: tensor<8xf32>) -> tensor<?x8x64xf32> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t sinks(%k : tensor<8xf32>) {layer = 3 : i64, scale = 0.125 : f32} : tensor<?x8x64xf32>, !cache, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x8x64xf32>
}

// A short context has fewer parts.
// CHECK-LABEL: func.func @short(
// CHECK:         splits(2)
func.func @short(%q: tensor<?x8x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x8x64xf32> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<?x8x64xf32>, !cache, tensor<?xi32>, tensor<1x8xi32>
  return %0 : tensor<?x8x64xf32>
}

// Rows are work enough.
// CHECK-LABEL: func.func @prefill(
// CHECK-NOT:     kf.attention_partial
// CHECK:         return
func.func @prefill(%q: tensor<?x8x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x64xi32>) -> tensor<?x8x64xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 3 : i64, scale = 0.125 : f32} : tensor<?x8x64xf32>, !cache, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x8x64xf32>
}

}
