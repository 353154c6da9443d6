// Products with rows far past the range of f16, of every type of weight, in
// programs of one to four rows, of up to 16 and of many: the test scales the
// first input of each function, elements apart, and compares row by row. A gated
// product makes such rows for the next one, and a norm takes them.

func.func @rows_f32_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf32>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf32>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f32_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf32>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf32>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f32_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf32>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf32>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f16_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f16_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f16_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_bf16_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xbf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xbf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_bf16_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xbf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xbf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_bf16_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xbf16>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xbf16>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f8_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf8E4M3FN>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf8E4M3FN>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f8_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf8E4M3FN>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf8E4M3FN>
  return %0 : tensor<?x40xf32>
}

func.func @rows_f8_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf8E4M3FN>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512xf8E4M3FN>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q8_0_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q8_0_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q8_0_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_0_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_0_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_0_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_1_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_1_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_1_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_0_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_0_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_0_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_0>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_1_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_1_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_1_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_1>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q2_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q2_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q2_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q2_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q2_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q2_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q3_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q3_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q3_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q3_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q3_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q3_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q4_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q5_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q5_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q6_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q6_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q6_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q6_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_q6_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q6_k>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_nl_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_nl>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_xs_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_xs>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_mxfp4_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_nl_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_nl>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_xs_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_xs>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_mxfp4_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_nl_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_nl>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_iq4_xs_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<iq4_xs>>
  return %0 : tensor<?x40xf32>
}

func.func @rows_mxfp4_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x40xf32>
}

func.func @gated_f16_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512xf16>
  %d = kf.weight ["d"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512xf16>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @normed_f16_4(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @gated_f16_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512xf16>
  %d = kf.weight ["d"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512xf16>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @normed_f16_16(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @gated_f16_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512xf16>
  %d = kf.weight ["d"] : tensor<40x512xf16>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512xf16>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @normed_f16_512(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512xf16>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512xf16>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q8_0_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q8_0>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q8_0>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q8_0_4(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q8_0_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q8_0>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q8_0>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q8_0_16(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q8_0_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q8_0>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q8_0>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q8_0_512(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q4_k_4(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q4_k>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q4_k>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q4_k_4(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q4_k_16(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q4_k>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q4_k>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q4_k_16(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @gated_q4_k_512(%x: tensor<?x512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x512x512x!kf.quant<q4_k>>
  %d = kf.weight ["d"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %g glu(silu) : tensor<?x512xf32>, tensor<2x512x512x!kf.quant<q4_k>>
  %1 = kf.matmul %0, %d : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @normed_q4_k_512(%x: tensor<?x512xf32>, %n: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<40x512x!kf.quant<q4_k>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

// Products whose rows have experts, with elements of all sizes as well.

func.func @rows_experts_f16_4(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x512xf16>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x4x40x512xf16>
  return %0 : tensor<?x2x40xf32>
}

func.func @rows_experts_f32_40(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x512xf32>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x4x40x512xf32>
  return %0 : tensor<?x2x40xf32>
}

func.func @rows_experts_bf16_40(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x512xbf16>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x4x40x512xbf16>
  return %0 : tensor<?x2x40xf32>
}

func.func @rows_experts_q8_0_16(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x512x!kf.quant<q8_0>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x4x40x512x!kf.quant<q8_0>>
  return %0 : tensor<?x2x40xf32>
}

func.func @rows_experts_q4_k_40(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x512x!kf.quant<q4_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x4x40x512x!kf.quant<q4_k>>
  return %0 : tensor<?x2x40xf32>
}
