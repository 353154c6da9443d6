// Products on cooperative matrices, for Vulkan devices whose subgroups multiply
// these: tiles of eight subgroups, in two rows of four and in four rows of two.
// Policies choose them for more columns and rows than are quick to check. Rows end
// within the tile of a subgroup of each row, and columns of each line of them.

// What is added to each element; the last step is a fourth of one.
kf.kernel @mma_wide_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<77x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 256], warps = [2, 4], reduction = 32, stages = 2, unit = coop_bf16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<77x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_wide_bf16(%x: tensor<?x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<77x1000xbf16>
  %0 = kf.dispatch @mma_wide_bf16_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<77x1000xbf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// The same in four rows.
kf.kernel @mma_tall_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<100x1000xbf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [256, 128], warps = [4, 2], reduction = 32, stages = 2, unit = coop_bf16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<100x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
kf.program @mma_tall_bf16(%x: tensor<?x1000xbf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<100x1000xbf16>
  %0 = kf.dispatch @mma_tall_bf16_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<100x1000xbf16>, tensor<?x100xf32>) -> tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}

// Rows of f16, whose sums are looked at; columns of two tiles.
kf.kernel @mma_wide_f16_kernel(%x: tensor<?x480xf16>, %w: tensor<300x480xf16>, %r: tensor<?x300xf32>) -> tensor<?x300xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 256], warps = [2, 4], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x480xf16>, tensor<300x480xf16>
  %1 = arith.addf %r, %0 : tensor<?x300xf32>
  kf.yield %1 : tensor<?x300xf32>
}
kf.program @mma_wide_f16(%x: tensor<?x480xf16>, %r: tensor<?x300xf32>) -> tensor<?x300xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<300x480xf16>
  %0 = kf.dispatch @mma_wide_f16_kernel(%x, %w, %r) : (tensor<?x480xf16>, tensor<300x480xf16>, tensor<?x300xf32>) -> tensor<?x300xf32>
  kf.yield %0 : tensor<?x300xf32>
}

// Columns of two tiles, here too.
kf.kernel @mma_tall_f16_kernel(%x: tensor<?x480xf16>, %w: tensor<141x480xf16>) -> tensor<?x141xf32>
    attributes {schedule = #kf.mma<workgroup = [256, 128], warps = [4, 2], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x480xf16>, tensor<141x480xf16>
  kf.yield %0 : tensor<?x141xf32>
}
kf.program @mma_tall_f16(%x: tensor<?x480xf16>) -> tensor<?x141xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<141x480xf16>
  %0 = kf.dispatch @mma_tall_f16_kernel(%x, %w) : (tensor<?x480xf16>, tensor<141x480xf16>) -> tensor<?x141xf32>
  kf.yield %0 : tensor<?x141xf32>
}

// Both products of a gate.
kf.kernel @mma_wide_gated_bf16_kernel(%x: tensor<?x640xbf16>, %w: tensor<2x77x640xbf16>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 128], warps = [2, 4], reduction = 32, stages = 2, unit = coop_bf16>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x640xbf16>, tensor<2x77x640xbf16>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @mma_wide_gated_bf16(%x: tensor<?x640xbf16>) -> tensor<?x77xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x77x640xbf16>
  %0 = kf.dispatch @mma_wide_gated_bf16_kernel(%x, %w) : (tensor<?x640xbf16>, tensor<2x77x640xbf16>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Both of them in four rows.
kf.kernel @mma_tall_gated_f16_kernel(%x: tensor<?x640xf16>, %w: tensor<2x100x640xf16>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [256, 64], warps = [4, 2], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x640xf16>, tensor<2x100x640xf16>
  kf.yield %0 : tensor<?x100xf32>
}
kf.program @mma_tall_gated_f16(%x: tensor<?x640xf16>) -> tensor<?x100xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x100x640xf16>
  %0 = kf.dispatch @mma_tall_gated_f16_kernel(%x, %w) : (tensor<?x640xf16>, tensor<2x100x640xf16>) -> tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}

// Rows past the range of f16, which are scaled.
kf.kernel @mma_wide_outliers_rows(%x: tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x640xf32>
  %0 = arith.mulf %x, %all : tensor<?x640xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x640xf32>
  kf.yield %rounded, %outliers : tensor<?x640xf16>, tensor<?x640xf32>
}
kf.kernel @mma_wide_outliers_kernel(%x: tensor<?x640xf16>, %o: tensor<?x640xf32>, %w: tensor<100x640xf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 256], warps = [2, 4], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x640xf32>), %w wide : tensor<?x640xf16>, tensor<100x640xf16>
  %1 = arith.addf %r, %0 : tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
kf.program @mma_wide_outliers(%x: tensor<?x640xf32>, %r: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<100x640xf16>
  %0:2 = kf.dispatch @mma_wide_outliers_rows(%x) : (tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
  %1 = kf.dispatch @mma_wide_outliers_kernel(%0#0, %0#1, %w, %r) : (tensor<?x640xf16>, tensor<?x640xf32>, tensor<100x640xf16>, tensor<?x100xf32>) -> tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}

// Such rows, in four rows of subgroups.
kf.kernel @mma_tall_outliers_rows(%x: tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x640xf32>
  %0 = arith.mulf %x, %all : tensor<?x640xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x640xf32>
  kf.yield %rounded, %outliers : tensor<?x640xf16>, tensor<?x640xf32>
}
kf.kernel @mma_tall_outliers_kernel(%x: tensor<?x640xf16>, %o: tensor<?x640xf32>, %w: tensor<77x640xf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [256, 128], warps = [4, 2], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x640xf32>), %w wide : tensor<?x640xf16>, tensor<77x640xf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_tall_outliers(%x: tensor<?x640xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<77x640xf16>
  %0:2 = kf.dispatch @mma_tall_outliers_rows(%x) : (tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
  %1 = kf.dispatch @mma_tall_outliers_kernel(%0#0, %0#1, %w, %r) : (tensor<?x640xf16>, tensor<?x640xf32>, tensor<77x640xf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}

// And with blocks.
kf.kernel @mma_wide_outliers_q8_0_rows(%x: tensor<?x608xf32>) -> (tensor<?x608xf16>, tensor<?x608xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x608xf32>
  %0 = arith.mulf %x, %all : tensor<?x608xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x608xf32>
  kf.yield %rounded, %outliers : tensor<?x608xf16>, tensor<?x608xf32>
}
kf.kernel @mma_wide_outliers_q8_0_kernel(%x: tensor<?x608xf16>, %o: tensor<?x608xf32>, %w: tensor<77x608x!kf.quant<q8_0>>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 256], warps = [2, 4], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x608xf32>), %w wide : tensor<?x608xf16>, tensor<77x608x!kf.quant<q8_0>>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_wide_outliers_q8_0(%x: tensor<?x608xf32>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["w"] : tensor<77x608x!kf.quant<q8_0>>
  %0:2 = kf.dispatch @mma_wide_outliers_q8_0_rows(%x) : (tensor<?x608xf32>) -> (tensor<?x608xf16>, tensor<?x608xf32>)
  %1 = kf.dispatch @mma_wide_outliers_q8_0_kernel(%0#0, %0#1, %w, %r) : (tensor<?x608xf16>, tensor<?x608xf32>, tensor<77x608x!kf.quant<q8_0>>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}

// Both products of a gate, of such rows and of blocks.
kf.kernel @mma_tall_outliers_gated_q4_k_rows(%x: tensor<?x768xf32>) -> (tensor<?x768xf16>, tensor<?x768xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x768xf32>
  %0 = arith.mulf %x, %all : tensor<?x768xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x768xf32>
  kf.yield %rounded, %outliers : tensor<?x768xf16>, tensor<?x768xf32>
}
kf.kernel @mma_tall_outliers_gated_q4_k_kernel(%x: tensor<?x768xf16>, %o: tensor<?x768xf32>, %w: tensor<2x100x768x!kf.quant<q4_k>>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [256, 64], warps = [4, 2], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x768xf32>), %w glu(silu) wide : tensor<?x768xf16>, tensor<2x100x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x100xf32>
}
kf.program @mma_tall_outliers_gated_q4_k(%x: tensor<?x768xf32>) -> tensor<?x100xf32> attributes {max_tokens = 133 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x100x768x!kf.quant<q4_k>>
  %0:2 = kf.dispatch @mma_tall_outliers_gated_q4_k_rows(%x) : (tensor<?x768xf32>) -> (tensor<?x768xf16>, tensor<?x768xf32>)
  %1 = kf.dispatch @mma_tall_outliers_gated_q4_k_kernel(%0#0, %0#1, %w) : (tensor<?x768xf16>, tensor<?x768xf32>, tensor<2x100x768x!kf.quant<q4_k>>) -> tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
