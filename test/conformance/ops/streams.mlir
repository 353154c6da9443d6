// Products of few rows with weights that are packed at load: on NVIDIA GPUs the
// weight is streamed through matrix units.
func.func @one_row(%x: tensor<1x256xf32>) -> tensor<1x96xf32> {
  %w = kf.weight ["w"] : tensor<96x256xbf16>
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<96x256xbf16>
  return %0 : tensor<1x96xf32>
}

// K and the columns are no whole tiles.
func.func @odd(%x: tensor<1x333xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x333xf16>
  %0 = kf.matmul %x, %w : tensor<1x333xf32>, tensor<77x333xf16>
  return %0 : tensor<1x77xf32>
}

func.func @tiny(%x: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %w = kf.weight ["w"] : tensor<1x1xbf16>
  %0 = kf.matmul %x, %w : tensor<1x1xf32>, tensor<1x1xbf16>
  return %0 : tensor<1x1xf32>
}

func.func @four_rows(%x: tensor<4x200xf32>) -> tensor<4x50xf32> {
  %w = kf.weight ["w"] : tensor<50x200xbf16>
  %0 = kf.matmul %x, %w : tensor<4x200xf32>, tensor<50x200xbf16>
  return %0 : tensor<4x50xf32>
}

func.func @seven_rows(%x: tensor<?x640xf16>) -> tensor<?x48xf16> attributes {kf.max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<48x640xf16>
  %0 = kf.matmul %x, %w : tensor<?x640xf16>, tensor<48x640xf16>
  return %0 : tensor<?x48xf16>
}

func.func @sixteen_rows(%x: tensor<?x528xf32>) -> tensor<?x120xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<120x528xbf16>
  %0 = kf.matmul %x, %w : tensor<?x528xf32>, tensor<120x528xbf16>
  return %0 : tensor<?x120xf32>
}

// So long that x comes in parts, and many row blocks to a workgroup.
func.func @long_rows(%x: tensor<1x14336xf32>) -> tensor<1x64xf32> {
  %w = kf.weight ["w"] : tensor<64x14336xbf16>
  %0 = kf.matmul %x, %w : tensor<1x14336xf32>, tensor<64x14336xbf16>
  return %0 : tensor<1x64xf32>
}

func.func @many_columns(%x: tensor<2x64xf32>) -> tensor<2x12345xf32> {
  %w = kf.weight ["w"] : tensor<12345x64xf16>
  %0 = kf.matmul %x, %w : tensor<2x64xf32>, tensor<12345x64xf16>
  return %0 : tensor<2x12345xf32>
}

func.func @norm_and_residual(%x: tensor<?x300xf32>, %g: tensor<300xf32>, %r: tensor<?x80xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 9 : i64} {
  %w = kf.weight ["w"] : tensor<80x300xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x300xf32>, tensor<300xf32>
  %1 = kf.matmul %0, %w : tensor<?x300xf32>, tensor<80x300xbf16>
  %2 = arith.addf %r, %1 : tensor<?x80xf32>
  return %2 : tensor<?x80xf32>
}

func.func @layer_norm(%x: tensor<3x100xf32>, %g: tensor<100xf32>, %c: tensor<100xf32>) -> tensor<3x40xf32> {
  %w = kf.weight ["w"] : tensor<40x100xf16>
  %0 = kf.layer_norm %x, %g bias(%c) eps(1.0e-5) : tensor<3x100xf32>, tensor<100xf32>, tensor<100xf32>
  %1 = kf.matmul %0, %w : tensor<3x100xf32>, tensor<40x100xf16>
  return %1 : tensor<3x40xf32>
}

func.func @gated(%x: tensor<?x272xf32>, %g: tensor<272xf32>, %b: tensor<2x44xf32>) -> tensor<?x44xf32> attributes {kf.max_tokens = 5 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x44x272xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-6) : tensor<?x272xf32>, tensor<272xf32>
  %1 = kf.matmul %0, %w bias(%b) glu(silu) : tensor<?x272xf32>, tensor<2x44x272xbf16>, tensor<2x44xf32>
  return %1 : tensor<?x44xf32>
}

func.func @bias(%x: tensor<1x64xf32>, %b: tensor<50xf32>) -> tensor<1x50xf32> {
  %w = kf.weight ["w"] : tensor<50x64xbf16>
  %0 = kf.matmul %x, %w bias(%b) : tensor<1x64xf32>, tensor<50x64xbf16>, tensor<50xf32>
  return %0 : tensor<1x50xf32>
}

// The layout by name; schedules for more rows read it element by element.
func.func @fragments(%x: tensor<?x72xf32>) -> tensor<?x50xf32> attributes {kf.max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<50x72xbf16, #kf.fragments>
  %0 = kf.matmul %x, %w : tensor<?x72xf32>, tensor<50x72xbf16, #kf.fragments>
  return %0 : tensor<?x50xf32>
}

func.func @fragments_gated(%x: tensor<?x40xf32>) -> tensor<?x27xf32> attributes {kf.max_tokens = 20 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x27x40xf32, #kf.fragments>
  %0 = kf.matmul %x, %w glu(gelu) : tensor<?x40xf32>, tensor<2x27x40xf32, #kf.fragments>
  return %0 : tensor<?x27xf32>
}

// Up to 16 rows, which GPUs round; K and the columns are no whole tiles.
func.func @up_to_16_bf16(%x: tensor<?x333xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x333xbf16>
  %0 = kf.matmul %x, %w : tensor<?x333xf32>, tensor<77x333xbf16>
  return %0 : tensor<?x77xf32>
}

func.func @up_to_16_f16(%x: tensor<?x5000xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x5000xf16>
  %0 = kf.matmul %x, %w : tensor<?x5000xf32>, tensor<77x5000xf16>
  return %0 : tensor<?x77xf32>
}

// K in several slices, which workgroups of a cluster divide on GPUs that have
// them; in more slices than these have; and with both products of a gate.
func.func @slices_bf16(%x: tensor<?x14336xf32>, %r: tensor<?x80xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<80x14336xbf16>
  %0 = kf.matmul %x, %w : tensor<?x14336xf32>, tensor<80x14336xbf16>
  %1 = arith.addf %r, %0 : tensor<?x80xf32>
  return %1 : tensor<?x80xf32>
}

func.func @many_slices_f16(%x: tensor<?x40000xf32>) -> tensor<?x32xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<32x40000xf16>
  %0 = kf.matmul %x, %w : tensor<?x40000xf32>, tensor<32x40000xf16>
  return %0 : tensor<?x32xf32>
}

func.func @slices_gated(%x: tensor<?x10240xf32>) -> tensor<?x27xf32> attributes {kf.max_tokens = 7 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x27x10240xbf16>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x10240xf32>, tensor<2x27x10240xbf16>
  return %0 : tensor<?x27xf32>
}

// Weights of f32, which GPUs multiply as two numbers of TF32 each.
func.func @one_row_f32(%x: tensor<1x333xf32>) -> tensor<1x77xf32> {
  %w = kf.weight ["w"] : tensor<77x333xf32>
  %0 = kf.matmul %x, %w : tensor<1x333xf32>, tensor<77x333xf32>
  return %0 : tensor<1x77xf32>
}

func.func @long_row_f32(%x: tensor<1x20000xf32>, %r: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %w = kf.weight ["w"] : tensor<64x20000xf32>
  %0 = kf.matmul %x, %w : tensor<1x20000xf32>, tensor<64x20000xf32>
  %1 = arith.addf %r, %0 : tensor<1x64xf32>
  return %1 : tensor<1x64xf32>
}

func.func @norm_f32(%x: tensor<4x300xf32>, %g: tensor<300xf32>) -> tensor<4x44xf32> {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x44x300xf32>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<4x300xf32>, tensor<300xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<4x300xf32>, tensor<2x44x300xf32>
  return %1 : tensor<4x44xf32>
}

func.func @up_to_8_f32(%x: tensor<?x640xf16>) -> tensor<?x120xf16> attributes {kf.max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<120x640xf32>
  %0 = kf.matmul %x, %w : tensor<?x640xf16>, tensor<120x640xf32>
  return %0 : tensor<?x120xf16>
}

func.func @up_to_16_f32(%x: tensor<?x5000xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x5000xf32>
  %0 = kf.matmul %x, %w : tensor<?x5000xf32>, tensor<77x5000xf32>
  return %0 : tensor<?x77xf32>
}

func.func @up_to_33_f32(%x: tensor<?x72xf32>) -> tensor<?x50xf32> attributes {kf.max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<50x72xf32>
  %0 = kf.matmul %x, %w : tensor<?x72xf32>, tensor<50x72xf32>
  return %0 : tensor<?x50xf32>
}
