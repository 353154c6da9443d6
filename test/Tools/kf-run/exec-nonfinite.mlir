// What is hidden from a row does not touch it, whatever it holds, and what is
// seen does; the same on each device.

// Values 1, NaN, inf at positions 0, 1, 2: seen from 0, before the first, from
// 1, and from 0 again.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=0 --input '3x1x4xf32=[1 1 1 1][nan nan nan nan][inf inf inf inf]' \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=0,-1,1,0 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[1 1 1 1][0 0 0 0][nan nan nan nan][1 1 1 1]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=0 --input '3x1x4xf32=[1 1 1 1][nan nan nan nan][inf inf inf inf]' \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=0,-1,1,0 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[1 1 1 1][0 0 0 0][nan nan nan nan][1 1 1 1]'

// The same in a key.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=1,1,1,1,2,2,2,2,nan,-inf,inf,nan --input 3x1x4xf32=1 \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=2,1,0,-5 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][1 1 1 1][1 1 1 1][0 0 0 0]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=1,1,1,1,2,2,2,2,nan,-inf,inf,nan --input 3x1x4xf32=1 \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=2,1,0,-5 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][1 1 1 1][1 1 1 1][0 0 0 0]'

// Scores of -inf: beside others they weigh nothing, alone they have no softmax.
// RUN: kf-run exec %s --device cpu --function attention \
// RUN:   --input 3x1x4xf32=-inf,-inf,-inf,-inf,1,1,1,1,1,1,1,1 --input 3x1x4xf32=3 \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=0,1,2,-1 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][3 3 3 3][3 3 3 3][0 0 0 0]'
// RUN: kf-run exec %s --device reference --function attention \
// RUN:   --input 3x1x4xf32=-inf,-inf,-inf,-inf,1,1,1,1,1,1,1,1 --input 3x1x4xf32=3 \
// RUN:   --input 3xi32=0,1,2 --input 3xi32 --input 4x1x4xf32=1 \
// RUN:   --input 4xi32=0,1,2,-1 --input 4xi32 --input 1x4xi32=2,0,3,1 \
// RUN:   --expected '4x1x4xf32=[nan nan nan nan][3 3 3 3][3 3 3 3][0 0 0 0]'
!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32>
func.func @attention(%k: tensor<3x1x4xf32>, %v: tensor<3x1x4xf32>, %p: tensor<3xi32>, %sp: tensor<3xi32>,
    %q: tensor<4x1x4xf32>, %at: tensor<4xi32>, %sat: tensor<4xi32>, %pt: tensor<1x4xi32>, %cache: !cache) -> tensor<4x1x4xf32> {
  kf.kv_append %cache, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<3x1x4xf32>, tensor<3xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %cache, %at, %sat, %pt {layer = 0 : i64, scale = 1.0 : f32}
      : tensor<4x1x4xf32>, !cache, tensor<4xi32>, tensor<1x4xi32>
  return %0 : tensor<4x1x4xf32>
}

// A window that has left a NaN behind, and one wider than any position.
// RUN: kf-run exec %s --device cpu --function window \
// RUN:   --input '4x1x4xf32=[nan nan nan nan][inf inf inf inf][1 1 1 1][3 3 3 3]' \
// RUN:   --input 4xi32=0,1,2,3 --input 4xi32 --input 3x1x4xf32=0 \
// RUN:   --input 3xi32=3,2,200 --input 3xi32 --input 1x4xi32=3,2,1,0 \
// RUN:   --expected '3x1x4xf32=[2 2 2 2][inf inf inf inf][0 0 0 0]' \
// RUN:   --expected '3x1x4xf32=[nan nan nan nan][nan nan nan nan][nan nan nan nan]'
// RUN: kf-run exec %s --device reference --function window \
// RUN:   --input '4x1x4xf32=[nan nan nan nan][inf inf inf inf][1 1 1 1][3 3 3 3]' \
// RUN:   --input 4xi32=0,1,2,3 --input 4xi32 --input 3x1x4xf32=0 \
// RUN:   --input 3xi32=3,2,200 --input 3xi32 --input 1x4xi32=3,2,1,0 \
// RUN:   --expected '3x1x4xf32=[2 2 2 2][inf inf inf inf][0 0 0 0]' \
// RUN:   --expected '3x1x4xf32=[nan nan nan nan][nan nan nan nan][nan nan nan nan]'
func.func @window(%v: tensor<4x1x4xf32>, %p: tensor<4xi32>, %sp: tensor<4xi32>, %q: tensor<3x1x4xf32>,
    %at: tensor<3xi32>, %sat: tensor<3xi32>, %pt: tensor<1x4xi32>, %cache: !cache) -> (tensor<3x1x4xf32>, tensor<3x1x4xf32>) {
  kf.kv_append %cache, %v, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<4x1x4xf32>, tensor<4xi32>, tensor<1x4xi32>
  %z = arith.constant dense<0.0> : tensor<4x1x4xf32>
  %k = arith.addf %z, %z : tensor<4x1x4xf32>
  kf.kv_append %cache, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<4x1x4xf32>, tensor<4xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %cache, %at, %sat, %pt {layer = 0 : i64, scale = 1.0 : f32, window = 2 : i64}
      : tensor<3x1x4xf32>, !cache, tensor<3xi32>, tensor<1x4xi32>
  %1 = kf.attention %q, %cache, %at, %sat, %pt {layer = 0 : i64, scale = 1.0 : f32, window = 9223372036854775807 : i64}
      : tensor<3x1x4xf32>, !cache, tensor<3xi32>, tensor<1x4xi32>
  return %0, %1 : tensor<3x1x4xf32>, tensor<3x1x4xf32>
}

// The largest number, passing over NaNs; 0 where there is no number.
// RUN: kf-run exec %s --device cpu --function argmax \
// RUN:   --input '4x5xf32=[nan 1 nan 2 2][nan nan nan nan nan][-inf nan -inf -inf nan][nan 0 inf inf nan]' \
// RUN:   --expected 4xi32=3,0,0,2
// RUN: kf-run exec %s --device reference --function argmax \
// RUN:   --input '4x5xf32=[nan 1 nan 2 2][nan nan nan nan nan][-inf nan -inf -inf nan][nan 0 inf inf nan]' \
// RUN:   --expected 4xi32=3,0,0,2
func.func @argmax(%x: tensor<4x5xf32>) -> tensor<4xi32> {
  %0 = kf.argmax %x : tensor<4x5xf32>
  return %0 : tensor<4xi32>
}

// Elementwise ops, one special value at a time.
// RUN: kf-run exec %s --device cpu --function elementwise \
// RUN:   --input 6xf32=nan,inf,-inf,1,-0,0 --input 6xf32=1,nan,1,-inf,0,-0 \
// RUN:   --expected 6xf32=nan,nan,1,1,0,0 --expected 6xf32=nan,nan,-inf,-inf,-0,-0 \
// RUN:   --expected 6xf32=nan,inf,0,2.7182817,1,1 --expected 6xf32=nan,inf,nan,0.7310586,0,0 \
// RUN:   --expected 6xf32=nan,inf,nan,0.8413447,0,0 --expected 6xf32=nan,inf,0,1,0,0 \
// RUN:   --expected 6xf32=nan,1,-1,0.7615942,0,0
// RUN: kf-run exec %s --device reference --function elementwise \
// RUN:   --input 6xf32=nan,inf,-inf,1,-0,0 --input 6xf32=1,nan,1,-inf,0,-0 \
// RUN:   --expected 6xf32=nan,nan,1,1,0,0 --expected 6xf32=nan,nan,-inf,-inf,-0,-0 \
// RUN:   --expected 6xf32=nan,inf,0,2.7182817,1,1 --expected 6xf32=nan,inf,nan,0.7310586,0,0 \
// RUN:   --expected 6xf32=nan,inf,nan,0.8413447,0,0 --expected 6xf32=nan,inf,0,1,0,0 \
// RUN:   --expected 6xf32=nan,1,-1,0.7615942,0,0
func.func @elementwise(%a: tensor<6xf32>, %b: tensor<6xf32>)
    -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0 = arith.maximumf %a, %b : tensor<6xf32>
  %1 = arith.minimumf %a, %b : tensor<6xf32>
  %2 = math.exp %a : tensor<6xf32>
  %3 = kf.activation(silu) %a : tensor<6xf32>
  %4 = kf.activation(gelu) %a : tensor<6xf32>
  %5 = kf.activation(relu) %a : tensor<6xf32>
  %6 = math.tanh %a : tensor<6xf32>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// Two sequences with a page of their own each, and one that reads the first
// one's: what one holds does not reach another, be they in one step or between
// one another's rows. The NaN and the infinity are of sequence 1.
// RUN: kf-run exec %s --device cpu --function sequences --context 192 \
// RUN:   --input '4x1x4xf32=[1 1 1 1][nan nan nan nan][3 3 3 3][inf inf inf inf]' \
// RUN:   --input 4xi32=0,0,1,1 --input 4xi32=0,1,0,1 --input 5x1x4xf32=0 \
// RUN:   --input 5xi32=1,1,0,1,1 --input 5xi32=0,1,1,2,0 --input 3x2xi32=2,-1,0,99,2,7 \
// RUN:   --expected '5x1x4xf32=[2 2 2 2][nan nan nan nan][nan nan nan nan][2 2 2 2][2 2 2 2]'
// RUN: kf-run exec %s --device reference --function sequences --context 192 \
// RUN:   --input '4x1x4xf32=[1 1 1 1][nan nan nan nan][3 3 3 3][inf inf inf inf]' \
// RUN:   --input 4xi32=0,0,1,1 --input 4xi32=0,1,0,1 --input 5x1x4xf32=0 \
// RUN:   --input 5xi32=1,1,0,1,1 --input 5xi32=0,1,1,2,0 --input 3x2xi32=2,-1,0,99,2,7 \
// RUN:   --expected '5x1x4xf32=[2 2 2 2][nan nan nan nan][nan nan nan nan][2 2 2 2][2 2 2 2]'
func.func @sequences(%v: tensor<4x1x4xf32>, %p: tensor<4xi32>, %s: tensor<4xi32>,
    %q: tensor<5x1x4xf32>, %at: tensor<5xi32>, %of: tensor<5xi32>,
    %pages: tensor<3x2xi32>, %cache: !cache) -> tensor<5x1x4xf32> {
  kf.kv_append %cache, %v, %v, %p, %s, %pages {layer = 0 : i64} : !cache, tensor<4x1x4xf32>, tensor<4xi32>, tensor<3x2xi32>
  %0 = kf.attention %q, %cache, %at, %of, %pages {layer = 0 : i64, scale = 1.0 : f32}
      : tensor<5x1x4xf32>, !cache, tensor<5xi32>, tensor<3x2xi32>
  return %0 : tensor<5x1x4xf32>
}
