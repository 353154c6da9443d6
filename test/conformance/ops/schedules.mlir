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
