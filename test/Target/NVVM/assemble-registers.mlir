// Kernels that need nearly all registers, or that have few of them, spill none.
// REQUIRES: ptxas
// RUN: %ptx functions %ptxas %s sm_80 sm_90a | FileCheck %s

// Sums of 256 columns take half of the registers.
// CHECK:      attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      attention_0 sm_90a: {{.*}} 0 bytes spilled
!half = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 256, type = f16>
func.func @wide_heads(%q: tensor<?x16x256xf16>, %c: !half, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xf16>, !half, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xf16>
}

// CHECK:      attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      attention_0 sm_90a: {{.*}} 0 bytes spilled
!codes = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 256, type = !kf.quant<q8_0>>
func.func @wide_heads_of_codes(%q: tensor<?x16x256xf16>, %c: !codes, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xf16>, !codes, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xf16>
}

// 4096 elements of a token's keys: a thread rounds 8 of them, or more.
// CHECK:      rope_kv_append_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      rope_kv_append_0 sm_90a: {{.*}} 0 bytes spilled
!many = !kf.kv_cache<layers = 1, kv_heads = 16, head_dim = 256, type = !kf.quant<q8_0>>
func.func @append_codes(%k: tensor<?x16x256xf32>, %v: tensor<?x16x256xf32>, %c: !many, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<2x64xi32>) {
  %r = kf.rope %k, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x16x256xf32>, tensor<?xi32>
  kf.kv_append %c, %r, %v, %p, %s, %t {layer = 0 : i64} : !many, tensor<?x16x256xf32>, tensor<?xi32>, tensor<2x64xi32>
  return
}

// Four slices of K, for 14 warps that hold rows.
// CHECK:      matmul_add_0 sm_80: 1{{[0-9]+}} registers, {{.*}} 0 bytes spilled
// CHECK:      matmul_add_0 sm_90a: 1{{[0-9]+}} registers, {{.*}} 0 bytes spilled
func.func @slices(%x: tensor<?x14336xbf16>, %r: tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<4096x14336xbf16>
  %0 = kf.matmul %x, %w wide : tensor<?x14336xbf16>, tensor<4096x14336xbf16>
  %1 = arith.addf %r, %0 : tensor<?x4096xf32>
  return %1 : tensor<?x4096xf32>
}

// The same of few rows, which append first: what waits for the loop over keys
// to end has as few registers.
// CHECK:      rope_kv_append_attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      rope_kv_append_attention_0 sm_90a: {{.*}} 0 bytes spilled
func.func @few_wide_heads(%q: tensor<?x16x256xf32>, %k: tensor<?x8x256xf32>, %v: tensor<?x8x256xf32>, %c: !half, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xf32> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x16x256xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x8x256xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %s, %t {layer = 0 : i64} : !half, tensor<?x8x256xf32>, tensor<?xi32>, tensor<3x64xi32>
  %0 = kf.attention %qr, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xf32>, !half, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xf32>
}

// CHECK:      rope_attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      rope_attention_0 sm_90a: {{.*}} 0 bytes spilled
func.func @few_wide_heads_of_codes(%q: tensor<?x16x256xf32>, %c: !codes, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xf32> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x16x256xf32>, tensor<?xi32>
  %0 = kf.attention %qr, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xf32>, !codes, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xf32>
}

// CHECK:      attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      attention_0 sm_90a: {{.*}} 0 bytes spilled
!brain = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 256, type = bf16>
func.func @wide_heads_of_bf16(%q: tensor<?x16x256xbf16>, %c: !brain, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xbf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xbf16>, !brain, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xbf16>
}

// By threads alone.
// CHECK:      rope_attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      rope_attention_0 sm_90a: {{.*}} 0 bytes spilled
!whole = !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 256, type = f32>
func.func @wide_heads_of_f32(%q: tensor<?x16x256xf32>, %c: !whole, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x16x256xf32> {
  %qr = kf.rope %q, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x16x256xf32>, tensor<?xi32>
  %0 = kf.attention %qr, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x16x256xf32>, !whole, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x16x256xf32>
}

// Codes on their way, for heads of 96 columns.
// CHECK:      attention_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      attention_0 sm_90a: {{.*}} 0 bytes spilled
!narrow = !kf.kv_cache<layers = 1, kv_heads = 32, head_dim = 96, type = !kf.quant<q8_0>>
func.func @heads_of_codes(%q: tensor<?x32x96xf16>, %c: !narrow, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x64xi32>) -> tensor<?x32x96xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.1 : f32} : tensor<?x32x96xf16>, !narrow, tensor<?xi32>, tensor<3x64xi32>
  return %0 : tensor<?x32x96xf16>
}

// Two slices of K that have more columns than it, for 13 warps.
// CHECK:      matmul_add_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      matmul_add_0 sm_90a: {{.*}} 0 bytes spilled
func.func @padded_slices(%x: tensor<?x6400xbf16>, %r: tensor<?x1600xf32>) -> tensor<?x1600xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<1600x6400xbf16>
  %0 = kf.matmul %x, %w wide : tensor<?x6400xbf16>, tensor<1600x6400xbf16>
  %1 = arith.addf %r, %0 : tensor<?x1600xf32>
  return %1 : tensor<?x1600xf32>
}

// Clusters of four of which a multiprocessor has two workgroups.
// CHECK:      matmul_add_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      matmul_add_0 sm_90a: 128 registers, {{.*}} 0 bytes spilled
func.func @rows_80(%x: tensor<?x14336xbf16>, %r: tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {kf.max_tokens = 80 : i64} {
  %w = kf.weight ["w"] : tensor<4096x14336xbf16>
  %0 = kf.matmul %x, %w wide : tensor<?x14336xbf16>, tensor<4096x14336xbf16>
  %1 = arith.addf %r, %0 : tensor<?x4096xf32>
  return %1 : tensor<?x4096xf32>
}

// Two tiles of K of 16 rows, and integers of halves of spans, which scale codes
// before they are multiplied.
// CHECK:      matmul_add_0 sm_80: {{.*}} 0 bytes spilled
// CHECK:      matmul_add_0 sm_90a: 2{{[0-9]+}} registers, {{.*}} 0 bytes spilled
func.func @rows_of_q3_k(%x: tensor<?x14336xf16>, %r: tensor<?x4096xf32>) -> tensor<?x4096xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<4096x14336x!kf.quant<q3_k>>
  %0 = kf.matmul %x, %w wide : tensor<?x14336xf16>, tensor<4096x14336x!kf.quant<q3_k>>
  %1 = arith.addf %r, %0 : tensor<?x4096xf32>
  return %1 : tensor<?x4096xf32>
}
