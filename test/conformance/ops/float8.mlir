// Products with weights of f8E4M3FN, which stand for their elements times a
// scale for each row.
func.func @one_row(%x: tensor<1x256xf32>) -> tensor<1x96xf32> {
  %w = kf.weight ["w"] : tensor<96x256xf8E4M3FN>
  %s = kf.weight ["s"] : tensor<96xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<96xf32>) : tensor<1x256xf32>, tensor<96x256xf8E4M3FN>
  return %0 : tensor<1x96xf32>
}

// K and the columns are no whole tiles, and there are no scales.
func.func @odd(%x: tensor<1x333xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x333xf8E4M3FN>
  %0 = kf.matmul %x, %w : tensor<1x333xf32>, tensor<77x333xf8E4M3FN>
  return %0 : tensor<1x77xf32>
}

func.func @tiny(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %w = kf.weight ["w"] : tensor<1x1xf8E4M3FN>
  %s = kf.weight ["s"] : tensor<1xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<1xf32>) : tensor<1x1xf32>, tensor<1x1xf8E4M3FN>
  return %0 : tensor<1x1xf32>
}

// Scales come before biases, and gate and up have their own.
func.func @gate_up(%x: tensor<?x352xf32>, %g: tensor<352xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x352xf8E4M3FN>
  %s = kf.weight ["gate_scale", "up_scale"] {stacked} : tensor<2x40xf32>
  %b = kf.weight ["gate_bias", "up_bias"] {stacked} : tensor<2x40xf32>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x352xf32>, tensor<352xf32>
  %1 = kf.matmul %0, %w weight_scales(%s : tensor<2x40xf32>) bias(%b) glu(silu) : tensor<?x352xf32>, tensor<2x40x352xf8E4M3FN>, tensor<2x40xf32>
  return %1 : tensor<?x40xf32>
}

func.func @joined(%x: tensor<3x300xf32>, %r: tensor<3x33xf32>) -> (tensor<3x33xf32>, tensor<3x20xf32>) {
  %w = kf.weight ["q"] : tensor<33x300xf8E4M3FN>
  %s = kf.weight ["q_scale"] : tensor<33xf32>
  %v = kf.weight ["k"] : tensor<20x300xf8E4M3FN>
  %t = kf.weight ["k_scale"] : tensor<20xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<33xf32>) : tensor<3x300xf32>, tensor<33x300xf8E4M3FN>
  %1 = kf.matmul %x, %v weight_scales(%t : tensor<20xf32>) : tensor<3x300xf32>, tensor<20x300xf8E4M3FN>
  %2 = arith.addf %r, %0 : tensor<3x33xf32>
  return %2, %1 : tensor<3x33xf32>, tensor<3x20xf32>
}

// So long that x comes in parts.
func.func @long(%x: tensor<?x5000xf32>) -> tensor<?x48xf32> attributes {kf.max_tokens = 9 : i64} {
  %w = kf.weight ["w"] : tensor<48x5000xf8E4M3FN>
  %s = kf.weight ["s"] : tensor<48xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<48xf32>) : tensor<?x5000xf32>, tensor<48x5000xf8E4M3FN>
  return %0 : tensor<?x48xf32>
}

func.func @many_rows(%x: tensor<?x352xf32>) -> tensor<?x130xf32> attributes {kf.max_tokens = 70 : i64} {
  %w = kf.weight ["w"] : tensor<130x352xf8E4M3FN>
  %s = kf.weight ["s"] : tensor<130xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<130xf32>) : tensor<?x352xf32>, tensor<130x352xf8E4M3FN>
  return %0 : tensor<?x130xf32>
}

func.func @many_odd(%x: tensor<?x301xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 70 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x301xf8E4M3FN>
  %s = kf.weight ["gate_scale", "up_scale"] {stacked} : tensor<2x40xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<2x40xf32>) glu(silu) : tensor<?x301xf32>, tensor<2x40x301xf8E4M3FN>
  return %0 : tensor<?x40xf32>
}
