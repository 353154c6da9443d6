// RUN: kf-opt %s --kf-pack-weights -verify-diagnostics

// Only what a checkpoint holds is packed as blocks.
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.schedule<workgroup = [14, 32], tile = [14, 32], vector = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x96xf32>
}

kf.program @p(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32> attributes {max_tokens = 8 : i64} {
  // expected-error @+1 {{kf-pack-weights: operand 1 is quantized, and only the blocks of a kf.weight can be packed}}
  %0 = kf.dispatch @k(%x, %w) : (tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
  kf.yield %0 : tensor<?x96xf32>
}
