// Losses, and the products and sums that gradients are.
func.func @cross_entropy(%x: tensor<?x37xf32>, %labels: tensor<?xi32>) -> tensor<?xf32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x37xf32>, tensor<?xi32>
  return %0 : tensor<?xf32>
}

// With more rows than columns, some labels are none.
func.func @cross_entropy_without_some(%x: tensor<?x5xbf16>, %labels: tensor<?xi32>) -> tensor<?xf32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x5xbf16>, tensor<?xi32>
  return %0 : tensor<?xf32>
}

func.func @cross_entropy_static(%x: tensor<4x100xf32>, %labels: tensor<4xi32>) -> tensor<4xf32> {
  %0 = kf.cross_entropy %x, %labels : tensor<4x100xf32>, tensor<4xi32>
  return %0 : tensor<4xf32>
}

func.func @scatter_add(%ids: tensor<?xi32>, %rows: tensor<?x37xf32>) -> tensor<150x37xf32> {
  %0 = kf.scatter_add %ids, %rows : tensor<?xi32>, tensor<?x37xf32> to tensor<150x37xf32>
  return %0 : tensor<150x37xf32>
}

// Two rows have the same id, and the first ones none of the result's.
func.func @scatter_add_of_pairs(%numbers: tensor<?xi32>, %rows: tensor<?x16xbf16>) -> tensor<6x16xf32> {
  %two = arith.constant dense<2> : tensor<1xi32>
  %twos = kf.broadcast %two : tensor<1xi32> to tensor<?xi32>
  %halves = arith.divsi %numbers, %twos : tensor<?xi32>
  %ids = arith.subi %halves, %twos : tensor<?xi32>
  %0 = kf.scatter_add %ids, %rows : tensor<?xi32>, tensor<?x16xbf16> to tensor<6x16xf32>
  return %0 : tensor<6x16xf32>
}

func.func @scatter_add_of_products(%ids: tensor<4xi32>, %x: tensor<4x16xf32>, %y: tensor<4x16xf32>) -> tensor<7x16xf32> {
  %rows = arith.mulf %x, %y : tensor<4x16xf32>
  %0 = kf.scatter_add %ids, %rows : tensor<4xi32>, tensor<4x16xf32> to tensor<7x16xf32>
  return %0 : tensor<7x16xf32>
}

func.func @wgrad(%dy: tensor<?x37xf32>, %x: tensor<?x67xf32>) -> tensor<37x67xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x37xf32>, tensor<?x67xf32>
  return %0 : tensor<37x67xf32>
}

func.func @wgrad_of_size(%dy: tensor<?x16xf32, #kf.size<rows>>, %x: tensor<?x64xf32, #kf.size<rows>>) -> tensor<16x64xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x16xf32, #kf.size<rows>>, tensor<?x64xf32, #kf.size<rows>>
  return %0 : tensor<16x64xf32>
}

func.func @wgrad_bf16(%dy: tensor<?x8xf32>, %x: tensor<?x32xbf16>) -> tensor<8x32xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x8xf32>, tensor<?x32xbf16>
  return %0 : tensor<8x32xf32>
}

func.func @wgrad_of_views(%dy: tensor<3x5xf32>, %x: tensor<5x4xf16>) -> tensor<3x4xf32> {
  %turned = kf.transpose %dy permutation = [1, 0] : tensor<3x5xf32>
  %0 = kf.matmul_wgrad %turned, %x : tensor<5x3xf32>, tensor<5x4xf16>
  return %0 : tensor<3x4xf32>
}

func.func @dgrad(%dy: tensor<?x37xf32>, %w: tensor<37x67xf32>) -> tensor<?x67xf32> {
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x37xf32>, tensor<37x67xf32>
  return %0 : tensor<?x67xf32>
}

func.func @dgrad_of_weight(%dy: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %w = kf.weight ["w"] : tensor<32x64xbf16>
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x32xf32>, tensor<32x64xbf16>
  return %0 : tensor<?x64xf32>
}

func.func @dgrad_of_blocks(%dy: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %w = kf.weight ["w"] : tensor<32x64x!kf.quant<q4_0>>
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x32xf32>, tensor<32x64x!kf.quant<q4_0>>
  return %0 : tensor<?x64xf32>
}

// Bits of all kinds: of the draw, of rows, and of columns.
func.func @philox(%a: tensor<?x37xi32>, %c: tensor<?x37xi32>, %d: tensor<?x37xi32>) -> tensor<?x37xi32> {
  %large = arith.constant dense<-747796405> : tensor<1xi32>
  %factor = kf.broadcast %large : tensor<1xi32> to tensor<?x37xi32>
  %0 = arith.muli %a, %factor : tensor<?x37xi32>
  %1 = arith.xori %c, %0 : tensor<?x37xi32>
  %2 = kf.philox %0, %1, %d, %c key %1, %a : tensor<?x37xi32>
  return %2 : tensor<?x37xi32>
}

func.func @dropout(%x: tensor<33x67xf32>, %draw: tensor<4xi32>) -> tensor<33x67xf32> {
  %0 = kf.dropout %x, %draw {p = 0.3 : f32} : tensor<33x67xf32>, tensor<4xi32>
  return %0 : tensor<33x67xf32>
}

func.func @dropout_of_nothing(%x: tensor<5x16xbf16>, %draw: tensor<4xi32>) -> tensor<5x16xbf16> {
  %0 = kf.dropout %x, %draw {p = 0.0 : f32} : tensor<5x16xbf16>, tensor<4xi32>
  return %0 : tensor<5x16xbf16>
}

func.func @dropout_of_most(%x: tensor<5x40xf16>, %draw: tensor<4xi32>) -> tensor<5x40xf16> {
  %0 = kf.dropout %x, %draw {p = 0.9 : f32} : tensor<5x40xf16>, tensor<4xi32>
  return %0 : tensor<5x40xf16>
}

// What a product reads.
func.func @dropout_in_product(%x: tensor<9x64xf32>, %w: tensor<16x64xf32>, %draw: tensor<4xi32>) -> tensor<9x16xf32> {
  %0 = kf.dropout %x, %draw {p = 0.5 : f32} : tensor<9x64xf32>, tensor<4xi32>
  %1 = kf.matmul %0, %w : tensor<9x64xf32>, tensor<16x64xf32>
  return %1 : tensor<9x16xf32>
}

// Products of f32 with sizes that are known, by matrix units where a device takes
// them so: those of batches, as attention and its gradients have them, a weight's
// gradient, and an adapter's, with a long K.
func.func @wide_batches(%x: tensor<3x37x45xf32>, %w: tensor<3x50x45xf32>) -> tensor<3x37x50xf32> {
  %0 = kf.batch_matmul %x, %w : tensor<3x37x45xf32>, tensor<3x50x45xf32>
  return %0 : tensor<3x37x50xf32>
}

func.func @wide_batches_by_turned(%x: tensor<3x37x50xf32>, %w: tensor<3x50x45xf32>) -> tensor<3x37x45xf32> {
  %turned = kf.transpose %w permutation = [0, 2, 1] : tensor<3x50x45xf32>
  %0 = kf.batch_matmul %x, %turned : tensor<3x37x50xf32>, tensor<3x45x50xf32>
  return %0 : tensor<3x37x45xf32>
}

func.func @wide_batches_of_turned(%x: tensor<3x37x50xf32>, %w: tensor<3x37x45xf32>) -> tensor<3x50x45xf32> {
  %rows = kf.transpose %x permutation = [0, 2, 1] : tensor<3x37x50xf32>
  %columns = kf.transpose %w permutation = [0, 2, 1] : tensor<3x37x45xf32>
  %0 = kf.batch_matmul %rows, %columns : tensor<3x50x37xf32>, tensor<3x45x37xf32>
  return %0 : tensor<3x50x45xf32>
}

func.func @wide_batches_of_heads(%x: tensor<2x3x37x45xf32>, %w: tensor<2x3x50x45xf32>) -> tensor<2x3x37x50xf32> {
  %half = arith.constant dense<0.5> : tensor<2x3x37x50xf32>
  %0 = kf.batch_matmul %x, %w : tensor<2x3x37x45xf32>, tensor<2x3x50x45xf32>
  %1 = arith.mulf %0, %half : tensor<2x3x37x50xf32>
  return %1 : tensor<2x3x37x50xf32>
}

func.func @wide_matmul(%x: tensor<64x300xf32>, %w: tensor<70x300xf32>) -> tensor<64x70xf32> {
  %0 = kf.matmul %x, %w : tensor<64x300xf32>, tensor<70x300xf32>
  return %0 : tensor<64x70xf32>
}

func.func @wide_wgrad(%dy: tensor<300x20xf32>, %x: tensor<300x70xf32>) -> tensor<20x70xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<300x20xf32>, tensor<300x70xf32>
  return %0 : tensor<20x70xf32>
}

func.func @wide_wgrad_of_adapter(%dy: tensor<2000x8xf32>, %x: tensor<2000x72xf32>) -> tensor<8x72xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<2000x8xf32>, tensor<2000x72xf32>
  return %0 : tensor<8x72xf32>
}

// bf16 has their exponents, f16 would not. They come back to the size of one.
func.func @wide_wgrad_of_tiny(%dy: tensor<300x20xf32>, %x: tensor<300x70xf32>) -> tensor<20x70xf32> {
  %tiny = arith.constant dense<1.0e-20> : tensor<300x20xf32>
  %large = arith.constant dense<1.0e20> : tensor<20x70xf32>
  %rows = arith.mulf %dy, %tiny : tensor<300x20xf32>
  %0 = kf.matmul_wgrad %rows, %x : tensor<300x20xf32>, tensor<300x70xf32>
  %1 = arith.mulf %0, %large : tensor<20x70xf32>
  return %1 : tensor<20x70xf32>
}

func.func @wide_wgrad_of_huge(%dy: tensor<300x20xf32>, %x: tensor<300x70xf32>) -> tensor<20x70xf32> {
  %huge = arith.constant dense<1.0e30> : tensor<300x20xf32>
  %small = arith.constant dense<1.0e-30> : tensor<20x70xf32>
  %rows = arith.mulf %dy, %huge : tensor<300x20xf32>
  %0 = kf.matmul_wgrad %rows, %x : tensor<300x20xf32>, tensor<300x70xf32>
  %1 = arith.mulf %0, %small : tensor<20x70xf32>
  return %1 : tensor<20x70xf32>
}

// Of the largest numbers: rounding to bf16 would make infinities of them.
func.func @wide_matmul_of_largest(%x: tensor<64x300xf32>) -> tensor<64x70xf32> {
  %largest = arith.constant dense<3.4e38> : tensor<64x1xf32>
  %rest = tensor.extract_slice %x[0, 1] [64, 299] [1, 1] : tensor<64x300xf32> to tensor<64x299xf32>
  %rows = tensor.concat dim(1) %largest, %rest : (tensor<64x1xf32>, tensor<64x299xf32>) -> tensor<64x300xf32>
  %half = arith.constant dense<0.5> : tensor<70x300xf32>
  %small = arith.constant dense<2.0e-38> : tensor<64x70xf32>
  %0 = kf.matmul %rows, %half : tensor<64x300xf32>, tensor<70x300xf32>
  %1 = arith.mulf %0, %small : tensor<64x70xf32>
  return %1 : tensor<64x70xf32>
}

// Rows of whole chunks of 16 bytes, which are copied as they lie.
func.func @wide_matmul_in_place(%x: tensor<140x300xf32>, %w: tensor<76x300xf32>) -> tensor<140x76xf32> {
  %0 = kf.matmul %x, %w : tensor<140x300xf32>, tensor<76x300xf32>
  return %0 : tensor<140x76xf32>
}

func.func @wide_dgrad_in_place(%dy: tensor<140x300xf32>, %w: tensor<300x76xf32>) -> tensor<140x76xf32> {
  %0 = kf.matmul_dgrad %dy, %w : tensor<140x300xf32>, tensor<300x76xf32>
  return %0 : tensor<140x76xf32>
}

func.func @wide_wgrad_in_place(%dy: tensor<300x140xf32>, %x: tensor<300x76xf32>) -> tensor<140x76xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<300x140xf32>, tensor<300x76xf32>
  return %0 : tensor<140x76xf32>
}

func.func @dgrad_in_place(%dy: tensor<?x104xf32>) -> tensor<?x136xf32> {
  %w = kf.weight ["w"] : tensor<104x136xbf16>
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x104xf32>, tensor<104x136xbf16>
  return %0 : tensor<?x136xf32>
}

// Attention to tensors, and its gradients.
func.func @attention_gradients(%q: tensor<2x4x5x24xf32>, %k: tensor<2x2x9x24xf32>, %v: tensor<2x2x9x16xf32>, %dy: tensor<2x4x5x16xf32>) -> (tensor<2x4x5x16xf32>, tensor<2x4x5x24xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x16xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = 4 : i64} : tensor<2x4x5x24xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x16xf32>
  %1:3 = kf.attention_qgrad %q, %k, %v, %dy {causal, offset = 4 : i64} : tensor<2x4x5x24xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x16xf32>, tensor<2x4x5x16xf32>
  %2:2 = kf.attention_kvgrad %q, %k, %v, %dy, %1#1, %1#2 {causal, offset = 4 : i64} : tensor<2x4x5x24xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x16xf32>, tensor<2x4x5x16xf32>, tensor<2x4x5xf32>
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<2x4x5x16xf32>, tensor<2x4x5x24xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x2x9x24xf32>, tensor<2x2x9x16xf32>
}

// With a mask, and scores that are bounded.
func.func @attention_gradients_softcap(%q: tensor<1x2x5x8xf32>, %k: tensor<1x1x9x8xf32>, %v: tensor<1x1x9x8xf32>, %dy: tensor<1x2x5x8xf32>, %m: tensor<1x1x5x9xi1>) -> (tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x1x9x8xf32>, tensor<1x1x9x8xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {softcap = 2.0 : f32, scale = 0.5 : f32} : tensor<1x2x5x8xf32>, tensor<1x1x9x8xf32>, tensor<1x1x9x8xf32>, tensor<1x1x5x9xi1>
  %1:3 = kf.attention_qgrad %q, %k, %v, %dy mask(%m) {softcap = 2.0 : f32, scale = 0.5 : f32} : tensor<1x2x5x8xf32>, tensor<1x1x9x8xf32>, tensor<1x1x9x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x5x9xi1>
  %2:2 = kf.attention_kvgrad %q, %k, %v, %dy, %1#1, %1#2 mask(%m) {softcap = 2.0 : f32, scale = 0.5 : f32} : tensor<1x2x5x8xf32>, tensor<1x1x9x8xf32>, tensor<1x1x9x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5xf32>, tensor<1x1x5x9xi1>
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x1x9x8xf32>, tensor<1x1x9x8xf32>
}

// Of bf16, which matrix units have kernels for: with blocks that are not whole,
// and a mask.
func.func @units_attention(%q: tensor<2x4x70x64xbf16>, %k: tensor<2x2x90x64xbf16>, %v: tensor<2x2x90x64xbf16>, %dy: tensor<2x4x70x64xf32>, %m: tensor<2x1x70x90xi1>) -> (tensor<2x4x70x64xbf16>, tensor<2x4x70x64xf32>, tensor<2x4x70xf32>, tensor<2x4x70xf32>, tensor<2x2x90x64xf32>, tensor<2x2x90x64xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %v mask(%m) {causal, offset = 20 : i64} : tensor<2x4x70x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x1x70x90xi1>
  %1:3 = kf.attention_qgrad %q, %k, %v, %dy mask(%m) {causal, offset = 20 : i64} : tensor<2x4x70x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x4x70x64xf32>, tensor<2x1x70x90xi1>
  %2:2 = kf.attention_kvgrad %q, %k, %v, %dy, %1#1, %1#2 mask(%m) {causal, offset = 20 : i64} : tensor<2x4x70x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x4x70x64xf32>, tensor<2x4x70xf32>, tensor<2x1x70x90xi1>
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<2x4x70x64xbf16>, tensor<2x4x70x64xf32>, tensor<2x4x70xf32>, tensor<2x4x70xf32>, tensor<2x2x90x64xf32>, tensor<2x2x90x64xf32>
}

// Of heads with 128 columns, three of which read the same keys. The first 70 rows,
// of which 64 are a workgroup's, see none.
func.func @units_attention_wide(%q: tensor<1x3x100x128xbf16>, %k: tensor<1x1x100x128xbf16>, %v: tensor<1x1x100x128xbf16>, %dy: tensor<1x3x100x128xf32>) -> (tensor<1x3x100x128xbf16>, tensor<1x3x100x128xf32>, tensor<1x3x100xf32>, tensor<1x3x100xf32>, tensor<1x1x100x128xf32>, tensor<1x1x100x128xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, offset = -70 : i64} : tensor<1x3x100x128xbf16>, tensor<1x1x100x128xbf16>, tensor<1x1x100x128xbf16>
  %1:3 = kf.attention_qgrad %q, %k, %v, %dy {causal, offset = -70 : i64} : tensor<1x3x100x128xbf16>, tensor<1x1x100x128xbf16>, tensor<1x1x100x128xbf16>, tensor<1x3x100x128xf32>
  %2:2 = kf.attention_kvgrad %q, %k, %v, %dy, %1#1, %1#2 {causal, offset = -70 : i64} : tensor<1x3x100x128xbf16>, tensor<1x1x100x128xbf16>, tensor<1x1x100x128xbf16>, tensor<1x3x100x128xf32>, tensor<1x3x100xf32>
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<1x3x100x128xbf16>, tensor<1x3x100x128xf32>, tensor<1x3x100xf32>, tensor<1x3x100xf32>, tensor<1x1x100x128xf32>, tensor<1x1x100x128xf32>
}

// Of a window, and of columns that are no power of two.
func.func @units_attention_window(%q: tensor<1x2x130x80xbf16>, %k: tensor<1x2x130x80xbf16>, %v: tensor<1x2x130x80xbf16>, %dy: tensor<1x2x130x80xf32>) -> (tensor<1x2x130x80xbf16>, tensor<1x2x130x80xf32>, tensor<1x2x130xf32>, tensor<1x2x130xf32>, tensor<1x2x130x80xf32>, tensor<1x2x130x80xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, window = 40 : i64} : tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>
  %1:3 = kf.attention_qgrad %q, %k, %v, %dy {causal, window = 40 : i64} : tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>, tensor<1x2x130x80xf32>
  %2:2 = kf.attention_kvgrad %q, %k, %v, %dy, %1#1, %1#2 {causal, window = 40 : i64} : tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>, tensor<1x2x130x80xbf16>, tensor<1x2x130x80xf32>, tensor<1x2x130xf32>
  return %0, %1#0, %1#1, %1#2, %2#0, %2#1 : tensor<1x2x130x80xbf16>, tensor<1x2x130x80xf32>, tensor<1x2x130xf32>, tensor<1x2x130xf32>, tensor<1x2x130x80xf32>, tensor<1x2x130x80xf32>
}

// Where all keys are seen, as inputs that are not finite need.
func.func @units_attention_all(%q: tensor<2x4x70x64xbf16>, %k: tensor<2x2x90x64xbf16>, %v: tensor<2x2x90x64xbf16>) -> tensor<2x4x70x64xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v : tensor<2x4x70x64xbf16>, tensor<2x2x90x64xbf16>, tensor<2x2x90x64xbf16>
  return %0 : tensor<2x4x70x64xbf16>
}
