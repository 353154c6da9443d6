kf.kernel @dense(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<4x96xf32>
}
