func.func @plain(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  return %0 : tensor<?x96xf32>
}

func.func @odd(%x: tensor<?x37xf32>, %w: tensor<45x37xf32>) -> tensor<?x45xf32> attributes {kf.max_tokens = 33 : i64} {
  %0 = kf.matmul %x, %w : tensor<?x37xf32>, tensor<45x37xf32>
  return %0 : tensor<?x45xf32>
}

func.func @tiny(%x: tensor<1x1xf32>, %w: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %0 = kf.matmul %x, %w : tensor<1x1xf32>, tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

func.func @one_row(%x: tensor<1x300xf32>, %w: tensor<77x300xf32>) -> tensor<1x77xf32> {
  %0 = kf.matmul %x, %w : tensor<1x300xf32>, tensor<77x300xf32>
  return %0 : tensor<1x77xf32>
}

func.func @one_row_bf16(%x: tensor<1x256xf32>, %w: tensor<512x256xbf16>) -> tensor<1x512xf32> {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<512x256xbf16>
  return %0 : tensor<1x512xf32>
}

func.func @bf16(%x: tensor<?x70xf32>, %w: tensor<65x70xbf16>) -> tensor<?x65xf32> {
  %0 = kf.matmul %x, %w : tensor<?x70xf32>, tensor<65x70xbf16>
  return %0 : tensor<?x65xf32>
}

func.func @f16(%x: tensor<?x70xf16>, %w: tensor<33x70xf16>) -> tensor<?x33xf16> {
  %0 = kf.matmul %x, %w : tensor<?x70xf16>, tensor<33x70xf16>
  return %0 : tensor<?x33xf16>
}

func.func @bias(%x: tensor<?x64xf32>, %w: tensor<50x64xf32>, %b: tensor<50xf32>) -> tensor<?x50xf32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x64xf32>, tensor<50x64xf32>, tensor<50xf32>
  return %0 : tensor<?x50xf32>
}

func.func @glu(%x: tensor<?x64xf32>, %w: tensor<2x44x64xf32>, %b: tensor<2x44xf32>) -> tensor<?x44xf32> {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<?x64xf32>, tensor<2x44x64xf32>, tensor<2x44xf32>
  return %0 : tensor<?x44xf32>
}

func.func @glu_one_row(%x: tensor<1x64xf32>, %w: tensor<2x172x64xbf16>) -> tensor<1x172xf32> {
  %0 = kf.matmul %x, %w glu(gelu) : tensor<1x64xf32>, tensor<2x172x64xbf16>
  return %0 : tensor<1x172xf32>
}

func.func @norm_and_residual(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<80x64xf32>, %r: tensor<?x80xf32>) -> tensor<?x80xf32> {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<80x64xf32>
  %2 = kf.activation(relu) %1 : tensor<?x80xf32>
  %3 = arith.addf %r, %2 : tensor<?x80xf32>
  return %3 : tensor<?x80xf32>
}

func.func @zero_centered_norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<80x64xf32>) -> tensor<?x80xf32> {
  %0 = kf.rms_norm %x, %g zero_centered eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<80x64xf32>
  return %1 : tensor<?x80xf32>
}

func.func @mlp_gated(%x: tensor<?x48xf32>, %g: tensor<100x48xf32>, %u: tensor<100x48xf32>, %d: tensor<48x100xf32>) -> tensor<?x48xf32> {
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) activation(silu) : (tensor<?x48xf32>, tensor<100x48xf32>, tensor<100x48xf32>, tensor<48x100xf32>)
  return %0 : tensor<?x48xf32>
}

func.func @mlp_plain(%x: tensor<?x48xf32>, %u: tensor<96x48xf32>, %d: tensor<48x96xf32>, %ub: tensor<96xf32>, %db: tensor<48xf32>) -> tensor<?x48xf32> {
  %0 = kf.mlp %x up(%u) down(%d) up_bias(%ub) down_bias(%db) activation(gelu_tanh) : (tensor<?x48xf32>, tensor<96x48xf32>, tensor<48x96xf32>, tensor<96xf32>, tensor<48xf32>)
  return %0 : tensor<?x48xf32>
}

func.func @of_heads(%x: tensor<?x4x16xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32> {
  %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x4x16xf32> into tensor<?x64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<40x64xf32>
  return %1 : tensor<?x40xf32>
}

func.func @result_read_twice(%x: tensor<?x64xf32>, %w: tensor<75x64xf32>) -> tensor<?x75xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<75x64xf32>
  %1 = kf.activation(relu) %0 : tensor<?x75xf32>
  %2 = arith.mulf %1, %0 : tensor<?x75xf32>
  %3 = arith.addf %2, %0 : tensor<?x75xf32>
  return %3 : tensor<?x75xf32>
}

func.func @norm_read_twice(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %2 = arith.addf %1, %0 : tensor<?x64xf32>
  return %2 : tensor<?x64xf32>
}

// Packed by hand, in panels of other sizes than kf-set-layouts would choose.
func.func @packed(%x: tensor<?x40xf32>, %w: tensor<100x40xf32>) -> tensor<?x100xf32> attributes {kf.max_tokens = 20 : i64} {
  %p = kf.pack %w : tensor<100x40xf32> to tensor<100x40xf32, #kf.layout<panel = 16>>
  %0 = kf.matmul %x, %p : tensor<?x40xf32>, tensor<100x40xf32, #kf.layout<panel = 16>>
  return %0 : tensor<?x100xf32>
}

func.func @packed_gate(%x: tensor<?x24xf32>, %w: tensor<2x70x24xbf16>) -> tensor<?x70xf32> attributes {kf.max_tokens = 9 : i64} {
  %p = kf.pack %w : tensor<2x70x24xbf16> to tensor<2x70x24xbf16, #kf.layout<panel = 48>>
  %0 = kf.matmul %x, %p glu(silu) : tensor<?x24xf32>, tensor<2x70x24xbf16, #kf.layout<panel = 48>>
  return %0 : tensor<?x70xf32>
}

// Halves of 32-bit lanes, for fewer lanes than the vectors of most CPUs have.
func.func @interleaved(%x: tensor<?x40xf32>, %w: tensor<70x40xbf16>) -> tensor<?x70xf32> attributes {kf.max_tokens = 9 : i64} {
  %p = kf.pack %w : tensor<70x40xbf16> to tensor<70x40xbf16, #kf.layout<panel = 32, interleave = 8>>
  %0 = kf.matmul %x, %p : tensor<?x40xf32>, tensor<70x40xbf16, #kf.layout<panel = 32, interleave = 8>>
  return %0 : tensor<?x70xf32>
}

func.func @interleaved_gate(%x: tensor<1x24xf32>, %w: tensor<2x37x24xbf16>) -> tensor<1x37xf32> {
  %p = kf.pack %w : tensor<2x37x24xbf16> to tensor<2x37x24xbf16, #kf.layout<panel = 8, interleave = 4>>
  %0 = kf.matmul %x, %p glu(silu) : tensor<1x24xf32>, tensor<2x37x24xbf16, #kf.layout<panel = 8, interleave = 4>>
  return %0 : tensor<1x37xf32>
}

func.func @packed_weight(%x: tensor<?x64xf32>) -> tensor<?x72xf32> attributes {kf.max_tokens = 9 : i64} {
  %w = kf.weight ["packed"] : tensor<72x64xf32, #kf.layout<panel = 32>>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<72x64xf32, #kf.layout<panel = 32>>
  return %0 : tensor<?x72xf32>
}

// A weight that its kernel reads in both forms.
func.func @square(%a: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %0 = kf.matmul %a, %a : tensor<40x40xf32>, tensor<40x40xf32>
  return %0 : tensor<40x40xf32>
}

// So few rows that threads of a GPU share the sum of an element.
func.func @few_rows(%x: tensor<?x523xf32>, %w: tensor<77x523xbf16>, %b: tensor<77xf32>) -> tensor<?x77xf32> attributes {kf.max_tokens = 7 : i64} {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x523xf32>, tensor<77x523xbf16>, tensor<77xf32>
  return %0 : tensor<?x77xf32>
}

func.func @few_rows_normed(%x: tensor<2x96xbf16>, %g: tensor<96xbf16>, %w: tensor<80x96xbf16>, %r: tensor<2x80xbf16>) -> tensor<2x80xbf16> {
  %0 = kf.layer_norm %x, %g eps(1.0e-5) : tensor<2x96xbf16>, tensor<96xbf16>
  %1 = kf.matmul %0, %w : tensor<2x96xbf16>, tensor<80x96xbf16>
  %2 = arith.addf %r, %1 : tensor<2x80xbf16>
  return %2 : tensor<2x80xbf16>
}

func.func @few_rows_gated(%x: tensor<?x256xf32>, %w: tensor<2x44x256xf16>) -> tensor<?x44xf32> attributes {kf.max_tokens = 16 : i64} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x256xf32>, tensor<2x44x256xf16>
  return %0 : tensor<?x44xf32>
}

// Of many rows, which matrix units multiply: whole tiles, and parts of them.
func.func @many_rows(%x: tensor<?x128xf32>, %w: tensor<192x128xbf16>, %b: tensor<192xf32>, %r: tensor<?x192xf32>) -> tensor<?x192xf32> attributes {kf.max_tokens = 150 : i64} {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x128xf32>, tensor<192x128xbf16>, tensor<192xf32>
  %1 = arith.addf %r, %0 : tensor<?x192xf32>
  return %1 : tensor<?x192xf32>
}

func.func @many_rows_gated(%x: tensor<?x72xf32>, %g: tensor<72xf32>, %w: tensor<2x77x72xbf16>, %b: tensor<2x77xf32>, %d: tensor<40x77xbf16>) -> tensor<?x40xf32> attributes {kf.max_tokens = 70 : i64} {
  %n = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x72xf32>, tensor<72xf32>
  %0 = kf.matmul %n, %w bias(%b) glu(silu) : tensor<?x72xf32>, tensor<2x77x72xbf16>, tensor<2x77xf32>
  %1 = kf.matmul %0, %d : tensor<?x77xf32>, tensor<40x77xbf16>
  return %1 : tensor<?x40xf32>
}

func.func @many_rows_f16(%x: tensor<33x520xf16>, %w: tensor<130x520xf16>) -> tensor<33x130xf16> {
  %0 = kf.matmul %x, %w : tensor<33x520xf16>, tensor<130x520xf16>
  return %0 : tensor<33x130xf16>
}

func.func @many_rows_of_views(%x: tensor<?x4x32xf32>, %a: tensor<3x100x136xf16>) -> tensor<?x60xf32> attributes {kf.max_tokens = 40 : i64} {
  %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %1 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<3x100x136xf16> into tensor<300x136xf16>
  %w = tensor.extract_slice %1[30, 8] [60, 128] [1, 1] : tensor<300x136xf16> to tensor<60x128xf16>
  %2 = kf.matmul %0, %w : tensor<?x128xf32>, tensor<60x128xf16>
  return %2 : tensor<?x60xf32>
}

func.func @wide(%x: tensor<?x48xbf16>, %w: tensor<50x48xf32>) -> tensor<?x50xf32> {
  %0 = kf.matmul %x, %w wide : tensor<?x48xbf16>, tensor<50x48xf32>
  return %0 : tensor<?x50xf32>
}

// The same with weights that are packed at load.
func.func @many_rows_packed(%x: tensor<?x128xf32>) -> tensor<?x192xf32> attributes {kf.max_tokens = 150 : i64} {
  %w = kf.weight ["w"] : tensor<192x128xbf16>
  %0 = kf.matmul %x, %w : tensor<?x128xf32>, tensor<192x128xbf16>
  return %0 : tensor<?x192xf32>
}

func.func @many_rows_packed_gated(%x: tensor<?x72xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 70 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x77x72xbf16>
  %d = kf.weight ["down"] : tensor<40x77xbf16>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x72xf32>, tensor<2x77x72xbf16>
  %1 = kf.matmul %0, %d : tensor<?x77xf32>, tensor<40x77xbf16>
  return %1 : tensor<?x40xf32>
}

func.func @many_rows_packed_f16(%x: tensor<33x520xf16>) -> tensor<33x130xf16> {
  %w = kf.weight ["w"] : tensor<130x520xf16>
  %0 = kf.matmul %x, %w : tensor<33x520xf16>, tensor<130x520xf16>
  return %0 : tensor<33x130xf16>
}

// So many rows that CPUs with tiles multiply those, with K in one part and in
// several, whose last one is not whole.
func.func @many_bf16(%x: tensor<?x70xf32>, %w: tensor<75x70xbf16>, %b: tensor<75xf32>) -> tensor<?x75xf32> attributes {kf.max_tokens = 100 : i64} {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x70xf32>, tensor<75x70xbf16>, tensor<75xf32>
  return %0 : tensor<?x75xf32>
}

func.func @many_bf16_parts(%x: tensor<?x1055xf32>, %g: tensor<1055xf32>, %w: tensor<40x1055xbf16>, %r: tensor<?x40xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 69 : i64} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x1055xf32>, tensor<1055xf32>
  %1 = kf.matmul %0, %w : tensor<?x1055xf32>, tensor<40x1055xbf16>
  %2 = arith.addf %r, %1 : tensor<?x40xf32>
  return %2 : tensor<?x40xf32>
}

func.func @many_bf16_gated(%x: tensor<?x640xbf16>, %w: tensor<2x44x640xbf16>) -> tensor<?x44xbf16> attributes {kf.max_tokens = 33 : i64} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x640xbf16>, tensor<2x44x640xbf16>
  return %0 : tensor<?x44xbf16>
}

// So many rows, and such parts of K, that tiles multiply a panel while the next
// is unpacked; workgroups of eight workers have two panels, an even number.
func.func @many_bf16_ahead(%x: tensor<?x1280xf32>, %w: tensor<2x300x1280xbf16>) -> tensor<?x300xf32> attributes {kf.max_tokens = 230 : i64} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x1280xf32>, tensor<2x300x1280xbf16>
  return %0 : tensor<?x300xf32>
}
