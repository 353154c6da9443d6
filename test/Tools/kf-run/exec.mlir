// How exec takes inputs and shows results.

func.func @two(%a: tensor<?x2xf32>, %b: tensor<?x2xf32>)
    -> (tensor<?x2xf32>, tensor<?xi32>) {
  %0 = arith.addf %a, %b : tensor<?x2xf32>
  %1 = kf.argmax %b : tensor<?x2xf32>
  return %0, %1 : tensor<?x2xf32>, tensor<?xi32>
}
func.func @norm(%x: tensor<1x256xf32>) -> tensor<1x256xf32> {
  %w = kf.weight ["model.norm.weight"] : tensor<256xbf16>
  %0 = kf.rms_norm %x, %w eps(0.0) : tensor<1x256xf32>, tensor<256xbf16>
  return %0 : tensor<1x256xf32>
}
func.func @stored(%x: tensor<1x32xf32>) -> tensor<1x16xf32> {
  %w = kf.weight ["model.layers.2.self_attn.qkv_proj.weight"]
    : tensor<64x32xf32>
  %0 = kf.matmul %x, %w : tensor<1x32xf32>, tensor<64x32xf32>
  %1 = tensor.extract_slice %0[0, 32] [1, 16] [1, 1]
    : tensor<1x64xf32> to tensor<1x16xf32>
  return %1 : tensor<1x16xf32>
}
func.func @named(%x: tensor<1x32xf32>) -> tensor<1x16xf32> {
  %w = kf.weight ["model.layers.2.self_attn.k_proj.weight"]
    : tensor<16x32xf32>
  %0 = kf.matmul %x, %w : tensor<1x32xf32>, tensor<16x32xf32>
  return %0 : tensor<1x16xf32>
}

// RUN: kf-run exec %s --function two --input '3x2xf32=[1 2][3 4][5 6]' \
// RUN:   --input=3x2xf32=1,0,0,1,1,1 | FileCheck %s --check-prefix=PRINT
// PRINT: {{^}}EXEC @two
// PRINT-NEXT: {{^}}result[0]: tensor<3x2xf32>
// PRINT-NEXT: {{^}}3x2xf32=[2 2][3 5][6 7]
// PRINT-NEXT: {{^}}result[1]: tensor<3xi32>
// PRINT-NEXT: {{^}}3xi32=0 1 0

// Files in and out; a pipe of two runs.
// RUN: kf-run exec %s --function two --input 2x2xf32=1,2,3,4 --input 2x2xf32=1 \
// RUN:   --output @%t.npy --output - | FileCheck %s --check-prefix=OUTPUT
// OUTPUT-NOT: result[0]
// OUTPUT: {{^}}result[1]: tensor<2xi32>
// OUTPUT-NEXT: 2xi32=0 0
// RUN: kf-run exec %s --function two --input @%t.npy --input 2x2xf32 \
// RUN:   --expected @%t.npy --expected '(ignored)' \
// RUN:   | FileCheck %s --check-prefix=SUCCESS
// SUCCESS: [SUCCESS] all results are as expected

// Results that differ name the worst element.
// RUN: %fails 1 kf-run exec %s --function two --input 2x2xf32=1,2,3,4 \
// RUN:   --input 2x2xf32=1 --expected 2x2xf32=2,3,4.5,9 --expected 2xi32=0,0 \
// RUN:   --atol 0.25 --rtol 0 | FileCheck %s --check-prefix=WRONG
// WRONG: error: result[0][1, 1]: expected 9, found 5; the tolerance is 0.25 + 0 * |expected| (2 of 4 elements differ by more; this one by most)
// RUN: %fails 1 kf-run exec %s --function two --input 2x2xf32=1,2,3,4 \
// RUN:   --input 2x2xf32=1 --expected 2x2xf32=2,3,4,5 --expected 2xi32=0,1 \
// RUN:   | FileCheck %s --check-prefix=INTEGER
// INTEGER: error: result[1][1]: expected 1, found 0 (1 of 2
// RUN: %fails 1 kf-run exec %s --function two --input 2x2xf32 \
// RUN:   --input 2x2xf32=1 --expected 2x2xf64=2 --expected 2xi32=0 \
// RUN:   | FileCheck %s --check-prefix=TYPE
// TYPE: error: result[0] is 2x2xf32, but 2x2xf64 is expected
// RUN: kf-run exec %s --function two --input 2x2xf32=1,2,3,4 \
// RUN:   --input 2x2xf32=1 --expected 2x2xf32=2,3,4.5,5 --expected 2xi32=0 \
// RUN:   --atol 0.5

// Weights, and the limit of what is printed.
// RUN: kf-run exec %s --function norm --input 1x256xf32=1 --print-limit 3 \
// RUN:   --weights %kf_models/kf-stories/model.safetensors \
// RUN:   | FileCheck %s --check-prefix=NORM
// NORM: 1x256xf32=[1.21875 1.1953125 1.171875 ...]
// RUN: %fails 1 kf-run exec %s --function norm --input 1x256xf32=1 \
// RUN:   | FileCheck %s --check-prefix=NOWEIGHTS
// NOWEIGHTS: error: the function reads weight 'model.norm.weight'; give --weights FILE
// RUN: %fails 1 kf-run exec %s --function norm --input 1x256xf32=1 \
// RUN:   --weights %kf_golden/gpt2-layernorm/model.safetensors \
// RUN:   | FileCheck %s --check-prefix=WEIGHT
// WEIGHT: error: {{.*}}model.norm.weight

// A model's weights have the names that its programs ask for: Phi-3's keys are
// rows of a tensor.
// RUN: kf-run exec %s --function stored --input 1x32xf32=1 --output @%t.npy \
// RUN:   --weights %kf_golden/phi3
// RUN: kf-run exec %s --function named --input 1x32xf32=1 --expected @%t.npy \
// RUN:   --weights %kf_golden/phi3
// RUN: kf-run exec %s --function named --input 1x32xf32=1 --expected @%t.npy \
// RUN:   --weights %kf_golden/phi3/model.safetensors

// RUN: kf-run exec %s --function two --input 1x2xf32 --input 1x2xf32 --bench 3 \
// RUN:   2>&1 >%t.out | FileCheck %s --check-prefix=BENCH
// BENCH: {{^}}3 runs: least {{[0-9.e-]+}} ms, median {{[0-9.e-]+}} ms
