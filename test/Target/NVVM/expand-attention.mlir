// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-expand-tensors | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-expand-tensors | FileCheck %s --check-prefix=OTHERS

// Attention to tensors of bf16 stays one op on matrix units, and its gradients
// do, whose dy is rounded.
// CHECK-LABEL: func.func @bf16
// CHECK-SAME:      %[[Q:.*]]: tensor<2x4x50x64xbf16>, %[[K:.*]]: tensor<2x2x50x64xbf16>, %[[DY:.*]]: tensor<2x4x50x64xf32>)
// CHECK-DAG:     kf.scaled_dot_product_attention %[[Q]], %[[K]], %[[K]] {causal}
// CHECK-DAG:     %[[ROUNDED:.*]] = arith.truncf %[[DY]] : tensor<2x4x50x64xf32> to tensor<2x4x50x64xbf16>
// CHECK:         kf.attention_qgrad %[[Q]], %[[K]], %[[K]], %[[ROUNDED]]
// CHECK:         kf.attention_kvgrad %[[Q]], %[[K]], %[[K]], %{{.*}}
// CHECK-NOT:     kf.batch_matmul
// OTHERS-NOT:  kf.scaled_dot_product_attention
// OTHERS-NOT:  kf.attention_
func.func @bf16(%q: tensor<2x4x50x64xbf16>, %k: tensor<2x2x50x64xbf16>, %dy: tensor<2x4x50x64xf32>) -> (tensor<2x4x50x64xbf16>, tensor<2x4x50x64xf32>, tensor<2x2x50x64xf32>, tensor<2x2x50x64xf32>) {
  %0 = kf.scaled_dot_product_attention %q, %k, %k {causal} : tensor<2x4x50x64xbf16>, tensor<2x2x50x64xbf16>, tensor<2x2x50x64xbf16>
  %dq, %lse, %delta = kf.attention_qgrad %q, %k, %k, %dy {causal} : tensor<2x4x50x64xbf16>, tensor<2x2x50x64xbf16>, tensor<2x2x50x64xbf16>, tensor<2x4x50x64xf32>
  %dk, %dv = kf.attention_kvgrad %q, %k, %k, %dy, %lse, %delta {causal} : tensor<2x4x50x64xbf16>, tensor<2x2x50x64xbf16>, tensor<2x2x50x64xbf16>, tensor<2x4x50x64xf32>, tensor<2x4x50xf32>
  return %0, %dq, %dk, %dv : tensor<2x4x50x64xbf16>, tensor<2x4x50x64xf32>, tensor<2x2x50x64xf32>, tensor<2x2x50x64xf32>
}

// Rows of f32 are rounded where a product that they come of has its own rows
// rounded.
// CHECK-LABEL: func.func @rounded
// CHECK:         arith.truncf %{{.*}} : tensor<4x32x16xf32> to tensor<4x32x16xbf16>
// CHECK:         %[[Y:.*]] = kf.scaled_dot_product_attention %{{.*}} mask(%{{.*}}) : tensor<4x32x16xbf16>
// CHECK:         arith.extf %[[Y]] : tensor<4x32x16xbf16> to tensor<4x32x16xf32>
func.func @rounded(%x: tensor<32x64xf32>, %m: tensor<1x32xi1>) -> tensor<4x32x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<64x64xbf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
  %2 = kf.transpose %1 permutation = [1, 0, 2] : tensor<32x4x16xf32>
  %3 = kf.broadcast %m : tensor<1x32xi1> to tensor<32x32xi1>
  %4 = kf.scaled_dot_product_attention %2, %2, %2 mask(%3) : tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<32x32xi1>
  return %4 : tensor<4x32x16xf32>
}

// Products with weights of f32 are as exact as pairs of bf16.
// CHECK-LABEL: func.func @exact
// CHECK-NOT:     kf.scaled_dot_product_attention
// CHECK:         kf.batch_matmul
func.func @exact(%x: tensor<32x64xf32>) -> tensor<4x32x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xf32>
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<64x64xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
  %2 = kf.transpose %1 permutation = [1, 0, 2] : tensor<32x4x16xf32>
  %3 = kf.scaled_dot_product_attention %2, %2, %2 : tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>
  return %3 : tensor<4x32x16xf32>
}

// Few rows of a product are not rounded, and neither is what it makes.
// CHECK-LABEL: func.func @few
// CHECK-NOT:     kf.scaled_dot_product_attention
// CHECK:         kf.batch_matmul
func.func @few(%x: tensor<4x64xf32>) -> tensor<4x4x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<64x64xbf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [4, 4, 16] : tensor<4x64xf32> into tensor<4x4x16xf32>
  %2 = kf.transpose %1 permutation = [1, 0, 2] : tensor<4x4x16xf32>
  %3 = kf.scaled_dot_product_attention %2, %2, %2 : tensor<4x4x16xf32>, tensor<4x4x16xf32>, tensor<4x4x16xf32>
  return %3 : tensor<4x4x16xf32>
}

// What has no kernel: a bound of scores, masks that are added, heads that are
// wide or no multiple of 16, values of another width, and f16.
// CHECK-LABEL: func.func @softcap
// CHECK-NOT:     kf.scaled_dot_product_attention
func.func @softcap(%q: tensor<4x32x16xbf16>) -> tensor<4x32x16xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q {softcap = 30.0 : f32} : tensor<4x32x16xbf16>, tensor<4x32x16xbf16>, tensor<4x32x16xbf16>
  return %0 : tensor<4x32x16xbf16>
}
func.func @added(%q: tensor<4x32x16xbf16>, %m: tensor<32x32xbf16>) -> tensor<4x32x16xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q mask(%m) : tensor<4x32x16xbf16>, tensor<4x32x16xbf16>, tensor<4x32x16xbf16>, tensor<32x32xbf16>
  return %0 : tensor<4x32x16xbf16>
}
func.func @wide(%q: tensor<4x32x256xbf16>) -> tensor<4x32x256xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x32x256xbf16>, tensor<4x32x256xbf16>, tensor<4x32x256xbf16>
  return %0 : tensor<4x32x256xbf16>
}
func.func @odd(%q: tensor<4x32x24xbf16>) -> tensor<4x32x24xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x32x24xbf16>, tensor<4x32x24xbf16>, tensor<4x32x24xbf16>
  return %0 : tensor<4x32x24xbf16>
}
func.func @values(%q: tensor<4x32x16xbf16>, %v: tensor<4x32x32xbf16>) -> tensor<4x32x32xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %v : tensor<4x32x16xbf16>, tensor<4x32x16xbf16>, tensor<4x32x32xbf16>
  return %0 : tensor<4x32x32xbf16>
}
func.func @f16(%q: tensor<4x32x16xf16>) -> tensor<4x32x16xf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x32x16xf16>, tensor<4x32x16xf16>, tensor<4x32x16xf16>
  return %0 : tensor<4x32x16xf16>
}

// Rows of weights of f16 are not rounded to bf16.
// CHECK-LABEL: func.func @half
// CHECK-NOT:     kf.scaled_dot_product_attention
// CHECK:         kf.batch_matmul
func.func @half(%x: tensor<32x64xf32>) -> tensor<4x32x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xf16>
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<64x64xf16>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
  %2 = kf.transpose %1 permutation = [1, 0, 2] : tensor<32x4x16xf32>
  %3 = kf.scaled_dot_product_attention %2, %2, %2 : tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>
  return %3 : tensor<4x32x16xf32>
}

// Of a sum, one product that has its rows rounded is enough, as of a model's
// weight beside an adapter of f32.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT:     kf.batch_matmul
// CHECK:         kf.scaled_dot_product_attention
func.func @mixed(%x: tensor<32x64xf32>) -> tensor<4x32x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %a = kf.weight ["a"] : tensor<64x64xf32>
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<64x64xbf16>
  %1 = kf.matmul %x, %a : tensor<32x64xf32>, tensor<64x64xf32>
  %2 = arith.addf %0, %1 : tensor<32x64xf32>
  %3 = tensor.expand_shape %2 [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xf32> into tensor<32x4x16xf32>
  %4 = kf.transpose %3 permutation = [1, 0, 2] : tensor<32x4x16xf32>
  %5 = kf.scaled_dot_product_attention %4, %4, %4 : tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>
  return %5 : tensor<4x32x16xf32>
}

// More heads or rows than a grid has workgroups for, and 32 bits numbers.
// CHECK-LABEL: func.func @heads
// CHECK-NOT:     kf.scaled_dot_product_attention
// CHECK-LABEL: func.func @rows
// CHECK-NOT:     kf.scaled_dot_product_attention
func.func @heads(%q: tensor<65536x32x16xbf16>) -> tensor<65536x32x16xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<65536x32x16xbf16>, tensor<65536x32x16xbf16>, tensor<65536x32x16xbf16>
  return %0 : tensor<65536x32x16xbf16>
}
func.func @rows(%q: tensor<1x32x16xbf16>, %k: tensor<1x1048576x16xbf16>) -> tensor<1x32x16xbf16> {
  %0 = kf.scaled_dot_product_attention %q, %k, %k : tensor<1x32x16xbf16>, tensor<1x1048576x16xbf16>, tensor<1x1048576x16xbf16>
  return %0 : tensor<1x32x16xbf16>
}
