// RUN: kf-opt %s --split-input-file --verify-diagnostics

func.func @cross_entropy_c1(%x: tensor<?x2x4xf32>, %labels: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must have rank 2, found 'tensor<?x2x4xf32>'}}
  %0 = kf.cross_entropy %x, %labels : tensor<?x2x4xf32>, tensor<?xi32>
  return
}

// -----

func.func @cross_entropy_c1_type(%x: tensor<?x4xi32>, %labels: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of f32, f16 or bf16, V static and below 2^31, found 'tensor<?x4xi32>'}}
  %0 = kf.cross_entropy %x, %labels : tensor<?x4xi32>, tensor<?xi32>
  return
}

// -----

func.func @cross_entropy_c1_columns(%x: tensor<?x?xf32>, %labels: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of f32, f16 or bf16, V static and below 2^31, found 'tensor<?x?xf32>'}}
  %0 = kf.cross_entropy %x, %labels : tensor<?x?xf32>, tensor<?xi32>
  return
}

// -----

func.func @cross_entropy_c2(%x: tensor<?x4xf32>, %labels: tensor<?xi64>) {
  // expected-error @+1 {{C2: labels must be i32, one a row of 'tensor<?x4xf32>', found 'tensor<?xi64>'}}
  %0 = kf.cross_entropy %x, %labels : tensor<?x4xf32>, tensor<?xi64>
  return
}

// -----

func.func @cross_entropy_c2_rows(%x: tensor<?x4xf32>, %labels: tensor<3xi32>) {
  // expected-error @+1 {{C2: labels must be i32, one a row of}}
  %0 = kf.cross_entropy %x, %labels : tensor<?x4xf32>, tensor<3xi32>
  return
}

// -----

func.func @scatter_add_c1(%ids: tensor<?x1xi32>, %x: tensor<?x4xf32>) {
  // expected-error @+1 {{C1: ids must be a rank 1 tensor of i32, found 'tensor<?x1xi32>'}}
  %0 = kf.scatter_add %ids, %x : tensor<?x1xi32>, tensor<?x4xf32> to tensor<7x4xf32>
  return
}

// -----

func.func @scatter_add_c2(%ids: tensor<?xi32>, %x: tensor<3x4xf32>) {
  // expected-error @+1 {{C2: rows must be [T, D] of f32, f16 or bf16, D static, for ids 'tensor<?xi32>', found 'tensor<3x4xf32>'}}
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<3x4xf32> to tensor<7x4xf32>
  return
}

// -----

func.func @scatter_add_c2_columns(%ids: tensor<?xi32>, %x: tensor<?x?xf32>) {
  // expected-error @+1 {{C2: rows must be [T, D] of f32, f16 or bf16, D static, for ids 'tensor<?xi32>', found 'tensor<?x?xf32>'}}
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x?xf32> to tensor<7x4xf32>
  return
}

// -----

func.func @scatter_add_c3(%ids: tensor<?xi32>, %x: tensor<?x4xf32>) {
  // expected-error @+1 {{C3: the result must be a static [V, 4] of f32, found 'tensor<?x4xf32>'}}
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x4xf32> to tensor<?x4xf32>
  return
}

// -----

func.func @dgrad_c1(%dy: tensor<?x4xi32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: dy must be [M, N] of f32, f16 or bf16, N static, found 'tensor<?x4xi32>'}}
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x4xi32>, tensor<4x8xf32>
  return
}

// -----

func.func @dgrad_c1_rank(%dy: tensor<4xf32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: dy must have rank 2, found 'tensor<4xf32>'}}
  %0 = kf.matmul_dgrad %dy, %w : tensor<4xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @dgrad_c2(%dy: tensor<?x4xf32>, %w: tensor<8x4xf32>) {
  // expected-error @+1 {{C2: w must be a static [4, K] of f32, f16, bf16 or whole blocks of a quantized type, found 'tensor<8x4xf32>'}}
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x4xf32>, tensor<8x4xf32>
  return
}

// -----

func.func @dgrad_c2_rank(%dy: tensor<?x4xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+1 {{C2: w must have rank 2, found 'tensor<2x4x8xf32>'}}
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x4xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @wgrad_c1(%dy: tensor<?x4xi32>, %x: tensor<?x8xf32>) {
  // expected-error @+1 {{C1: dy must be [M, N] of f32, f16 or bf16, N static, found 'tensor<?x4xi32>'}}
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x4xi32>, tensor<?x8xf32>
  return
}

// -----

func.func @wgrad_c2(%dy: tensor<?x4xf32>, %x: tensor<?x8xf32, #kf.size<rows>>) {
  // expected-error @+1 {{C2: x must be [M, K] of f32, f16 or bf16, K static, with the rows of dy 'tensor<?x4xf32>', found 'tensor<?x8xf32, #kf.size<rows>>'}}
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x4xf32>, tensor<?x8xf32, #kf.size<rows>>
  return
}

// -----

func.func @wgrad_c1_columns(%dy: tensor<?x?xf32>, %x: tensor<?x8xf32>) {
  // expected-error @+1 {{C1: dy must be [M, N] of f32, f16 or bf16, N static, found 'tensor<?x?xf32>'}}
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x?xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @wgrad_c2_columns(%dy: tensor<?x4xf32>, %x: tensor<?x?xf32>) {
  // expected-error @+1 {{C2: x must be [M, K] of f32, f16 or bf16, K static, with the rows of dy 'tensor<?x4xf32>', found 'tensor<?x?xf32>'}}
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x4xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @dropout_c1(%x: tensor<?x4xf32>, %draw: tensor<4xi32>) {
  // expected-error @+1 {{C1: x must be a static [T, D] of f32, f16 or bf16, both below 2^31, found 'tensor<?x4xf32>'}}
  %0 = kf.dropout %x, %draw {p = 0.1 : f32} : tensor<?x4xf32>, tensor<4xi32>
  return
}

// -----

func.func @dropout_c1_type(%x: tensor<3x4xi32>, %draw: tensor<4xi32>) {
  // expected-error @+1 {{C1: x must be a static [T, D] of f32, f16 or bf16}}
  %0 = kf.dropout %x, %draw {p = 0.1 : f32} : tensor<3x4xi32>, tensor<4xi32>
  return
}

// -----

func.func @dropout_c2(%x: tensor<3x4xf32>, %draw: tensor<2xi32>) {
  // expected-error @+1 {{C2: draw must be a tensor<4xi32>, found 'tensor<2xi32>'}}
  %0 = kf.dropout %x, %draw {p = 0.1 : f32} : tensor<3x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @dropout_c2_type(%x: tensor<3x4xf32>, %draw: tensor<4xi64>) {
  // expected-error @+1 {{operand #1 must be ranked tensor of 32-bit signless integer values, but got 'tensor<4xi64>'}}
  %0 = kf.dropout %x, %draw {p = 0.1 : f32} : tensor<3x4xf32>, tensor<4xi64>
  return
}

// -----

func.func @dropout_c3(%x: tensor<3x4xf32>, %draw: tensor<4xi32>) {
  // expected-error @+1 {{C3: p must be from 0 to below 1, found 1.0}}
  %0 = kf.dropout %x, %draw {p = 1.0 : f32} : tensor<3x4xf32>, tensor<4xi32>
  return
}

// -----

func.func @dropout_c3_nan(%x: tensor<3x4xf32>, %draw: tensor<4xi32>) {
  // expected-error @+1 {{C3: p must be from 0 to below 1}}
  %0 = kf.dropout %x, %draw {p = 0x7FC00000 : f32} : tensor<3x4xf32>, tensor<4xi32>
  return
}

// -----

func.func @philox_c1(%c: tensor<3xi64>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of 32-bit signless integer values, but got 'tensor<3xi64>'}}
  %0 = kf.philox %c, %c, %c, %c key %c, %c : tensor<3xi64>
  return
}

// -----

func.func @qgrad_c1(%q: tensor<2x8xf32>) {
  // expected-error @+1 {{C1: q must be [B, H, T, D] or [H, T, D], found 'tensor<2x8xf32>'}}
  %0:3 = kf.attention_qgrad %q, %q, %q, %q : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

func.func @qgrad_c2(%q: tensor<4x5x8xf32>, %k: tensor<3x5x8xf32>) {
  // expected-error @+1 {{C2: k must be [B, G, S, D] for q [B, H, T, D], H a multiple of G}}
  %0:3 = kf.attention_qgrad %q, %k, %k, %q : tensor<4x5x8xf32>, tensor<3x5x8xf32>, tensor<3x5x8xf32>, tensor<4x5x8xf32>
  return
}

// -----

func.func @qgrad_c6(%q: tensor<4x5x8xf32>, %dy: tensor<4x5x7xf32>) {
  // expected-error @+1 {{C6: dy must be [B, H, T, E] of f32, f16 or bf16 for q [B, H, T, D] and v [B, G, S, E], found 'tensor<4x5x7xf32>'}}
  %0:3 = kf.attention_qgrad %q, %q, %q, %dy : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x7xf32>
  return
}

// -----

func.func @kvgrad_c2(%q: tensor<4x5x8xf32>, %k: tensor<5x8xf32>, %n: tensor<4x5xf32>) {
  // expected-error @+1 {{C2: k must be [B, G, S, D] or [G, S, D], found 'tensor<5x8xf32>'}}
  %0:2 = kf.attention_kvgrad %q, %k, %k, %q, %n, %n : tensor<4x5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<4x5x8xf32>, tensor<4x5xf32>
  return
}

// -----

func.func @kvgrad_c5(%q: tensor<4x5x8xf32>, %n: tensor<4x5xf32>) {
  // expected-error @+1 {{C5: window needs causal}}
  %0:2 = kf.attention_kvgrad %q, %q, %q, %q, %n, %n {window = 2 : i64} : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5xf32>
  return
}

// -----

func.func @kvgrad_c7(%q: tensor<4x5x8xf32>, %n: tensor<4x6xf32>) {
  // expected-error @+1 {{C7: lse and delta must be 'tensor<4x5xf32>', found 'tensor<4x6xf32>'}}
  %0:2 = kf.attention_kvgrad %q, %q, %q, %q, %n, %n : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x6xf32>
  return
}

// -----

// Loops that are no tile of a kernel change no constraint.
func.func @qgrad_c2_loop(%q: tensor<4x5x8xf32>, %k: tensor<3x5x8xf32>, %n: index) {
  scf.forall (%i) in (%n) {
    // expected-error @+1 {{C2: k must be [B, G, S, D] for q [B, H, T, D], H a multiple of G}}
    %0:3 = kf.attention_qgrad %q, %k, %k, %q : tensor<4x5x8xf32>, tensor<3x5x8xf32>, tensor<3x5x8xf32>, tensor<4x5x8xf32>
  }
  return
}

// -----

func.func @attention_c4_loop(%q: tensor<4x5x8xf32>, %m: tensor<7x9xi32>, %n: index, %one: index) {
  scf.for %i = %n to %n step %one {
    // expected-error @+1 {{C4: mask must be i1 or of f32, f16 or bf16 and broadcast to the scores}}
    %0 = kf.scaled_dot_product_attention %q, %q, %q mask(%m) : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<7x9xi32>
  }
  return
}
