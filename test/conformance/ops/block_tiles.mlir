// As block_streams.mlir, of the other formats, whose kernels differ from those on
// CUDA alone.
func.func @q4_1(%x: tensor<1x288xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<1x288xf32>, tensor<77x288x!kf.quant<q4_1>>
  return %0 : tensor<1x77xf32>
}

func.func @q4_1_rows(%x: tensor<?x288xf32>, %g: tensor<288xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x288x!kf.quant<q4_1>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x288xf32>, tensor<288xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x288xf32>, tensor<2x40x288x!kf.quant<q4_1>>
  return %1 : tensor<?x40xf32>
}

func.func @q4_1_three_rows(%x: tensor<3x288xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x288x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<3x288xf32>, tensor<33x288x!kf.quant<q4_1>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q5_0(%x: tensor<1x352xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<1x352xf32>, tensor<77x352x!kf.quant<q5_0>>
  return %0 : tensor<1x77xf32>
}

func.func @q5_0_rows(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x352x!kf.quant<q5_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x352xf32>, tensor<2x40x352x!kf.quant<q5_0>>
  return %1 : tensor<?x40xf32>
}

func.func @q5_0_three_rows(%x: tensor<3x352xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x352x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<3x352xf32>, tensor<33x352x!kf.quant<q5_0>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q5_1(%x: tensor<1x288xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<1x288xf32>, tensor<77x288x!kf.quant<q5_1>>
  return %0 : tensor<1x77xf32>
}

func.func @q5_1_rows(%x: tensor<?x288xf32>, %g: tensor<288xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x288x!kf.quant<q5_1>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x288xf32>, tensor<288xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x288xf32>, tensor<2x40x288x!kf.quant<q5_1>>
  return %1 : tensor<?x40xf32>
}

func.func @q5_1_three_rows(%x: tensor<3x288xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x288x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<3x288xf32>, tensor<33x288x!kf.quant<q5_1>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q2_k(%x: tensor<1x512xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<77x512x!kf.quant<q2_k>>
  return %0 : tensor<1x77xf32>
}

func.func @q2_k_rows(%x: tensor<?x512xf32>, %g: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x512x!kf.quant<q2_k>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x512xf32>, tensor<2x40x512x!kf.quant<q2_k>>
  return %1 : tensor<?x40xf32>
}

func.func @q2_k_three_rows(%x: tensor<3x512xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<3x512xf32>, tensor<33x512x!kf.quant<q2_k>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q3_k(%x: tensor<1x768xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<1x768xf32>, tensor<77x768x!kf.quant<q3_k>>
  return %0 : tensor<1x77xf32>
}

func.func @q3_k_rows(%x: tensor<?x768xf32>, %g: tensor<768xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x768x!kf.quant<q3_k>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x768xf32>, tensor<768xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x768xf32>, tensor<2x40x768x!kf.quant<q3_k>>
  return %1 : tensor<?x40xf32>
}

func.func @q3_k_three_rows(%x: tensor<3x768xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x768x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<3x768xf32>, tensor<33x768x!kf.quant<q3_k>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q5_k(%x: tensor<1x512xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<77x512x!kf.quant<q5_k>>
  return %0 : tensor<1x77xf32>
}

func.func @q5_k_rows(%x: tensor<?x512xf32>, %g: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x512x!kf.quant<q5_k>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x512xf32>, tensor<2x40x512x!kf.quant<q5_k>>
  return %1 : tensor<?x40xf32>
}

func.func @q5_k_three_rows(%x: tensor<3x512xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<3x512xf32>, tensor<33x512x!kf.quant<q5_k>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @iq4_nl(%x: tensor<1x352xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<1x352xf32>, tensor<77x352x!kf.quant<iq4_nl>>
  return %0 : tensor<1x77xf32>
}

func.func @iq4_xs(%x: tensor<1x768xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<1x768xf32>, tensor<77x768x!kf.quant<iq4_xs>>
  return %0 : tensor<1x77xf32>
}

func.func @mxfp4(%x: tensor<1x352xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<1x352xf32>, tensor<77x352x!kf.quant<mxfp4>>
  return %0 : tensor<1x77xf32>
}

func.func @iq4_nl_rows(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x352x!kf.quant<iq4_nl>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x352xf32>, tensor<2x40x352x!kf.quant<iq4_nl>>
  return %1 : tensor<?x40xf32>
}

func.func @iq4_xs_rows(%x: tensor<?x768xf32>, %g: tensor<768xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x768x!kf.quant<iq4_xs>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x768xf32>, tensor<768xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x768xf32>, tensor<2x40x768x!kf.quant<iq4_xs>>
  return %1 : tensor<?x40xf32>
}

func.func @mxfp4_rows(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x352x!kf.quant<mxfp4>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x352xf32>, tensor<2x40x352x!kf.quant<mxfp4>>
  return %1 : tensor<?x40xf32>
}

func.func @iq4_nl_three_rows(%x: tensor<3x352xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x352x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<3x352xf32>, tensor<33x352x!kf.quant<iq4_nl>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @iq4_xs_three_rows(%x: tensor<3x768xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x768x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<3x768xf32>, tensor<33x768x!kf.quant<iq4_xs>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @mxfp4_three_rows(%x: tensor<3x352xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x352x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<3x352xf32>, tensor<33x352x!kf.quant<mxfp4>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @fragments_q4_1(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q4_1>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q4_1>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q5_0(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q5_0>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q5_0>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q5_1(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q5_1>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q5_1>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q2_k(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q2_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q2_k>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q3_k(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q3_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q3_k>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q5_k(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q5_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q5_k>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_iq4_nl(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<iq4_nl>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<iq4_nl>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_iq4_xs(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<iq4_xs>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<iq4_xs>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_mxfp4(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<mxfp4>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<mxfp4>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @q4_1_plain(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_1>>
  return %0 : tensor<?x77xf32>
}

func.func @q5_0_plain(%x: tensor<?x352xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<q5_0>>
  return %0 : tensor<?x77xf32>
}

func.func @q5_1_plain(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q5_1>>
  return %0 : tensor<?x77xf32>
}

func.func @q2_k_plain(%x: tensor<?x512xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<77x512x!kf.quant<q2_k>>
  return %0 : tensor<?x77xf32>
}

func.func @q3_k_plain(%x: tensor<?x768xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x768xf32>, tensor<77x768x!kf.quant<q3_k>>
  return %0 : tensor<?x77xf32>
}

func.func @q5_k_plain(%x: tensor<?x512xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<77x512x!kf.quant<q5_k>>
  return %0 : tensor<?x77xf32>
}

func.func @iq4_nl_plain(%x: tensor<?x352xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<iq4_nl>>
  return %0 : tensor<?x77xf32>
}

func.func @iq4_xs_plain(%x: tensor<?x768xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x768xf32>, tensor<77x768x!kf.quant<iq4_xs>>
  return %0 : tensor<?x77xf32>
}

func.func @mxfp4_plain(%x: tensor<?x352xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<mxfp4>>
  return %0 : tensor<?x77xf32>
}
