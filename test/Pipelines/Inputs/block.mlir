// A step of one layer, written by hand: embedding, attention, feed-forward, argmax.
!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32>
func.func @block(%ids: tensor<?xi32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?xi32>
    attributes {kf.max_tokens = 8 : i64} {
  %t = kf.weight ["table"] : tensor<100x32xf32>
  %g = kf.weight ["norm"] : tensor<32xf32>
  %wq = kf.weight ["q"] : tensor<32x32xf32>
  %wk = kf.weight ["k"] : tensor<16x32xf32>
  %wv = kf.weight ["v"] : tensor<16x32xf32>
  %wo = kf.weight ["o"] : tensor<32x32xf32>
  %wg = kf.weight ["gate"] : tensor<64x32xf32>
  %wu = kf.weight ["up"] : tensor<64x32xf32>
  %wd = kf.weight ["down"] : tensor<32x64xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %x = kf.embedding %ids, %t : tensor<?xi32>, tensor<100x32xf32>
  %h = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x32xf32>, tensor<32xf32>
  %q = kf.matmul %h, %wq : tensor<?x32xf32>, tensor<32x32xf32>
  %k = kf.matmul %h, %wk : tensor<?x32xf32>, tensor<16x32xf32>
  %v = kf.matmul %h, %wv : tensor<?x32xf32>, tensor<16x32xf32>
  %qh = tensor.expand_shape %q [[0], [1, 2]] output_shape [%n, 2, 16] : tensor<?x32xf32> into tensor<?x2x16xf32>
  %kh = tensor.expand_shape %k [[0], [1, 2]] output_shape [%n, 1, 16] : tensor<?x16xf32> into tensor<?x1x16xf32>
  %vh = tensor.expand_shape %v [[0], [1, 2]] output_shape [%n, 1, 16] : tensor<?x16xf32> into tensor<?x1x16xf32>
  %qr = kf.rope %qh, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x2x16xf32>, tensor<?xi32>
  %kr = kf.rope %kh, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x1x16xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %vh, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x1x16xf32>, tensor<?xi32>, tensor<1x4xi32>
  %a = kf.attention %qr, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  %af = tensor.collapse_shape %a [[0], [1, 2]] : tensor<?x2x16xf32> into tensor<?x32xf32>
  %o = kf.matmul %af, %wo : tensor<?x32xf32>, tensor<32x32xf32>
  %y = arith.addf %x, %o : tensor<?x32xf32>
  %m = kf.mlp %y gate(%wg) up(%wu) down(%wd) activation(silu)
      : (tensor<?x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<32x64xf32>)
  %z = arith.addf %y, %m : tensor<?x32xf32>
  %l = kf.matmul %z, %t : tensor<?x32xf32>, tensor<100x32xf32>
  %i = kf.argmax %l : tensor<?x100xf32>
  return %i : tensor<?xi32>
}
