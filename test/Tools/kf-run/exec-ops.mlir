// Every op on the devices that compute it, with numbers worked out by hand.

// RUN: kf-run exec %s --device cpu --function add \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=10 \
// RUN:   '--expected=2x3xf32=[11 12 13][14 15 16]'
// RUN: kf-run exec %s --device reference --function add \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=10 \
// RUN:   '--expected=2x3xf32=[11 12 13][14 15 16]'
func.func @add(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = arith.addf %a, %b : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// RUN: kf-run exec %s --device cpu --function mul \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=10 \
// RUN:   '--expected=2x3xf32=[10 20 30][40 50 60]'
// RUN: kf-run exec %s --device reference --function mul \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=10 \
// RUN:   '--expected=2x3xf32=[10 20 30][40 50 60]'
func.func @mul(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = arith.mulf %a, %b : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// RUN: kf-run exec %s --device cpu --function embedding \
// RUN:   --input 3xi32=3,0,9 \
// RUN:   --input 4x2xf32=1,2,3,4,5,6,7,8 \
// RUN:   '--expected=3x2xf32=[7 8][1 2][0 0]'
// RUN: kf-run exec %s --device reference --function embedding \
// RUN:   --input 3xi32=3,0,9 \
// RUN:   --input 4x2xf32=1,2,3,4,5,6,7,8 \
// RUN:   '--expected=3x2xf32=[7 8][1 2][0 0]'
func.func @embedding(%ids: tensor<3xi32>, %t: tensor<4x2xf32>) -> tensor<3x2xf32> {
  %0 = kf.embedding %ids, %t : tensor<3xi32>, tensor<4x2xf32>
  return %0 : tensor<3x2xf32>
}

// RUN: kf-run exec %s --device cpu --function matmul \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=1,0,0,0,1,1 \
// RUN:   '--expected=2x2xf32=[1 5][4 11]'
// RUN: kf-run exec %s --device reference --function matmul \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=1,0,0,0,1,1 \
// RUN:   '--expected=2x2xf32=[1 5][4 11]'
func.func @matmul(%x: tensor<?x3xf32>, %w: tensor<2x3xf32>) -> tensor<?x2xf32> {
  %0 = kf.matmul %x, %w : tensor<?x3xf32>, tensor<2x3xf32>
  return %0 : tensor<?x2xf32>
}

// RUN: kf-run exec %s --device cpu --function matmul_bias \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=1,0,0,0,1,1 \
// RUN:   --input 2xf32=10,20 \
// RUN:   '--expected=2x2xf32=[11 25][14 31]'
// RUN: kf-run exec %s --device reference --function matmul_bias \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xf32=1,0,0,0,1,1 \
// RUN:   --input 2xf32=10,20 \
// RUN:   '--expected=2x2xf32=[11 25][14 31]'
func.func @matmul_bias(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>, %b: tensor<2xf32>) -> tensor<2x2xf32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>
  return %0 : tensor<2x2xf32>
}

// RUN: kf-run exec %s --device cpu --function matmul_bf16 \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xbf16=1,0,0,0,1,1 \
// RUN:   '--expected=2x2xf32=[1 5][4 11]'
// RUN: kf-run exec %s --device reference --function matmul_bf16 \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x3xbf16=1,0,0,0,1,1 \
// RUN:   '--expected=2x2xf32=[1 5][4 11]'
func.func @matmul_bf16(%x: tensor<2x3xf32>, %w: tensor<2x3xbf16>) -> tensor<2x2xf32> {
  %0 = kf.matmul %x, %w : tensor<2x3xf32>, tensor<2x3xbf16>
  return %0 : tensor<2x2xf32>
}

// RUN: kf-run exec %s --device cpu --function glu \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x2x3xf32=1,0,0,0,-1,0,1,1,1,2,2,2 \
// RUN:   '--expected=2x2xf32=[6 0][60 0]'
// RUN: kf-run exec %s --device reference --function glu \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   --input 2x2x3xf32=1,0,0,0,-1,0,1,1,1,2,2,2 \
// RUN:   '--expected=2x2xf32=[6 0][60 0]'
func.func @glu(%x: tensor<2x3xf32>, %w: tensor<2x2x3xf32>) -> tensor<2x2xf32> {
  %0 = kf.matmul %x, %w glu(relu) : tensor<2x3xf32>, tensor<2x2x3xf32>
  return %0 : tensor<2x2xf32>
}

// RUN: kf-run exec %s --device cpu --function mlp \
// RUN:   --input 1x2xf32=1,2 \
// RUN:   --input 3x2xf32=1,0,0,1,-1,-1 \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   '--expected=1x2xf32=5,14'
// RUN: kf-run exec %s --device reference --function mlp \
// RUN:   --input 1x2xf32=1,2 \
// RUN:   --input 3x2xf32=1,0,0,1,-1,-1 \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 \
// RUN:   '--expected=1x2xf32=5,14'
func.func @mlp(%x: tensor<1x2xf32>, %up: tensor<3x2xf32>, %down: tensor<2x3xf32>) -> tensor<1x2xf32> {
  %0 = kf.mlp %x up(%up) down(%down) activation(relu)
      : (tensor<1x2xf32>, tensor<3x2xf32>, tensor<2x3xf32>)
  return %0 : tensor<1x2xf32>
}

// RUN: kf-run exec %s --device cpu --function rms_norm \
// RUN:   --input 2x4xf32=1,1,1,1,2,-2,2,-2 \
// RUN:   --input 4xf32=1,2,3,4 \
// RUN:   '--expected=2x4xf32=[1 2 3 4][1 -2 3 -4]'
// RUN: kf-run exec %s --device reference --function rms_norm \
// RUN:   --input 2x4xf32=1,1,1,1,2,-2,2,-2 \
// RUN:   --input 4xf32=1,2,3,4 \
// RUN:   '--expected=2x4xf32=[1 2 3 4][1 -2 3 -4]'
func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = kf.rms_norm %x, %w eps(0.0) : tensor<2x4xf32>, tensor<4xf32>
  return %0 : tensor<2x4xf32>
}

// RUN: kf-run exec %s --device cpu --function layer_norm \
// RUN:   --input 1x4xf32=1,3,1,3 \
// RUN:   --input 4xf32=1,2,3,4 \
// RUN:   --input 4xf32=10 \
// RUN:   '--expected=1x4xf32=9,12,7,14'
// RUN: kf-run exec %s --device reference --function layer_norm \
// RUN:   --input 1x4xf32=1,3,1,3 \
// RUN:   --input 4xf32=1,2,3,4 \
// RUN:   --input 4xf32=10 \
// RUN:   '--expected=1x4xf32=9,12,7,14'
func.func @layer_norm(%x: tensor<1x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<1x4xf32> {
  %0 = kf.layer_norm %x, %w bias(%b) eps(0.0) : tensor<1x4xf32>, tensor<4xf32>, tensor<4xf32>
  return %0 : tensor<1x4xf32>
}

// RUN: kf-run exec %s --device cpu --function softmax \
// RUN:   --input 1x4xf32=0,0,0,0 \
// RUN:   '--expected=1x4xf32=0.25'
// RUN: kf-run exec %s --device reference --function softmax \
// RUN:   --input 1x4xf32=0,0,0,0 \
// RUN:   '--expected=1x4xf32=0.25'
func.func @softmax(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = kf.softmax %x : tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// RUN: kf-run exec %s --device cpu --function silu \
// RUN:   --input 4xf32=0,1,-1,100 \
// RUN:   '--expected=4xf32=0,0.7310586,-0.2689414,100'
// RUN: kf-run exec %s --device reference --function silu \
// RUN:   --input 4xf32=0,1,-1,100 \
// RUN:   '--expected=4xf32=0,0.7310586,-0.2689414,100'
func.func @silu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kf.activation(silu) %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: kf-run exec %s --device cpu --function rope \
// RUN:   --input 2x1x4xf32=1,2,3,4,1,2,3,4 \
// RUN:   --input 2xi32=0,1 \
// RUN:   '--expected=2x1x4xf32=1,2,3,4,-1.984111,-2.285279,2.462378,3.844151'
// RUN: kf-run exec %s --device reference --function rope \
// RUN:   --input 2x1x4xf32=1,2,3,4,1,2,3,4 \
// RUN:   --input 2xi32=0,1 \
// RUN:   '--expected=2x1x4xf32=1,2,3,4,-1.984111,-2.285279,2.462378,3.844151'
func.func @rope(%x: tensor<2x1x4xf32>, %p: tensor<2xi32>) -> tensor<2x1x4xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 4 : i64, theta = 1.0 : f64} : tensor<2x1x4xf32>, tensor<2xi32>
  return %0 : tensor<2x1x4xf32>
}

// NaN is smaller than every number.
// RUN: kf-run exec %s --device cpu --function argmax \
// RUN:   --input 6x4xf32=1,5,5,2,9,1,1,1,nan,-nan,-7,-inf,nan,-inf,nan,-inf,nan,nan,nan,nan,0,inf,nan,inf \
// RUN:   '--expected=6xi32=1,0,2,1,0,1'
// RUN: kf-run exec %s --device reference --function argmax \
// RUN:   --input 6x4xf32=1,5,5,2,9,1,1,1,nan,-nan,-7,-inf,nan,-inf,nan,-inf,nan,nan,nan,nan,0,inf,nan,inf \
// RUN:   '--expected=6xi32=1,0,2,1,0,1'
func.func @argmax(%x: tensor<6x4xf32>) -> tensor<6xi32> {
  %0 = kf.argmax %x : tensor<6x4xf32>
  return %0 : tensor<6xi32>
}

// Greedy, and what each filter leaves; no choice with a NaN or a temperature
// below 0.
// RUN: kf-run exec %s --device cpu --function sample \
// RUN:   --input 6x4xf32=1,5,5,2,1,5,5,2,1,5,5,2,1,5,5,2,1,5,nan,2,1,5,5,2 \
// RUN:   --input 6xf32=0,1,1,1,1,-1 --input 6xi32=0,1,0,0,0,0 \
// RUN:   --input 6xf32=1,1,0.4,1,1,1 --input 6xf32=0,0,0,0.9,0,0 \
// RUN:   --input 6xi64=0,1,2,3,4,5 --input 6xi32=0,0,0,1,0,0 \
// RUN:   '--expected=6xi32=1,1,1,2,-1,-1'
// RUN: kf-run exec %s --device reference --function sample \
// RUN:   --input 6x4xf32=1,5,5,2,1,5,5,2,1,5,5,2,1,5,5,2,1,5,nan,2,1,5,5,2 \
// RUN:   --input 6xf32=0,1,1,1,1,-1 --input 6xi32=0,1,0,0,0,0 \
// RUN:   --input 6xf32=1,1,0.4,1,1,1 --input 6xf32=0,0,0,0.9,0,0 \
// RUN:   --input 6xi64=0,1,2,3,4,5 --input 6xi32=0,0,0,1,0,0 \
// RUN:   '--expected=6xi32=1,1,1,2,-1,-1'
func.func @sample(%x: tensor<6x4xf32>, %t: tensor<6xf32>, %k: tensor<6xi32>, %p: tensor<6xf32>, %m: tensor<6xf32>, %s: tensor<6xi64>, %c: tensor<6xi32>) -> tensor<6xi32> {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<6x4xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi64>, tensor<6xi32>)
  return %0 : tensor<6xi32>
}

// 6 / 2 - 2 * 0.5 - 0.75 and 5 / 2 - 0.5 - 0.75 leave the last one; then 2 + 4.5.
// RUN: kf-run exec %s --device cpu --function sample_adjusted \
// RUN:   --input 2x4xf32=1,6,5,2,1,6,5,2 --input 2xf32=0 --input 2xi32=0 \
// RUN:   --input 2xf32=1 --input 2xf32=0 --input 2xi64=0 --input 2xi32=0 \
// RUN:   --input 2xi32=0,2 --input 2xi32=2,1 --input 3xi32=1,2,3 \
// RUN:   --input 3xi32=2,1,0 --input 3xf32=0,0,4.5 --input 2xf32=2,1 \
// RUN:   --input 2xf32=0.75,0 --input 2xf32=0.5,0 \
// RUN:   '--expected=2xi32=3,3'
// RUN: kf-run exec %s --device reference --function sample_adjusted \
// RUN:   --input 2x4xf32=1,6,5,2,1,6,5,2 --input 2xf32=0 --input 2xi32=0 \
// RUN:   --input 2xf32=1 --input 2xf32=0 --input 2xi64=0 --input 2xi32=0 \
// RUN:   --input 2xi32=0,2 --input 2xi32=2,1 --input 3xi32=1,2,3 \
// RUN:   --input 3xi32=2,1,0 --input 3xf32=0,0,4.5 --input 2xf32=2,1 \
// RUN:   --input 2xf32=0.75,0 --input 2xf32=0.5,0 \
// RUN:   '--expected=2xi32=3,3'
func.func @sample_adjusted(%x: tensor<2x4xf32>, %t: tensor<2xf32>, %k: tensor<2xi32>, %p: tensor<2xf32>, %m: tensor<2xf32>, %s: tensor<2xi64>, %c: tensor<2xi32>, %first: tensor<2xi32>, %count: tensor<2xi32>, %ids: tensor<3xi32>, %seen: tensor<3xi32>, %bias: tensor<3xf32>, %r: tensor<2xf32>, %pr: tensor<2xf32>, %fr: tensor<2xf32>) -> tensor<2xi32> {
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<2x4xf32>, tensor<2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi64>, tensor<2xi32>,
         tensor<2xi32>, tensor<2xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return %0 : tensor<2xi32>
}

// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 2x2x4xf32=1 \
// RUN:   --input 2x1x4xf32=1 \
// RUN:   --input 2x1x4xf32=1,2,3,4,3,4,5,6 \
// RUN:   --input 2xi32=0,1 --input 2xi32=0 --input 1x4xi32=3,0,1,2 \
// RUN:   '--expected=2x2x4xf32=[[1 2 3 4][1 2 3 4]][[2 3 4 5][2 3 4 5]]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 2x2x4xf32=1 \
// RUN:   --input 2x1x4xf32=1 \
// RUN:   --input 2x1x4xf32=1,2,3,4,3,4,5,6 \
// RUN:   --input 2xi32=0,1 --input 2xi32=0 --input 1x4xi32=3,0,1,2 \
// RUN:   '--expected=2x2x4xf32=[[1 2 3 4][1 2 3 4]][[2 3 4 5][2 3 4 5]]'
func.func @attention(%q: tensor<2x2x4xf32>, %k: tensor<2x1x4xf32>, %v: tensor<2x1x4xf32>, %p: tensor<2xi32>,
    %sp: tensor<2xi32>, %pt: tensor<1x4xi32>, %cache: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32>) -> tensor<2x2x4xf32> {
  kf.kv_append %cache, %k, %v, %p, %sp, %pt {layer = 0 : i64}
      : !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32>, tensor<2x1x4xf32>, tensor<2xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %cache, %p, %sp, %pt {layer = 0 : i64, scale = 0.5 : f32}
      : tensor<2x2x4xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32>, tensor<2xi32>, tensor<1x4xi32>
  return %0 : tensor<2x2x4xf32>
}
