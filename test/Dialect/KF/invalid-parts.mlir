// RUN: kf-opt %s -verify-diagnostics -split-input-file

// One case for every constraint of rows in 8 bits, of attention in parts, and
// of the ops on bytes.

func.func @f(%x: tensor<?xf32>) {
  // expected-error @+1 {{C1: x must be [M, K], K static, found 'tensor<?xf32>'}}
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x40xf32>) {
  // expected-error @+1 {{C1: x must be [M, K] of float elements, K a multiple of 32, found 'tensor<?x40xf32>'}}
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x40xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{C2: group must be 16 or 32, found 64}}
  %c, %s, %t = kf.quantize_rows %x group(64) : tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %w: tensor<32x64x!kf.quant<q4_0>>) {
  // expected-error @+1 {{C1: x must be a rank 2 tensor of i8 with scales, found 'tensor<?x64xf32>'}}
  %0 = kf.matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xf32>, tensor<32x64x!kf.quant<q4_0>>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %w: tensor<32x64x!kf.quant<q4_0>>) {
  // expected-error @+1 {{C6: scales and sums come together}}
  %0 = kf.matmul %x scales(%s : tensor<?x2xf32>), %w : tensor<?x64xi8>, tensor<32x64x!kf.quant<q4_0>>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %w: tensor<32x64xbf16>) {
  // expected-error @+1 {{C6: with scales, w must be of a quantized type, found 'tensor<32x64xbf16>'}}
  %0 = kf.matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<32x64xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x4xf32>, %t: tensor<?x2xi32>, %w: tensor<32x64x!kf.quant<q4_0>>) {
  // expected-error @+1 {{C6: scales must be 'tensor<?x2xf32>', found 'tensor<?x4xf32>'}}
  %0 = kf.matmul %x scales(%s : tensor<?x4xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<32x64x!kf.quant<q4_0>>
  return
}

// -----

// Six-bit codes have a scale for 16 elements.
func.func @f(%x: tensor<?x256xi8>, %s: tensor<?x8xf32>, %t: tensor<?x8xi32>, %w: tensor<32x256x!kf.quant<q6_k>>) {
  // expected-error @+1 {{C6: sums must be 'tensor<?x16xi32>', found 'tensor<?x8xi32>'}}
  %0 = kf.matmul %x scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %w : tensor<?x256xi8>, tensor<32x256x!kf.quant<q6_k>>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
func.func @f(%q: tensor<?x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C1: q must be [T, heads, D] of float elements, the last two dimensions static, found 'tensor<?x128xf32>'}}
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x128xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
func.func @f(%q: tensor<?x4x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C2: head dimension of q (64) differs from the cache's (32)}}
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x64xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
func.func @f(%q: tensor<?x4x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C10: splits must be in [1, 65536], found 0}}
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(0) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
func.func @f(%q: tensor<?x4x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache, %h: index) {
  // expected-error @+1 {{C10: tile must name a KV head and a split, found 1 entries}}
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) tile(%h) {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

func.func @f(%m: tensor<?x4x2xf32>, %v: tensor<?x4x2xf32>) {
  // expected-error @+1 {{C1: values must be [T, heads, splits, D] of f32, found 'tensor<?x4x2xf32>'}}
  %0 = kf.attention_combine %m, %m, %v : tensor<?x4x2xf32>, tensor<?x4x2xf32>
  return
}

// -----

func.func @f(%m: tensor<?x4x2xf32>, %v: tensor<?x4x?x8xf32>) {
  // expected-error @+1 {{C1: values must be [T, heads, splits, D] of f32, all but T static, found 'tensor<?x4x?x8xf32>'}}
  %0 = kf.attention_combine %m, %m, %v : tensor<?x4x2xf32>, tensor<?x4x?x8xf32>
  return
}

// -----

func.func @f(%m: tensor<?x4x3xf32>, %v: tensor<?x4x2x8xf32>) {
  // expected-error @+1 {{C2: maxima and totals must be 'tensor<?x4x2xf32>', found 'tensor<?x4x3xf32>'}}
  %0 = kf.attention_combine %m, %m, %v : tensor<?x4x3xf32>, tensor<?x4x2x8xf32>
  return
}

// -----

func.func @f(%s: vector<16xi32>, %a: vector<16xi8>) {
  // expected-error @+1 {{C1: a and b must have four times the lanes of sum, found 'vector<16xi8>' for 'vector<16xi32>'}}
  %0 = kf.dp4a %s, %a, %a : vector<16xi32>, vector<16xi8>
  return
}

// -----

func.func @f(%s: vector<4xi32>, %a: vector<16xi8>) {
  // expected-error @+1 {{C2: most must be from 1 to 255, and stay out with signed, found 256}}
  %0 = kf.dp4a %s, %a, %a most(256) : vector<4xi32>, vector<16xi8>
  return
}

// -----

func.func @f(%s: vector<4xi32>, %a: vector<16xi8>) {
  // expected-error @+1 {{C2: most must be from 1 to 255, and stay out with signed, found 15}}
  %0 = kf.dp4a %s, %a, %a most(15) signed : vector<4xi32>, vector<16xi8>
  return
}

// -----

func.func @f(%a: vector<16xi8>) {
  // expected-error @+1 {{C1: table must have 16 entries, found 2}}
  %0 = kf.look_up %a [0, 1] : vector<16xi8>
  return
}

// -----

func.func @wide_rows_of_f32(%x: tensor<?x64xf32>, %w: tensor<32x64xbf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{C7: with wide, x must be a rank 2 tensor of f16 or bf16, found 'tensor<?x64xf32>'}}
  %0 = kf.matmul %x, %w wide : tensor<?x64xf32>, tensor<32x64xbf16>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @wide_batches(%x: tensor<2x5x64xf16>, %w: tensor<32x64xf16>) -> tensor<2x5x32xf32> {
  // expected-error @+1 {{C7: with wide, x must be a rank 2 tensor of f16 or bf16, found 'tensor<2x5x64xf16>'}}
  %0 = kf.matmul %x, %w wide : tensor<2x5x64xf16>, tensor<32x64xf16>
  return %0 : tensor<2x5x32xf32>
}

// -----

func.func @round_half_of_f16(%x: tensor<?x64xf16>) {
  // expected-error @+1 {{C1: x must have f32 elements and rank 1 or more, found 'tensor<?x64xf16>'}}
  %h, %o = kf.round_half %x : tensor<?x64xf16>
  return
}

// -----

func.func @outliers_of_bf16(%x: tensor<?x64xbf16>, %o: tensor<?x64xf32>, %w: tensor<32x64xbf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{C9: outliers must be f32 elements in the shape of x, which is of f16 then, with wide, found 'tensor<?x64xf32>' for x 'tensor<?x64xbf16>'}}
  %0 = kf.matmul %x outliers(%o : tensor<?x64xf32>), %w wide : tensor<?x64xbf16>, tensor<32x64xbf16>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @outliers_of_other_rows(%x: tensor<?x64xf16>, %o: tensor<?x32xf32>, %w: tensor<32x64xf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{C9: outliers must be f32 elements in the shape of x}}
  %0 = kf.matmul %x outliers(%o : tensor<?x32xf32>), %w wide : tensor<?x64xf16>, tensor<32x64xf16>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @rows_of_batches(%x: tensor<2x3x64xf32>, %w: tensor<32x64xf16>) -> tensor<2x3x32xf32> {
  // expected-error @+1 {{C10: with rows, x must be a rank 2 tensor of f32, and w have no batches, found 'tensor<2x3x64xf32>' and 'tensor<32x64xf16>'}}
  %0 = kf.matmul %x, %w rows<f16> : tensor<2x3x64xf32>, tensor<32x64xf16>
  return %0 : tensor<2x3x32xf32>
}

// -----

func.func @rows_of_rounded(%x: tensor<?x64xf16>, %w: tensor<32x64xf16>) -> tensor<?x32xf16> {
  // expected-error @+1 {{C10: with rows, x must be a rank 2 tensor of f32}}
  %0 = kf.matmul %x, %w rows<f16> : tensor<?x64xf16>, tensor<32x64xf16>
  return %0 : tensor<?x32xf16>
}

// -----

func.func @codes_without_blocks(%x: tensor<?x64xf32>, %w: tensor<32x64xf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{C10: rows<i8> is for w of a quantized type, found 'tensor<32x64xf16>'}}
  %0 = kf.matmul %x, %w rows<i8> : tensor<?x64xf32>, tensor<32x64xf16>
  return %0 : tensor<?x32xf32>
}

// -----

kf.kernel @rows(%x: tensor<?x64xf32>, %w: tensor<32x64xf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{C10: kernels read what they are given; leave rows out here}}
  %0 = kf.matmul %x, %w rows<f16> : tensor<?x64xf32>, tensor<32x64xf16>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

func.func @rows_of_f64(%x: tensor<?x64xf32>, %w: tensor<32x64xf16>) -> tensor<?x32xf32> {
  // expected-error @+1 {{rows must be f32, f16, bf16 or i8, found 'f64'}}
  %0 = kf.matmul %x, %w rows<f64> : tensor<?x64xf32>, tensor<32x64xf16>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @rows_of_ui8(%x: tensor<?x64xf32>, %w: tensor<32x64x!kf.quant<q8_0>>) -> tensor<?x32xf32> {
  // expected-error @+1 {{rows must be f32, f16, bf16 or i8, found 'ui8'}}
  %0 = kf.matmul %x, %w rows<ui8> : tensor<?x64xf32>, tensor<32x64x!kf.quant<q8_0>>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @rows_of_si8(%x: tensor<?x64xf32>, %w: tensor<32x64x!kf.quant<q8_0>>) -> tensor<?x32xf32> {
  // expected-error @+1 {{rows must be f32, f16, bf16 or i8, found 'si8'}}
  %0 = kf.matmul %x, %w rows<si8> : tensor<?x64xf32>, tensor<32x64x!kf.quant<q8_0>>
  return %0 : tensor<?x32xf32>
}
