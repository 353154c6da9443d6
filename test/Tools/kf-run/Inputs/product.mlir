func.func @f(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  return %0 : tensor<?x96xf32>
}
