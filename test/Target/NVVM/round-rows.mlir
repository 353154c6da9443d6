// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cuda:sm_80},kf-select-rows,func.func(kf-round-rows))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cuda:sm_80},kf-select-rows{max-tokens=4},func.func(kf-round-rows{max-tokens=4}))' | FileCheck %s --check-prefix=FEW
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cuda:sm_80},kf-select-rows{max-tokens=16},func.func(kf-round-rows{max-tokens=16}))' | FileCheck %s --check-prefix=SOME

// CHECK-LABEL: func.func @bf16(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<96x64xbf16>
// CHECK:         %[[R:.*]] = arith.truncf %[[X]] : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK:         %[[P:.*]] = kf.matmul %[[R]], %[[W]] wide : tensor<?x64xbf16>, tensor<96x64xbf16>
// CHECK:         return %[[P]] : tensor<?x96xf32>
// FEW-NOT: arith.truncf %{{.*}} : tensor<?x64xf32>
func.func @bf16(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @gated(
// CHECK:         %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<5x64xf32>
// CHECK:         kf.matmul %[[R]] outliers(%[[O]] : tensor<5x64xf32>), %{{.*}} bias(%{{.*}}) glu(silu) wide : tensor<5x64xf16>, tensor<2x96x64xf16>, tensor<2x96xf32>
func.func @gated(%x: tensor<5x64xf32>, %w: tensor<2x96x64xf16>, %b: tensor<2x96xf32>) -> tensor<5x96xf32> {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<5x64xf32>, tensor<2x96x64xf16>, tensor<2x96xf32>
  return %0 : tensor<5x96xf32>
}

// CHECK-LABEL: func.func @blocks(
// CHECK:         %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<?x64xf32>
// CHECK:         kf.matmul %[[R]] outliers(%[[O]] : tensor<?x64xf32>), %{{.*}} wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<q8_0>>
func.func @blocks(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  return %0 : tensor<?x96xf32>
}

// Elements beyond the range of f16 are bf16 where rows are many; up to 16 rows
// are multiplied by codes, which are not scaled yet.
// CHECK-LABEL: func.func @far_blocks(
// CHECK:         %[[R:.*]] = arith.truncf %{{.*}} : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK:         kf.matmul %[[R]], %{{.*}} wide : tensor<?x64xbf16>, tensor<96x64x!kf.quant<mxfp4>>
// FEW-LABEL:   func.func @far_blocks(
// FEW-NEXT:      kf.matmul %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<96x64x!kf.quant<mxfp4>>
// SOME-LABEL:  func.func @far_blocks(
// SOME:          kf.matmul %{{.*}} outliers(%{{.*}} : tensor<?x64xf32>), %{{.*}} wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<mxfp4>>
func.func @far_blocks(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<mxfp4>>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<mxfp4>>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @float8(
// CHECK:         %[[R:.*]], %[[O:.*]] = kf.round_half %{{.*}} : tensor<?x64xf32>
// CHECK:         kf.matmul %[[R]] outliers(%[[O]] : tensor<?x64xf32>), %{{.*}} weight_scales(%{{.*}} : tensor<96xf32>) wide : tensor<?x64xf16>, tensor<96x64xf8E4M3FN>
func.func @float8(%x: tensor<?x64xf32>, %w: tensor<96x64xf8E4M3FN>, %s: tensor<96xf32>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<96xf32>) : tensor<?x64xf32>, tensor<96x64xf8E4M3FN>
  return %0 : tensor<?x96xf32>
}

// Up to 16 of these rows are two numbers each.
// CHECK-LABEL: func.func @float8_few(
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<16x64xf32>, tensor<96x64xf8E4M3FN>
func.func @float8_few(%x: tensor<16x64xf32>, %w: tensor<96x64xf8E4M3FN>) -> tensor<16x96xf32> {
  %0 = kf.matmul %x, %w : tensor<16x64xf32>, tensor<96x64xf8E4M3FN>
  return %0 : tensor<16x96xf32>
}

// Of blocks of every format, up to 4.
// CHECK-LABEL: func.func @blocks_few(
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<4x64xf32>, tensor<96x64x!kf.quant<q5_0>>
// CHECK:         kf.matmul %{{.*}} outliers(%{{.*}} : tensor<5x64xf32>), %{{.*}} wide : tensor<5x64xf16>, tensor<96x64x!kf.quant<q5_0>>
func.func @blocks_few(%x: tensor<4x64xf32>, %y: tensor<5x64xf32>, %w: tensor<96x64x!kf.quant<q5_0>>) -> (tensor<4x96xf32>, tensor<5x96xf32>) {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64x!kf.quant<q5_0>>
  %1 = kf.matmul %y, %w : tensor<5x64xf32>, tensor<96x64x!kf.quant<q5_0>>
  return %0, %1 : tensor<4x96xf32>, tensor<5x96xf32>
}

// Rows are counted by the size that has their name.
// CHECK-LABEL: func.func @few_wanted(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @few_wanted(%x: tensor<?x64xf32, #kf.size<wanted>>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32, #kf.size<wanted>>
    attributes {kf.size_ranges = [#kf.size_range<wanted, most = 4>]} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32, #kf.size<wanted>>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32, #kf.size<wanted>>
}

// Matrix units have nothing for f32; rows of 16 bits need no rounding.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @others(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>, %h: tensor<?x64xf16>, %v: tensor<96x64xf16>) -> (tensor<?x96xf32>, tensor<?x96xf16>) {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  %1 = kf.matmul %h, %v : tensor<?x64xf16>, tensor<96x64xf16>
  return %0, %1 : tensor<?x96xf32>, tensor<?x96xf16>
}

// Queries are rounded to what is multiplied with keys, and attention's result
// to the same type, where it is rounded anyway: a mean of values of f16 has no
// outliers.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[Q:[a-z0-9]+]]: tensor<?x4x32xf32>
// CHECK:         %[[R:.*]] = kf.rope %[[Q]]
// CHECK:         %[[T:.*]] = arith.truncf %[[R]] : tensor<?x4x32xf32> to tensor<?x4x32xf16>
// CHECK:         %[[A:.*]] = kf.attention %[[T]], %{{.*}} : tensor<?x4x32xf16>
// CHECK:         %[[V:.*]] = tensor.collapse_shape %[[A]] {{.*}} : tensor<?x4x32xf16> into tensor<?x128xf16>
// CHECK:         kf.matmul %[[V]], %{{.*}} wide : tensor<?x128xf16>
// FEW-LABEL: func.func @attention(
// FEW-NOT:     arith.truncf
// Of up to 16, its result alone is rounded, before it is viewed.
// SOME-LABEL: func.func @attention(
// SOME:         %[[A:.*]] = kf.attention %{{.*}} : tensor<?x4x32xf32>
// SOME-NEXT:    %[[T:.*]] = arith.truncf %[[A]] : tensor<?x4x32xf32> to tensor<?x4x32xf16>
// SOME-NEXT:    %[[V:.*]] = tensor.collapse_shape %[[T]] {{.*}} : tensor<?x4x32xf16> into tensor<?x128xf16>
// SOME-NEXT:    kf.matmul %[[V]], %{{.*}} wide : tensor<?x128xf16>
func.func @attention(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128x!kf.quant<q8_0>>) -> tensor<?x96xf32> {
  %r = kf.rope %q, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %0 = kf.attention %r, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128x!kf.quant<q8_0>>
  return %2 : tensor<?x96xf32>
}

// From codes, f16 is multiplied; the product takes another type.
// CHECK-LABEL: func.func @other_type(
// CHECK:         %[[A:.*]] = kf.attention %{{.*}} : tensor<?x4x32xf16>
// CHECK:         %[[V:.*]] = tensor.collapse_shape %[[A]] {{.*}} : tensor<?x4x32xf16> into tensor<?x128xf16>
// CHECK:         %[[E:.*]] = arith.extf %[[V]] : tensor<?x128xf16> to tensor<?x128xf32>
// CHECK:         %[[B:.*]] = arith.truncf %[[E]] : tensor<?x128xf32> to tensor<?x128xbf16>
// CHECK:         kf.matmul %[[B]], %{{.*}} wide
!codes = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>
func.func @other_type(%q: tensor<?x4x32xf32>, %c: !codes, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xbf16>) -> tensor<?x96xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !codes, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xbf16>
  return %2 : tensor<?x96xf32>
}

// Who reads f32 gets it.
// CHECK-LABEL: func.func @results(
// CHECK:         kf.attention %{{.*}} : tensor<?x4x32xf32>
func.func @results(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xf16>) -> (tensor<?x128xf32>, tensor<?x96xf32>) {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xf16>
  return %1, %2 : tensor<?x128xf32>, tensor<?x96xf32>
}
!wide = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32>
// Matrix units do not take a cache of f32: queries are not rounded.
// CHECK-LABEL: func.func @wide_cache(
// CHECK-NEXT:    %[[A:.*]] = kf.attention %{{.*}} : tensor<?x4x32xf32>
// CHECK-NEXT:    %[[T:.*]], %[[O:.*]] = kf.round_half %[[A]] : tensor<?x4x32xf32>
// CHECK-NEXT:    %[[V:.*]] = tensor.collapse_shape %[[T]]
// CHECK-NEXT:    %[[U:.*]] = tensor.collapse_shape %[[O]]
// CHECK-NEXT:    kf.matmul %[[V]] outliers(%[[U]] : tensor<?x128xf32>)
func.func @wide_cache(%q: tensor<?x4x32xf32>, %c: !wide, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xf16>) -> tensor<?x96xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !wide, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xf16>
  return %2 : tensor<?x96xf32>
}

// Heads that matrix units do not take: queries are f32.
!heads = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 20, type = f16>
// CHECK-LABEL: func.func @odd_heads(
// CHECK-NOT:     arith.truncf %{{.*}} : tensor<?x4x20xf32>
// CHECK:         kf.attention %{{.*}} : tensor<?x4x20xf32>
func.func @odd_heads(%q: tensor<?x4x20xf32>, %c: !heads, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x20xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x20xf32>, !heads, tensor<?xi32>, tensor<1x8xi32>
  return %0 : tensor<?x4x20xf32>
}

// Two products that take other types have rows of their own.
// SOME-LABEL: func.func @two_types(
// SOME-NEXT:    %[[A:.*]] = kf.attention
// SOME-NEXT:    %[[V:.*]] = tensor.collapse_shape %[[A]] {{.*}} : tensor<?x4x32xf32> into tensor<?x128xf32>
// SOME:         kf.round_half %[[V]] : tensor<?x128xf32>
// SOME:         arith.truncf %[[V]] : tensor<?x128xf32> to tensor<?x128xbf16>
func.func @two_types(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xf16>, %u: tensor<96x128xbf16>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xf16>
  %3 = kf.matmul %1, %u : tensor<?x128xf32>, tensor<96x128xbf16>
  return %2, %3 : tensor<?x96xf32>, tensor<?x96xf32>
}

// What joins the parts of keys rounds, too.
// SOME-LABEL: func.func @combined(
// SOME:         %[[A:.*]] = kf.attention_combine
// SOME-NEXT:    %[[T:.*]] = arith.truncf %[[A]] : tensor<?x4x32xf32> to tensor<?x4x32xbf16>
// SOME-NEXT:    tensor.collapse_shape %[[T]]
func.func @combined(%m: tensor<?x4x3xf32>, %t: tensor<?x4x3xf32>, %v: tensor<?x4x3x32xf32>, %w: tensor<96x128xbf16>) -> tensor<?x96xf32> {
  %0 = kf.attention_combine %m, %t, %v : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xbf16>
  return %2 : tensor<?x96xf32>
}

// Values of bf16 may be more than f16 holds.
!bfloat = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = bf16>
// CHECK-LABEL: func.func @other_range(
// CHECK:         %[[A:.*]] = kf.attention %{{.*}} : tensor<?x4x32xbf16>
// CHECK:         %[[E:.*]] = arith.extf %{{.*}} : tensor<?x128xbf16> to tensor<?x128xf32>
// CHECK:         %[[R:.*]], %[[O:.*]] = kf.round_half %[[E]]
// CHECK:         kf.matmul %[[R]] outliers(%[[O]] : tensor<?x128xf32>)
func.func @other_range(%q: tensor<?x4x32xf32>, %c: !bfloat, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>, %w: tensor<96x128xf16>) -> tensor<?x96xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !bfloat, tensor<?xi32>, tensor<1x8xi32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x4x32xf32> into tensor<?x128xf32>
  %2 = kf.matmul %1, %w : tensor<?x128xf32>, tensor<96x128xf16>
  return %2 : tensor<?x96xf32>
}

// Rows of several sequences have keys of their own, up to 256.
// CHECK-LABEL: func.func @generating(
// FEW-LABEL: func.func @generating(
// CHECK-NEXT:    kf.attention %{{.*}} : tensor<?x4x32xf32>
func.func @generating(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf16> attributes {kf.max_tokens = 256 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<3x8xi32>
  %1 = arith.truncf %0 : tensor<?x4x32xf32> to tensor<?x4x32xf16>
  return %1 : tensor<?x4x32xf16>
}
// CHECK-LABEL: func.func @prompts(
// CHECK:         arith.truncf
// CHECK:         kf.attention %{{.*}} : tensor<?x4x32xf16>
func.func @prompts(%q: tensor<?x4x32xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf16> attributes {kf.max_tokens = 257 : i64} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<3x8xi32>
  %1 = arith.truncf %0 : tensor<?x4x32xf32> to tensor<?x4x32xf16>
  return %1 : tensor<?x4x32xf16>
}
