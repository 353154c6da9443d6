// Attention and rotation of plain tensors.
func.func @plain(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @causal(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @causal_offset(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = 4 : i64} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @window(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = 4 : i64, window = 3 : i64} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @before_all_keys(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = -2 : i64} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @softcap_and_scale(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {softcap = 2.0 : f32, scale = 0.5 : f32} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @mask(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>, %m: tensor<5x9xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>, tensor<5x9xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @mask_of_bits(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>, %m: tensor<2x1x5x9xi1>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>, tensor<2x1x5x9xi1>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @mask_and_causal(%q: tensor<2x4x5x24xf32>, %k: tensor<2x4x9x24xf32>, %v: tensor<2x4x9x24xf32>, %m: tensor<4x5x9xf32>) -> tensor<2x4x5x24xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {causal} : tensor<2x4x5x24xf32>, tensor<2x4x9x24xf32>, tensor<2x4x9x24xf32>, tensor<4x5x9xf32>
  return %0 : tensor<2x4x5x24xf32>
}

func.func @grouped_wide_values(%q: tensor<2x4x5x24xf32>, %k: tensor<2x2x9x24xf32>, %v: tensor<2x2x9x40xf32>) -> tensor<2x4x5x40xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x4x5x24xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x40xf32>
  return %0 : tensor<2x4x5x40xf32>
}

func.func @one_batch(%q: tensor<4x5x24xf32>, %k: tensor<1x9x24xf32>, %v: tensor<1x9x16xf32>) -> tensor<4x5x16xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v : tensor<4x5x24xf32>, tensor<1x9x24xf32>, tensor<1x9x16xf32>
  return %0 : tensor<4x5x16xf32>
}

func.func @half(%q: tensor<2x4x5x24xf16>, %k: tensor<2x4x9x24xf16>, %v: tensor<2x4x9x24xf16>) -> tensor<2x4x5x24xf16> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x4x5x24xf16>, tensor<2x4x9x24xf16>, tensor<2x4x9x24xf16>
  return %0 : tensor<2x4x5x24xf16>
}

func.func @rotary_half(%x: tensor<?x3x32xf32>, %c: tensor<?x1x16xf32>, %s: tensor<?x1x16xf32>) -> tensor<?x3x32xf32> {
  %0 = kf.rotary_embedding %x, %c, %s : tensor<?x3x32xf32>, tensor<?x1x16xf32>
  return %0 : tensor<?x3x32xf32>
}

func.func @rotary_part(%x: tensor<2x5x3x40xf32>, %c: tensor<2x5x1x10xf32>, %s: tensor<2x5x1x10xf32>) -> tensor<2x5x3x40xf32> {
  %0 = kf.rotary_embedding %x, %c, %s : tensor<2x5x3x40xf32>, tensor<2x5x1x10xf32>
  return %0 : tensor<2x5x3x40xf32>
}

func.func @rotary_interleaved(%x: tensor<2x5x3x16xf32>, %c: tensor<5x1x8xf32>, %s: tensor<5x1x8xf32>) -> tensor<2x5x3x16xf32> {
  %0 = kf.rotary_embedding %x, %c, %s {style = #kf.rope_style<interleaved>} : tensor<2x5x3x16xf32>, tensor<5x1x8xf32>
  return %0 : tensor<2x5x3x16xf32>
}

func.func @rotary_interleaved_part(%x: tensor<?x3x20xf16>, %c: tensor<?x1x6xf16>, %s: tensor<?x1x6xf16>) -> tensor<?x3x20xf16> {
  %0 = kf.rotary_embedding %x, %c, %s {style = #kf.rope_style<interleaved>} : tensor<?x3x20xf16>, tensor<?x1x6xf16>
  return %0 : tensor<?x3x20xf16>
}
