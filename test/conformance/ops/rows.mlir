func.func @rms_norm(%x: tensor<?x72xf32>, %w: tensor<72xf32>) -> tensor<?x72xf32> {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x72xf32>, tensor<72xf32>
  return %0 : tensor<?x72xf32>
}

func.func @rms_norm_of_sum(%x: tensor<?x257xf32>, %y: tensor<?x257xf32>, %w: tensor<257xbf16>) -> tensor<?x257xf32> {
  %s = arith.addf %x, %y : tensor<?x257xf32>
  %0 = kf.rms_norm %s, %w eps(1.0e-6) : tensor<?x257xf32>, tensor<257xbf16>
  return %0 : tensor<?x257xf32>
}

func.func @rms_norm_zero_centered(%x: tensor<?x72xf32>, %w: tensor<72xbf16>) -> tensor<?x72xf32> {
  %0 = kf.rms_norm %x, %w zero_centered eps(1.0e-6) : tensor<?x72xf32>, tensor<72xbf16>
  return %0 : tensor<?x72xf32>
}

func.func @rms_norm_one_row(%x: tensor<64xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
  %0 = kf.rms_norm %x, %w eps(0.0) : tensor<64xf32>, tensor<64xf32>
  return %0 : tensor<64xf32>
}

func.func @rms_norm_heads(%x: tensor<?x3x32xf32>, %w: tensor<32xf32>) -> tensor<?x3x32xf32> {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x3x32xf32>, tensor<32xf32>
  return %0 : tensor<?x3x32xf32>
}

func.func @layer_norm(%x: tensor<?x70xf32>, %w: tensor<70xf32>, %b: tensor<70xf32>) -> tensor<?x70xf32> {
  %0 = kf.layer_norm %x, %w bias(%b) eps(1.0e-5) : tensor<?x70xf32>, tensor<70xf32>, tensor<70xf32>
  return %0 : tensor<?x70xf32>
}

func.func @layer_norm_plain(%x: tensor<?x16xf32>, %w: tensor<16xf32>) -> tensor<?x16xf32> {
  %0 = kf.layer_norm %x, %w eps(1.0e-5) : tensor<?x16xf32>, tensor<16xf32>
  return %0 : tensor<?x16xf32>
}

func.func @softmax(%x: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %0 = kf.softmax %x : tensor<?x100xf32>
  return %0 : tensor<?x100xf32>
}

func.func @softmax_one(%x: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %0 = kf.softmax %x : tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}

func.func @softmax_long(%x: tensor<2x1000xf32>) -> tensor<2x1000xf32> {
  %0 = kf.softmax %x : tensor<2x1000xf32>
  return %0 : tensor<2x1000xf32>
}

func.func @softmax_of_norm(%x: tensor<?x24xf32>, %w: tensor<24xf32>) -> tensor<?x24xf32> {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x24xf32>, tensor<24xf32>
  %1 = kf.softmax %0 : tensor<?x24xf32>
  return %1 : tensor<?x24xf32>
}

func.func @argmax(%x: tensor<?x307xf32>) -> tensor<?xi32> {
  %0 = kf.argmax %x : tensor<?x307xf32>
  return %0 : tensor<?xi32>
}

// Ties are common: the lowest index counts.
func.func @argmax_bf16(%x: tensor<?x1000xbf16>) -> tensor<?xi32> {
  %0 = kf.argmax %x : tensor<?x1000xbf16>
  return %0 : tensor<?xi32>
}

func.func @argmax_of_sum(%x: tensor<?x260xf32>, %y: tensor<?x260xf32>) -> tensor<?xi32> {
  %s = arith.addf %x, %y : tensor<?x260xf32>
  %0 = kf.argmax %s : tensor<?x260xf32>
  return %0 : tensor<?xi32>
}

func.func @argmax_of_slice(%y: tensor<?x300xf32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x300xf32>
  %x = tensor.extract_slice %y[0, 3] [%n, 256] [1, 1] : tensor<?x300xf32> to tensor<?x256xf32>
  %0 = kf.argmax %x : tensor<?x256xf32>
  return %0 : tensor<?xi32>
}

func.func @embedding(%ids: tensor<?xi32>, %t: tensor<9x40xbf16>) -> tensor<?x40xf32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<9x40xbf16>
  return %0 : tensor<?x40xf32>
}

func.func @two_embeddings(%ids: tensor<?xi32>, %t: tensor<600x40xf32>, %p: tensor<600x40xf32>) -> tensor<?x40xf32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<600x40xf32>
  %1 = kf.embedding %ids, %p : tensor<?xi32>, tensor<600x40xf32>
  %2 = arith.addf %0, %1 : tensor<?x40xf32>
  return %2 : tensor<?x40xf32>
}

func.func @rope_half(%x: tensor<?x3x32xf32>, %p: tensor<?xi32>) -> tensor<?x3x32xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x3x32xf32>, tensor<?xi32>
  return %0 : tensor<?x3x32xf32>
}

func.func @rope_part(%x: tensor<?x2x40xf32>, %p: tensor<?xi32>) -> tensor<?x2x40xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 20 : i64, theta = 5.0e5 : f64, scaling = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 64>} : tensor<?x2x40xf32>, tensor<?xi32>
  return %0 : tensor<?x2x40xf32>
}

// No frequencies between those that are divided and those that stay.
func.func @rope_part_steps(%x: tensor<?x2x40xf32>, %p: tensor<?xi32>) -> tensor<?x2x40xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 20 : i64, theta = 5.0e5 : f64, scaling = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 2.0, high_freq_factor = 2.0, original_context = 64>} : tensor<?x2x40xf32>, tensor<?xi32>
  return %0 : tensor<?x2x40xf32>
}

func.func @rope_interleaved(%x: tensor<?x2x16xf32>, %p: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64, style = #kf.rope_style<interleaved>, scaling = #kf.rope_scaling<linear, factor = 2.0>} : tensor<?x2x16xf32>, tensor<?xi32>
  return %0 : tensor<?x2x16xf32>
}

// Llama 3.1's GGUF files hold a factor for each frequency.
func.func @rope_factors(%x: tensor<?x2x24xf32>, %p: tensor<?xi32>, %r: tensor<8xf32>) -> tensor<?x2x24xf32> {
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %f = arith.addf %r, %two : tensor<8xf32>
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 16 : i64, theta = 5.0e5 : f64, style = #kf.rope_style<interleaved>} : tensor<?x2x24xf32>, tensor<?xi32>, tensor<8xf32>
  return %0 : tensor<?x2x24xf32>
}

func.func @rope_weight_factors(%x: tensor<?x2x16xf32>, %p: tensor<?xi32>) -> tensor<?x2x16xf32> {
  %f = kf.weight ["rope_freqs.weight"] : tensor<8xf32>
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>, tensor<8xf32>
  return %0 : tensor<?x2x16xf32>
}

// Angles of any size. Products with 2^26 - 5 wrap: positions are negative, too.
func.func @rope_far(%x: tensor<?x2x40xf32>, %p: tensor<?xi32>) -> tensor<?x2x40xf32> {
  %far = arith.constant dense<67108859> : tensor<i32>
  %0 = kf.broadcast %far : tensor<i32> to tensor<?xi32>
  %1 = arith.muli %p, %0 : tensor<?xi32>
  %2 = kf.rope %x, %1 {rotary_dim = 34 : i64, theta = 1.0e4 : f64} : tensor<?x2x40xf32>, tensor<?xi32>
  return %2 : tensor<?x2x40xf32>
}

func.func @rope_fast(%x: tensor<?x3x32xf32>, %p: tensor<?xi32>) -> tensor<?x3x32xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 32 : i64, theta = 1.0e-9 : f64, style = #kf.rope_style<interleaved>, scaling = #kf.rope_scaling<linear, factor = 1.0e-7>} : tensor<?x3x32xf32>, tensor<?xi32>
  return %0 : tensor<?x3x32xf32>
}

// Rows that are wanted of a step's, and what is computed of them alone.
func.func @wanted_rows(%x: tensor<?x40xf32>, %wanted: tensor<?xi32, #kf.size<wanted>>) -> tensor<?x40xf32, #kf.size<wanted>> {
  %w = kf.weight ["norm.weight"] : tensor<40xf32>
  %0 = arith.addf %x, %x : tensor<?x40xf32>
  %1 = kf.rms_norm %0, %w eps(1.0e-5) : tensor<?x40xf32>, tensor<40xf32>
  %2 = kf.embedding %wanted, %1 : tensor<?xi32, #kf.size<wanted>>, tensor<?x40xf32>
  return %2 : tensor<?x40xf32, #kf.size<wanted>>
}

func.func @wanted_logits(%x: tensor<?x40xf32>, %wanted: tensor<?xi32, #kf.size<wanted>>) -> (tensor<?x33xf32, #kf.size<wanted>>, tensor<?xi32, #kf.size<wanted>>) {
  %g = kf.weight ["norm.weight"] : tensor<40xf32>
  %head = kf.weight ["head.weight"] : tensor<33x40xf32>
  %0 = kf.embedding %wanted, %x : tensor<?xi32, #kf.size<wanted>>, tensor<?x40xf32>
  %1 = kf.rms_norm %0, %g eps(1.0e-5) : tensor<?x40xf32, #kf.size<wanted>>, tensor<40xf32>
  %2 = kf.matmul %1, %head : tensor<?x40xf32, #kf.size<wanted>>, tensor<33x40xf32>
  %3 = kf.argmax %2 : tensor<?x33xf32, #kf.size<wanted>>
  return %2, %3 : tensor<?x33xf32, #kf.size<wanted>>, tensor<?xi32, #kf.size<wanted>>
}

// Several names, of which one has nothing to do with the others.
func.func @two_sizes(%x: tensor<?x8xf32, #kf.size<a>>, %y: tensor<?x8xf32, #kf.size<b>>) -> (tensor<?x2x4xf32, #kf.size<b>>, tensor<?x8xf32, #kf.size<a>>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x8xf32, #kf.size<b>>
  %0 = kf.softmax %y : tensor<?x8xf32, #kf.size<b>>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%n, 2, 4] : tensor<?x8xf32, #kf.size<b>> into tensor<?x2x4xf32, #kf.size<b>>
  %2 = kf.activation(silu) %x : tensor<?x8xf32, #kf.size<a>>
  return %1, %2 : tensor<?x2x4xf32, #kf.size<b>>, tensor<?x8xf32, #kf.size<a>>
}

func.func @named_table(%ids: tensor<?xi32>, %t: tensor<?x40xf32, #kf.size<rows>>) -> tensor<?x40xf32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<?x40xf32, #kf.size<rows>>
  return %0 : tensor<?x40xf32>
}

func.func @argmax_of_strided_slice(%y: tensor<?x300xf32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x300xf32>
  %x = tensor.extract_slice %y[0, 3] [%n, 130] [1, 2] : tensor<?x300xf32> to tensor<?x130xf32>
  %0 = kf.argmax %x : tensor<?x130xf32>
  return %0 : tensor<?xi32>
}

func.func @argmax_of_part(%y: tensor<?x3x64xf32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x3x64xf32>
  %x = tensor.extract_slice %y[0, 1, 0] [%n, 1, 64] [1, 1, 1] : tensor<?x3x64xf32> to tensor<?x64xf32>
  %0 = kf.argmax %x : tensor<?x64xf32>
  return %0 : tensor<?xi32>
}
