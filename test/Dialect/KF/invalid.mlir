// RUN: kf-opt %s -verify-diagnostics -split-input-file

// One case for every constraint of embedding, matmul and mlp. invalid-rows.mlir,
// invalid-attention.mlir, invalid-structure.mlir and invalid-attributes.mlir
// have the others.

func.func @f(%i: tensor<?xi64>, %t: tensor<8x4xf32>) {
  // expected-error @+1 {{C1: ids must be a rank 1 tensor of i32, found 'tensor<?xi64>'}}
  %0 = kf.embedding %i, %t : tensor<?xi64>, tensor<8x4xf32>
  return
}

// -----

func.func @matmul_c2_blocks(%x: tensor<?x500xf32>, %w: tensor<96x500x!kf.quant<q4_k>>) {
  // expected-error @+1 {{C2: w must be [N, K], or [..., N, K] with the batches of x, of f32, f16, bf16 or, without batches, f8E4M3FN or whole blocks of a quantized type}}
  %0 = kf.matmul %x, %w : tensor<?x500xf32>, tensor<96x500x!kf.quant<q4_k>>
  return
}

// -----

func.func @embedding_c2_blocks(%ids: tensor<?xi32>, %t: tensor<96x33x!kf.quant<q8_0>>) {
  // expected-error @+1 {{C2: table must be a rank 2 tensor with static columns of f32, f16, bf16 or whole blocks of a quantized type}}
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<96x33x!kf.quant<q8_0>>
  return
}

// -----

// Where no result type follows, the parser says so.
func.func @f(%i: tensor<?x2xi32>, %t: tensor<8x4xf32>) {
  // expected-error @+1 {{C1: ids must be a rank 1 tensor of i32, found 'tensor<?x2xi32>'}}
  %0 = kf.embedding %i, %t : tensor<?x2xi32>, tensor<8x4xf32>
  return
}

// -----

func.func @f(%i: tensor<?xi32>, %t: tensor<8x4xi8>) {
  // expected-error @+1 {{C2: table must be a rank 2 tensor with static columns of f32, f16, bf16 or whole blocks of a quantized type, found 'tensor<8x4xi8>'}}
  %0 = kf.embedding %i, %t : tensor<?xi32>, tensor<8x4xi8>
  return
}

// -----

func.func @f(%i: tensor<?xi32>, %t: tensor<8x?xf32>) {
  // expected-error @+1 {{C2: table must be a rank 2 tensor with static columns}}
  %0 = kf.embedding %i, %t : tensor<?xi32>, tensor<8x?xf32>
  return
}

// -----

func.func @f(%i: tensor<?xi32>, %t: tensor<8xf32>) {
  // expected-error @+1 {{C2: table must have rank 2, found 'tensor<8xf32>'}}
  %0 = kf.embedding %i, %t : tensor<?xi32>, tensor<8xf32>
  return
}

// -----

// embedding C3: inference checks the result.
func.func @f(%i: tensor<?xi32>, %t: tensor<8x4xf16>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x4xf32>' are incompatible with return type(s) of operation 'tensor<?x4xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.embedding"(%i, %t) : (tensor<?xi32>, tensor<8x4xf16>) -> tensor<?x4xf16>
  return
}

// -----

func.func @f(%x: tensor<?x8xi32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: x must be a tensor of rank 2 to 4 of f32, f16 or bf16, found 'tensor<?x8xi32>'}}
  %0 = kf.matmul %x, %w : tensor<?x8xi32>, tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{C1: x must have rank 2 to 4, found 'tensor<8xf32>'}}
  %0 = kf.matmul %x, %w : tensor<8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+1 {{C2: w must be [N, K], or [..., N, K] with the batches of x, of f32, f16, bf16 or, without batches, f8E4M3FN or whole blocks of a quantized type, found 'tensor<2x4x8xf32>'}}
  %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{C2: w must be [2, N, K] with glu of f32, f16, bf16 or, without batches, f8E4M3FN or whole blocks of a quantized type, found 'tensor<4x8xf32>'}}
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<3x4x8xf32>) {
  // expected-error @+1 {{C2: w must be [2, N, K] with glu}}
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x8xf32>, tensor<3x4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xi8>) {
  // expected-error @+1 {{C2: w must be [N, K]}}
  %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<4x8xi8>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C2: w must have rank 2, 3 with glu, or the rank of x, found 'tensor<8xf32>'}}
  %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x9xf32>) {
  // expected-error @+1 {{C3: last dimensions of x and w must be equal and static, found 'tensor<?x8xf32>' and 'tensor<4x9xf32>'}}
  %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<4x9xf32>
  return
}

// -----

func.func @f(%x: tensor<8x?xf32>, %w: tensor<4x?xf32>) {
  // expected-error @+1 {{C3: last dimensions of x and w must be equal and static}}
  %0 = kf.matmul %x, %w : tensor<8x?xf32>, tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{C4: bias must have w's shape without its last dimension and float elements, and w no batches, found 'tensor<5xf32>' for w 'tensor<4x8xf32>'}}
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xi32>) {
  // expected-error @+1 {{C4: bias must have w's shape}}
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<2x4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{C4: bias must have w's shape}}
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<?x8xf32>, tensor<2x4x8xf32>, tensor<4xf32>
  return
}

// -----

// matmul C5
func.func @f(%x: tensor<?x8xf16>, %w: tensor<4x8xf16>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x4xf16>' are incompatible with return type(s) of operation 'tensor<?x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.matmul"(%x, %w) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0>}> : (tensor<?x8xf16>, tensor<4x8xf16>) -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<2x4x8xf32>) {
  // expected-error @+1 {{unknown activation 'swish'; known: identity, silu, gelu, gelu_tanh, relu}}
  %0 = kf.matmul %x, %w glu(swish) : tensor<?x8xf32>, tensor<2x4x8xf32>
  return
}

// -----

// Every op: no dimension is 0.
func.func @f(%x: tensor<?x0xf32>, %w: tensor<4x0xf32>) {
  // expected-error @+1 {{needs tensors without a dimension of size 0, found 'tensor<?x0xf32>'}}
  %0 = kf.matmul %x, %w : tensor<?x0xf32>, tensor<4x0xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xi32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>) {
  // expected-error @+1 {{C1: x must be a rank 2 tensor of f32, f16 or bf16, found 'tensor<?x8xi32>'}}
  %0 = kf.mlp %x up(%u) down(%d) activation(silu) : (tensor<?x8xi32>, tensor<16x8xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>) {
  // expected-error @+1 {{C1: x must have rank 2, found 'tensor<8xf32>'}}
  %0 = kf.mlp %x up(%u) down(%d) activation(silu) : (tensor<8xf32>, tensor<16x8xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x9xf32>, %d: tensor<8x16xf32>) {
  // expected-error @+1 {{C2: up must be [F, K] for x 'tensor<?x8xf32>', found 'tensor<16x9xf32>'}}
  %0 = kf.mlp %x up(%u) down(%d) activation(silu) : (tensor<?x8xf32>, tensor<16x9xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %g: tensor<15x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>) {
  // expected-error @+1 {{C2: gate must have the shape of up, found 'tensor<15x8xf32>' and 'tensor<16x8xf32>'}}
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) activation(silu) : (tensor<?x8xf32>, tensor<15x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x15xf32>) {
  // expected-error @+1 {{C3: down must be [N, F] with F = 16, found 'tensor<8x15xf32>'}}
  %0 = kf.mlp %x up(%u) down(%d) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<8x15xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<16xf32>) {
  // expected-error @+1 {{C3: down must have rank 2, found 'tensor<16xf32>'}}
  %0 = kf.mlp %x up(%u) down(%d) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>, %gb: tensor<16xf32>) {
  // expected-error @+1 {{C4: biases must be [F], [F] and [N] of a float type, and gate_bias needs gate}}
  %0 = kf.mlp %x up(%u) down(%d) gate_bias(%gb) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>, %ub: tensor<8xf32>) {
  // expected-error @+1 {{C4: biases must be [F], [F] and [N]}}
  %0 = kf.mlp %x up(%u) down(%d) up_bias(%ub) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<8xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>, %db: tensor<16xf32>) {
  // expected-error @+1 {{C4: biases must be [F], [F] and [N]}}
  %0 = kf.mlp %x up(%u) down(%d) down_bias(%db) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %g: tensor<16x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>, %gb: tensor<16xi32>) {
  // expected-error @+1 {{C4: biases must be [F], [F] and [N]}}
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) gate_bias(%gb) activation(silu) : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16xi32>)
  return
}

// -----

// mlp C5
func.func @f(%x: tensor<?x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<?x16xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.mlp"(%x, %u, %d) <{activation = #kf.activation_kind<silu>, operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0, 0>}> : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<2x?x8xf32>, %w: tensor<4x8xf8E4M3FN>) {
  // expected-error @+1 {{C8: with w of f8E4M3FN, x must have rank 2, found 'tensor<2x?x8xf32>'}}
  %0 = kf.matmul %x, %w : tensor<2x?x8xf32>, tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @f(%x: tensor<2x3x8xf32>, %w: tensor<2x4x8xf8E4M3FN>) {
  // expected-error @+1 {{C2: w must be [N, K], or [..., N, K] with the batches of x, of f32, f16, bf16 or, without batches, f8E4M3FN}}
  %0 = kf.matmul %x, %w : tensor<2x3x8xf32>, tensor<2x4x8xf8E4M3FN>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xf8E4M3FN>, %s: tensor<8xf32>) {
  // expected-error @+1 {{C8: weight_scales must have w's shape without its last dimension and f32 elements, and w those of f8E4M3FN, found 'tensor<8xf32>' for w 'tensor<4x8xf8E4M3FN>'}}
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<8xf32>) : tensor<?x8xf32>, tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xf8E4M3FN>, %s: tensor<4xf16>) {
  // expected-error @+1 {{C8: weight_scales must have}}
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<4xf16>) : tensor<?x8xf32>, tensor<4x8xf8E4M3FN>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: tensor<4x8xbf16>, %s: tensor<4xf32>) {
  // expected-error @+1 {{C8: weight_scales must have}}
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<4xf32>) : tensor<?x8xf32>, tensor<4x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x32xi8>, %s: tensor<?x1xf32>, %t: tensor<?x1xi32>, %w: tensor<4x32xf8E4M3FN>) {
  // expected-error @+1 {{C6: with scales, w must be of a quantized type}}
  %0 = kf.matmul %x scales(%s : tensor<?x1xf32>) sums(%t : tensor<?x1xi32>), %w : tensor<?x32xi8>, tensor<4x32xf8E4M3FN>
  return
}

// -----

// Ids are looked up in no table of 8 bits.
func.func @f(%i: tensor<?xi32>, %t: tensor<8x4xf8E4M3FN>) {
  // expected-error @+1 {{C2: table must be a rank 2 tensor with static columns of f32, f16, bf16 or whole blocks of a quantized type, found 'tensor<8x4xf8E4M3FN>'}}
  %0 = kf.embedding %i, %t : tensor<?xi32>, tensor<8x4xf8E4M3FN>
  return
}
