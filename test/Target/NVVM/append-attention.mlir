// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-form-kernels | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-form-kernels | FileCheck %s --check-prefix=KERNEL
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-form-kernels | FileCheck %s --check-prefix=VULKAN

// Few rows are appended where they are attended to, turned on the way.
// CHECK-LABEL: kf.program @few(
// CHECK-COUNT-1: kf.dispatch @rope_rope_kv_append_attention_0(
// CHECK-NOT:   kf.dispatch
// CHECK:       kf.yield
// KERNEL:       kf.kernel @rope_rope_kv_append_attention_0(
// KERNEL:         %[[Q:.*]] = kf.rope
// KERNEL:         %[[K:.*]] = kf.rope
// KERNEL:         kf.kv_append %[[C:.*]], %[[K]], %{{.*}}, %[[P:.*]], %[[S:.*]], %[[T:.*]] {layer = 0 : i64}
// KERNEL:         kf.attention %[[Q]], %[[C]], %[[P]], %[[S]], %[[T]] {layer = 0 : i64
// VULKAN-LABEL: kf.program @few(
// VULKAN:       kf.dispatch @rope_kv_append_0(
// VULKAN:       kf.dispatch @rope_attention_0(
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 16, type = f16>
func.func @few(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x4xi32>, %c: !cache) -> tensor<?x4x16xf32> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x4x16xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %s, %t {layer = 1 : i64} : !cache, tensor<?x2x16xf32>, tensor<?xi32>, tensor<2x4xi32>
  %0 = kf.attention %qr, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<2x4xi32>
  return %0 : tensor<?x4x16xf32>
}

// Not so many rows, or blocks, or heads that are normalized; nor the append of
// another layer.
// CHECK-LABEL: kf.program @many(
// CHECK:       kf.dispatch @kv_append_0(
// CHECK:       kf.dispatch @attention_0(
func.func @many(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x4xi32>, %c: !cache) -> tensor<?x4x16xf32> attributes {kf.max_tokens = 17 : i64} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 1 : i64} : !cache, tensor<?x2x16xf32>, tensor<?xi32>, tensor<2x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<2x4xi32>
  return %0 : tensor<?x4x16xf32>
}

!blocks = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>
// CHECK-LABEL: kf.program @blocks(
// CHECK:       kf.dispatch @kv_append_{{[0-9]}}(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
func.func @blocks(%q: tensor<1x4x32xf32>, %k: tensor<1x2x32xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !blocks) -> tensor<1x4x32xf32> attributes {kf.max_tokens = 1 : i64} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !blocks, tensor<1x2x32xf32>, tensor<1xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x32xf32>, !blocks, tensor<1xi32>, tensor<1x4xi32>
  return %0 : tensor<1x4x32xf32>
}

// CHECK-LABEL: kf.program @normalized(
// CHECK:       kf.dispatch @rms_norm_rope_kv_append_0(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
func.func @normalized(%q: tensor<1x4x16xf32>, %k: tensor<1x2x16xf32>, %g: tensor<16xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !cache) -> tensor<1x4x16xf32> attributes {kf.max_tokens = 1 : i64} {
  %n = kf.rms_norm %k, %g eps(1.0e-6) : tensor<1x2x16xf32>, tensor<16xf32>
  %kr = kf.rope %n, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<1x2x16xf32>, tensor<1xi32>
  kf.kv_append %c, %kr, %k, %p, %s, %t {layer = 0 : i64} : !cache, tensor<1x2x16xf32>, tensor<1xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  return %0 : tensor<1x4x16xf32>
}

// CHECK-LABEL: kf.program @other_layer(
// CHECK:       kf.dispatch @kv_append_{{[0-9]}}(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
func.func @other_layer(%q: tensor<1x4x16xf32>, %k: tensor<1x2x16xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !cache) -> tensor<1x4x16xf32> attributes {kf.max_tokens = 1 : i64} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !cache, tensor<1x2x16xf32>, tensor<1xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  return %0 : tensor<1x4x16xf32>
}

// The first of two takes it.
// CHECK-LABEL: kf.program @twice(
// CHECK:       kf.dispatch @kv_append_attention_0(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
func.func @twice(%q: tensor<1x4x16xf32>, %k: tensor<1x2x16xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !cache) -> tensor<1x4x16xf32> attributes {kf.max_tokens = 1 : i64} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !cache, tensor<1x2x16xf32>, tensor<1xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  %1 = kf.attention %0, %c, %p, %s, %t {layer = 0 : i64, scale = 2.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  return %1 : tensor<1x4x16xf32>
}

// Its result is rounded where it is computed, by all GPUs.
// CHECK-LABEL: kf.program @rounded(
// CHECK-COUNT-1: kf.dispatch @rope_rope_kv_append_attention_trunc_0(
// CHECK-NOT:   kf.dispatch
// CHECK:       kf.yield
// KERNEL:       kf.kernel @rope_rope_kv_append_attention_trunc_0({{.*}} -> tensor<?x4x16xf16>
// KERNEL:         kf.kv_append
// KERNEL:         %[[A:.*]] = kf.attention
// KERNEL:         %[[R:.*]] = arith.truncf %[[A]]
// KERNEL:         kf.yield %[[R]]
// VULKAN-LABEL: kf.program @rounded(
// VULKAN:       kf.dispatch @rope_attention_trunc_0(
func.func @rounded(%q: tensor<?x4x16xf32>, %k: tensor<?x2x16xf32>, %v: tensor<?x2x16xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x4xi32>, %c: !cache) -> tensor<?x4x16xf16> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x4x16xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %s, %t {layer = 1 : i64} : !cache, tensor<?x2x16xf32>, tensor<?xi32>, tensor<2x4xi32>
  %0 = kf.attention %qr, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<2x4xi32>
  %1 = arith.truncf %0 : tensor<?x4x16xf32> to tensor<?x4x16xf16>
  return %1 : tensor<?x4x16xf16>
}

// Nothing else is computed with it, nor behind the rounding.
// CHECK-LABEL: kf.program @changed(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
// CHECK:       kf.dispatch @trunc_neg_0(
func.func @changed(%q: tensor<1x4x16xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !cache) -> tensor<1x4x16xf16> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  %1 = arith.truncf %0 : tensor<1x4x16xf32> to tensor<1x4x16xf16>
  %2 = arith.negf %1 : tensor<1x4x16xf16>
  return %2 : tensor<1x4x16xf16>
}

// What is between them stores to the cache: attention stays before it.
// CHECK-LABEL: kf.program @stored_between(
// CHECK:       kf.dispatch @attention_{{[0-9]}}(
// CHECK:       kf.dispatch @kv_append_{{[0-9]}}(
// CHECK:       kf.dispatch @trunc_0(
func.func @stored_between(%q: tensor<1x4x16xf32>, %k: tensor<1x2x16xf32>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %c: !cache) -> tensor<1x4x16xf16> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<1x4x16xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 1 : i64} : !cache, tensor<1x2x16xf32>, tensor<1xi32>, tensor<1x4xi32>
  %1 = arith.truncf %0 : tensor<1x4x16xf32> to tensor<1x4x16xf16>
  return %1 : tensor<1x4x16xf16>
}

// CHECK-LABEL: kf.program @combined(
// CHECK:       kf.dispatch @attention_combine_trunc_0(
func.func @combined(%m: tensor<?x4x3xf32>, %t: tensor<?x4x3xf32>, %v: tensor<?x4x3x16xf32>) -> tensor<?x4x16xbf16> {
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3x16xf32>
  %1 = arith.truncf %0 : tensor<?x4x16xf32> to tensor<?x4x16xbf16>
  return %1 : tensor<?x4x16xbf16>
}

// Rows are those of the attention, not of the program, which may have more.
// CHECK-LABEL: kf.program @some(
// CHECK:       kf.dispatch @kv_append_attention_{{[0-9]}}(
// CHECK-NOT:   kf.dispatch
// CHECK:       kf.yield
func.func @some(%q: tensor<?x4x16xf32, #kf.size<few>>, %k: tensor<?x2x16xf32, #kf.size<few>>, %p: tensor<?xi32, #kf.size<few>>, %s: tensor<?xi32, #kf.size<few>>, %t: tensor<2x4xi32>, %c: !cache) -> tensor<?x4x16xf32, #kf.size<few>>
    attributes {kf.max_tokens = 512 : i64, kf.size_ranges = [#kf.size_range<few, most = 16>]} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 1 : i64} : !cache, tensor<?x2x16xf32, #kf.size<few>>, tensor<?xi32, #kf.size<few>>, tensor<2x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32, #kf.size<few>>, !cache, tensor<?xi32, #kf.size<few>>, tensor<2x4xi32>
  return %0 : tensor<?x4x16xf32, #kf.size<few>>
}

// CHECK-LABEL: kf.program @too_many(
// CHECK-NOT:   kf.dispatch @kv_append_attention
// CHECK:       kf.yield
func.func @too_many(%q: tensor<?x4x16xf32, #kf.size<few>>, %k: tensor<?x2x16xf32, #kf.size<few>>, %p: tensor<?xi32, #kf.size<few>>, %s: tensor<?xi32, #kf.size<few>>, %t: tensor<2x4xi32>, %c: !cache) -> tensor<?x4x16xf32, #kf.size<few>>
    attributes {kf.max_tokens = 512 : i64, kf.size_ranges = [#kf.size_range<few, most = 17>]} {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 1 : i64} : !cache, tensor<?x2x16xf32, #kf.size<few>>, tensor<?xi32, #kf.size<few>>, tensor<2x4xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 1 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32, #kf.size<few>>, !cache, tensor<?xi32, #kf.size<few>>, tensor<2x4xi32>
  return %0 : tensor<?x4x16xf32, #kf.size<few>>
}
