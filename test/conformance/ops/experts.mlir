// Experts: which ones a router chooses, and products of rows with the weights of
// theirs. Weights come from the test's own checkpoint.

func.func @route(%logits: tensor<?x7xf32>) -> (tensor<?x3xi32>, tensor<?x3xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(3) : tensor<?x7xf32>
  return %e, %w : tensor<?x3xi32>, tensor<?x3xf32>
}

func.func @route_normalized(%logits: tensor<?x40xf32>) -> (tensor<?x8xi32>, tensor<?x8xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(8) normalized : tensor<?x40xf32>
  return %e, %w : tensor<?x8xi32>, tensor<?x8xf32>
}

func.func @route_scaled(%logits: tensor<?x7xf32>, %scales: tensor<7xbf16>) -> (tensor<?x3xi32>, tensor<?x3xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(3) normalized scales(%scales : tensor<7xbf16>) : tensor<?x7xf32>
  return %e, %w : tensor<?x3xi32>, tensor<?x3xf32>
}

func.func @route_sigmoid(%logits: tensor<?x7xf32>) -> (tensor<?x3xi32>, tensor<?x3xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(3) sigmoid : tensor<?x7xf32>
  return %e, %w : tensor<?x3xi32>, tensor<?x3xf32>
}

func.func @route_biased(%logits: tensor<?x7xf32>, %bias: tensor<7xbf16>) -> (tensor<?x3xi32>, tensor<?x3xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(3) sigmoid normalized bias(%bias : tensor<7xbf16>) : tensor<?x7xf32>
  return %e, %w : tensor<?x3xi32>, tensor<?x3xf32>
}

func.func @route_groups(%logits: tensor<?x24xf32>, %bias: tensor<24xf32>) -> (tensor<?x4xi32>, tensor<?x4xf32>) attributes {kf.max_tokens = 40 : i64} {
  %e, %w = kf.route %logits top(4) sigmoid normalized bias(%bias : tensor<24xf32>) groups(6, 2) : tensor<?x24xf32>
  return %e, %w : tensor<?x4xi32>, tensor<?x4xf32>
}

func.func @route_groups_row(%logits: tensor<1x8xf16>, %bias: tensor<8xf32>, %scales: tensor<8xf32>) -> (tensor<1x2xi32>, tensor<1x2xf32>) {
  %e, %w = kf.route %logits top(2) sigmoid bias(%bias : tensor<8xf32>) groups(4, 2) scales(%scales : tensor<8xf32>) : tensor<1x8xf16>
  return %e, %w : tensor<1x2xi32>, tensor<1x2xf32>
}

// All, of rows with many equal elements.
func.func @route_all_bf16(%x: tensor<4x9xi1>) -> (tensor<4x9xi32>, tensor<4x9xf32>) {
  %logits = arith.uitofp %x : tensor<4x9xi1> to tensor<4x9xbf16>
  %e, %w = kf.route %logits top(9) normalized : tensor<4x9xbf16>
  return %e, %w : tensor<4x9xi32>, tensor<4x9xf32>
}

func.func @route_one(%logits: tensor<1x5xf16>) -> (tensor<1x1xi32>, tensor<1x1xf32>) {
  %e, %w = kf.route %logits top(1) : tensor<1x5xf16>
  return %e, %w : tensor<1x1xi32>, tensor<1x1xf32>
}

// So many experts that a GPU's row has six warps, and as many as it takes at
// most, of which bf16 has many equal.
func.func @route_many(%logits: tensor<?x160xf32>) -> (tensor<?x6xi32>, tensor<?x6xf32>) attributes {kf.max_tokens = 9 : i64} {
  %e, %w = kf.route %logits top(6) : tensor<?x160xf32>
  return %e, %w : tensor<?x6xi32>, tensor<?x6xf32>
}

func.func @route_most(%logits: tensor<?x512xbf16>) -> (tensor<?x10xi32>, tensor<?x10xf32>) attributes {kf.max_tokens = 9 : i64} {
  %e, %w = kf.route %logits top(10) sigmoid normalized : tensor<?x512xbf16>
  return %e, %w : tensor<?x10xi32>, tensor<?x10xf32>
}

// A feed-forward block as models have it, added to its input.
func.func @block(%x: tensor<?x64xf32>, %router: tensor<6x64xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 40 : i64} {
  %l = kf.matmul %x, %router : tensor<?x64xf32>, tensor<6x64xf32>
  %e, %w = kf.route %l top(2) normalized : tensor<?x6xf32>
  %gu = kf.weight ["g0", "g1", "g2", "g3", "g4", "g5", "u0", "u1", "u2", "u3", "u4", "u5"] {stacked} : tensor<2x6x48x64xbf16>
  %d = kf.weight ["d0", "d1", "d2", "d3", "d4", "d5"] {stacked} : tensor<1x6x64x48xbf16>
  %h = kf.expert_matmul %x experts(%e), %gu glu(silu) : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x6x48x64xbf16>
  %y = kf.expert_matmul %h experts(%e), %d : tensor<?x2x48xf32>, tensor<?x2xi32>, tensor<1x6x64x48xbf16>
  %c0 = arith.constant 0 : index
  %t = tensor.dim %x, %c0 : tensor<?x64xf32>
  %w3 = tensor.expand_shape %w [[0], [1, 2]] output_shape [%t, 2, 1] : tensor<?x2xf32> into tensor<?x2x1xf32>
  %wb = kf.broadcast %w3 : tensor<?x2x1xf32> to tensor<?x2x64xf32>
  %s = arith.mulf %y, %wb : tensor<?x2x64xf32>
  %o = kf.reduce(sum) %s dims = [1] : tensor<?x2x64xf32>
  %r = arith.addf %x, %o : tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// Numbers that no expert has stand for the nearest.
func.func @clamped(%x: tensor<?x33xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x45x33xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %c = arith.constant dense<-3> : tensor<1xi32>
  %cb = kf.broadcast %c : tensor<1xi32> to tensor<?x2xi32>
  %e2 = arith.addi %e, %cb : tensor<?x2xi32>
  %0 = kf.expert_matmul %x experts(%e2), %w : tensor<?x33xf32>, tensor<?x2xi32>, tensor<1x4x45x33xf32>
  return %0 : tensor<?x2x45xf32>
}

// Biases, and more rows than a workgroup makes ready at a time.
func.func @biased_f16(%x: tensor<?x3x64xf32>, %l: tensor<?x5xf32>, %b: tensor<2x5x40xf32>, %w: tensor<2x5x40x64xf16>) -> tensor<?x3x40xf32> attributes {kf.max_tokens = 70 : i64} {
  %e, %p = kf.route %l top(3) : tensor<?x5xf32>
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) : tensor<?x3x64xf32>, tensor<?x3xi32>, tensor<2x5x40x64xf16>, tensor<2x5x40xf32>
  return %0 : tensor<?x3x40xf32>
}

func.func @one_expert_for_all(%x: tensor<?x64xf32>, %w: tensor<1x30x40x64xf32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 70 : i64} {
  %c = arith.constant dense<17> : tensor<1xi32>
  %cb = kf.broadcast %c : tensor<1xi32> to tensor<?x2xi32>
  %e = kf.copy %cb : tensor<?x2xi32>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x30x40x64xf32>
  return %0 : tensor<?x2x40xf32>
}

// One expert, whose weight has leading dimensions of 1.
func.func @lone_expert(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x64xf32> attributes {kf.max_tokens = 20 : i64} {
  %u = kf.weight ["g", "u"] {stacked} : tensor<2x1x40x64xbf16>
  %d = kf.weight ["d"] {stacked} : tensor<1x1x64x40xbf16>
  %0 = kf.expert_matmul %x experts(%e), %u glu(silu) : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x1x40x64xbf16>
  %1 = kf.expert_matmul %0 experts(%e), %d : tensor<?x2x40xf32>, tensor<?x2xi32>, tensor<1x1x64x40xbf16>
  return %1 : tensor<?x2x64xf32>
}

// As many for each row as a model has heads: more elements than a workgroup
// takes, whose part of them divides them.
func.func @twenty_heads(%x: tensor<?x20x24xf32>, %e: tensor<?x20xi32>, %w: tensor<1x20x128x24xf32>) -> tensor<?x20x128xf32> attributes {kf.max_tokens = 9 : i64} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x20x24xf32>, tensor<?x20xi32>, tensor<1x20x128x24xf32>
  return %0 : tensor<?x20x128xf32>
}

func.func @many_heads(%x: tensor<?x129x8xf32>, %e: tensor<?x129xi32>, %w: tensor<1x129x12x8xf32>) -> tensor<?x129x12xf32> attributes {kf.max_tokens = 5 : i64} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x129x8xf32>, tensor<?x129xi32>, tensor<1x129x12x8xf32>
  return %0 : tensor<?x129x12xf32>
}

func.func @one_row_bf16(%x: tensor<1x64xbf16>, %e: tensor<1x4xi32>, %w: tensor<1x6x45x64xbf16>) -> tensor<1x4x45xbf16> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x64xbf16>, tensor<1x4xi32>, tensor<1x6x45x64xbf16>
  return %0 : tensor<1x4x45xbf16>
}

// Lines of an adapter, fewer than two vectors have elements.
func.func @adapter_bf16(%x: tensor<?x66xf32>, %e: tensor<?x1xi32>, %w: tensor<1x3x16x66xbf16>) -> tensor<?x1x16xf32> attributes {kf.max_tokens = 40 : i64} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x66xf32>, tensor<?x1xi32>, tensor<1x3x16x66xbf16>
  return %0 : tensor<?x1x16xf32>
}

// As A of an adapter: few lines, whose K 16 warps divide, with an odd end.
func.func @adapter_wide(%x: tensor<?x2040xf32>, %e: tensor<?x1xi32>) -> tensor<?x1x20xf32> attributes {kf.max_tokens = 40 : i64} {
  %w = kf.weight ["w0", "w1", "w2"] {stacked} : tensor<1x3x20x2040xbf16>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2040xf32>, tensor<?x1xi32>, tensor<1x3x20x2040xbf16>
  return %0 : tensor<?x1x20xf32>
}

func.func @gated_q8_0(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q8_0>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q8_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q8_0(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q8_0>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q8_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q4_0(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q4_0>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q4_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q4_0(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q4_0>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q4_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q4_1(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q4_1>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q4_1>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q4_1(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q4_1>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q4_1>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q5_0(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q5_0>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q5_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q5_0(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q5_0>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q5_0>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q5_1(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q5_1>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q5_1>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q5_1(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q5_1>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q5_1>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q2_k(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q2_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q2_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q2_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q2_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q2_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q3_k(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q3_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q3_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q3_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q3_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q3_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q4_k(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q4_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q4_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q4_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q4_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q4_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q5_k(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q5_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q5_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q5_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q5_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q5_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_q6_k(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<q6_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<q6_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_q6_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<q6_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<q6_k>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_iq4_nl(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<iq4_nl>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<iq4_nl>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_iq4_xs(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<iq4_xs>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<iq4_xs>>
  return %0 : tensor<?x2x45xf32>
}

func.func @gated_mxfp4(%x: tensor<?x256xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %p = kf.route %l top(2) normalized : tensor<?x4xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x256x!kf.quant<mxfp4>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x45x256x!kf.quant<mxfp4>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_iq4_nl(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<iq4_nl>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<iq4_nl>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_iq4_xs(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<iq4_xs>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<iq4_xs>>
  return %0 : tensor<?x2x45xf32>
}

func.func @matmul_mxfp4(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 21 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x45x256x!kf.quant<mxfp4>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x45x256x!kf.quant<mxfp4>>
  return %0 : tensor<?x2x45xf32>
}

func.func @one_row_q4_k(%x: tensor<1x256xf32>, %e: tensor<1x3xi32>) -> tensor<1x3x64xf32> {
  %w = kf.weight ["a", "b", "c", "d", "e", "f"] {stacked} : tensor<2x3x64x256x!kf.quant<q4_k>>
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x256xf32>, tensor<1x3xi32>, tensor<2x3x64x256x!kf.quant<q4_k>>
  return %0 : tensor<1x3x64xf32>
}

// A gate whose sides are bounded, with rows large enough to need it.
func.func @clamped_gate(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %b: tensor<2x4x45xf32>, %w: tensor<2x4x45x64xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 1.5, alpha = 1.702> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x45x64xf32>, tensor<2x4x45xf32>
  return %0 : tensor<?x2x45xf32>
}

// Without infinities: rounding to 8 bits makes NaNs of them, a clamp numbers.
func.func @clamped_gate_mxfp4(%x: tensor<?x96xf32>, %l: tensor<?x4xf32>) -> tensor<?x2x45xf32> attributes {kf.max_tokens = 40 : i64} {
  %e, %s = kf.route %l top(2) : tensor<?x4xf32>
  %b = kf.weight ["b0", "b1", "b2", "b3", "c0", "c1", "c2", "c3"] {stacked} : tensor<2x4x45xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x45x96x!kf.quant<mxfp4>>
  %t = math.tanh %x : tensor<?x96xf32>
  %0 = kf.expert_matmul %t experts(%e), %w bias(%b) glu(silu) clamped<limit = 0.5, alpha = 2.0> : tensor<?x96xf32>, tensor<?x2xi32>, tensor<2x4x45x96x!kf.quant<mxfp4>>, tensor<2x4x45xf32>
  return %0 : tensor<?x2x45xf32>
}

func.func @clamped_row_bf16(%x: tensor<1x64xbf16>, %e: tensor<1x4xi32>, %w: tensor<2x6x45x64xbf16>) -> tensor<1x4x45xbf16> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) clamped<limit = 0.25, alpha = 1.0> : tensor<1x64xbf16>, tensor<1x4xi32>, tensor<2x6x45x64xbf16>
  return %0 : tensor<1x4x45xbf16>
}

// More rows than go together, of few experts and of many, which K and N do not
// fill: some have none, and some have more than a workgroup takes at a time.
func.func @many_rows_bf16(%x: tensor<?x100xf32>, %l: tensor<?x9xf32>) -> tensor<?x3x50xf32> attributes {kf.max_tokens = 300 : i64} {
  %e, %p = kf.route %l top(3) : tensor<?x9xf32>
  %b = kf.weight ["b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"] {stacked} : tensor<2x9x50xf32>
  %w = kf.weight ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"] {stacked} : tensor<2x9x50x100xbf16>
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) : tensor<?x100xf32>, tensor<?x3xi32>, tensor<2x9x50x100xbf16>, tensor<2x9x50xf32>
  return %0 : tensor<?x3x50xf32>
}

func.func @many_rows_q4_k(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x50xf32> attributes {kf.max_tokens = 301 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3", "w4"] {stacked} : tensor<1x5x50x256x!kf.quant<q4_k>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x5x50x256x!kf.quant<q4_k>>
  return %0 : tensor<?x2x50xf32>
}

// Codes that are floats, as few rows and as many.
func.func @few_rows_mxfp4(%x: tensor<?x160xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x50xf32> attributes {kf.max_tokens = 9 : i64} {
  %b = kf.weight ["b0", "b1", "b2", "c0", "c1", "c2"] {stacked} : tensor<2x3x50xf32>
  %w = kf.weight ["g0", "g1", "g2", "u0", "u1", "u2"] {stacked} : tensor<2x3x50x160x!kf.quant<mxfp4>>
  %t = math.tanh %x : tensor<?x160xf32>
  %0 = kf.expert_matmul %t experts(%e), %w bias(%b) glu(silu) clamped<limit = 0.5, alpha = 1.702> : tensor<?x160xf32>, tensor<?x2xi32>, tensor<2x3x50x160x!kf.quant<mxfp4>>, tensor<2x3x50xf32>
  return %0 : tensor<?x2x50xf32>
}

func.func @many_rows_mxfp4(%x: tensor<?x2x288xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x50xf32> attributes {kf.max_tokens = 301 : i64} {
  %b = kf.weight ["b0", "b1", "b2", "b3", "b4"] {stacked} : tensor<1x5x50xf32>
  %w = kf.weight ["w0", "w1", "w2", "w3", "w4"] {stacked} : tensor<1x5x50x288x!kf.quant<mxfp4>>
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) : tensor<?x2x288xf32>, tensor<?x2xi32>, tensor<1x5x50x288x!kf.quant<mxfp4>>, tensor<1x5x50xf32>
  return %0 : tensor<?x2x50xf32>
}

// One expert has all rows, and each token all places of its own, of more tokens
// than an expert's rows are looked for among at a time.
func.func @all_of_one_f16(%x: tensor<?x64xf32>) -> tensor<?x8x40xf32> attributes {kf.max_tokens = 600 : i64} {
  %w = kf.weight ["w0", "w1", "w2"] {stacked} : tensor<1x3x40x64xf16>
  %c = arith.constant dense<1> : tensor<1xi32>
  %cb = kf.broadcast %c : tensor<1xi32> to tensor<?x8xi32>
  %e = kf.copy %cb : tensor<?x8xi32>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x8xi32>, tensor<1x3x40x64xf16>
  return %0 : tensor<?x8x40xf32>
}

// What is made of the product before it is stored, by place.
func.func @weighed_q8_0(%x: tensor<?x2x256xf32>, %e: tensor<?x2xi32>, %p: tensor<?x2x40xf32>) -> tensor<?x2x40xf32> attributes {kf.max_tokens = 33 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3"] {stacked} : tensor<1x4x40x256x!kf.quant<q8_0>>
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2x256xf32>, tensor<?x2xi32>, tensor<1x4x40x256x!kf.quant<q8_0>>
  %1 = arith.mulf %0, %p : tensor<?x2x40xf32>
  return %1 : tensor<?x2x40xf32>
}
