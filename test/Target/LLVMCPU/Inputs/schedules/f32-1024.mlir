// A square product.
func.func @f(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    attributes {kf.max_tokens = 1024 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024xf32>
  %0 = kf.matmul %x, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
