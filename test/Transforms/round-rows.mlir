// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=reference},func.func(kf-round-rows))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cuda:sm_80},func.func(kf-round-rows))' | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: not kf-opt %s --pass-pipeline='builtin.module(func.func(kf-round-rows))' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: the module does not say what it is compiled for

// What products say is obeyed, on any target, and taken away.
// CHECK-NOT: rows<

// CHECK-LABEL: func.func @bf16(
// CHECK-NEXT:    %[[R:.*]] = arith.truncf %{{.*}} : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK-NEXT:    kf.matmul %[[R]], %{{.*}} bias(%{{.*}}) wide : tensor<?x64xbf16>, tensor<96x64xf32>, tensor<96xf32>
func.func @bf16(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %b: tensor<96xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w bias(%b) rows<bf16> : tensor<?x64xf32>, tensor<96x64xf32>, tensor<96xf32>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @f16(
// CHECK-NEXT:    %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<?x64xf32>
// CHECK-NEXT:    kf.matmul %[[R]] outliers(%[[O]] : tensor<?x64xf32>), %{{.*}} weight_scales(%{{.*}} : tensor<96xf32>) wide : tensor<?x64xf16>, tensor<96x64xf8E4M3FN>
func.func @f16(%x: tensor<?x64xf32>, %w: tensor<96x64xf8E4M3FN>, %s: tensor<96xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<96xf32>) rows<f16> : tensor<?x64xf32>, tensor<96x64xf8E4M3FN>
  return %0 : tensor<?x96xf32>
}

// Six-bit codes have a scale for 16 elements.
// CHECK-LABEL: func.func @codes(
// CHECK-NEXT:    %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows %{{.*}} group(16) : tensor<?x256xf32>
// CHECK-NEXT:    kf.matmul %[[C]] scales(%[[S]] : tensor<?x8xf32>) sums(%[[T]] : tensor<?x16xi32>), %{{.*}} : tensor<?x256xi8>, tensor<96x256x!kf.quant<q6_k>>
func.func @codes(%x: tensor<?x256xf32>, %w: tensor<96x256x!kf.quant<q6_k>>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w rows<i8> : tensor<?x256xf32>, tensor<96x256x!kf.quant<q6_k>>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @experts(
// CHECK-NEXT:    %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows %{{.*}} group(32) : tensor<?x64xf32>
// CHECK-NEXT:    kf.expert_matmul %[[C]] scales(%[[S]] : tensor<?x2xf32>) sums(%[[T]] : tensor<?x2xi32>) experts(
func.func @experts(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64x!kf.quant<q4_0>>) -> tensor<?x2x96xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w rows<i8> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  return %0 : tensor<?x2x96xf32>
}

// CHECK-LABEL: func.func @whole(
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<96x64xbf16>
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<96x64xbf16>
func.func @whole(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>, %v: tensor<96x64xbf16>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  %0 = kf.matmul %x, %w rows<f32> : tensor<?x64xf32>, tensor<96x64xbf16>
  %1 = kf.matmul %x, %v : tensor<?x64xf32>, tensor<96x64xbf16>
  return %0, %1 : tensor<?x96xf32>, tensor<?x96xf32>
}

// Attention rounds where the target has that in its kernel.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
// CHECK-LABEL: func.func @attention(
// CUDA-NEXT:     arith.truncf %{{.*}} : tensor<?x4x32xf32> to tensor<?x4x32xf16>
// CUDA-NEXT:     kf.attention
// CHECK:         tensor.collapse_shape
func.func @attention(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xf16>) -> tensor<?x96xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w rows<f16> : tensor<?x128xf32>, tensor<96x128xf16>
  return %2 : tensor<?x96xf32>
}
