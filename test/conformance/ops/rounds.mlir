// Row blocks in rounds, for words as well as for halves: programs whose kernels
// have schedules that the policy takes for devices with f16 alone, for Vulkan
// devices.
//
// There are more columns in rounds than in products, whose last row block is not
// whole, and K ends within a step. With `reduction`, sums of slices are added up
// in workgroup memory.

// One row at a time, x whole.
kf.kernel @whole_q4_1_kernel(%x: tensor<?x288xf32>, %w: tensor<77x288x!kf.quant<q4_1>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 48], warps = 2, tiles = 1, rounds = 3>} {
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_1>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @whole_q4_1(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_1>>
  %0 = kf.dispatch @whole_q4_1_kernel(%x, %w) : (tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_1>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Two rows.
kf.kernel @whole_f16_kernel(%x: tensor<?x288xf32>, %w: tensor<77x288xf16>) -> tensor<?x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [2, 48], warps = 2, tiles = 4, rounds = 3>} {
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288xf16>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @whole_f16(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<77x288xf16>
  %0 = kf.dispatch @whole_f16_kernel(%x, %w) : (tensor<?x288xf32>, tensor<77x288xf16>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Three, in slices of x, the last of which is shorter.
kf.kernel @slices_q4_1_kernel(%x: tensor<?x288xf32>, %w: tensor<77x288x!kf.quant<q4_1>>) -> tensor<?x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [3, 48], warps = 2, tiles = 1, block_warps = 1, reduction = 128, rounds = 3>} {
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_1>>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @slices_q4_1(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<77x288x!kf.quant<q4_1>>
  %0 = kf.dispatch @slices_q4_1_kernel(%x, %w) : (tensor<?x288xf32>, tensor<77x288x!kf.quant<q4_1>>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Warps that divide row blocks as well.
kf.kernel @slices_f16_kernel(%x: tensor<?x288xf32>, %w: tensor<77x288xf16>) -> tensor<?x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [3, 96], warps = 4, tiles = 4, block_warps = 2, reduction = 128, rounds = 3>} {
  %0 = kf.matmul %x, %w : tensor<?x288xf32>, tensor<77x288xf16>
  kf.yield %0 : tensor<?x77xf32>
}
kf.program @slices_f16(%x: tensor<?x288xf32>) -> tensor<?x77xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<77x288xf16>
  %0 = kf.dispatch @slices_f16_kernel(%x, %w) : (tensor<?x288xf32>, tensor<77x288xf16>) -> tensor<?x77xf32>
  kf.yield %0 : tensor<?x77xf32>
}

// Both products of a gate.
kf.kernel @gated_q8_0_kernel(%x: tensor<?x288xf32>, %w: tensor<2x45x288x!kf.quant<q8_0>>) -> tensor<?x45xf32>
    attributes {schedule = #kf.lanes<workgroup = [3, 24], warps = 2, tiles = 1, rounds = 3>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x288xf32>, tensor<2x45x288x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x45xf32>
}
kf.program @gated_q8_0(%x: tensor<?x288xf32>) -> tensor<?x45xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x45x288x!kf.quant<q8_0>>
  %0 = kf.dispatch @gated_q8_0_kernel(%x, %w) : (tensor<?x288xf32>, tensor<2x45x288x!kf.quant<q8_0>>) -> tensor<?x45xf32>
  kf.yield %0 : tensor<?x45xf32>
}

// Two row blocks of a warp in each round.
kf.kernel @gated_slices_q8_0_kernel(%x: tensor<?x288xf32>, %w: tensor<2x45x288x!kf.quant<q8_0>>) -> tensor<?x45xf32>
    attributes {schedule = #kf.lanes<workgroup = [2, 48], warps = 2, tiles = 1, reduction = 128, rounds = 3>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x288xf32>, tensor<2x45x288x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x45xf32>
}
kf.program @gated_slices_q8_0(%x: tensor<?x288xf32>) -> tensor<?x45xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x45x288x!kf.quant<q8_0>>
  %0 = kf.dispatch @gated_slices_q8_0_kernel(%x, %w) : (tensor<?x288xf32>, tensor<2x45x288x!kf.quant<q8_0>>) -> tensor<?x45xf32>
  kf.yield %0 : tensor<?x45xf32>
}

kf.kernel @gated_slices_f32_kernel(%x: tensor<?x288xf32>, %w: tensor<2x45x288xf32>) -> tensor<?x45xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 24], warps = 2, tiles = 4, reduction = 64, rounds = 3>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x288xf32>, tensor<2x45x288xf32>
  kf.yield %0 : tensor<?x45xf32>
}
kf.program @gated_slices_f32(%x: tensor<?x288xf32>) -> tensor<?x45xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x45x288xf32>
  %0 = kf.dispatch @gated_slices_f32_kernel(%x, %w) : (tensor<?x288xf32>, tensor<2x45x288xf32>) -> tensor<?x45xf32>
  kf.yield %0 : tensor<?x45xf32>
}
