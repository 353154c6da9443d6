// RUN: kf-opt %s | FileCheck %s
// RUN: kf-opt %s | kf-opt | FileCheck %s
// RUN: kf-opt %s --mlir-print-op-generic | kf-opt | FileCheck %s
// RUN: kf-opt %s --emit-bytecode | kf-opt | FileCheck %s

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>

// CHECK-LABEL: @embedding
func.func @embedding(%ids: tensor<?xi32>, %t: tensor<100x64xbf16>,
                     %q: tensor<100x64x!kf.quant<q8_0>>) {
  // CHECK: kf.embedding %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<100x64xbf16>
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<100x64xbf16>
  // CHECK: kf.embedding %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<100x64x!kf.quant<q8_0>>
  %1 = kf.embedding %ids, %q : tensor<?xi32>, tensor<100x64x!kf.quant<q8_0>>
  return
}

// CHECK-LABEL: @matmul
func.func @matmul(%x: tensor<?x256xf32>, %w: tensor<96x256xbf16>,
                  %g: tensor<2x96x256xf16>, %q: tensor<96x256x!kf.quant<q4_k>>,
                  %b: tensor<96xf32>, %bg: tensor<2x96xf32>) {
  // CHECK: kf.matmul %{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<96x256xbf16>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<96x256xbf16>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) : tensor<?x256xf32>, tensor<96x256xbf16>, tensor<96xf32>
  %1 = kf.matmul %x, %w bias(%b) : tensor<?x256xf32>, tensor<96x256xbf16>, tensor<96xf32>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} glu(silu) : tensor<?x256xf32>, tensor<2x96x256xf16>
  %2 = kf.matmul %x, %g glu(silu) : tensor<?x256xf32>, tensor<2x96x256xf16>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) glu(gelu_tanh) : tensor<?x256xf32>, tensor<2x96x256xf16>, tensor<2x96xf32>
  %3 = kf.matmul %x, %g bias(%bg) glu(gelu_tanh) : tensor<?x256xf32>, tensor<2x96x256xf16>, tensor<2x96xf32>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<96x256x!kf.quant<q4_k>>
  %4 = kf.matmul %x, %q : tensor<?x256xf32>, tensor<96x256x!kf.quant<q4_k>>
  return
}

// CHECK-LABEL: @mlp
func.func @mlp(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %d: tensor<64x96xf32>,
               %bf: tensor<96xf32>, %bn: tensor<64xf32>) {
  // CHECK: kf.mlp %{{.*}} up(%{{.*}}) down(%{{.*}}) activation(gelu_tanh) : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>)
  %0 = kf.mlp %x up(%w) down(%d) activation(gelu_tanh)
      : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>)
  // CHECK: kf.mlp %{{.*}} gate(%{{.*}}) up(%{{.*}}) down(%{{.*}}) activation(silu)
  %1 = kf.mlp %x gate(%w) up(%w) down(%d) activation(silu)
      : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>)
  // CHECK: kf.mlp %{{.*}} gate(%{{.*}}) up(%{{.*}}) down(%{{.*}}) gate_bias(%{{.*}}) up_bias(%{{.*}}) down_bias(%{{.*}}) activation(relu)
  %2 = kf.mlp %x gate(%w) up(%w) down(%d) gate_bias(%bf) up_bias(%bf) down_bias(%bn)
      activation(relu)
      : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>,
         tensor<96xf32>, tensor<96xf32>, tensor<64xf32>)
  return
}

// CHECK-LABEL: @rows
func.func @rows(%x: tensor<?x64xf32>, %w: tensor<64xf32>) {
  // CHECK: kf.rms_norm %{{.*}}, %{{.*}} eps(9.99999974E-6) : tensor<?x64xf32>, tensor<64xf32>
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  // CHECK: kf.rms_norm %{{.*}}, %{{.*}} zero_centered eps(0.000000e+00) : tensor<?x64xf32>, tensor<64xf32>
  %centered = kf.rms_norm %x, %w zero_centered eps(0.0) : tensor<?x64xf32>, tensor<64xf32>
  // CHECK: kf.layer_norm %{{.*}}, %{{.*}} eps(0.000000e+00) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.layer_norm %x, %w eps(0.0) : tensor<?x64xf32>, tensor<64xf32>
  // CHECK: kf.layer_norm %{{.*}}, %{{.*}} bias(%{{.*}}) eps(9.99999974E-6) : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
  %2 = kf.layer_norm %x, %w bias(%w) eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>, tensor<64xf32>
  // CHECK: kf.softmax %{{.*}} : tensor<?x64xf32>
  %3 = kf.softmax %x : tensor<?x64xf32>
  // CHECK: kf.activation(identity)
  %4 = kf.activation(identity) %x : tensor<?x64xf32>
  // CHECK: kf.activation(silu)
  %5 = kf.activation(silu) %x : tensor<?x64xf32>
  // CHECK: kf.activation(gelu)
  %6 = kf.activation(gelu) %x : tensor<?x64xf32>
  // CHECK: kf.activation(gelu_tanh)
  %7 = kf.activation(gelu_tanh) %x : tensor<?x64xf32>
  // CHECK: kf.activation(relu) %{{.*}} : tensor<?x64xf32>
  %8 = kf.activation(relu) %x : tensor<?x64xf32>
  return
}

// CHECK-LABEL: @rope
func.func @rope(%x: tensor<?x4x32xf32>, %p: tensor<?xi32>, %f: tensor<16xf32>) {
  // CHECK: kf.rope %{{.*}}, %{{.*}} factors(%{{.*}}) {rotary_dim = 32 : i64, theta = 5.000000e+05 : f64} : tensor<?x4x32xf32>, tensor<?xi32>, tensor<16xf32>
  %f0 = kf.rope %x, %p factors(%f) {rotary_dim = 32 : i64, theta = 5.0e5 : f64}
      : tensor<?x4x32xf32>, tensor<?xi32>, tensor<16xf32>
  // CHECK: kf.rope %{{.*}}, %{{.*}} {rotary_dim = 32 : i64, theta = 1.000000e+04 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %0 = kf.rope %x, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64}
      : tensor<?x4x32xf32>, tensor<?xi32>
  // CHECK: kf.rope {{.*}}scaling = #kf.rope_scaling<linear, factor = 2.5>, style = #kf.rope_style<interleaved>
  %1 = kf.rope %x, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64,
                       style = #kf.rope_style<interleaved>,
                       scaling = #kf.rope_scaling<linear, factor = 2.5>}
      : tensor<?x4x32xf32>, tensor<?xi32>
  // CHECK: kf.rope {{.*}}#kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 8192>
  %2 = kf.rope %x, %p {rotary_dim = 32 : i64, theta = 5.0e5 : f64,
      style = #kf.rope_style<half>,
      scaling = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0,
                                 high_freq_factor = 4.0, original_context = 8192>}
      : tensor<?x4x32xf32>, tensor<?xi32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>,
                     %c: !cache, %h: index) {
  // CHECK: kf.kv_append %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {layer = 1 : i64} : <layers = 2, kv_heads = 2, head_dim = 32, type = f32>, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %k0 = tensor.extract_slice %k[0, 0, 0] [4, 1, 32] [1, 1, 1] : tensor<?x2x32xf32> to tensor<4x1x32xf32>
  %p0 = tensor.extract_slice %p[0] [4] [1] : tensor<?xi32> to tensor<4xi32>
  // CHECK: kf.kv_append %{{.*}} kv_head(%{{.*}}) {layer = 1 : i64} : <layers = 2, kv_heads = 2, head_dim = 32, type = f32>, tensor<4x1x32xf32>, tensor<4xi32>, tensor<1x4xi32>
  kf.kv_append %c, %k0, %k0, %p0, %p0, %pt kv_head(%h) {layer = 1 : i64} : !cache, tensor<4x1x32xf32>, tensor<4xi32>, tensor<1x4xi32>
  // CHECK: kf.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {layer = 1 : i64, scale = 1.250000e-01 : f32} : tensor<?x4x32xf32>, <{{.*}}>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.125 : f32}
      : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} sinks(%{{.*}} : tensor<4xf32>) {layer = 1
  %sink = arith.constant dense<1.0> : tensor<4xf32>
  %s0 = kf.attention %q, %c, %p, %sp, %pt sinks(%sink : tensor<4xf32>) {layer = 1 : i64, scale = 0.125 : f32}
      : tensor<?x4x32xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} kv_head(%{{.*}}) {layer = 0 : i64, scale = 1.250000e-01 : f32, window = 8 : i64}
  %1 = kf.attention %q, %c, %p, %sp, %pt kv_head(%h) {layer = 0 : i64, scale = 0.125 : f32, window = 8 : i64}
      : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.attention {{.*}} {chunked, layer = 0 : i64, scale = 1.250000e-01 : f32, window = 8 : i64}
  %2 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32, window = 8 : i64, chunked}
      : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// CHECK-LABEL: @parts
func.func @parts(%q: tensor<?x4x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache, %h: index) {
  // CHECK: %[[M:.*]], %[[T:.*]], %[[V:.*]] = kf.attention_partial %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} splits(3) {layer = 1 : i64, scale = 1.250000e-01 : f32} : tensor<?x4x32xf32>, <{{.*}}>, tensor<?xi32>, tensor<1x4xi32>
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 1 : i64, scale = 0.125 : f32}
      : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.attention_combine %[[M]], %[[T]], %[[V]] : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  // CHECK: kf.attention_partial %{{.*}} splits(3) tile(%[[H:.*]], %[[H]]) {
  %n, %u, %w = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) tile(%h, %h) {layer = 1 : i64, scale = 0.125 : f32, window = 8 : i64}
      : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.attention_combine %{{.*}} : tensor<?x4x1xf32>, tensor<?x4x1x32xf32>
  %1 = kf.attention_combine %n, %u, %w : tensor<?x4x1xf32>, tensor<?x4x1x32xf32>
  return
}

// CHECK-LABEL: @cache_types
// CHECK-SAME: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = bf16, key_block = 16>
// CHECK-SAME: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f16>
// CHECK-SAME: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, key_block = 8, page = 24>
// CHECK-SAME: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32>
// CHECK-SAME: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = !kf.quant<q8_0>, key_block = 8>
func.func private @cache_types(
    !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = bf16, key_block = 16>,
    !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f16, key_block = 1>,
    !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, key_block = 8, page = 24>,
    !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32, page = 64>,
    !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = !kf.quant<q8_0>, key_block = 8>)

// CHECK-LABEL: @tokens
func.func @tokens(%l: tensor<?x100xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>,
                  %ids: tensor<9xi32>, %bias: tensor<9xf32>, %mask: tensor<?x4xi32>) {
  // CHECK: kf.argmax %{{.*}} : tensor<?x100xf32>
  %0 = kf.argmax %l : tensor<?x100xf32>
  // CHECK: kf.sample %[[L:.*]] temperature(%[[F:.*]]) top_k(%[[I:.*]]) top_p(%[[F]]) min_p(%[[F]]) seed(%[[S:.*]]) counter(%[[I]]) : (tensor<?x100xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  %1 = kf.sample %l temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      : (tensor<?x100xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  // CHECK: kf.sample %[[L]] {{.*}} counter(%[[I]]) adjustments(%[[I]], %[[I]], %[[IDS:.*]], %[[IDS]], %{{.*}}) penalties(%[[F]], %[[F]], %[[F]]) : (
  %2 = kf.sample %l temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      adjustments(%i, %i, %ids, %ids, %bias) penalties(%f, %f, %f)
      : (tensor<?x100xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<9xi32>, tensor<9xi32>, tensor<9xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  // CHECK: kf.sample %[[L]] {{.*}} counter(%[[I]]) mask(%[[I]], %{{.*}}) : (
  %3 = kf.sample %l temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i) mask(%i, %mask)
      : (tensor<?x100xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?x4xi32>)
  return
}

// CHECK-LABEL: @quantization
func.func @quantization(%x: tensor<?x256xf32>) {
  // CHECK: kf.quantize %{{.*}} <q8_0> : tensor<?x256xf32>
  %0 = kf.quantize %x <q8_0> : tensor<?x256xf32>
  // CHECK: kf.dequantize %{{.*}} : tensor<?x256x!kf.quant<q8_0>>
  %1 = kf.dequantize %0 : tensor<?x256x!kf.quant<q8_0>>
  // CHECK: kf.quantize %{{.*}} <q4_0>
  %2 = kf.quantize %x <q4_0> : tensor<?x256xf32>
  // CHECK: kf.quantize %{{.*}} <q4_k>
  %3 = kf.quantize %x <q4_k> : tensor<?x256xf32>
  // CHECK: kf.quantize %{{.*}} <q6_k>
  %4 = kf.quantize %x <q6_k> : tensor<?x256xf32>
  return
}

// CHECK-LABEL: @rows_in_8_bits
func.func @rows_in_8_bits(%x: tensor<?x256xf32>, %w: tensor<96x256x!kf.quant<q4_0>>, %b: tensor<96xf32>) {
  // CHECK: %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows %{{.*}} group(32) : tensor<?x256xf32>
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x256xf32>
  // CHECK: kf.matmul %[[C]] scales(%[[S]] : tensor<?x8xf32>) sums(%[[T]] : tensor<?x8xi32>), %{{.*}} bias(%{{.*}}) : tensor<?x256xi8>, tensor<96x256x!kf.quant<q4_0>>, tensor<96xf32>
  %0 = kf.matmul %c scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %w bias(%b)
      : tensor<?x256xi8>, tensor<96x256x!kf.quant<q4_0>>, tensor<96xf32>
  // CHECK: kf.activation(relu) %{{.*}} : tensor<?x96xf32>
  %1 = kf.activation(relu) %0 : tensor<?x96xf32>
  return
}

// CHECK-LABEL: @rows_in_f16
func.func @rows_in_f16(%x: tensor<?x256xf32>, %w: tensor<96x256xf16>) {
  // CHECK: %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<?x256xf32>
  %half, %outliers = kf.round_half %x : tensor<?x256xf32>
  // CHECK: kf.matmul %[[R]] outliers(%[[O]] : tensor<?x256xf32>), %{{.*}} wide : tensor<?x256xf16>, tensor<96x256xf16>
  %0 = kf.matmul %half outliers(%outliers : tensor<?x256xf32>), %w wide : tensor<?x256xf16>, tensor<96x256xf16>
  return
}

// CHECK-LABEL: @read_rows
func.func @read_rows(%x: tensor<?x256xf32>, %w: tensor<96x256x!kf.quant<q8_0>>, %u: tensor<2x96x256xbf16>) {
  // CHECK: kf.matmul %{{.*}}, %{{.*}} rows<i8> : tensor<?x256xf32>, tensor<96x256x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w rows<i8> : tensor<?x256xf32>, tensor<96x256x!kf.quant<q8_0>>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} glu(silu) rows<bf16> : tensor<?x256xf32>, tensor<2x96x256xbf16>
  %1 = kf.matmul %x, %u glu(silu) rows<bf16> : tensor<?x256xf32>, tensor<2x96x256xbf16>
  return
}

// CHECK-LABEL: @bytes
func.func @bytes(%s: vector<16xi32>, %a: vector<64xi8>) {
  // CHECK: kf.dp4a %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi32>, vector<64xi8>
  %0 = kf.dp4a %s, %a, %a : vector<16xi32>, vector<64xi8>
  // CHECK: kf.dp4a %{{.*}}, %{{.*}}, %{{.*}} most(15) : vector<16xi32>, vector<64xi8>
  %2 = kf.dp4a %s, %a, %a most(15) : vector<16xi32>, vector<64xi8>
  // CHECK: kf.dp4a %{{.*}}, %{{.*}}, %{{.*}} signed : vector<16xi32>, vector<64xi8>
  %3 = kf.dp4a %s, %a, %a signed : vector<16xi32>, vector<64xi8>
  // CHECK: kf.look_up %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15] : vector<64xi8>
  %1 = kf.look_up %a [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15] : vector<64xi8>
  return
}

// CHECK-LABEL: func.func @float8
func.func @float8(%x: tensor<?x256xf32>, %w: tensor<96x256xf8E4M3FN>, %s: tensor<96xf32>, %b: tensor<96xf32>,
                  %g: tensor<2x96x256xf8E4M3FN>, %gs: tensor<2x96xf32>) {
  // CHECK: kf.matmul %{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<96x256xf8E4M3FN>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<96x256xf8E4M3FN>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} weight_scales(%{{.*}} : tensor<96xf32>) bias(%{{.*}}) : tensor<?x256xf32>, tensor<96x256xf8E4M3FN>, tensor<96xf32>
  %1 = kf.matmul %x, %w weight_scales(%s : tensor<96xf32>) bias(%b) : tensor<?x256xf32>, tensor<96x256xf8E4M3FN>, tensor<96xf32>
  // CHECK: kf.matmul %{{.*}}, %{{.*}} weight_scales(%{{.*}} : tensor<2x96xf32>) glu(silu) : tensor<?x256xf32>, tensor<2x96x256xf8E4M3FN>
  %2 = kf.matmul %x, %g weight_scales(%gs : tensor<2x96xf32>) glu(silu) : tensor<?x256xf32>, tensor<2x96x256xf8E4M3FN>
  return
}
