// TinyLlama's attention of a prompt.
!cache = !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>
func.func @f(%q: tensor<512x32x64xf32>, %c: !cache, %p: tensor<512xi32>, %s: tensor<512xi32>, %t: tensor<1x32xi32>) -> tensor<512x32x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<512x32x64xf32>, !cache, tensor<512xi32>, tensor<1x32xi32>
  return %0 : tensor<512x32x64xf32>
}
