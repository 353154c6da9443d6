// Products. Weights by name are frozen; functions called blocks_* have one in
// blocks.

func.func @matmul(%x: tensor<?x32xf32> {kf.gradient}, %w: tensor<9x32xf32> {kf.gradient}, %b: tensor<9xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x32xf32>, tensor<9x32xf32>, tensor<9xf32>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @matmul_of_static_rows(%x: tensor<4x32xf32> {kf.gradient}, %w: tensor<9x32xf32> {kf.gradient}, %r: tensor<4x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<4x32xf32>, tensor<9x32xf32>
  %p = arith.mulf %0, %r : tensor<4x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<4x9xf32>
  return %loss : tensor<f32>
}

func.func @rounded_matmul_of_bf16(%x: tensor<?x32xf32> {kf.gradient}, %w: tensor<9x32xbf16> {kf.gradient}, %b: tensor<9xbf16> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x32xf32>, tensor<9x32xbf16>, tensor<9xbf16>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @matmul_of_weight_alone(%x: tensor<?x32xf32>, %w: tensor<9x32xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<?x32xf32>, tensor<9x32xf32>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @rounded_matmul_of_frozen_weight(%x: tensor<?x32xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<9x32xbf16>
  %0 = kf.matmul %x, %w : tensor<?x32xf32>, tensor<9x32xbf16>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @blocks_q8_0(%x: tensor<?x32xf32> {kf.gradient}, %r: tensor<?x32xf32>) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<32x32x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x32xf32>, tensor<32x32x!kf.quant<q8_0>>
  %p = arith.mulf %0, %r : tensor<?x32xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x32xf32>
  return %loss : tensor<f32>
}

func.func @blocks_q4_0(%x: tensor<?x32xf32> {kf.gradient}, %r: tensor<?x32xf32>) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<32x32x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x32xf32>, tensor<32x32x!kf.quant<q4_0>>
  %p = arith.mulf %0, %r : tensor<?x32xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x32xf32>
  return %loss : tensor<f32>
}

func.func @blocks_q4_k(%x: tensor<?x256xf32> {kf.gradient}, %r: tensor<?x32xf32>) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<32x256x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<32x256x!kf.quant<q4_k>>
  %p = arith.mulf %0, %r : tensor<?x32xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x32xf32>
  return %loss : tensor<f32>
}

func.func @matmul_glu_silu(%x: tensor<?x32xf32> {kf.gradient}, %w: tensor<2x9x32xf32> {kf.gradient}, %b: tensor<2x9xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<?x32xf32>, tensor<2x9x32xf32>, tensor<2x9xf32>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @matmul_glu_gelu_tanh(%x: tensor<?x32xf32> {kf.gradient}, %w: tensor<2x9x32xf32> {kf.gradient}, %b: tensor<2x9xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w bias(%b) glu(gelu_tanh) : tensor<?x32xf32>, tensor<2x9x32xf32>, tensor<2x9xf32>
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @matmul_of_batches(%x: tensor<2x3x8xf32> {kf.gradient}, %w: tensor<5x8xf32> {kf.gradient}, %r: tensor<2x3x5xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<2x3x8xf32>, tensor<5x8xf32>
  %p = arith.mulf %0, %r : tensor<2x3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x3x5xf32>
  return %loss : tensor<f32>
}

func.func @matmul_of_batches_of_rows(%x: tensor<?x3x8xf32> {kf.gradient}, %w: tensor<5x8xf32> {kf.gradient}, %r: tensor<?x3x5xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<?x3x8xf32>, tensor<5x8xf32>
  %p = arith.mulf %0, %r : tensor<?x3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x3x5xf32>
  return %loss : tensor<f32>
}

func.func @matmul_with_batches(%x: tensor<2x4x3x8xf32> {kf.gradient}, %w: tensor<2x1x5x8xf32> {kf.gradient}, %r: tensor<2x4x3x5xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<2x4x3x8xf32>, tensor<2x1x5x8xf32>
  %p = arith.mulf %0, %r : tensor<2x4x3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2, 3] : tensor<2x4x3x5xf32>
  return %loss : tensor<f32>
}

func.func @batch_matmul(%x: tensor<?x3x8xf32> {kf.gradient}, %w: tensor<?x5x8xf32> {kf.gradient}, %r: tensor<?x3x5xf32>) -> tensor<f32> {
  %0 = kf.batch_matmul %x, %w : tensor<?x3x8xf32>, tensor<?x5x8xf32>
  %p = arith.mulf %0, %r : tensor<?x3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x3x5xf32>
  return %loss : tensor<f32>
}

func.func @mlp(%x: tensor<?x32xf32> {kf.gradient}, %u: tensor<12x32xf32> {kf.gradient}, %d: tensor<9x12xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.mlp %x up(%u) down(%d) activation(gelu) : (tensor<?x32xf32>, tensor<12x32xf32>, tensor<9x12xf32>)
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @mlp_with_gate(%x: tensor<?x32xf32> {kf.gradient}, %g: tensor<12x32xf32> {kf.gradient}, %u: tensor<12x32xf32> {kf.gradient}, %d: tensor<9x12xf32> {kf.gradient}, %r: tensor<?x9xf32>) -> tensor<f32> {
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) activation(silu) : (tensor<?x32xf32>, tensor<12x32xf32>, tensor<12x32xf32>, tensor<9x12xf32>)
  %p = arith.mulf %0, %r : tensor<?x9xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x9xf32>
  return %loss : tensor<f32>
}

func.func @embedding(%ids: tensor<?xi32>, %t: tensor<7x12xf32> {kf.gradient}, %r: tensor<?x12xf32>) -> tensor<f32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<7x12xf32>
  %p = arith.mulf %0, %r : tensor<?x12xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x12xf32>
  return %loss : tensor<f32>
}
