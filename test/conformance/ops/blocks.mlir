// Block-quantized weights: every format as the weight of a product and as an
// embedding table. Weights come from the test's own checkpoint.

func.func @matmul_q8_0(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q8_0>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q8_0(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q8_0>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q8_0>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q4_0(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q4_0>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q4_0(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q4_0>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q4_0>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q4_1(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q4_1>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q4_1(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q4_1>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q4_1>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q5_0(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q5_0>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q5_0(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q5_0>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q5_0>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q5_1(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q5_1>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q5_1(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q5_1>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q5_1>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q2_k(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q2_k>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q2_k(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q2_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q2_k>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q3_k(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q3_k>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q3_k(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q3_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q3_k>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q4_k(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q4_k>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q4_k(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q4_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q4_k>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q5_k(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q5_k>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q5_k(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q5_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q5_k>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_q6_k(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<q6_k>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_q6_k(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<q6_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<q6_k>>
  return %0 : tensor<?x512xf32>
}

func.func @matmul_iq4_nl(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<iq4_nl>>
  return %0 : tensor<?x80xf32>
}

func.func @matmul_iq4_xs(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<iq4_xs>>
  return %0 : tensor<?x80xf32>
}

func.func @matmul_mxfp4(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w"] : tensor<80x512x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x80xf32>
}

// Scales of about 2^105, which f16 does not hold, 2^-127 and NaN.
func.func @matmul_far_mxfp4(%x: tensor<?x512xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["far"] : tensor<80x512x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<80x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x80xf32>
}

func.func @embedding_iq4_nl(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<iq4_nl>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<iq4_nl>>
  return %0 : tensor<?x512xf32>
}

func.func @embedding_iq4_xs(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<iq4_xs>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<iq4_xs>>
  return %0 : tensor<?x512xf32>
}

func.func @embedding_mxfp4(%ids: tensor<?xi32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 40 : i64} {
  %table = kf.weight ["table"] : tensor<30x512x!kf.quant<mxfp4>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x512x!kf.quant<mxfp4>>
  return %0 : tensor<?x512xf32>
}

// Both operands of a gated product, behind a norm.
func.func @gated_q4_k(%x: tensor<?x256xf32>, %n: tensor<256xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 9 : i64} {
  %gate = kf.weight ["gate"] : tensor<64x256x!kf.quant<q4_k>>
  %up = kf.weight ["up"] : tensor<64x256x!kf.quant<q4_k>>
  %down = kf.weight ["down"] : tensor<64x64x!kf.quant<q8_0>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x256xf32>, tensor<256xf32>
  %1 = kf.mlp %0 gate(%gate) up(%up) down(%down) activation(silu) : (tensor<?x256xf32>, tensor<64x256x!kf.quant<q4_k>>, tensor<64x256x!kf.quant<q4_k>>, tensor<64x64x!kf.quant<q8_0>>)
  return %1 : tensor<?x64xf32>
}

// Products of one x whose weights have two types: only equal ones are joined.
func.func @mixed_projections(%x: tensor<?x256xf32>, %b: tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>) attributes {kf.max_tokens = 9 : i64} {
  %q = kf.weight ["q"] : tensor<64x256x!kf.quant<q4_k>>
  %k = kf.weight ["k"] : tensor<32x256x!kf.quant<q4_k>>
  %v = kf.weight ["v"] : tensor<32x256x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %q bias(%b) : tensor<?x256xf32>, tensor<64x256x!kf.quant<q4_k>>, tensor<64xf32>
  %1 = kf.matmul %x, %k : tensor<?x256xf32>, tensor<32x256x!kf.quant<q4_k>>
  %2 = kf.matmul %x, %v : tensor<?x256xf32>, tensor<32x256x!kf.quant<q6_k>>
  return %0, %1, %2 : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// The table is read twice: as rows for the embedding, in panels for the output.
func.func @tied_q6_k(%ids: tensor<?xi32>) -> tensor<?x30xf32> attributes {kf.max_tokens = 9 : i64} {
  %table = kf.weight ["table"] : tensor<30x256x!kf.quant<q6_k>>
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<30x256x!kf.quant<q6_k>>
  %1 = kf.matmul %0, %table : tensor<?x256xf32>, tensor<30x256x!kf.quant<q6_k>>
  return %1 : tensor<?x30xf32>
}

// Files may give the two matrices of a gate different types.
func.func @mixed_gate(%x: tensor<?x256xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 9 : i64} {
  %gate = kf.weight ["gate"] : tensor<64x256x!kf.quant<q4_k>>
  %up = kf.weight ["up"] : tensor<64x256x!kf.quant<q6_k>>
  %down = kf.weight ["down"] : tensor<64x64xbf16>
  %0 = kf.mlp %x gate(%gate) up(%up) down(%down) activation(silu) : (tensor<?x256xf32>, tensor<64x256x!kf.quant<q4_k>>, tensor<64x256x!kf.quant<q6_k>>, tensor<64x64xbf16>)
  return %0 : tensor<?x64xf32>
}

// Rows that are rounded before, for products of two formats. Their sums are of
// 32 and of 16 codes.
func.func @rounded_rows(%x: tensor<?x256xf32>, %b: tensor<72xf32>) -> (tensor<?x72xf32>, tensor<?x30xf32>) attributes {kf.max_tokens = 9 : i64} {
  %w = kf.weight ["w"] : tensor<72x256x!kf.quant<q4_1>>
  %v = kf.weight ["v"] : tensor<30x256x!kf.quant<q6_k>>
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x256xf32>
  %d, %r, %u = kf.quantize_rows %x group(16) : tensor<?x256xf32>
  %0 = kf.matmul %c scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %w bias(%b) : tensor<?x256xi8>, tensor<72x256x!kf.quant<q4_1>>, tensor<72xf32>
  %1 = kf.matmul %d scales(%r : tensor<?x8xf32>) sums(%u : tensor<?x16xi32>), %v : tensor<?x256xi8>, tensor<30x256x!kf.quant<q6_k>>
  return %0, %1 : tensor<?x72xf32>, tensor<?x30xf32>
}

// The op's own results, bit for bit.
func.func @rounded_alone(%x: tensor<?x96xf32>) -> (tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x6xi32>) attributes {kf.max_tokens = 9 : i64} {
  %c, %s, %t = kf.quantize_rows %x group(16) : tensor<?x96xf32>
  return %c, %s, %t : tensor<?x96xi8>, tensor<?x3xf32>, tensor<?x6xi32>
}

// Where 127 over the largest magnitude is no finite number, codes are zeros.
func.func @rounded_tiny(%x: tensor<?x64xf32>) -> (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>) attributes {kf.max_tokens = 9 : i64} {
  %small = arith.constant dense<1.0e-38> : tensor<9x64xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %s0 = tensor.extract_slice %small[0, 0] [%n, 64] [1, 1] : tensor<9x64xf32> to tensor<?x64xf32>
  %0 = arith.mulf %x, %s0 : tensor<?x64xf32>
  %c, %s, %t = kf.quantize_rows %0 group(32) : tensor<?x64xf32>
  return %c, %s, %t : tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>
}

func.func @rounded_gate(%x: tensor<?x256xf32>, %r: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 40 : i64} {
  %gu = kf.weight ["gate", "up"] {stacked} : tensor<2x64x256x!kf.quant<iq4_nl>>
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x256xf32>
  %0 = kf.matmul %c scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %gu glu(silu) : tensor<?x256xi8>, tensor<2x64x256x!kf.quant<iq4_nl>>
  %1 = arith.addf %0, %r : tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}

// So many rows and columns that rounding them once is worth a kernel.
func.func @many_rows_q4_0(%x: tensor<?x256xf32>, %g: tensor<256xf32>) -> tensor<?x1100xf32> attributes {kf.max_tokens = 70 : i64} {
  %w = kf.weight ["w"] : tensor<1100x256x!kf.quant<q4_0>>
  %n = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x256xf32>, tensor<256xf32>
  %0 = kf.matmul %n, %w : tensor<?x256xf32>, tensor<1100x256x!kf.quant<q4_0>>
  return %0 : tensor<?x1100xf32>
}

// So few rows that threads of a GPU share the sum of an element.
func.func @few_rows_blocks(%x: tensor<3x512xf32>) -> tensor<3x44xf32> {
  %w = kf.weight ["w"] : tensor<44x512x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<3x512xf32>, tensor<44x512x!kf.quant<q6_k>>
  return %0 : tensor<3x44xf32>
}

// So many rows that CPUs with tiles multiply those: of every format, with K in
// one part and in several.
func.func @many_q8_0(%x: tensor<?x544xf32>) -> tensor<?x33xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<33x544x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x544xf32>, tensor<33x544x!kf.quant<q8_0>>
  return %0 : tensor<?x33xf32>
}

func.func @many_q4_0(%x: tensor<?x1120xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x1120x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1120xf32>, tensor<80x1120x!kf.quant<q4_0>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q4_1(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q4_1>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q4_1>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q5_0(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q5_0>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q5_0>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q5_1(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q5_1>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q5_1>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q2_k(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q2_k>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q2_k>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q3_k(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q3_k>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q4_k(%x: tensor<?x1280xf32>) -> tensor<?x70xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<70x1280x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x1280xf32>, tensor<70x1280x!kf.quant<q4_k>>
  return %0 : tensor<?x70xf32>
}

func.func @many_q5_k(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<q5_k>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<q5_k>>
  return %0 : tensor<?x80xf32>
}

func.func @many_q6_k(%x: tensor<?x768xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x768x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x768xf32>, tensor<80x768x!kf.quant<q6_k>>
  return %0 : tensor<?x80xf32>
}

func.func @many_iq4_nl(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<iq4_nl>>
  return %0 : tensor<?x80xf32>
}

func.func @many_iq4_xs(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<iq4_xs>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<iq4_xs>>
  return %0 : tensor<?x80xf32>
}

func.func @many_mxfp4(%x: tensor<?x256xf32>) -> tensor<?x80xf32> attributes {kf.max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<80x256x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<80x256x!kf.quant<mxfp4>>
  return %0 : tensor<?x80xf32>
}

// Rows of 90 blocks.
func.func @many_blocks_mxfp4(%x: tensor<?x2880xf32>) -> tensor<?x24xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w"] : tensor<24x2880x!kf.quant<mxfp4>>
  %0 = kf.matmul %x, %w : tensor<?x2880xf32>, tensor<24x2880x!kf.quant<mxfp4>>
  return %0 : tensor<?x24xf32>
}

func.func @many_gated_q4_k(%x: tensor<?x768xf32>, %n: tensor<768xf32>, %r: tensor<?x72xf32>) -> tensor<?x72xf32> attributes {kf.max_tokens = 140 : i64} {
  %gu = kf.weight ["gate", "up"] {stacked} : tensor<2x72x768x!kf.quant<q4_k>>
  %0 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x768xf32>, tensor<768xf32>
  %1 = kf.matmul %0, %gu glu(silu) : tensor<?x768xf32>, tensor<2x72x768x!kf.quant<q4_k>>
  %2 = arith.addf %1, %r : tensor<?x72xf32>
  return %2 : tensor<?x72xf32>
}

func.func @many_rounded_q5_0(%x: tensor<?x96xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 129 : i64} {
  %w = kf.weight ["w"] : tensor<40x96x!kf.quant<q5_0>>
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x96xf32>
  %0 = kf.matmul %c scales(%s : tensor<?x3xf32>) sums(%t : tensor<?x3xi32>), %w : tensor<?x96xi8>, tensor<40x96x!kf.quant<q5_0>>
  return %0 : tensor<?x40xf32>
}

// Many rows of an odd number of blocks, the last of which fills no part of a
// tile by itself.
func.func @odd_blocks_many_rows(%x: tensor<?x96xf32>) -> tensor<?x72xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w"] : tensor<72x96x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<?x96xf32>, tensor<72x96x!kf.quant<q8_0>>
  return %0 : tensor<?x72xf32>
}

func.func @one_block_many_rows(%x: tensor<?x32xf32>) -> tensor<?x40xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x40x32x!kf.quant<iq4_nl>>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x32xf32>, tensor<2x40x32x!kf.quant<iq4_nl>>
  return %0 : tensor<?x40xf32>
}

// So many rows that tiles multiply a panel while the next is unpacked. Without a
// known number of workers there are up to eight groups of columns: here of three
// panels, an odd number, and one, for each of two parts of K.
func.func @many_ahead_q6_k(%x: tensor<?x768xf32>) -> tensor<?x600xf32> attributes {kf.max_tokens = 230 : i64} {
  %w = kf.weight ["w"] : tensor<2x600x768x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x768xf32>, tensor<2x600x768x!kf.quant<q6_k>>
  return %0 : tensor<?x600xf32>
}

// Two panels, and one, for all of K.
func.func @many_ahead_q4_k(%x: tensor<?x512xf32>) -> tensor<?x330xf32> attributes {kf.max_tokens = 230 : i64} {
  %w = kf.weight ["w"] : tensor<330x512x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<330x512x!kf.quant<q4_k>>
  return %0 : tensor<?x330xf32>
}
