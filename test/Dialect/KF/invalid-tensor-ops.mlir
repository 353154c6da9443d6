// RUN: kf-opt %s --split-input-file --verify-diagnostics

func.func @transpose_c1(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{C1: permutation must have each dimension of x once, found 'tensor<3x4xf32>'}}
  %0 = kf.transpose %x permutation = [0, 0] : tensor<3x4xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<4x32x!kf.quant<q8_0>>) {
  // expected-error @+1 {{C2: elements must not lie in blocks, found 'tensor<4x32x!kf.quant<q8_0>>'; kf.dequantize them first}}
  %0 = kf.transpose %x permutation = [1, 0] : tensor<4x32x!kf.quant<q8_0>>
  return
}

// -----

func.func @broadcast_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: x and the result must have the same elements}}
  %0 = kf.broadcast %x : tensor<4xf32> to tensor<2x4xf16>
  return
}

// -----

func.func @broadcast_c2(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{C2: the result must have at least as many dimensions as x}}
  %0 = kf.broadcast %x : tensor<2x4xf32> to tensor<4xf32>
  return
}

// -----

func.func @broadcast_c3(%x: tensor<3xf32>) {
  // expected-error @+1 {{C3: each dimension of x must be 1 or that of the result}}
  %0 = kf.broadcast %x : tensor<3xf32> to tensor<2x4xf32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @+1 {{C1: the result must be a static tensor of i32 or i64, found 'tensor<4xf32>'}}
  %0 = kf.iota dim = 0 : tensor<4xf32>
  return
}

// -----

func.func @iota_c2() {
  // expected-error @+1 {{C2: dim 1 is not one of 'tensor<4xi32>'}}
  %0 = kf.iota dim = 1 : tensor<4xi32>
  return
}

// -----

func.func @copy_c1(%x: tensor<4x32x!kf.quant<q8_0>>) {
  // expected-error @+1 {{C1: elements must not lie in blocks}}
  %0 = kf.copy %x : tensor<4x32x!kf.quant<q8_0>>
  return
}

// -----

func.func @reduce_c1(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{C1: dims must be dimensions of x in ascending order}}
  %0 = kf.reduce(sum) %x dims = [1, 0] : tensor<3x4xf32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<3x4xi32>) {
  // expected-error @+1 {{C2: there is no mean of 'tensor<3x4xi32>'}}
  %0 = kf.reduce(mean) %x dims = [0] : tensor<3x4xi32>
  return
}

// -----

func.func @reduce_kind(%x: tensor<3x4xi32>) {
  // expected-error @+1 {{unknown reduction 'median'; known: sum, prod, max, min, mean}}
  %0 = kf.reduce(median) %x dims = [0] : tensor<3x4xi32>
  return
}

// -----

func.func @batch_matmul_c1(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{C1: x must have rank 3 or 4}}
  %0 = kf.batch_matmul %x, %x : tensor<3x4xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @batch_matmul_c2(%x: tensor<2x3x4xf32>, %w: tensor<1x3x4xf32>) {
  // expected-error @+1 {{C2: w must have the batches of x}}
  %0 = kf.batch_matmul %x, %w : tensor<2x3x4xf32>, tensor<1x3x4xf32>
  return
}

// -----

// A `?` of another name is another number.
func.func @batch_matmul_c2_size(%x: tensor<?x3x4xf32, #kf.size<wanted>>, %w: tensor<?x3x4xf32>) {
  // expected-error @+1 {{C2: w must have the batches of x}}
  %0 = kf.batch_matmul %x, %w : tensor<?x3x4xf32, #kf.size<wanted>>, tensor<?x3x4xf32>
  return
}

// -----

func.func @matmul_c2_size(%x: tensor<?x3x4xf32>, %w: tensor<?x3x4xf32, #kf.size<wanted>>) {
  // expected-error @+1 {{C2: w must be [N, K], or [..., N, K] with the batches of x}}
  %0 = kf.matmul %x, %w : tensor<?x3x4xf32>, tensor<?x3x4xf32, #kf.size<wanted>>
  return
}

// -----

func.func @batch_matmul_c3(%x: tensor<2x3x4xf32>, %w: tensor<2x3x5xf32>) {
  // expected-error @+1 {{C3: the last dimensions of x and w must be equal}}
  %0 = kf.batch_matmul %x, %w : tensor<2x3x4xf32>, tensor<2x3x5xf32>
  return
}

// -----

func.func @matmul_c2_batches(%x: tensor<2x3x4xf32>, %w: tensor<3x3x4xf32>) {
  // expected-error @+1 {{C2: w must be [N, K], or [..., N, K] with the batches of x}}
  %0 = kf.matmul %x, %w : tensor<2x3x4xf32>, tensor<3x3x4xf32>
  return
}

// -----

func.func @attention_c1(%q: tensor<2x8xf32>) {
  // expected-error @+1 {{C1: q must be [B, H, T, D] or [H, T, D], found 'tensor<2x8xf32>'}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

func.func @attention_c2(%q: tensor<4x5x8xf32>, %k: tensor<3x5x8xf32>) {
  // expected-error @+1 {{C2: k must be [B, G, S, D] for q [B, H, T, D], H a multiple of G}}
  %0 = kf.scaled_dot_product_attention %q, %k, %k : tensor<4x5x8xf32>, tensor<3x5x8xf32>, tensor<3x5x8xf32>
  return
}

// -----

func.func @attention_c3(%q: tensor<4x5x8xf32>, %v: tensor<4x6x8xf32>) {
  // expected-error @+1 {{C3: v must be [B, G, S, E] for k [B, G, S, D]}}
  %0 = kf.scaled_dot_product_attention %q, %q, %v : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x6x8xf32>
  return
}

// -----

func.func @attention_c4(%q: tensor<4x5x8xf32>, %m: tensor<5x4xf32>) {
  // expected-error @+1 {{C4: mask must be i1 or of f32, f16 or bf16 and broadcast to the scores, 'tensor<4x5x5xf32>', found 'tensor<5x4xf32>'}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q mask(%m) : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<5x4xf32>
  return
}

// -----

func.func @attention_c5(%q: tensor<4x5x8xf32>) {
  // expected-error @+1 {{C5: window needs causal}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q {window = 2 : i64} : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>
  return
}

// -----

func.func @attention_c5_window(%q: tensor<4x5x8xf32>) {
  // expected-error @+1 {{C5: window must be in [1, 2147483648], found 2147483649}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q {causal, window = 2147483649 : i64} : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>
  return
}

// -----

func.func @attention_c5_offset(%q: tensor<4x5x8xf32>) {
  // expected-error @+1 {{C5: offset must be in [-2147483648, 2147483648], found -9223372036854775808}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q {causal, offset = -9223372036854775808 : i64} : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>
  return
}

// -----

func.func @attention_c5_softcap(%q: tensor<4x5x8xf32>) {
  // expected-error @+1 {{C5: softcap must be positive and finite}}
  %0 = kf.scaled_dot_product_attention %q, %q, %q {softcap = 0.0 : f32} : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>
  return
}

// -----

func.func @rotary_c1(%x: tensor<8xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{C1: x must have rank 2 or more}}
  %0 = kf.rotary_embedding %x, %c, %c : tensor<8xf32>, tensor<4xf32>
  return
}

// -----

func.func @rotary_c2(%x: tensor<5x2x8xf32>, %c: tensor<3x1x4xf32>) {
  // expected-error @+1 {{C2: cos and sin must be of f32, f16 or bf16 and broadcast to x with half of the rotated elements}}
  %0 = kf.rotary_embedding %x, %c, %c : tensor<5x2x8xf32>, tensor<3x1x4xf32>
  return
}

// -----

func.func @rotary_c3(%x: tensor<5x2x8xf32>, %c: tensor<5x1x5xf32>) {
  // expected-error @+1 {{C3: tables rotate 10 elements, and rows of x have 8}}
  %0 = kf.rotary_embedding %x, %c, %c : tensor<5x2x8xf32>, tensor<5x1x5xf32>
  return
}
