// Norms, softmax, rotations and attention.

func.func @rms_norm(%x: tensor<?x12xf32> {kf.gradient}, %w: tensor<12xf32> {kf.gradient}, %r: tensor<?x12xf32>) -> tensor<f32> {
  %0 = kf.rms_norm %x, %w eps(1.0e-2) : tensor<?x12xf32>, tensor<12xf32>
  %p = arith.mulf %0, %r : tensor<?x12xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x12xf32>
  return %loss : tensor<f32>
}

func.func @rms_norm_zero_centered(%x: tensor<?x3x4xf32> {kf.gradient}, %w: tensor<4xf32> {kf.gradient}, %r: tensor<?x3x4xf32>) -> tensor<f32> {
  %0 = kf.rms_norm %x, %w zero_centered eps(1.0e-2) : tensor<?x3x4xf32>, tensor<4xf32>
  %p = arith.mulf %0, %r : tensor<?x3x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x3x4xf32>
  return %loss : tensor<f32>
}

func.func @layer_norm(%x: tensor<?x12xf32> {kf.gradient}, %w: tensor<12xf32> {kf.gradient}, %b: tensor<12xf32> {kf.gradient}, %r: tensor<?x12xf32>) -> tensor<f32> {
  %0 = kf.layer_norm %x, %w bias(%b) eps(1.0e-2) : tensor<?x12xf32>, tensor<12xf32>, tensor<12xf32>
  %p = arith.mulf %0, %r : tensor<?x12xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x12xf32>
  return %loss : tensor<f32>
}

func.func @softmax(%x: tensor<?x12xf32> {kf.gradient}, %r: tensor<?x12xf32>) -> tensor<f32> {
  %0 = kf.softmax %x : tensor<?x12xf32>
  %p = arith.mulf %0, %r : tensor<?x12xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x12xf32>
  return %loss : tensor<f32>
}

func.func @rope(%x: tensor<?x2x8xf32> {kf.gradient}, %positions: tensor<?xi32>, %r: tensor<?x2x8xf32>) -> tensor<f32> {
  %0 = kf.rope %x, %positions {rotary_dim = 6 : i64, theta = 1.0e4 : f64} : tensor<?x2x8xf32>, tensor<?xi32>
  %p = arith.mulf %0, %r : tensor<?x2x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x2x8xf32>
  return %loss : tensor<f32>
}

func.func @rope_interleaved(%x: tensor<?x2x8xf32> {kf.gradient}, %positions: tensor<?xi32>, %r: tensor<?x2x8xf32>) -> tensor<f32> {
  %0 = kf.rope %x, %positions {rotary_dim = 8 : i64, theta = 1.0e4 : f64, style = #kf.rope_style<interleaved>, magnitude = 1.5 : f64} : tensor<?x2x8xf32>, tensor<?xi32>
  %p = arith.mulf %0, %r : tensor<?x2x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x2x8xf32>
  return %loss : tensor<f32>
}

func.func @rotary_embedding(%x: tensor<?x2x8xf32> {kf.gradient}, %cos: tensor<?x1x3xf32>, %sin: tensor<?x1x3xf32>, %r: tensor<?x2x8xf32>) -> tensor<f32> {
  %0 = kf.rotary_embedding %x, %cos, %sin : tensor<?x2x8xf32>, tensor<?x1x3xf32>
  %p = arith.mulf %0, %r : tensor<?x2x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x2x8xf32>
  return %loss : tensor<f32>
}

func.func @rotary_embedding_interleaved(%x: tensor<?x2x8xf32> {kf.gradient}, %cos: tensor<?x1x4xf32>, %sin: tensor<?x1x4xf32>, %r: tensor<?x2x8xf32>) -> tensor<f32> {
  %0 = kf.rotary_embedding %x, %cos, %sin {style = #kf.rope_style<interleaved>} : tensor<?x2x8xf32>, tensor<?x1x4xf32>
  %p = arith.mulf %0, %r : tensor<?x2x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x2x8xf32>
  return %loss : tensor<f32>
}

func.func @attention(%q: tensor<3x4x8xf32> {kf.gradient}, %k: tensor<3x5x8xf32> {kf.gradient}, %v: tensor<3x5x6xf32> {kf.gradient}, %r: tensor<3x4x6xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v : tensor<3x4x8xf32>, tensor<3x5x8xf32>, tensor<3x5x6xf32>
  %p = arith.mulf %0, %r : tensor<3x4x6xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<3x4x6xf32>
  return %loss : tensor<f32>
}

func.func @attention_causal_of_groups(%q: tensor<2x4x5x8xf32> {kf.gradient}, %k: tensor<2x2x5x8xf32> {kf.gradient}, %v: tensor<2x2x5x8xf32> {kf.gradient}, %r: tensor<2x4x5x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>
  %p = arith.mulf %0, %r : tensor<2x4x5x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2, 3] : tensor<2x4x5x8xf32>
  return %loss : tensor<f32>
}

func.func @attention_windowed(%q: tensor<2x5x8xf32> {kf.gradient}, %k: tensor<1x7x8xf32> {kf.gradient}, %v: tensor<1x7x8xf32> {kf.gradient}, %r: tensor<2x5x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = 2 : i64, window = 3 : i64, scale = 0.7 : f32} : tensor<2x5x8xf32>, tensor<1x7x8xf32>, tensor<1x7x8xf32>
  %p = arith.mulf %0, %r : tensor<2x5x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x5x8xf32>
  return %loss : tensor<f32>
}

func.func @attention_softcap(%q: tensor<2x4x8xf32> {kf.gradient}, %k: tensor<2x4x8xf32> {kf.gradient}, %v: tensor<2x4x8xf32> {kf.gradient}, %r: tensor<2x4x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, softcap = 1.5 : f32} : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %p = arith.mulf %0, %r : tensor<2x4x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x4x8xf32>
  return %loss : tensor<f32>
}

func.func @attention_masked(%q: tensor<2x4x8xf32> {kf.gradient}, %k: tensor<2x5x8xf32> {kf.gradient}, %v: tensor<2x5x8xf32> {kf.gradient}, %m: tensor<4x5xi1>, %r: tensor<2x4x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) : tensor<2x4x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<4x5xi1>
  %p = arith.mulf %0, %r : tensor<2x4x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x4x8xf32>
  return %loss : tensor<f32>
}

func.func @attention_with_bias(%q: tensor<2x4x8xf32> {kf.gradient}, %k: tensor<2x5x8xf32> {kf.gradient}, %v: tensor<2x5x8xf32> {kf.gradient}, %m: tensor<2x1x5xf32> {kf.gradient}, %r: tensor<2x4x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) : tensor<2x4x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x1x5xf32>
  %p = arith.mulf %0, %r : tensor<2x4x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x4x8xf32>
  return %loss : tensor<f32>
}

// Attention of rows that are computed, and read by a residual connection.
func.func @block(%x: tensor<6x16xf32> {kf.gradient}, %n: tensor<16xf32> {kf.gradient}, %wq: tensor<16x16xf32> {kf.gradient}, %wk: tensor<8x16xf32> {kf.gradient},
                 %wv: tensor<8x16xf32> {kf.gradient}, %wo: tensor<16x16xf32> {kf.gradient}, %positions: tensor<6xi32>, %r: tensor<6x16xf32>) -> tensor<f32> {
  %h = kf.rms_norm %x, %n eps(1.0e-2) : tensor<6x16xf32>, tensor<16xf32>
  %q = kf.matmul %h, %wq : tensor<6x16xf32>, tensor<16x16xf32>
  %k = kf.matmul %h, %wk : tensor<6x16xf32>, tensor<8x16xf32>
  %v = kf.matmul %h, %wv : tensor<6x16xf32>, tensor<8x16xf32>
  %q3 = tensor.expand_shape %q [[0], [1, 2]] output_shape [6, 4, 4] : tensor<6x16xf32> into tensor<6x4x4xf32>
  %k3 = tensor.expand_shape %k [[0], [1, 2]] output_shape [6, 2, 4] : tensor<6x8xf32> into tensor<6x2x4xf32>
  %v3 = tensor.expand_shape %v [[0], [1, 2]] output_shape [6, 2, 4] : tensor<6x8xf32> into tensor<6x2x4xf32>
  %qr = kf.rope %q3, %positions {rotary_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<6x4x4xf32>, tensor<6xi32>
  %kr = kf.rope %k3, %positions {rotary_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<6x2x4xf32>, tensor<6xi32>
  %qh = kf.transpose %qr permutation = [1, 0, 2] : tensor<6x4x4xf32>
  %kh = kf.transpose %kr permutation = [1, 0, 2] : tensor<6x2x4xf32>
  %vh = kf.transpose %v3 permutation = [1, 0, 2] : tensor<6x2x4xf32>
  %a = kf.scaled_dot_product_attention %qh, %kh, %vh {causal} : tensor<4x6x4xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>
  %t = kf.transpose %a permutation = [1, 0, 2] : tensor<4x6x4xf32>
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<6x4x4xf32> into tensor<6x16xf32>
  %o = kf.matmul %c, %wo : tensor<6x16xf32>, tensor<16x16xf32>
  %y = arith.addf %x, %o : tensor<6x16xf32>
  %p = arith.mulf %y, %r : tensor<6x16xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<6x16xf32>
  return %loss : tensor<f32>
}

func.func @rounded_rms_norm(%x: tensor<?x12xbf16> {kf.gradient}, %w: tensor<12xbf16> {kf.gradient}, %r: tensor<?x12xf32>) -> tensor<f32> {
  %0 = kf.rms_norm %x, %w eps(1.0e-2) : tensor<?x12xbf16>, tensor<12xbf16>
  %1 = arith.extf %0 : tensor<?x12xbf16> to tensor<?x12xf32>
  %p = arith.mulf %1, %r : tensor<?x12xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x12xf32>
  return %loss : tensor<f32>
}

func.func @rounded_attention(%q: tensor<2x4x8xbf16> {kf.gradient}, %k: tensor<1x4x8xbf16> {kf.gradient}, %v: tensor<1x4x8xbf16> {kf.gradient}, %r: tensor<2x4x8xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x4x8xbf16>, tensor<1x4x8xbf16>, tensor<1x4x8xbf16>
  %1 = arith.extf %0 : tensor<2x4x8xbf16> to tensor<2x4x8xf32>
  %p = arith.mulf %1, %r : tensor<2x4x8xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x4x8xf32>
  return %loss : tensor<f32>
}

// Heads, groups and a mask as kernels on matrix units take them.
func.func @rounded_attention_for_units(%q: tensor<2x4x37x32xbf16> {kf.gradient}, %k: tensor<2x2x40x32xbf16> {kf.gradient}, %v: tensor<2x2x40x32xbf16> {kf.gradient}, %m: tensor<2x1x37x40xi1>, %r: tensor<2x4x37x32xf32>) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {causal, offset = 2 : i64, window = 35 : i64} : tensor<2x4x37x32xbf16>, tensor<2x2x40x32xbf16>, tensor<2x2x40x32xbf16>, tensor<2x1x37x40xi1>
  %1 = arith.extf %0 : tensor<2x4x37x32xbf16> to tensor<2x4x37x32xf32>
  %p = arith.mulf %1, %r : tensor<2x4x37x32xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2, 3] : tensor<2x4x37x32xf32>
  return %loss : tensor<f32>
}
