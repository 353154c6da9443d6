// Products of few rows on cooperative matrices, for Vulkan devices whose subgroups
// multiply these: each subgroup has columns of K and sums of the whole tile.

// Subgroups that divide K, of which the last ones have a step less.
kf.kernel @mma_shares_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<77x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16, shares = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<77x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_shares_bf16(%x: tensor<?x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<77x1000xbf16>
  %0 = kf.dispatch @mma_shares_bf16_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<77x1000xbf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Some of them have no columns of K; rows past the range of f16.
kf.kernel @mma_shares_outliers_f16_rows(%x: tensor<?x104xf32>) -> (tensor<?x104xf16>, tensor<?x104xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x104xf32>
  %0 = arith.mulf %x, %all : tensor<?x104xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x104xf32>
  kf.yield %rounded, %outliers : tensor<?x104xf16>, tensor<?x104xf32>
}
kf.kernel @mma_shares_outliers_f16_kernel(%x: tensor<?x104xf16>, %o: tensor<?x104xf32>, %w: tensor<100x104xf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x104xf32>), %w wide : tensor<?x104xf16>, tensor<100x104xf16>
  %1 = arith.addf %r, %0 : tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
kf.program @mma_shares_outliers_f16(%x: tensor<?x104xf32>, %r: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<100x104xf16>
  %0:2 = kf.dispatch @mma_shares_outliers_f16_rows(%x) : (tensor<?x104xf32>) -> (tensor<?x104xf16>, tensor<?x104xf32>)
  %1 = kf.dispatch @mma_shares_outliers_f16_kernel(%0#0, %0#1, %w, %r) : (tensor<?x104xf16>, tensor<?x104xf32>, tensor<100x104xf16>, tensor<?x100xf32>) -> tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}

// Parts of tiles of blocks, both products of a gate.
kf.kernel @mma_shares_outliers_gated_q4_k_rows(%x: tensor<?x1536xf32>) -> (tensor<?x1536xf16>, tensor<?x1536xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x1536xf32>
  %0 = arith.mulf %x, %all : tensor<?x1536xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x1536xf32>
  kf.yield %rounded, %outliers : tensor<?x1536xf16>, tensor<?x1536xf32>
}
kf.kernel @mma_shares_outliers_gated_q4_k_kernel(%x: tensor<?x1536xf16>, %o: tensor<?x1536xf32>, %w: tensor<2x50x1536x!kf.quant<q4_k>>) -> tensor<?x50xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x1536xf32>), %w glu(silu) wide : tensor<?x1536xf16>, tensor<2x50x1536x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x50xf32>
}
kf.program @mma_shares_outliers_gated_q4_k(%x: tensor<?x1536xf32>) -> tensor<?x50xf32> attributes {max_tokens = 33 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x50x1536x!kf.quant<q4_k>>
  %0:2 = kf.dispatch @mma_shares_outliers_gated_q4_k_rows(%x) : (tensor<?x1536xf32>) -> (tensor<?x1536xf16>, tensor<?x1536xf32>)
  %1 = kf.dispatch @mma_shares_outliers_gated_q4_k_kernel(%0#0, %0#1, %w) : (tensor<?x1536xf16>, tensor<?x1536xf32>, tensor<2x50x1536x!kf.quant<q4_k>>) -> tensor<?x50xf32>
  kf.yield %1 : tensor<?x50xf32>
}

// Codes that are looked up, in several passes.
kf.kernel @mma_shares_iq4_nl_kernel(%x: tensor<?x416xf16>, %w: tensor<77x416x!kf.quant<iq4_nl>>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 2>} {
  %0 = kf.matmul %x, %w wide : tensor<?x416xf16>, tensor<77x416x!kf.quant<iq4_nl>>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_shares_iq4_nl(%x: tensor<?x416xf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<77x416x!kf.quant<iq4_nl>>
  %0 = kf.dispatch @mma_shares_iq4_nl_kernel(%x, %w, %r) : (tensor<?x416xf16>, tensor<77x416x!kf.quant<iq4_nl>>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Several units of rows to a subgroup, of two tiles of which the last has few rows
// and a unit without any, with scales of 16 columns.
kf.kernel @mma_shares_rows_q6_k_kernel(%x: tensor<?x768xf16>, %w: tensor<77x768x!kf.quant<q6_k>>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 64], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4>} {
  %0 = kf.matmul %x, %w wide : tensor<?x768xf16>, tensor<77x768x!kf.quant<q6_k>>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_shares_rows_q6_k(%x: tensor<?x768xf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 37 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q6_k>>
  %0 = kf.dispatch @mma_shares_rows_q6_k_kernel(%x, %w, %r) : (tensor<?x768xf16>, tensor<77x768x!kf.quant<q6_k>>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Four units of rows, of which the last has some, past the range of f16.
kf.kernel @mma_shares_outliers_rows_q2_k_rows(%x: tensor<?x512xf32>) -> (tensor<?x512xf16>, tensor<?x512xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x512xf32>
  %0 = arith.mulf %x, %all : tensor<?x512xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x512xf32>
  kf.yield %rounded, %outliers : tensor<?x512xf16>, tensor<?x512xf32>
}
kf.kernel @mma_shares_outliers_rows_q2_k_kernel(%x: tensor<?x512xf16>, %o: tensor<?x512xf32>, %w: tensor<77x512x!kf.quant<q2_k>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x512xf32>), %w wide : tensor<?x512xf16>, tensor<77x512x!kf.quant<q2_k>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @mma_shares_outliers_rows_q2_k(%x: tensor<?x512xf32>) -> tensor<?x77xf32> attributes {max_tokens = 50 : i64} {
  %w = kf.weight ["w"] : tensor<77x512x!kf.quant<q2_k>>
  %0:2 = kf.dispatch @mma_shares_outliers_rows_q2_k_rows(%x) : (tensor<?x512xf32>) -> (tensor<?x512xf16>, tensor<?x512xf32>)
  %1 = kf.dispatch @mma_shares_outliers_rows_q2_k_kernel(%0#0, %0#1, %w) : (tensor<?x512xf16>, tensor<?x512xf32>, tensor<77x512x!kf.quant<q2_k>>) -> tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}

// Integers of 32 columns that scale codes of a table, without minimums: nothing is
// added.
kf.kernel @mma_shares_iq4_xs_kernel(%x: tensor<?x768xf16>, %w: tensor<77x768x!kf.quant<iq4_xs>>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 2>} {
  %0 = kf.matmul %x, %w wide : tensor<?x768xf16>, tensor<77x768x!kf.quant<iq4_xs>>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_shares_iq4_xs(%x: tensor<?x768xf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 33 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<iq4_xs>>
  %0 = kf.dispatch @mma_shares_iq4_xs_kernel(%x, %w, %r) : (tensor<?x768xf16>, tensor<77x768x!kf.quant<iq4_xs>>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}
