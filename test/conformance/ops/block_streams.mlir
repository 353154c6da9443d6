// As streams.mlir, with block-quantized weights.
// One row, several, as many as have columns of their own; K is no whole
// tile where blocks are short.
func.func @q8_0(%x: tensor<1x352xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<1x352xf32>, tensor<77x352x!kf.quant<q8_0>>
  return %0 : tensor<1x77xf32>
}

func.func @q8_0_rows(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x352x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x352xf32>, tensor<2x40x352x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @q8_0_zero_centered_rows(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x352x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %g zero_centered eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w : tensor<?x352xf32>, tensor<40x352x!kf.quant<q8_0>>
  return %1 : tensor<?x40xf32>
}

func.func @q8_0_three_rows(%x: tensor<3x352xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x352x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<3x352xf32>, tensor<33x352x!kf.quant<q8_0>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q4_0(%x: tensor<1x288xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x288xf32>, tensor<77x288x!kf.quant<q4_0>>
  return %0 : tensor<1x77xf32>
}

func.func @q4_0_rows(%x: tensor<?x288xf32>, %g: tensor<288xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x288x!kf.quant<q4_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x288xf32>, tensor<288xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x288xf32>, tensor<2x40x288x!kf.quant<q4_0>>
  return %1 : tensor<?x40xf32>
}

func.func @q4_0_three_rows(%x: tensor<3x288xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x288x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<3x288xf32>, tensor<33x288x!kf.quant<q4_0>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q4_k(%x: tensor<1x512xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<77x512x!kf.quant<q4_k>>
  return %0 : tensor<1x77xf32>
}

func.func @q4_k_rows(%x: tensor<?x512xf32>, %g: tensor<512xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x512x!kf.quant<q4_k>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x512xf32>, tensor<2x40x512x!kf.quant<q4_k>>
  return %1 : tensor<?x40xf32>
}

func.func @q4_k_three_rows(%x: tensor<3x512xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<3x512xf32>, tensor<33x512x!kf.quant<q4_k>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

func.func @q6_k(%x: tensor<1x768xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<1x768xf32>, tensor<77x768x!kf.quant<q6_k>>
  return %0 : tensor<1x77xf32>
}

func.func @q6_k_rows(%x: tensor<?x768xf32>, %g: tensor<768xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x768x!kf.quant<q6_k>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x768xf32>, tensor<768xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x768xf32>, tensor<2x40x768x!kf.quant<q6_k>>
  return %1 : tensor<?x40xf32>
}

func.func @q6_k_three_rows(%x: tensor<3x768xf32>, %r: tensor<3x33xf32>) -> tensor<3x33xf32> {
  %w = kf.weight ["w"] : tensor<33x768x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<3x768xf32>, tensor<33x768x!kf.quant<q6_k>>
  %1 = arith.addf %r, %0 : tensor<3x33xf32>
  return %1 : tensor<3x33xf32>
}

// The layout by name; schedules for more rows read it element by element.
func.func @fragments_q8_0(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q8_0>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q8_0>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q4_0(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q4_0>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q4_0>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q4_k(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q4_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q4_k>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

func.func @fragments_q6_k(%x: tensor<?x256xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 28 : i64} {
  %w = kf.weight ["w"] : tensor<33x256x!kf.quant<q6_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<33x256x!kf.quant<q6_k>, #kf.fragments>
  return %0 : tensor<?x33xf32>
}

// Rows that tiles of 16 do not hold, and that registers do.
func.func @fragments_more_rows_q8_0(%x: tensor<?x352xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<q8_0>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<q8_0>, #kf.fragments>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  return %1 : tensor<?x77xf32>
}

func.func @fragments_more_rows_q4_0(%x: tensor<?x288xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_0>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_0>, #kf.fragments>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  return %1 : tensor<?x77xf32>
}

func.func @fragments_more_rows_q4_k(%x: tensor<?x512xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q4_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<77x512x!kf.quant<q4_k>, #kf.fragments>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  return %1 : tensor<?x77xf32>
}

func.func @fragments_more_rows_q6_k(%x: tensor<?x768xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q6_k>, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x768xf32>, tensor<77x768x!kf.quant<q6_k>, #kf.fragments>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  return %1 : tensor<?x77xf32>
}

// Up to 16 rows that no norm makes.
func.func @q8_0_plain(%x: tensor<?x352xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x352x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<q8_0>>
  return %0 : tensor<?x77xf32>
}

func.func @q4_0_plain(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_0>>
  return %0 : tensor<?x77xf32>
}

func.func @q4_k_plain(%x: tensor<?x512xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<77x512x!kf.quant<q4_k>>
  return %0 : tensor<?x77xf32>
}

func.func @q6_k_plain(%x: tensor<?x512xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<77x512x!kf.quant<q6_k>>
  return %0 : tensor<?x77xf32>
}

// K in several slices.
func.func @slices_q4_k(%x: tensor<?x14336xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x14336x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x14336xf32>, tensor<77x14336x!kf.quant<q4_k>>
  return %0 : tensor<?x77xf32>
}

func.func @slices_q6_k(%x: tensor<?x9472xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x9472x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x9472xf32>, tensor<40x9472x!kf.quant<q6_k>>
  return %0 : tensor<?x40xf32>
}

// Scales of about 2^105, which f16 does not hold, 2^-127 and NaN: codes are
// multiplied as f16 on CUDA.
func.func @far_mxfp4(%x: tensor<1x352xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["far"] : tensor<77x352x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<1x352xf32>, tensor<77x352x!kf.quant<mxfp4>>
  return %0 : tensor<1x77xf32>
}

func.func @far_mxfp4_plain(%x: tensor<?x352xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["far"] : tensor<77x352x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x352xf32>, tensor<77x352x!kf.quant<mxfp4>>
  return %0 : tensor<?x77xf32>
}
