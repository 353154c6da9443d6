// RUN: kf-opt %s -split-input-file --kf-set-target=target=vulkan --kf-select-schedules -verify-diagnostics

// What Vulkan has no kernels for is named, with what would work.

kf.kernel @attention(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x8xf32> {
  // expected-error @below {{no Vulkan kernel for 'kf.attention' on '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>' yet; use --device=cpu or --device=reference}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32, key_block = 4>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>
kf.kernel @pages(%c: !cache, %k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x33554432xi32>) {
  // expected-error @below {{no Vulkan kernel for tables of so many pages: 32-bit indices count no more than 2147483647 positions}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x33554432xi32>
  kf.yield
}

// -----

!cache = !kf.kv_cache<layers = 1, kv_heads = 65536, head_dim = 65536, type = f32>
kf.kernel @page(%c: !cache, %k: tensor<1x65536x65536xf32>, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x4xi32>) {
  // expected-error @below {{no Vulkan kernel for pages of so many elements: 32-bit indices count no more than 2147483647}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<1x65536x65536xf32>, tensor<1xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

kf.kernel @rope(%x: tensor<?x2x8194xf32>, %p: tensor<?xi32>) -> tensor<?x2x8194xf32> {
  // expected-error @below {{no Vulkan kernel for rotary_dim = 8194: at most 8192 columns are rotated}}
  %0 = kf.rope %x, %p {rotary_dim = 8194 : i64, theta = 1.0e4 : f64} : tensor<?x2x8194xf32>, tensor<?xi32>
  kf.yield %0 : tensor<?x2x8194xf32>
}

// -----

// Parts of words are copied one by one, and words are not.
kf.kernel @copy_of_i64(%x: tensor<?x8xi64>) -> tensor<?x8xi64> {
  // expected-error @below {{no Vulkan kernel for 'kf.copy' on 'tensor<?x8xi64>': the device has no 'i64'; use i32, or --device=cpu}}
  %0 = kf.copy %x : tensor<?x8xi64>
  kf.yield %0 : tensor<?x8xi64>
}

// -----

kf.kernel @f64(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  // expected-error @below {{no Vulkan kernel for 'arith.negf' on 'tensor<?x8xf64>' yet; use --device=cpu or --device=reference}}
  %0 = arith.negf %x : tensor<?x8xf64>
  kf.yield %0 : tensor<?x8xf64>
}

// -----

kf.kernel @packed(%x: tensor<?x8xf32>, %w: tensor<4x8xf32, #kf.layout<panel = 4>>) -> tensor<?x4xf32> {
  // expected-error @below {{no Vulkan kernel for 'kf.matmul' on 'tensor<4x8xf32, #kf.layout<panel = 4>>' yet; use --device=cpu or --device=reference}}
  %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<4x8xf32, #kf.layout<panel = 4>>
  kf.yield %0 : tensor<?x4xf32>
}

// -----

// expected-error @below {{no Vulkan kernel for 'tensor<65536x65536xf32>' with 512 rows: it has more elements than 32-bit indices count}}
kf.kernel @large(%x: tensor<65536x65536xf32>) -> tensor<65536x65536xf32> {
  %0 = kf.activation(relu) %x : tensor<65536x65536xf32>
  kf.yield %0 : tensor<65536x65536xf32>
}

// -----

// expected-error @below {{no Vulkan kernel with 0 results}}
kf.kernel @nothing(%x: tensor<4xf32>) {
  kf.yield
}

// -----

// expected-error @below {{no Vulkan kernel for 'tensor<8xf64>' yet; use --device=cpu or --device=reference}}
kf.kernel @unread(%x: tensor<4xf32>, %y: tensor<8xf64>) -> tensor<4xf32> {
  %0 = kf.activation(relu) %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}

// -----

kf.kernel @parts(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> (tensor<?x2x65536xf32>, tensor<?x2x65536xf32>, tensor<?x2x65536x8xf32>) {
  // expected-error @below {{no Vulkan kernel for splits(65536): at most 65535}}
  %m, %t, %v = kf.attention_partial %q, %c, %p, %sp, %pt splits(65536) {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %m, %t, %v : tensor<?x2x65536xf32>, tensor<?x2x65536xf32>, tensor<?x2x65536x8xf32>
}

// -----

kf.kernel @float8(%x: tensor<4x64xf8E4M3FN>) -> tensor<4x64xf32> {
  // expected-error @below {{no Vulkan kernel for 'arith.extf' on f8E4M3FN, which only the weights of kf.matmul are; have others in bf16, which holds the same numbers}}
  %0 = arith.extf %x : tensor<4x64xf8E4M3FN> to tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// What no device has is not said to be on others.
kf.kernel @i4(%x: tensor<?x8xi4>) -> tensor<?x8xi4> {
  // expected-error @below {{no Vulkan kernel for 'arith.addi' on 'tensor<?x8xi4>'; elements are f16, bf16, f32 and f64, and integers of 1, 8, 16, 32 and 64 bits}}
  %0 = arith.addi %x, %x : tensor<?x8xi4>
  kf.yield %0 : tensor<?x8xi4>
}

// -----

// expected-error @below {{no Vulkan kernel with a result of 'tensor<4x64x!kf.quant<q8_0>>' yet; use --device=reference}}
kf.kernel @blocks(%x: tensor<8x64x!kf.quant<q8_0>>) -> tensor<4x64x!kf.quant<q8_0>> {
  %0 = tensor.extract_slice %x[0, 0] [4, 64] [1, 1] : tensor<8x64x!kf.quant<q8_0>> to tensor<4x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x64x!kf.quant<q8_0>>
}

// -----

// Sums of rows are stored as they are.
kf.kernel @scatter_add_of_which_more_is_made(%ids: tensor<?xi32>, %x: tensor<?x8xf32>, %s: tensor<12x8xf32>) -> tensor<12x8xf32> {
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x8xf32> to tensor<12x8xf32>
  // expected-error @below {{no Vulkan kernel for 'arith.addf' that reads 'tensor<12x8xf32>' from 'kf.scatter_add'; compute that in a kernel of its own}}
  %1 = arith.addf %0, %s : tensor<12x8xf32>
  kf.yield %1 : tensor<12x8xf32>
}

// -----

kf.kernel @scatter_add_transposed(%ids: tensor<?xi32>, %x: tensor<?x8xf32>) -> tensor<8x12xf32> {
  %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x8xf32> to tensor<12x8xf32>
  // expected-error @below {{no Vulkan kernel for 'kf.transpose' that reads 'tensor<12x8xf32>' from 'kf.scatter_add'; compute that in a kernel of its own}}
  %1 = kf.transpose %0 permutation = [1, 0] : tensor<12x8xf32>
  kf.yield %1 : tensor<8x12xf32>
}

// -----

kf.kernel @experts_of_codes(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64x!kf.quant<q4_0>>) -> tensor<?x2x96xf32> {
  // expected-error @below {{no Vulkan kernel for 'kf.expert_matmul' of codes of rows; products of experts read rows<f32> here}}
  %0 = kf.expert_matmul %x scales(%s : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>) experts(%e), %w : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x96x64x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x2x96xf32>
}
