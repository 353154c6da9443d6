// What is hidden from a row does not touch it, whatever it holds, and what is
// seen does; the same on each device.

// Values 1, NaN, inf at positions 0, 1, 2: seen from 0, before the first, from
// 1, and from 0 again.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=0 --input '3x1x4xf32=[1 1 1 1][nan nan nan nan][inf inf inf inf]' \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=0,-1,1,0 \
// RUN:   --expected '4x1x4xf32=[1 1 1 1][0 0 0 0][nan nan nan nan][1 1 1 1]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=0 --input '3x1x4xf32=[1 1 1 1][nan nan nan nan][inf inf inf inf]' \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=0,-1,1,0 \
// RUN:   --expected '4x1x4xf32=[1 1 1 1][0 0 0 0][nan nan nan nan][1 1 1 1]'

// The same in a key.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=1,1,1,1,2,2,2,2,nan,-inf,inf,nan --input 3x1x4xf32=1 \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=2,1,0,-5 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][1 1 1 1][1 1 1 1][0 0 0 0]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=1,1,1,1,2,2,2,2,nan,-inf,inf,nan --input 3x1x4xf32=1 \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=2,1,0,-5 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][1 1 1 1][1 1 1 1][0 0 0 0]'

// Scores of -inf: beside others they weigh nothing, alone they have no softmax.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=-inf,-inf,-inf,-inf,1,1,1,1,1,1,1,1 --input 3x1x4xf32=3 \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=0,1,2,-1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][3 3 3 3][3 3 3 3][0 0 0 0]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=-inf,-inf,-inf,-inf,1,1,1,1,1,1,1,1 --input 3x1x4xf32=3 \
// RUN:   --input 3xi32=0,1,2 --input 4x1x4xf32=1 --input 4xi32=0,1,2,-1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][3 3 3 3][3 3 3 3][0 0 0 0]'
!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32>
func.func @attention(%k: tensor<3x1x4xf32>, %v: tensor<3x1x4xf32>, %p: tensor<3xi32>,
    %q: tensor<4x1x4xf32>, %at: tensor<4xi32>, %cache: !cache) -> tensor<4x1x4xf32> {
  kf.kv_append %cache, %k, %v, %p {layer = 0 : i64} : !cache, tensor<3x1x4xf32>, tensor<3xi32>
  %0 = kf.attention %q, %cache, %at {layer = 0 : i64, scale = 1.0 : f32}
      : tensor<4x1x4xf32>, !cache, tensor<4xi32>
  return %0 : tensor<4x1x4xf32>
}

// A window that has left a NaN behind, and one wider than any position.
// RUN: kf-run exec %s --device cpu --function window \
// RUN:   --input '4x1x4xf32=[nan nan nan nan][inf inf inf inf][1 1 1 1][3 3 3 3]' \
// RUN:   --input 4xi32=0,1,2,3 --input 3x1x4xf32=0 --input 3xi32=3,2,200 \
// RUN:   --expected '3x1x4xf32=[2 2 2 2][inf inf inf inf][0 0 0 0]' \
// RUN:   --expected '3x1x4xf32=[nan nan nan nan][nan nan nan nan][nan nan nan nan]'
// RUN: kf-run exec %s --device reference --function window \
// RUN:   --input '4x1x4xf32=[nan nan nan nan][inf inf inf inf][1 1 1 1][3 3 3 3]' \
// RUN:   --input 4xi32=0,1,2,3 --input 3x1x4xf32=0 --input 3xi32=3,2,200 \
// RUN:   --expected '3x1x4xf32=[2 2 2 2][inf inf inf inf][0 0 0 0]' \
// RUN:   --expected '3x1x4xf32=[nan nan nan nan][nan nan nan nan][nan nan nan nan]'
func.func @window(%v: tensor<4x1x4xf32>, %p: tensor<4xi32>, %q: tensor<3x1x4xf32>,
    %at: tensor<3xi32>, %cache: !cache) -> (tensor<3x1x4xf32>, tensor<3x1x4xf32>) {
  kf.kv_append %cache, %v, %v, %p {layer = 0 : i64} : !cache, tensor<4x1x4xf32>, tensor<4xi32>
  %z = arith.constant dense<0.0> : tensor<4x1x4xf32>
  %k = arith.addf %z, %z : tensor<4x1x4xf32>
  kf.kv_append %cache, %k, %v, %p {layer = 0 : i64} : !cache, tensor<4x1x4xf32>, tensor<4xi32>
  %0 = kf.attention %q, %cache, %at {layer = 0 : i64, scale = 1.0 : f32, window = 2 : i64}
      : tensor<3x1x4xf32>, !cache, tensor<3xi32>
  %1 = kf.attention %q, %cache, %at {layer = 0 : i64, scale = 1.0 : f32, window = 9223372036854775807 : i64}
      : tensor<3x1x4xf32>, !cache, tensor<3xi32>
  return %0, %1 : tensor<3x1x4xf32>, tensor<3x1x4xf32>
}
