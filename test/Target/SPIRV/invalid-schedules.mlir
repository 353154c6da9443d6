// RUN: kf-opt %s -split-input-file --kf-set-target=target=vulkan --kf-select-schedules -verify-diagnostics

// Schedules that no GPU, or not the device at hand, can run.

// expected-error @below {{schedule cannot run on a GPU: sizes are at most 1048576, found 2097152}}
kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [2097152], threads = [64]>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: tile and reduction are for matmul}}
kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64], tile = [2, 2]>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: a matmul needs workgroup = [rows, columns], tile = [rows, columns] and threads = [x, y]}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [32], threads = [16, 16], tile = [2, 2]>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: tile [2, 4] of 16 x 16 threads does not make the workgroup's [32, 32]}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [32, 32], threads = [16, 16], tile = [2, 4], reduction = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: reduction (16) must be a multiple of unroll (3) and at most 1048576}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [32, 32], threads = [16, 16], tile = [2, 2], reduction = 16, unroll = 3>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: tile and unroll make more than 1024 multiplications a thread and step}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [64, 64], threads = [1, 1], tile = [64, 64], reduction = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on this device: threads are 512 a workgroup, the device allows 256}}
kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [32, 16]>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on this device: it needs 33280 bytes of workgroup memory, the device has 16384}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [64, 64], threads = [16, 16], tile = [4, 4], reduction = 0>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: it is none of #kf.simt, #kf.flash, #kf.flash_mma, #kf.stream, #kf.lanes and #kf.mma}}
kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 4>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// Threads share sums by the field alone.
// expected-error @below {{schedule cannot run on a GPU: tile [1, 2] of 4 x 32 threads does not make the workgroup's [1, 8]}}
kf.kernel @k(%x: tensor<1x64xf32>, %w: tensor<40x64xf32>) -> tensor<1x40xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 8], threads = [32, 4], tile = [1, 2], reduction = 16>} {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: attention needs #kf.flash}}
kf.kernel @k(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 1], threads = [8]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: attention needs workgroup = [rows, heads]}}
kf.kernel @k(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.flash<workgroup = [1], keys = 16, threads = [8]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: keys (24) must divide the cache's page (64)}}
kf.kernel @k(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 24, threads = [8]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: keys (64) are more than 32 for each of 1 groups of threads}}
kf.kernel @k(%q: tensor<?x2x8xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 64, threads = [8]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x8xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: #kf.flash is for attention}}
kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [8]>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on this device: #kf.mma is for the matrix units of NVIDIA GPUs}}
kf.kernel @k(%x: tensor<?x64xf16>, %w: tensor<96x64xf16>) -> tensor<?x96xf16>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf16>, tensor<96x64xf16>
  kf.yield %0 : tensor<?x96xf16>
}

// -----

!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>
// expected-error @below {{schedule cannot run on this device: #kf.flash_mma needs matrix units of 16-bit floats; use #kf.flash}}
kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32>
// expected-error @below {{schedule cannot run on a GPU: workgroup heads (4) must be the 2 that share a KV head}}
kf.kernel @heads(%q: tensor<?x4x32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 4], keys = 16, threads = [32]>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: #kf.lanes needs a weight with #kf.fragments, found tensor<40x512xf32>}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512xf32>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 2>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512xf32>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: tiles (1) must be a multiple of 2 where they have 8 columns of K}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512xf32, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512xf32, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: blocks have tiles = 1, a step is what codes says; found tiles = 2}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 2>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: columns (24) must be a multiple of 16, a row block for each of block_warps in each of rounds}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 24], warps = 8, tiles = 1>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: columns (32) must be a multiple of 48, a row block for each of block_warps in each of rounds}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 32], warps = 8, tiles = 1, rounds = 3>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{codes = halves is for devices with f16 and i16; use codes = words}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 2, tiles = 1, codes = halves>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: codes that are entries of a table have codes = words, found codes = halves}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<iq4_nl>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 2, tiles = 1, codes = halves>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<iq4_nl>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: codes = halves are of blocks, found tensor<40x512xf16, #kf.fragments>}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512xf16, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 2, tiles = 4, codes = halves>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512xf16, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: reduction (100) must be a multiple of 512, a step of all warps that divide K}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1, reduction = 100>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: #kf.lanes multiplies at most 16 rows, found 17}}
kf.kernel @k(%x: tensor<17x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<17x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [17, 16], warps = 8, tiles = 1>} {
  %0 = kf.matmul %x, %w : tensor<17x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<17x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: a thread has 128 sums, and registers for 64}}
kf.kernel @k(%x: tensor<16x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<16x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [16, 64], warps = 1, tiles = 1>} {
  %0 = kf.matmul %x, %w : tensor<16x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<16x40xf32>
}

// -----

// A tile of a product of experts has one of a token's places.
// expected-error @below {{schedule cannot run on a GPU: workgroup is [rows, columns] of matmul, and [rows, 1, columns] of expert_matmul}}
kf.kernel @k(%x: tensor<?x512xf32>, %e: tensor<?x2xi32>, %w: tensor<1x3x40x512xbf16, #kf.fragments>) -> tensor<?x2x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 2, 16], warps = 8, tiles = 1>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x512xf32>, tensor<?x2xi32>, tensor<1x3x40x512xbf16, #kf.fragments>
  kf.yield %0 : tensor<?x2x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: workgroup is [rows, columns] of matmul, and [rows, 1, columns] of expert_matmul}}
kf.kernel @k(%x: tensor<1x512xf32>, %w: tensor<40x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x40xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 1, 16], warps = 8, tiles = 1>} {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<40x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// expected-error @below {{schedule cannot run on a GPU: #kf.lanes is for matmul of rows of floats, and for expert_matmul, alone but for elementwise ops}}
kf.kernel @k(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {schedule = #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1>} {
  %0 = arith.negf %x : tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 1, elements = 36880, slot_pages = 2>
kf.kernel @wide(%c: !cache, %q: tensor<?x1x8xf32>, %v: tensor<?x1x4096xf32>, %a: tensor<?x1xf32>, %w: tensor<4112x1x2xf32>, %d: tensor<1xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x1x4096xf32> {
  // expected-error @below {{no Vulkan kernel for 'kf.gated_delta' with heads of 8 and 4096 elements: a row needs 16448 bytes of workgroup memory, the device has 16384; use --device=cpu}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x1x8xf32>, tensor<?x1x4096xf32>, tensor<?x1xf32>, tensor<4112x1x2xf32>, tensor<1xf32>, tensor<1xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x1x4096xf32>
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
// expected-error @below {{schedule cannot run on a GPU: gated_delta needs workgroup = [1, 1], a sequence and a head}}
kf.kernel @whole(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [8]>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}
