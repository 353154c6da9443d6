// RUN: kf-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{C1: logits must have rank 2, found 'tensor<8xf32>'}}
  %0:2 = kf.route %x top(2) : tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xi32>) {
  // expected-error @+1 {{C1: logits must be a rank 2 tensor of f32, f16 or bf16 with a static number of columns, at most 65536, found 'tensor<?x8xi32>'}}
  %0:2 = kf.route %x top(2) : tensor<?x8xi32>
  return
}

// -----

func.func @f(%x: tensor<?x65537xf32>) {
  // expected-error @+1 {{C1: logits must be}}
  %0:2 = kf.route %x top(2) : tensor<?x65537xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{C2: top must be positive, found 0}}
  %0:2 = kf.route %x top(0) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{C2: top must be at most 8, found 9}}
  %0:2 = kf.route %x top(9) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<7xf32>) {
  // expected-error @+1 {{C4: scales must be [8] of a float type, found 'tensor<7xf32>'}}
  %0:2 = kf.route %x top(2) scales(%s : tensor<7xf32>) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{C4: scales must be [8] of a float type, found 'tensor<8xi32>'}}
  %0:2 = kf.route %x top(2) scales(%s : tensor<8xi32>) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<7xf32>) {
  // expected-error @+1 {{C4: bias must be [8] of a float type, found 'tensor<7xf32>'}}
  %0:2 = kf.route %x top(2) sigmoid bias(%s : tensor<7xf32>) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C5: bias needs sigmoid}}
  %0:2 = kf.route %x top(2) bias(%s : tensor<8xf32>) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{C5: groups needs bias}}
  %0:2 = kf.route %x top(2) sigmoid groups(4, 2) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C5: groups must divide 8 experts into groups of two or more, found 8}}
  %0:2 = kf.route %x top(2) sigmoid bias(%s : tensor<8xf32>) groups(8, 2) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C5: groups must divide 8 experts into groups of two or more, found 3}}
  %0:2 = kf.route %x top(2) sigmoid bias(%s : tensor<8xf32>) groups(3, 2) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C5: kept groups must be in [1, 4], found 5}}
  %0:2 = kf.route %x top(2) sigmoid bias(%s : tensor<8xf32>) groups(4, 5) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C5: 1 groups have 2 experts, fewer than the 3 of top}}
  %0:2 = kf.route %x top(3) sigmoid bias(%s : tensor<8xf32>) groups(4, 1) : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C1: x must have rank 2 or 3, found 'tensor<64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C1: x must be a tensor of rank 2 or 3 of f32, f16 or bf16, found 'tensor<?x64xi8>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C2: experts must have rank 2, found 'tensor<?xi32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi64>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C2: experts must be [T, k] of i32 for x [T, K] or [T, k, K], found 'tensor<?x2xi64>' for x 'tensor<?x64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi64>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<5x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C2: experts must be}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<5x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x3x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C2: experts must be}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x3x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<4x96x64xf32>) {
  // expected-error @+1 {{C3: w must have rank 4, found 'tensor<4x96x64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<2x4x96x64xf32>) {
  // expected-error @+1 {{C3: w must be [1, E, N, K], E at most 65536, of f32, f16, bf16 or whole blocks of a quantized type, found 'tensor<2x4x96x64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C3: w must be [2, E, N, K] with glu}}
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf8E4M3FN>) {
  // expected-error @+1 {{C3: w must be}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf8E4M3FN>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C4: last dimensions of x and w must be equal and static, found 'tensor<?x32xf32>' and 'tensor<1x4x96x64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x32xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>, %b: tensor<4x96xf32>) {
  // expected-error @+1 {{C5: bias must have w's shape without its last dimension and float elements, found 'tensor<4x96xf32>' for w 'tensor<1x4x96x64xf32>'}}
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>, tensor<4x96xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64x!kf.quant<q4_0>>) {
  // expected-error @+1 {{C6: scales and sums come together}}
  %0 = kf.expert_matmul %x scales(%s : tensor<?x2xf32>) experts(%e), %w : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C6: with scales, w must be of a quantized type, found 'tensor<1x4x96x64xf32>'}}
  %0 = kf.expert_matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>) experts(%e), %w : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x4xi32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64x!kf.quant<q4_0>>) {
  // expected-error @+1 {{C6: sums must be 'tensor<?x2xi32>', found 'tensor<?x4xi32>'}}
  %0 = kf.expert_matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x4xi32>) experts(%e), %w : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C3: stacked needs leading dimensions that make 3, and one behind them, found 'tensor<2x2x96x64xf32>'}}
  %0 = kf.weight ["a", "b", "c"] {stacked} : tensor<2x2x96x64xf32>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{C4: transposed needs rank 4, found 'tensor<2x2x96xf32>'}}
  %0 = kf.weight ["a", "b", "c", "d"] {stacked, transposed} : tensor<2x2x96xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<2x4x96x64xf32>) {
  // expected-error @+1 {{C8: clamped is for glu(silu)}}
  %0 = kf.expert_matmul %x experts(%e), %w glu(relu) clamped<limit = 7.0, alpha = 1.702> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf32>) {
  // expected-error @+1 {{C8: clamped is for glu(silu)}}
  %0 = kf.expert_matmul %x experts(%e), %w clamped<limit = 7.0, alpha = 1.702> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<2x4x96x64xf32>) {
  // expected-error @+1 {{limit and alpha must be positive and finite, found 0.000000e+00 and 1.702000e+00}}
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) clamped<limit = 0.0, alpha = 1.702> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xf16>) -> tensor<?x2x96xf32> {
  // expected-error @+1 {{C9: rows must be f32 or i8, found 'f16'}}
  %0 = kf.expert_matmul %x experts(%e), %w rows<f16> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xf16>
  return %0 : tensor<?x2x96xf32>
}

// -----

func.func @f(%x: tensor<?x2x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64x!kf.quant<q4_0>>) -> tensor<?x2x96xf32> {
  // expected-error @+1 {{C9: with rows, x must be a rank 2 tensor of f32}}
  %0 = kf.expert_matmul %x experts(%e), %w rows<i8> : tensor<?x2x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  return %0 : tensor<?x2x96xf32>
}
