// Schedules that no policy chooses, which a person or a tuner may: programs whose
// kernels have them, for NVIDIA GPUs.
//
// #kf.stream divides K among the workgroups of a cluster: three of them, which
// are no power of two, and eight, which are the most.

// Eight slices of K among three workgroups, the last of which has two. The last
// one goes behind the end of K, and the last columns are no whole block.
kf.kernel @thirds_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<77x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 128, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<77x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @thirds_bf16(%x: tensor<?x1000xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x1000xbf16>
  %0 = kf.dispatch @thirds_bf16_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<77x1000xbf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// One slice each; rows for two clusters.
kf.kernel @thirds_f16_kernel(%x: tensor<?x280xf16>, %w: tensor<48x280xf16>) -> tensor<?x48xf32>
    attributes {schedule = #kf.stream<workgroup = [8, 48], warps = 3, tiles = 2, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 96, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x280xf16>, tensor<48x280xf16>
  kf.yield %0 : tensor<?x48xf32>
}
kf.program @thirds_f16(%x: tensor<?x280xf16>) -> tensor<?x48xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<48x280xf16>
  %0 = kf.dispatch @thirds_f16_kernel(%x, %w) : (tensor<?x280xf16>, tensor<48x280xf16>) -> tensor<?x48xf32>
  kf.yield %0 : tensor<?x48xf32>
}

// Both products of a gate.
kf.kernel @thirds_gated_kernel(%x: tensor<?x640xbf16>, %w: tensor<2x44x640xbf16>) -> tensor<?x44xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 24], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64, parts = 3>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x640xbf16>, tensor<2x44x640xbf16>
  kf.yield %0 : tensor<?x44xf32>
}
kf.program @thirds_gated(%x: tensor<?x640xbf16>) -> tensor<?x44xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x44x640xbf16>
  %0 = kf.dispatch @thirds_gated_kernel(%x, %w) : (tensor<?x640xbf16>, tensor<2x44x640xbf16>) -> tensor<?x44xf32>
  kf.yield %0 : tensor<?x44xf32>
}

// As many workgroups as a cluster has: fifteen slices, and one behind the end.
kf.kernel @eighths_bf16_kernel(%x: tensor<?x1900xbf16>, %w: tensor<77x1900xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 128, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1900xbf16>, tensor<77x1900xbf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @eighths_bf16(%x: tensor<?x1900xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x1900xbf16>
  %0 = kf.dispatch @eighths_bf16_kernel(%x, %w, %r) : (tensor<?x1900xbf16>, tensor<77x1900xbf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// One slice each.
kf.kernel @eighths_f16_kernel(%x: tensor<?x1000xf16>, %w: tensor<27x1000xf16>) -> tensor<?x27xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 4, unit = mma_sync, rows = rounded, held = registers, reduction = 128, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xf16>, tensor<27x1000xf16>
  kf.yield %0 : tensor<?x27xf32>
}
kf.program @eighths_f16(%x: tensor<?x1000xf16>) -> tensor<?x27xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<27x1000xf16>
  %0 = kf.dispatch @eighths_f16_kernel(%x, %w) : (tensor<?x1000xf16>, tensor<27x1000xf16>) -> tensor<?x27xf32>
  kf.yield %0 : tensor<?x27xf32>
}

kf.kernel @eighths_gated_kernel(%x: tensor<?x1024xbf16>, %w: tensor<2x44x1024xbf16>) -> tensor<?x44xf32>
    attributes {schedule = #kf.stream<workgroup = [8, 16], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 64, parts = 8>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x1024xbf16>, tensor<2x44x1024xbf16>
  kf.yield %0 : tensor<?x44xf32>
}
kf.program @eighths_gated(%x: tensor<?x1024xbf16>) -> tensor<?x44xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x44x1024xbf16>
  %0 = kf.dispatch @eighths_gated_kernel(%x, %w) : (tensor<?x1024xbf16>, tensor<2x44x1024xbf16>) -> tensor<?x44xf32>
  kf.yield %0 : tensor<?x44xf32>
}

// Weights of blocks: seven slices, sixteen.
kf.kernel @thirds_q8_0_kernel(%x: tensor<?x3136xf16>, %w: tensor<77x3136x!kf.quant<q8_0>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x3136xf16>, tensor<77x3136x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @thirds_q8_0(%x: tensor<?x3136xf16>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x3136x!kf.quant<q8_0>>
  %0 = kf.dispatch @thirds_q8_0_kernel(%x, %w) : (tensor<?x3136xf16>, tensor<77x3136x!kf.quant<q8_0>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @eighths_q8_0_kernel(%x: tensor<?x7904xf16>, %w: tensor<40x7904x!kf.quant<q8_0>>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 2, tiles = 1, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x7904xf16>, tensor<40x7904x!kf.quant<q8_0>>
  %1 = arith.addf %r, %0 : tensor<?x40xf32>
  kf.yield %1 : tensor<?x40xf32>
}
kf.program @eighths_q8_0(%x: tensor<?x7904xf16>, %r: tensor<?x40xf32>) -> tensor<?x40xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x7904x!kf.quant<q8_0>>
  %0 = kf.dispatch @eighths_q8_0_kernel(%x, %w, %r) : (tensor<?x7904xf16>, tensor<40x7904x!kf.quant<q8_0>>, tensor<?x40xf32>) -> tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

kf.kernel @thirds_q4_0_kernel(%x: tensor<?x3136xf16>, %w: tensor<77x3136x!kf.quant<q4_0>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x3136xf16>, tensor<77x3136x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @thirds_q4_0(%x: tensor<?x3136xf16>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x3136x!kf.quant<q4_0>>
  %0 = kf.dispatch @thirds_q4_0_kernel(%x, %w) : (tensor<?x3136xf16>, tensor<77x3136x!kf.quant<q4_0>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @eighths_q4_0_kernel(%x: tensor<?x7904xf16>, %w: tensor<40x7904x!kf.quant<q4_0>>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 2, tiles = 1, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x7904xf16>, tensor<40x7904x!kf.quant<q4_0>>
  %1 = arith.addf %r, %0 : tensor<?x40xf32>
  kf.yield %1 : tensor<?x40xf32>
}
kf.program @eighths_q4_0(%x: tensor<?x7904xf16>, %r: tensor<?x40xf32>) -> tensor<?x40xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x7904x!kf.quant<q4_0>>
  %0 = kf.dispatch @eighths_q4_0_kernel(%x, %w, %r) : (tensor<?x7904xf16>, tensor<40x7904x!kf.quant<q4_0>>, tensor<?x40xf32>) -> tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

kf.kernel @thirds_q4_k_kernel(%x: tensor<?x3328xf16>, %w: tensor<77x3328x!kf.quant<q4_k>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @thirds_q4_k(%x: tensor<?x3328xf16>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x3328x!kf.quant<q4_k>>
  %0 = kf.dispatch @thirds_q4_k_kernel(%x, %w) : (tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q4_k>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @eighths_q4_k_kernel(%x: tensor<?x7936xf16>, %w: tensor<40x7936x!kf.quant<q4_k>>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 2, tiles = 1, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x7936xf16>, tensor<40x7936x!kf.quant<q4_k>>
  %1 = arith.addf %r, %0 : tensor<?x40xf32>
  kf.yield %1 : tensor<?x40xf32>
}
kf.program @eighths_q4_k(%x: tensor<?x7936xf16>, %r: tensor<?x40xf32>) -> tensor<?x40xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x7936x!kf.quant<q4_k>>
  %0 = kf.dispatch @eighths_q4_k_kernel(%x, %w, %r) : (tensor<?x7936xf16>, tensor<40x7936x!kf.quant<q4_k>>, tensor<?x40xf32>) -> tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

kf.kernel @thirds_q6_k_kernel(%x: tensor<?x3328xf16>, %w: tensor<77x3328x!kf.quant<q6_k>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q6_k>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @thirds_q6_k(%x: tensor<?x3328xf16>) -> tensor<?x77xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<77x3328x!kf.quant<q6_k>>
  %0 = kf.dispatch @thirds_q6_k_kernel(%x, %w) : (tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q6_k>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @eighths_q6_k_kernel(%x: tensor<?x7936xf16>, %w: tensor<40x7936x!kf.quant<q6_k>>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 16], warps = 2, tiles = 1, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x7936xf16>, tensor<40x7936x!kf.quant<q6_k>>
  %1 = arith.addf %r, %0 : tensor<?x40xf32>
  kf.yield %1 : tensor<?x40xf32>
}
kf.program @eighths_q6_k(%x: tensor<?x7936xf16>, %r: tensor<?x40xf32>) -> tensor<?x40xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<40x7936x!kf.quant<q6_k>>
  %0 = kf.dispatch @eighths_q6_k_kernel(%x, %w, %r) : (tensor<?x7936xf16>, tensor<40x7936x!kf.quant<q6_k>>, tensor<?x40xf32>) -> tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// Registers hold up to 32 rows, three or four tiles of them.
kf.kernel @more_rows_q4_k_kernel(%x: tensor<?x3328xf16>, %w: tensor<77x3328x!kf.quant<q4_k>>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.stream<workgroup = [24, 32], warps = 2, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 512, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q4_k>>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @more_rows_q4_k(%x: tensor<?x3328xf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<77x3328x!kf.quant<q4_k>>
  %0 = kf.dispatch @more_rows_q4_k_kernel(%x, %w, %r) : (tensor<?x3328xf16>, tensor<77x3328x!kf.quant<q4_k>>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @most_rows_kernel(%x: tensor<?x1000xbf16>, %w: tensor<2x44x1000xbf16>) -> tensor<?x44xf32>
    attributes {schedule = #kf.stream<workgroup = [32, 24], warps = 4, tiles = 2, stages = 3, unit = mma_sync, rows = rounded, held = registers, reduction = 512>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x1000xbf16>, tensor<2x44x1000xbf16>
  kf.yield %0 : tensor<?x44xf32>
}
kf.program @most_rows(%x: tensor<?x1000xbf16>) -> tensor<?x44xf32> attributes {max_tokens = 32 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x44x1000xbf16>
  %0 = kf.dispatch @most_rows_kernel(%x, %w) : (tensor<?x1000xbf16>, tensor<2x44x1000xbf16>) -> tensor<?x44xf32>
  kf.yield %0 : tensor<?x44xf32>
}

// #kf.mma, too, divides K among the workgroups of a cluster, each of which stores
// a part of the tile.

// Five steps, of which one workgroup has three; rows for two tiles.
kf.kernel @mma_halves_bf16_kernel(%x: tensor<?x320xbf16>, %w: tensor<77x320xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 2>} {
  %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<77x320xbf16>
  %1 = arith.addf %r, %0 : tensor<?x77xf32>
  kf.yield %1 : tensor<?x77xf32>
}
kf.program @mma_halves_bf16(%x: tensor<?x320xbf16>, %r: tensor<?x77xf32>) -> tensor<?x77xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<77x320xbf16>
  %0 = kf.dispatch @mma_halves_bf16_kernel(%x, %w, %r) : (tensor<?x320xbf16>, tensor<77x320xbf16>, tensor<?x77xf32>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// The last step is half a step, and each has one.
kf.kernel @mma_eighths_f16_kernel(%x: tensor<?x480xf16>, %w: tensor<136x480xf16>) -> tensor<?x136xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x480xf16>, tensor<136x480xf16>
  kf.yield %0 : tensor<?x136xf32>
}
kf.program @mma_eighths_f16(%x: tensor<?x480xf16>) -> tensor<?x136xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<136x480xf16>
  %0 = kf.dispatch @mma_eighths_f16_kernel(%x, %w) : (tensor<?x480xf16>, tensor<136x480xf16>) -> tensor<?x136xf32>
  kf.yield %0 : tensor<?x136xf32>
}

// Both products of a gate, of blocks; an even number of steps.
kf.kernel @mma_thirds_q4_k_kernel(%x: tensor<?x768xf16>, %w: tensor<2x52x768x!kf.quant<q4_k>>) -> tensor<?x52xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 3>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x768xf16>, tensor<2x52x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x52xf32>
}
kf.program @mma_thirds_q4_k(%x: tensor<?x768xf16>) -> tensor<?x52xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<2x52x768x!kf.quant<q4_k>>
  %0 = kf.dispatch @mma_thirds_q4_k_kernel(%x, %w) : (tensor<?x768xf16>, tensor<2x52x768x!kf.quant<q4_k>>) -> tensor<?x52xf32>
  kf.yield %0 : tensor<?x52xf32>
}

// Units of a warp; sums leave in several turns.
kf.kernel @mma_fourths_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<100x1000xbf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [1, 4], reduction = 32, stages = 2, unit = mma_sync, parts = 4>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<100x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}
kf.program @mma_fourths_bf16(%x: tensor<?x1000xbf16>, %r: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<100x1000xbf16>
  %0 = kf.dispatch @mma_fourths_bf16_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<100x1000xbf16>, tensor<?x100xf32>) -> tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}

kf.kernel @mma_thirds_q8_0_kernel(%x: tensor<?x608xf16>, %w: tensor<72x608x!kf.quant<q8_0>>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 64], warps = [1, 4], reduction = 64, stages = 3, unit = mma_sync, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x608xf16>, tensor<72x608x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_thirds_q8_0(%x: tensor<?x608xf16>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<72x608x!kf.quant<q8_0>>
  %0 = kf.dispatch @mma_thirds_q8_0_kernel(%x, %w) : (tensor<?x608xf16>, tensor<72x608x!kf.quant<q8_0>>) -> tensor<?x72xf32>
  kf.yield %0 : tensor<?x72xf32>
}

// Rows past the range of f16, which each workgroup scales where it has some.
kf.kernel @mma_outliers_rows(%x: tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %large = arith.constant dense<1.0e5> : tensor<1xf32>
  %all = kf.broadcast %large : tensor<1xf32> to tensor<?x640xf32>
  %0 = arith.mulf %x, %all : tensor<?x640xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x640xf32>
  kf.yield %rounded, %outliers : tensor<?x640xf16>, tensor<?x640xf32>
}
kf.kernel @mma_outliers_kernel(%x: tensor<?x640xf16>, %o: tensor<?x640xf32>, %w: tensor<72x640xf16>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 5>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x640xf32>), %w wide : tensor<?x640xf16>, tensor<72x640xf16>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers(%x: tensor<?x640xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<72x640xf16>
  %0:2 = kf.dispatch @mma_outliers_rows(%x) : (tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
  %1 = kf.dispatch @mma_outliers_kernel(%0#0, %0#1, %w) : (tensor<?x640xf16>, tensor<?x640xf32>, tensor<72x640xf16>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}

// Such rows where one workgroup alone has some, of columns 256 to 383. What the
// others have is nearly as large, and they multiply it as it is.
kf.kernel @mma_outliers_middle_rows(%x: tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %column = kf.iota dim = 0 : tensor<640xi32>
  %first = arith.constant dense<256> : tensor<640xi32>
  %count = arith.constant dense<128> : tensor<640xi32>
  %within = arith.constant dense<3.0e4> : tensor<640xf32>
  %past = arith.constant dense<1.0e5> : tensor<640xf32>
  %number = arith.subi %column, %first : tensor<640xi32>
  %is = arith.cmpi ult, %number, %count : tensor<640xi32>
  %scale = arith.select %is, %past, %within : tensor<640xi1>, tensor<640xf32>
  %all = kf.broadcast %scale : tensor<640xf32> to tensor<?x640xf32>
  %0 = arith.mulf %x, %all : tensor<?x640xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x640xf32>
  kf.yield %rounded, %outliers : tensor<?x640xf16>, tensor<?x640xf32>
}
kf.kernel @mma_outliers_middle_kernel(%x: tensor<?x640xf16>, %o: tensor<?x640xf32>, %w: tensor<72x640xf16>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 5>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x640xf32>), %w wide : tensor<?x640xf16>, tensor<72x640xf16>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers_middle(%x: tensor<?x640xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<72x640xf16>
  %0:2 = kf.dispatch @mma_outliers_middle_rows(%x) : (tensor<?x640xf32>) -> (tensor<?x640xf16>, tensor<?x640xf32>)
  %1 = kf.dispatch @mma_outliers_middle_kernel(%0#0, %0#1, %w) : (tensor<?x640xf16>, tensor<?x640xf32>, tensor<72x640xf16>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}

// Units of a warp; the last workgroup has them, and fewer columns.
kf.kernel @mma_outliers_last_rows(%x: tensor<?x1000xf32>) -> (tensor<?x1000xf16>, tensor<?x1000xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %column = kf.iota dim = 0 : tensor<1000xi32>
  %first = arith.constant dense<768> : tensor<1000xi32>
  %count = arith.constant dense<232> : tensor<1000xi32>
  %within = arith.constant dense<3.0e4> : tensor<1000xf32>
  %past = arith.constant dense<1.0e5> : tensor<1000xf32>
  %number = arith.subi %column, %first : tensor<1000xi32>
  %is = arith.cmpi ult, %number, %count : tensor<1000xi32>
  %scale = arith.select %is, %past, %within : tensor<1000xi1>, tensor<1000xf32>
  %all = kf.broadcast %scale : tensor<1000xf32> to tensor<?x1000xf32>
  %0 = arith.mulf %x, %all : tensor<?x1000xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x1000xf32>
  kf.yield %rounded, %outliers : tensor<?x1000xf16>, tensor<?x1000xf32>
}
kf.kernel @mma_outliers_last_kernel(%x: tensor<?x1000xf16>, %o: tensor<?x1000xf32>, %w: tensor<100x1000xf16>) -> tensor<?x100xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [1, 4], reduction = 32, stages = 2, unit = mma_sync, parts = 4>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x1000xf32>), %w wide : tensor<?x1000xf16>, tensor<100x1000xf16>
  kf.yield %0 : tensor<?x100xf32>
}
kf.program @mma_outliers_last(%x: tensor<?x1000xf32>) -> tensor<?x100xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<100x1000xf16>
  %0:2 = kf.dispatch @mma_outliers_last_rows(%x) : (tensor<?x1000xf32>) -> (tensor<?x1000xf16>, tensor<?x1000xf32>)
  %1 = kf.dispatch @mma_outliers_last_kernel(%0#0, %0#1, %w) : (tensor<?x1000xf16>, tensor<?x1000xf32>, tensor<100x1000xf16>) -> tensor<?x100xf32>
  kf.yield %1 : tensor<?x100xf32>
}

// Blocks that are packed; all workgroups but the last one have some.
kf.kernel @mma_outliers_blocks_rows(%x: tensor<?x608xf32>) -> (tensor<?x608xf16>, tensor<?x608xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %column = kf.iota dim = 0 : tensor<608xi32>
  %first = arith.constant dense<0> : tensor<608xi32>
  %count = arith.constant dense<500> : tensor<608xi32>
  %within = arith.constant dense<3.0e4> : tensor<608xf32>
  %past = arith.constant dense<1.0e5> : tensor<608xf32>
  %number = arith.subi %column, %first : tensor<608xi32>
  %is = arith.cmpi ult, %number, %count : tensor<608xi32>
  %scale = arith.select %is, %past, %within : tensor<608xi1>, tensor<608xf32>
  %all = kf.broadcast %scale : tensor<608xf32> to tensor<?x608xf32>
  %0 = arith.mulf %x, %all : tensor<?x608xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x608xf32>
  kf.yield %rounded, %outliers : tensor<?x608xf16>, tensor<?x608xf32>
}
kf.kernel @mma_outliers_q8_0_kernel(%x: tensor<?x608xf16>, %o: tensor<?x608xf32>, %w: tensor<72x608x!kf.quant<q8_0>>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 64], warps = [1, 4], reduction = 64, stages = 3, unit = mma_sync, parts = 3>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x608xf32>), %w wide : tensor<?x608xf16>, tensor<72x608x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers_q8_0(%x: tensor<?x608xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<72x608x!kf.quant<q8_0>>
  %0:2 = kf.dispatch @mma_outliers_blocks_rows(%x) : (tensor<?x608xf32>) -> (tensor<?x608xf16>, tensor<?x608xf32>)
  %1 = kf.dispatch @mma_outliers_q8_0_kernel(%0#0, %0#1, %w) : (tensor<?x608xf16>, tensor<?x608xf32>, tensor<72x608x!kf.quant<q8_0>>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}

// Blocks that have no packed form.
kf.kernel @mma_outliers_q5_0_kernel(%x: tensor<?x608xf16>, %o: tensor<?x608xf32>, %w: tensor<72x608x!kf.quant<q5_0>>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 64], warps = [1, 4], reduction = 64, stages = 3, unit = mma_sync, parts = 3>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x608xf32>), %w wide : tensor<?x608xf16>, tensor<72x608x!kf.quant<q5_0>>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers_q5_0(%x: tensor<?x608xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<72x608x!kf.quant<q5_0>>
  %0:2 = kf.dispatch @mma_outliers_blocks_rows(%x) : (tensor<?x608xf32>) -> (tensor<?x608xf16>, tensor<?x608xf32>)
  %1 = kf.dispatch @mma_outliers_q5_0_kernel(%0#0, %0#1, %w) : (tensor<?x608xf16>, tensor<?x608xf32>, tensor<72x608x!kf.quant<q5_0>>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}

// Both products of a gate.
kf.kernel @mma_outliers_gated_rows(%x: tensor<?x768xf32>) -> (tensor<?x768xf16>, tensor<?x768xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %column = kf.iota dim = 0 : tensor<768xi32>
  %first = arith.constant dense<300> : tensor<768xi32>
  %count = arith.constant dense<10> : tensor<768xi32>
  %within = arith.constant dense<3.0e4> : tensor<768xf32>
  %past = arith.constant dense<1.0e5> : tensor<768xf32>
  %number = arith.subi %column, %first : tensor<768xi32>
  %is = arith.cmpi ult, %number, %count : tensor<768xi32>
  %scale = arith.select %is, %past, %within : tensor<768xi1>, tensor<768xf32>
  %all = kf.broadcast %scale : tensor<768xf32> to tensor<?x768xf32>
  %0 = arith.mulf %x, %all : tensor<?x768xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x768xf32>
  kf.yield %rounded, %outliers : tensor<?x768xf16>, tensor<?x768xf32>
}
kf.kernel @mma_outliers_gated_q4_k_kernel(%x: tensor<?x768xf16>, %o: tensor<?x768xf32>, %w: tensor<2x52x768x!kf.quant<q4_k>>) -> tensor<?x52xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 3>} {
  %0 = kf.matmul %x outliers(%o : tensor<?x768xf32>), %w glu(silu) wide : tensor<?x768xf16>, tensor<2x52x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x52xf32>
}
kf.program @mma_outliers_gated_q4_k(%x: tensor<?x768xf32>) -> tensor<?x52xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<2x52x768x!kf.quant<q4_k>>
  %0:2 = kf.dispatch @mma_outliers_gated_rows(%x) : (tensor<?x768xf32>) -> (tensor<?x768xf16>, tensor<?x768xf32>)
  %1 = kf.dispatch @mma_outliers_gated_q4_k_kernel(%0#0, %0#1, %w) : (tensor<?x768xf16>, tensor<?x768xf32>, tensor<2x52x768x!kf.quant<q4_k>>) -> tensor<?x52xf32>
  kf.yield %1 : tensor<?x52xf32>
}

// A weight that is part of another one, and so stays as it is stored: by units of
// warpgroups, and of a warp. Three steps each, of which the last is no whole one.
kf.kernel @mma_outliers_view_rows(%x: tensor<?x568xf32>) -> (tensor<?x568xf16>, tensor<?x568xf32>)
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %column = kf.iota dim = 0 : tensor<568xi32>
  %first = arith.constant dense<400> : tensor<568xi32>
  %count = arith.constant dense<168> : tensor<568xi32>
  %within = arith.constant dense<3.0e4> : tensor<568xf32>
  %past = arith.constant dense<1.0e5> : tensor<568xf32>
  %number = arith.subi %column, %first : tensor<568xi32>
  %is = arith.cmpi ult, %number, %count : tensor<568xi32>
  %scale = arith.select %is, %past, %within : tensor<568xi1>, tensor<568xf32>
  %all = kf.broadcast %scale : tensor<568xf32> to tensor<?x568xf32>
  %0 = arith.mulf %x, %all : tensor<?x568xf32>
  %rounded, %outliers = kf.round_half %0 : tensor<?x568xf32>
  kf.yield %rounded, %outliers : tensor<?x568xf16>, tensor<?x568xf32>
}
kf.kernel @mma_outliers_view_kernel(%x: tensor<?x568xf16>, %o: tensor<?x568xf32>, %w: tensor<96x568xf16>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 3>} {
  %part = tensor.extract_slice %w[8, 0] [72, 568] [1, 1] : tensor<96x568xf16> to tensor<72x568xf16>
  %0 = kf.matmul %x outliers(%o : tensor<?x568xf32>), %part wide : tensor<?x568xf16>, tensor<72x568xf16>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers_view(%x: tensor<?x568xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["viewed"] : tensor<96x568xf16>
  %0:2 = kf.dispatch @mma_outliers_view_rows(%x) : (tensor<?x568xf32>) -> (tensor<?x568xf16>, tensor<?x568xf32>)
  %1 = kf.dispatch @mma_outliers_view_kernel(%0#0, %0#1, %w) : (tensor<?x568xf16>, tensor<?x568xf32>, tensor<96x568xf16>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}
kf.kernel @mma_outliers_view_sync_kernel(%x: tensor<?x568xf16>, %o: tensor<?x568xf32>, %w: tensor<96x568xf16>) -> tensor<?x72xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 64], warps = [1, 4], reduction = 64, stages = 3, unit = mma_sync, parts = 3>} {
  %part = tensor.extract_slice %w[8, 0] [72, 568] [1, 1] : tensor<96x568xf16> to tensor<72x568xf16>
  %0 = kf.matmul %x outliers(%o : tensor<?x568xf32>), %part wide : tensor<?x568xf16>, tensor<72x568xf16>
  kf.yield %0 : tensor<?x72xf32>
}
kf.program @mma_outliers_view_sync(%x: tensor<?x568xf32>) -> tensor<?x72xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["viewed"] : tensor<96x568xf16>
  %0:2 = kf.dispatch @mma_outliers_view_rows(%x) : (tensor<?x568xf32>) -> (tensor<?x568xf16>, tensor<?x568xf32>)
  %1 = kf.dispatch @mma_outliers_view_sync_kernel(%0#0, %0#1, %w) : (tensor<?x568xf16>, tensor<?x568xf32>, tensor<96x568xf16>) -> tensor<?x72xf32>
  kf.yield %1 : tensor<?x72xf32>
}

// Tiles whose rows are no power of two, and rows for a second one.
kf.kernel @mma_rows_48_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<136x1000xbf16>) -> tensor<?x136xf32>
    attributes {schedule = #kf.mma<workgroup = [48, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<136x1000xbf16>
  kf.yield %0 : tensor<?x136xf32>
}
kf.program @mma_rows_48_bf16(%x: tensor<?x1000xbf16>) -> tensor<?x136xf32> attributes {max_tokens = 50 : i64} {
  %w = kf.weight ["w"] : tensor<136x1000xbf16>
  %0 = kf.dispatch @mma_rows_48_bf16_kernel(%x, %w) : (tensor<?x1000xbf16>, tensor<136x1000xbf16>) -> tensor<?x136xf32>
  kf.yield %0 : tensor<?x136xf32>
}

kf.kernel @mma_rows_80_bf16_kernel(%x: tensor<?x1000xbf16>, %w: tensor<136x1000xbf16>) -> tensor<?x136xf32>
    attributes {schedule = #kf.mma<workgroup = [80, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<136x1000xbf16>
  kf.yield %0 : tensor<?x136xf32>
}
kf.program @mma_rows_80_bf16(%x: tensor<?x1000xbf16>) -> tensor<?x136xf32> attributes {max_tokens = 83 : i64} {
  %w = kf.weight ["w"] : tensor<136x1000xbf16>
  %0 = kf.dispatch @mma_rows_80_bf16_kernel(%x, %w) : (tensor<?x1000xbf16>, tensor<136x1000xbf16>) -> tensor<?x136xf32>
  kf.yield %0 : tensor<?x136xf32>
}

kf.kernel @mma_rows_96_q4_k_kernel(%x: tensor<?x768xf16>, %w: tensor<77x768x!kf.quant<q4_k>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.mma<workgroup = [96, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 3>} {
  %0 = kf.matmul %x, %w wide : tensor<?x768xf16>, tensor<77x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @mma_rows_96_q4_k(%x: tensor<?x768xf16>) -> tensor<?x77xf32> attributes {max_tokens = 99 : i64} {
  %w = kf.weight ["w"] : tensor<77x768x!kf.quant<q4_k>>
  %0 = kf.dispatch @mma_rows_96_q4_k_kernel(%x, %w) : (tensor<?x768xf16>, tensor<77x768x!kf.quant<q4_k>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

kf.kernel @mma_rows_192_q6_k_kernel(%x: tensor<?x512xf16>, %w: tensor<2x52x512x!kf.quant<q6_k>>) -> tensor<?x52xf32>
    attributes {schedule = #kf.mma<workgroup = [192, 64], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x512xf16>, tensor<2x52x512x!kf.quant<q6_k>>
  kf.yield %0 : tensor<?x52xf32>
}
kf.program @mma_rows_192_q6_k(%x: tensor<?x512xf16>) -> tensor<?x52xf32> attributes {max_tokens = 195 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x52x512x!kf.quant<q6_k>>
  %0 = kf.dispatch @mma_rows_192_q6_k_kernel(%x, %w) : (tensor<?x512xf16>, tensor<2x52x512x!kf.quant<q6_k>>) -> tensor<?x52xf32>
  kf.yield %0 : tensor<?x52xf32>
}

// Tiles that are whole in every column, of which a thread stores four side by side:
// with a bias and a residual.
kf.kernel @mma_whole_bf16_kernel(%x: tensor<?x320xbf16>, %w: tensor<128x320xbf16>, %b: tensor<128xf32>, %r: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 2>} {
  %0 = kf.matmul %x, %w bias(%b) wide : tensor<?x320xbf16>, tensor<128x320xbf16>, tensor<128xf32>
  %1 = arith.addf %r, %0 : tensor<?x128xf32>
  kf.yield %1 : tensor<?x128xf32>
}
kf.program @mma_whole_bf16(%x: tensor<?x320xbf16>, %b: tensor<128xf32>, %r: tensor<?x128xf32>) -> tensor<?x128xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<128x320xbf16>
  %0 = kf.dispatch @mma_whole_bf16_kernel(%x, %w, %b, %r) : (tensor<?x320xbf16>, tensor<128x320xbf16>, tensor<128xf32>, tensor<?x128xf32>) -> tensor<?x128xf32>
  kf.yield %0 : tensor<?x128xf32>
}

// A gate whose results are rounded: to bf16, and to f16, which one column of four
// does not fit into.
kf.kernel @mma_whole_q4_k_kernel(%x: tensor<?x768xf16>, %w: tensor<2x64x768x!kf.quant<q4_k>>) -> tensor<?x64xbf16>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 3>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x768xf16>, tensor<2x64x768x!kf.quant<q4_k>>
  %1 = arith.truncf %0 : tensor<?x64xf32> to tensor<?x64xbf16>
  kf.yield %1 : tensor<?x64xbf16>
}
kf.program @mma_whole_q4_k(%x: tensor<?x768xf16>) -> tensor<?x64xbf16> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x64x768x!kf.quant<q4_k>>
  %0 = kf.dispatch @mma_whole_q4_k_kernel(%x, %w) : (tensor<?x768xf16>, tensor<2x64x768x!kf.quant<q4_k>>) -> tensor<?x64xbf16>
  kf.yield %0 : tensor<?x64xbf16>
}

kf.kernel @mma_whole_half_kernel(%x: tensor<?x320xf16>, %w: tensor<64x320xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>)
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 64, stages = 3, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x320xf16>, tensor<64x320xf16>
  %column = kf.iota dim = 0 : tensor<64xi32>
  %three = arith.constant dense<3> : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %past = arith.constant dense<3.0e5> : tensor<64xf32>
  %within = arith.constant dense<1.0> : tensor<64xf32>
  %place = arith.andi %column, %three : tensor<64xi32>
  %is = arith.cmpi eq, %place, %two : tensor<64xi32>
  %scale = arith.select %is, %past, %within : tensor<64xi1>, tensor<64xf32>
  %all = kf.broadcast %scale : tensor<64xf32> to tensor<?x64xf32>
  %1 = arith.mulf %0, %all : tensor<?x64xf32>
  %rounded, %outliers = kf.round_half %1 : tensor<?x64xf32>
  kf.yield %rounded, %outliers : tensor<?x64xf16>, tensor<?x64xf32>
}
// Whichever of both holds an element, of as few bits as it may differ by.
kf.kernel @mma_whole_either(%h: tensor<?x64xf16>, %o: tensor<?x64xf32>) -> tensor<?x64xbf16>
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64]>} {
  %limit = arith.constant dense<65504.0> : tensor<1xf32>
  %all = kf.broadcast %limit : tensor<1xf32> to tensor<?x64xf32>
  %0 = arith.extf %h : tensor<?x64xf16> to tensor<?x64xf32>
  %1 = math.absf %0 : tensor<?x64xf32>
  %2 = arith.cmpf ogt, %1, %all : tensor<?x64xf32>
  %3 = arith.select %2, %o, %0 : tensor<?x64xi1>, tensor<?x64xf32>
  %4 = arith.truncf %3 : tensor<?x64xf32> to tensor<?x64xbf16>
  kf.yield %4 : tensor<?x64xbf16>
}
kf.program @mma_whole_half(%x: tensor<?x320xf16>) -> tensor<?x64xbf16> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<64x320xf16>
  %0:2 = kf.dispatch @mma_whole_half_kernel(%x, %w) : (tensor<?x320xf16>, tensor<64x320xf16>) -> (tensor<?x64xf16>, tensor<?x64xf32>)
  %1 = kf.dispatch @mma_whole_either(%0#0, %0#1) : (tensor<?x64xf16>, tensor<?x64xf32>) -> tensor<?x64xbf16>
  kf.yield %1 : tensor<?x64xbf16>
}

// Fewer elements than the threads of a cluster take at a time.
kf.kernel @mma_whole_48_kernel(%x: tensor<?x1000xbf16>, %w: tensor<2x64x1000xbf16>) -> tensor<?x64xbf16>
    attributes {schedule = #kf.mma<workgroup = [48, 64], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
  %0 = kf.matmul %x, %w glu(gelu_tanh) wide : tensor<?x1000xbf16>, tensor<2x64x1000xbf16>
  %1 = arith.truncf %0 : tensor<?x64xf32> to tensor<?x64xbf16>
  kf.yield %1 : tensor<?x64xbf16>
}
kf.program @mma_whole_48(%x: tensor<?x1000xbf16>) -> tensor<?x64xbf16> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x64x1000xbf16>
  %0 = kf.dispatch @mma_whole_48_kernel(%x, %w) : (tensor<?x1000xbf16>, tensor<2x64x1000xbf16>) -> tensor<?x64xbf16>
  kf.yield %0 : tensor<?x64xbf16>
}

// Sums that do not fit into the stages at once.
kf.kernel @mma_whole_turns_kernel(%x: tensor<?x1000xbf16>, %w: tensor<128x1000xbf16>, %r: tensor<?x128xf32>) -> tensor<?x128xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [1, 4], reduction = 64, stages = 2, unit = mma_sync, parts = 4>} {
  %0 = kf.matmul %x, %w wide : tensor<?x1000xbf16>, tensor<128x1000xbf16>
  %1 = arith.addf %r, %0 : tensor<?x128xf32>
  kf.yield %1 : tensor<?x128xf32>
}
kf.program @mma_whole_turns(%x: tensor<?x1000xbf16>, %r: tensor<?x128xf32>) -> tensor<?x128xf32> attributes {max_tokens = 69 : i64} {
  %w = kf.weight ["w"] : tensor<128x1000xbf16>
  %0 = kf.dispatch @mma_whole_turns_kernel(%x, %w, %r) : (tensor<?x1000xbf16>, tensor<128x1000xbf16>, tensor<?x128xf32>) -> tensor<?x128xf32>
  kf.yield %0 : tensor<?x128xf32>
}

// Two warpgroups, 128 rows of attention, which the tuner may choose. They take
// several turns of their stages.
kf.kernel @flash_warpgroups_window_append(%k: tensor<?x2x128xf32>, %v: tensor<?x2x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 4>} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>, tensor<?x2x128xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}
kf.kernel @flash_warpgroups_window_kernel(%q: tensor<?x8x128xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x8x128xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 4], keys = 16, threads = [32, 8, 1], unit = wgmma, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.11 : f32, window = 90 : i64} : tensor<?x8x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x128xf32>
}
kf.program @flash_warpgroups_window(%q: tensor<?x8x128xf32>, %k: tensor<?x2x128xf32>, %v: tensor<?x2x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>) -> tensor<?x8x128xf32> attributes {max_tokens = 170 : i64} {
  kf.dispatch @flash_warpgroups_window_append(%k, %v, %p, %sp, %pt, %c) : (tensor<?x2x128xf32>, tensor<?x2x128xf32>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>) -> ()
  %0 = kf.dispatch @flash_warpgroups_window_kernel(%q, %c, %p, %sp, %pt) : (tensor<?x8x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> tensor<?x8x128xf32>
  kf.yield %0 : tensor<?x8x128xf32>
}

kf.kernel @flash_warpgroups_codes_append(%k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 4>} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  kf.yield
}
kf.kernel @flash_warpgroups_codes_kernel(%q: tensor<?x6x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>) -> tensor<?x6x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [40, 3], keys = 16, threads = [32, 8, 1], unit = wgmma, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.11 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<2x2xi32>
  kf.yield %0 : tensor<?x6x64xf32>
}
kf.program @flash_warpgroups_codes(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>) -> tensor<?x6x64xf32> attributes {max_tokens = 171 : i64} {
  kf.dispatch @flash_warpgroups_codes_append(%k, %v, %p, %sp, %pt, %c) : (tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<2x2xi32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>) -> ()
  %0 = kf.dispatch @flash_warpgroups_codes_kernel(%q, %c, %p, %sp, %pt) : (tensor<?x6x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<?xi32>, tensor<2x2xi32>) -> tensor<?x6x64xf32>
  kf.yield %0 : tensor<?x6x64xf32>
}

kf.kernel @flash_warpgroups_brain_append(%k: tensor<?x1x64xf32>, %v: tensor<?x1x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>)
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], unroll = 4>} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>, tensor<?x1x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}
kf.kernel @flash_warpgroups_brain_kernel(%q: tensor<?x4x64xbf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x64xbf16>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 4], keys = 32, threads = [32, 8, 1], unit = wgmma, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.11 : f32} : tensor<?x4x64xbf16>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xbf16>
}
kf.program @flash_warpgroups_brain(%q: tensor<?x4x64xbf16>, %k: tensor<?x1x64xf32>, %v: tensor<?x1x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>) -> tensor<?x4x64xbf16> attributes {max_tokens = 250 : i64} {
  kf.dispatch @flash_warpgroups_brain_append(%k, %v, %p, %sp, %pt, %c) : (tensor<?x1x64xf32>, tensor<?x1x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>) -> ()
  %0 = kf.dispatch @flash_warpgroups_brain_kernel(%q, %c, %p, %sp, %pt) : (tensor<?x4x64xbf16>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> tensor<?x4x64xbf16>
  kf.yield %0 : tensor<?x4x64xbf16>
}
