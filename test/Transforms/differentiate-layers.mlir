// RUN: kf-opt %s --split-input-file --pass-pipeline='builtin.module(kf-differentiate{policy=layers})' | FileCheck %s --implicit-check-not=kf.kept
// RUN: kf-opt %s --split-input-file --pass-pipeline='builtin.module(kf-differentiate{policy=layers}, kf-set-target{target=cpu}, kf-fuse, kf-program, kf-set-layouts, kf.program(kf-plan-memory))' | FileCheck %s --check-prefix=LAYERS
// RUN: kf-opt %s --split-input-file --pass-pipeline='builtin.module(kf-differentiate, kf-set-target{target=cpu}, kf-fuse, kf-program, kf-set-layouts, kf.program(kf-plan-memory))' | FileCheck %s --check-prefix=CHEAP
// RUN: kf-opt %s --split-input-file --pass-pipeline='builtin.module(kf-differentiate{policy=layers}, kf-set-target{target=cpu}, func.func(kf-expand-tensors), cse)' | FileCheck %s --check-prefix=ATTENTION

// Two layers. Their products are computed again from what each of them reads,
// as late as it is read, the first one's behind the second one's gradients, and
// that of the last one, whose result no gradient reads, is not. What is behind
// the second one is kept.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME:      %[[X:.*]]: tensor<256x64xf32>, %[[W1:.*]]: tensor<128x64xf32>, %[[W2:.*]]: tensor<64x128xf32>,
// CHECK:         %[[X0:.*]] = kf.activation(gelu) %[[X]]
// CHECK:         %[[H1:.*]] = kf.matmul %[[X0]], %[[W1]]
// CHECK:         %[[X1:.*]] = arith.addf %[[X0]]
// CHECK:         %[[X2:.*]] = arith.addf %[[X1]]
// CHECK:         %[[Y:.*]] = kf.matmul %[[X2]], %[[HEAD:.*]] :
// CHECK:         %[[A:.*]] = kf.activation(silu) %[[Y]]
// CHECK:         kf.reduce(sum)
// CHECK-NOT:     kf.matmul %[[X2]]
// CHECK:         kf.matmul_wgrad %{{.*}}, %[[X2]]
// CHECK:         %[[AGAIN2:.*]] = kf.matmul %[[X1]], %[[W1]] {kf.recomputed = 1 : i64}
// CHECK:         kf.activation(silu) %[[AGAIN2]] {kf.recomputed = 1 : i64}
// CHECK-NOT:     kf.recomputed
// CHECK:         kf.matmul_wgrad %{{.*}}, %[[X1]]
// CHECK:         %[[AGAIN1:.*]] = kf.matmul %[[X0]], %[[W1]] {kf.recomputed = 1 : i64}
// CHECK:         kf.activation(silu) %[[AGAIN1]] {kf.recomputed = 1 : i64}
// CHECK-NOT:     kf.recomputed
// CHECK:         kf.matmul_wgrad %{{.*}}, %[[X0]]
// CHECK:         return

// The columns between the first layer's products, 256 x 128 of f32, are not in
// memory until the end, nor those of the second one beside them.
// LAYERS: kf.program @layers{{.*}}arena_bytes = 557056
// CHEAP: kf.program @layers{{.*}}arena_bytes = 622592
func.func @layers(%x: tensor<256x64xf32>, %w1: tensor<128x64xf32> {kf.gradient}, %w2: tensor<64x128xf32> {kf.gradient},
                  %head: tensor<32x64xf32> {kf.gradient}) -> tensor<f32> {
  %x0 = kf.activation(gelu) %x {kf.kept} : tensor<256x64xf32>
  %h1 = kf.matmul %x0, %w1 : tensor<256x64xf32>, tensor<128x64xf32>
  %a1 = kf.activation(silu) %h1 : tensor<256x128xf32>
  %y1 = kf.matmul %a1, %w2 : tensor<256x128xf32>, tensor<64x128xf32>
  %x1 = arith.addf %x0, %y1 {kf.kept} : tensor<256x64xf32>
  %h2 = kf.matmul %x1, %w1 : tensor<256x64xf32>, tensor<128x64xf32>
  %a2 = kf.activation(silu) %h2 : tensor<256x128xf32>
  %y2 = kf.matmul %a2, %w2 : tensor<256x128xf32>, tensor<64x128xf32>
  %x2 = arith.addf %x1, %y2 {kf.kept} : tensor<256x64xf32>
  %y = kf.matmul %x2, %head : tensor<256x64xf32>, tensor<32x64xf32>
  %a = kf.activation(silu) %y : tensor<256x32xf32>
  %loss = kf.reduce(sum) %a dims = [0, 1] : tensor<256x32xf32>
  return %loss : tensor<f32>
}

// -----

// Attention that is computed again, in front of what reads it, and its
// gradients have the same weights, which are made twice, not three times.
// ATTENTION-LABEL: func.func @attention(
// ATTENTION-COUNT-2: kf.softmax
// ATTENTION-NOT:     kf.softmax
// ATTENTION:         return
func.func @attention(%x: tensor<2x8x16xf32>, %w: tensor<16x16xf32> {kf.gradient}, %v: tensor<16x16xf32>) -> tensor<f32> {
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x8x16xf32> into tensor<16x16xf32>
  %x0 = kf.matmul %rows, %w {kf.kept} : tensor<16x16xf32>, tensor<16x16xf32>
  %k0 = kf.matmul %x0, %v : tensor<16x16xf32>, tensor<16x16xf32>
  %q = tensor.expand_shape %x0 [[0, 1], [2]] output_shape [2, 8, 16] : tensor<16x16xf32> into tensor<2x8x16xf32>
  %k = tensor.expand_shape %k0 [[0, 1], [2]] output_shape [2, 8, 16] : tensor<16x16xf32> into tensor<2x8x16xf32>
  %a = kf.scaled_dot_product_attention %q, %k, %k {causal} : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
  %y = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x8x16xf32> into tensor<16x16xf32>
  %silu = kf.activation(silu) %y : tensor<16x16xf32>
  %x1 = arith.addf %x0, %silu {kf.kept} : tensor<16x16xf32>
  %loss = kf.reduce(sum) %x1 dims = [0, 1] : tensor<16x16xf32>
  return %loss : tensor<f32>
}
