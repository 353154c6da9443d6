// A prompt through TinyLlama's gate.
func.func @f(%x: tensor<512x2048xf32>) -> tensor<512x5632xf32> {
  %w = kf.weight ["w"] : tensor<5632x2048x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<512x2048xf32>, tensor<5632x2048x!kf.quant<q8_0>>
  return %0 : tensor<512x5632xf32>
}
