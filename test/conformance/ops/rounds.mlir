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

// Rows of experts, with more tokens than are looked at together: the last of
// these are fewer.
kf.kernel @experts_windows_q4_1_kernel(%x: tensor<?x160xf32>, %e: tensor<?x4xi32>, %w: tensor<1x7x77x160x!kf.quant<q4_1>>) -> tensor<?x4x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [2, 1, 48], warps = 2, tiles = 1, rounds = 3>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x160xf32>, tensor<?x4xi32>, tensor<1x7x77x160x!kf.quant<q4_1>>
  kf.yield %0 : tensor<?x4x77xf32>
}
kf.program @experts_windows_q4_1(%x: tensor<?x160xf32>, %e: tensor<?x4xi32>) -> tensor<?x4x77xf32> attributes {max_tokens = 300 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3", "w4", "w5", "w6"] {stacked} : tensor<1x7x77x160x!kf.quant<q4_1>>
  %0 = kf.dispatch @experts_windows_q4_1_kernel(%x, %e, %w) : (tensor<?x160xf32>, tensor<?x4xi32>, tensor<1x7x77x160x!kf.quant<q4_1>>) -> tensor<?x4x77xf32>
  kf.yield %0 : tensor<?x4x77xf32>
}

// Three of both products of a gate, in slices of x, with fewer threads that look
// for rows than there are.
kf.kernel @experts_gated_slices_q8_0_kernel(%x: tensor<?x288xf32>, %e: tensor<?x2xi32>, %b: tensor<2x3x45xf32>, %w: tensor<2x3x45x288x!kf.quant<q8_0>>) -> tensor<?x2x45xf32>
    attributes {schedule = #kf.lanes<workgroup = [3, 1, 48], warps = 2, tiles = 1, reduction = 128, rounds = 3>} {
  %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) : tensor<?x288xf32>, tensor<?x2xi32>, tensor<2x3x45x288x!kf.quant<q8_0>>, tensor<2x3x45xf32>
  kf.yield %0 : tensor<?x2x45xf32>
}
kf.program @experts_gated_slices_q8_0(%x: tensor<?x288xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {max_tokens = 23 : i64} {
  %w = kf.weight ["g0", "g1", "g2", "u0", "u1", "u2"] {stacked} : tensor<2x3x45x288x!kf.quant<q8_0>>
  %b = kf.weight ["b0", "b1", "b2", "c0", "c1", "c2"] {stacked} : tensor<2x3x45xf32>
  %0 = kf.dispatch @experts_gated_slices_q8_0_kernel(%x, %e, %b, %w) : (tensor<?x288xf32>, tensor<?x2xi32>, tensor<2x3x45xf32>, tensor<2x3x45x288x!kf.quant<q8_0>>) -> tensor<?x2x45xf32>
  kf.yield %0 : tensor<?x2x45xf32>
}

// A row for each expert, whose results are added to something.
kf.kernel @experts_rows_f16_kernel(%x: tensor<?x3x100xf32>, %e: tensor<?x3xi32>, %w: tensor<1x5x77x100xf16>, %y: tensor<?x3x77xf32>) -> tensor<?x3x77xf32>
    attributes {schedule = #kf.lanes<workgroup = [4, 1, 96], warps = 4, tiles = 4, block_warps = 2, reduction = 128, rounds = 3>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x3x100xf32>, tensor<?x3xi32>, tensor<1x5x77x100xf16>
  %1 = arith.addf %0, %y : tensor<?x3x77xf32>
  kf.yield %1 : tensor<?x3x77xf32>
}
kf.program @experts_rows_f16(%x: tensor<?x3x100xf32>, %e: tensor<?x3xi32>, %y: tensor<?x3x77xf32>) -> tensor<?x3x77xf32> attributes {max_tokens = 37 : i64} {
  %w = kf.weight ["w0", "w1", "w2", "w3", "w4"] {stacked} : tensor<1x5x77x100xf16>
  %0 = kf.dispatch @experts_rows_f16_kernel(%x, %e, %w, %y) : (tensor<?x3x100xf32>, tensor<?x3xi32>, tensor<1x5x77x100xf16>, tensor<?x3x77xf32>) -> tensor<?x3x77xf32>
  kf.yield %0 : tensor<?x3x77xf32>
}

// Each by itself, whatever others have its expert.
kf.kernel @experts_alone_q4_k_kernel(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>, %w: tensor<2x5x45x256x!kf.quant<q4_k>>) -> tensor<?x2x45xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 1, 24], warps = 2, tiles = 1, rounds = 3>} {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x5x45x256x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x2x45xf32>
}
kf.program @experts_alone_q4_k(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["g0", "g1", "g2", "g3", "g4", "u0", "u1", "u2", "u3", "u4"] {stacked} : tensor<2x5x45x256x!kf.quant<q4_k>>
  %0 = kf.dispatch @experts_alone_q4_k_kernel(%x, %e, %w) : (tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x5x45x256x!kf.quant<q4_k>>) -> tensor<?x2x45xf32>
  kf.yield %0 : tensor<?x2x45xf32>
}

// A thread each for elements of the product: so are packed weights read where
// no other schedule fits.
kf.kernel @experts_elements_q4_k_kernel(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>, %w: tensor<2x5x45x256x!kf.quant<q4_k>>) -> tensor<?x2x45xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 2, 0, 0], threads = [128]>} {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x5x45x256x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x2x45xf32>
}
kf.program @experts_elements_q4_k(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x45xf32> attributes {max_tokens = 7 : i64} {
  %w = kf.weight ["g0", "g1", "g2", "g3", "g4", "u0", "u1", "u2", "u3", "u4"] {stacked} : tensor<2x5x45x256x!kf.quant<q4_k>>
  %0 = kf.dispatch @experts_elements_q4_k_kernel(%x, %e, %w) : (tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x5x45x256x!kf.quant<q4_k>>) -> tensor<?x2x45xf32>
  kf.yield %0 : tensor<?x2x45xf32>
}
