kf.kernel @f(%x: tensor<4x64xf32>, %w: tensor<32x64x!kf.quant<q8_0>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [2, 16], lanes = 8, dot = s8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x32xf32>
}
