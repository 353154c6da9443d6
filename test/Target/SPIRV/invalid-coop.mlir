// RUN: kf-opt %s -split-input-file --kf-set-target=target=vulkan:rdna3 --kf-select-schedules -verify-diagnostics

// RUN: not kf-opt %s -split-input-file --kf-set-target=target=vulkan:lavapipe --kf-select-schedules -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLAIN

// PLAIN: error: schedule cannot run on a GPU: unit = coop_bf16 is of Vulkan devices whose subgroups multiply matrices

// What cooperative matrices cannot multiply, or not of this device.

// expected-error @below {{schedule cannot run on this device: unit = coop_bf16 is of Vulkan devices whose subgroups multiply matrices of that type}}
kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 1], reduction = 32, stages = 2, unit = coop_bf16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: unit = coop_f16 needs a weight with #kf.fragments, found tensor<96x64xf16>}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64xf16>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 1], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64xf16>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: unit = coop_f16 multiplies rows of its type, with a multiple of 8 columns, by weights of it or, in f16, of f8E4M3FN or blocks with scales of f16, found tensor<?x64xf32> and tensor<96x64xf16, #kf.fragments>}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 1], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{unit = coop_f16 multiplies rows of its type, with a multiple of 8 columns, by weights of it or, in f16, of f8E4M3FN or blocks with scales of f16, found tensor<?x64xf16> and tensor<96x64x!kf.quant<mxfp4>, #kf.fragments>}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 1], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<mxfp4>, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: a subgroup's tile is a multiple of [16, 16], and 1 x 4 of them make the workgroup's [64, 32]}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64xf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [1, 4], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64xf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: 256 threads share a step of [128, 64], which has 4 vectors in each row and 2 in each line of the weight}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64xf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [128, 64], warps = [2, 2], reduction = 32, stages = 2, unit = coop_f16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64xf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @below {{schedule cannot run on this device: unit = coop_bf16 is of Vulkan devices whose subgroups multiply matrices of that type}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = bf16, page = 64>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 2], keys = 32, threads = [64, 4, 1], unit = coop_bf16, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = bf16, page = 64>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: unit = coop_f16 takes heads of a multiple of 8 up to 128 columns in caches of f16, bf16 and q8_0, found !kf.kv_cache<}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32, page = 64>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 2], keys = 32, threads = [64, 4, 1], unit = coop_f16, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32, page = 64>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: the cache, of bf16, takes unit = coop_bf16, found unit = coop_f16}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = bf16, page = 64>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 2], keys = 32, threads = [64, 4, 1], unit = coop_f16, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = bf16, page = 64>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: unit = coop_f16 takes threads = [64, warps, 1], of the device's subgroups, a multiple of 16, found [32, 4, 1]}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 64>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [32, 2], keys = 32, threads = [32, 4, 1], unit = coop_f16, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 64>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: unit = coop_f16 is for kf.attention; parts of one token's keys take #kf.flash}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 64>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> (tensor<?x4x2xf32>, tensor<?x4x2xf32>, tensor<?x4x2x64xf32>)
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2, 1], keys = 32, threads = [64, 4, 1], unit = coop_f16, rows = rounded, held = shared>} {
  %0:3 = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 64>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0#0, %0#1, %0#2 : tensor<?x4x2xf32>, tensor<?x4x2xf32>, tensor<?x4x2x64xf32>
}

// -----

// Each of those that divide K has rows and lines of its own.
// expected-error @below {{schedule cannot run on this device: it needs 81920 bytes of workgroup memory, the device has 65536}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64xf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64xf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}
