// A token through TinyLlama's gate.
func.func @f(%x: tensor<1x2048xf32>) -> tensor<1x5632xf32> {
  %w = kf.weight ["w"] : tensor<5632x2048x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w : tensor<1x2048xf32>, tensor<5632x2048x!kf.quant<q4_k>>
  return %0 : tensor<1x5632xf32>
}
