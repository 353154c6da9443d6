// RUN: kf-opt %s -split-input-file --kf-select-schedules -verify-diagnostics

module attributes {kf.target = #kf.cuda_target<chip = "sm_86", memory = 66559>} {
  // expected-error @below {{schedule cannot run on this device: it needs 66560 bytes of workgroup memory, the device has 66559}}
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<128x64xf32>) -> tensor<?x128xf32>
      attributes {schedule = #kf.simt<workgroup = [128, 128], threads = [32, 8], tile = [16, 4]>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<128x64xf32>
    kf.yield %0 : tensor<?x128xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // A block has up to 1024 threads.
  kf.kernel @most(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32>
      attributes {schedule = #kf.simt<workgroup = [32, 64], threads = [32, 32], tile = [1, 2], reduction = 16>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
  // expected-error @below {{schedule cannot run on this device: threads are 2048 a workgroup, the device allows 1024}}
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32>
      attributes {schedule = #kf.simt<workgroup = [32, 64], threads = [64, 32], tile = [1, 1], reduction = 16>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<32x64xf32, #kf.layout<panel = 32>>) -> tensor<?x32xf32> {
    // expected-error @below {{no CUDA kernel for 'kf.matmul' on 'tensor<32x64xf32, #kf.layout<panel = 32>>' yet; use --device=cpu or --device=reference}}
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64xf32, #kf.layout<panel = 32>>
    kf.yield %0 : tensor<?x32xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.mma multiplies f16 by f16, f8E4M3FN or blocks with scales of f16, bf16 by bf16 or other blocks, and f32 by f32 without #kf.fragments with unit = mma_sync, found bf16 and f16}}
  kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<96x64xf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: a warp's tile is a multiple of [8, 16], and 2 x 2 of them make the workgroup's [64, 48]}}
  kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 48], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: a warp's tile is a multiple of [8, 8], and 2 x 2 of them make the workgroup's [20, 32]}}
  kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<2x96x64xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [20, 32], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x64xbf16>, tensor<2x96x64xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: a thread has 256 sums, and registers for 128}}
  kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [128, 256], warps = [2, 2], reduction = 16, stages = 2, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on this device: it needs 65536 bytes of workgroup memory, the device has 49152}}
  kf.kernel @k(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [128, 128], warps = [2, 2], reduction = 32, stages = 4, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: parts (4) cannot each have some of 5 steps of 64 columns of K}}
  kf.kernel @k(%x: tensor<?x320xbf16>, %w: tensor<96x320xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<96x320xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: parts (8) cannot each have some of 5 steps of 64 columns of K}}
  kf.kernel @k(%x: tensor<?x320xbf16>, %w: tensor<96x320xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 8>} {
    %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<96x320xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on this device: parts are a cluster of workgroups, which sm_90 and later have}}
  kf.kernel @k(%x: tensor<?x320xbf16>, %w: tensor<96x320xbf16>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 64, stages = 2, unit = mma_sync, parts = 2>} {
    %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<96x320xbf16>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: a thread takes 64 elements of blocks apart for each step, and at most 32 without #kf.fragments}}
  kf.kernel @k(%x: tensor<?x256xf16>, %w: tensor<96x256x!kf.quant<q5_k>>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [2, 2], reduction = 64, stages = 2, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x256xf16>, tensor<96x256x!kf.quant<q5_k>>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.mma is for matmul, and for batch_matmul of rank 3, alone but for elementwise ops}}
  kf.kernel @k(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.softmax %x : tensor<?x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.mma reads rows from memory; norms are kernels of their own}}
  kf.kernel @k(%x: tensor<?x64xf16>, %g: tensor<64xf32>, %w: tensor<96x64xf16>) -> tensor<?x96xf16>
      attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf16>, tensor<64xf32>
    %1 = kf.matmul %0, %w : tensor<?x64xf16>, tensor<96x64xf16>
    kf.yield %1 : tensor<?x96xf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_89">} {
  // expected-error @below {{schedule cannot run on this device: parts are a cluster of workgroups, which sm_90 and later have}}
  kf.kernel @k(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>) -> tensor<1x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers, parts = 4>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<1x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: parts are for one token's keys: workgroup = [1, heads]}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [2, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers, parts = 4>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: kf.attention_partial has its parts; parts are for kf.attention}}
  kf.kernel @k(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2x64xf32>)
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4, 1], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers, parts = 4>} {
    %0, %1, %2 = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x4xi32>
    kf.yield %0, %1, %2 : tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma has no softcap; use #kf.flash}}
  kf.kernel @k(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>) -> tensor<1x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32, softcap = 50.0 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<1x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma has no sinks; use #kf.flash}}
  kf.kernel @k(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>, %sink: tensor<4xf32>) -> tensor<1x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t sinks(%sink : tensor<4xf32>) {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<1x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma is for caches of f16, bf16 and q8_0}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f32, page = 48>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f32, page = 48>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma takes heads of a multiple of 8 up to 256 columns, found 20}}
  kf.kernel @k(%q: tensor<?x4x20xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 20, type = f16, page = 48>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x20xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x20xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 20, type = f16, page = 48>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x20xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma takes heads of a multiple of 8 up to 256 columns, found 264}}
  kf.kernel @k(%q: tensor<?x4x264xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 264, type = f16, page = 48>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x264xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x264xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 264, type = f16, page = 48>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x264xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: keys (32) must divide the cache's page (48)}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, page = 48>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 32, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, page = 48>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80", memory = 16384>} {
  // expected-error @below {{schedule cannot run on this device: it needs 16912 bytes of workgroup memory, the device has 16384}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16, page = 48>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = bf16, page = 48>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.flash_mma is for attention}}
  kf.kernel @k(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 1], unit = mma_sync, rows = split, held = registers>} {
    %0 = kf.softmax %x : tensor<?x40xf32>
    kf.yield %0 : tensor<?x40xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: blocks and f8E4M3FN with #kf.fragments take steps of 32 columns, or of 2, 4 or 8 times as many, found 16}}
  kf.kernel @k(%x: tensor<?x256xf16>, %w: tensor<64x256x!kf.quant<q4_k>, #kf.fragments>) -> tensor<?x64xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 16, stages = 3, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x256xf16>, tensor<64x256x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<?x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90">} {
  // expected-error @below {{schedule cannot run on this device: unit = wgmma is of sm_90a; use unit = mma_sync}}
  kf.kernel @k(%x: tensor<64x256xbf16>, %w: tensor<96x256xbf16>) -> tensor<64x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<64x256xbf16>, tensor<96x256xbf16>
    kf.yield %0 : tensor<64x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: unit = wgmma is for warps of 16 lines of the weight each, found 32}}
  kf.kernel @k(%x: tensor<64x256xbf16>, %w: tensor<128x256xbf16>) -> tensor<64x128xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<64x256xbf16>, tensor<128x256xbf16>
    kf.yield %0 : tensor<64x128xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90">} {
  // expected-error @below {{schedule cannot run on this device: unit = wgmma is of sm_90a; use unit = mma_sync}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [16, 4], keys = 16, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: unit = wgmma takes heads of 64 or 128 columns, found 96}}
  kf.kernel @k(%q: tensor<?x4x96xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x96xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [16, 4], keys = 16, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x96xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = f16>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: held = shared is for more than 8 rows, found 8}}
  kf.kernel @k(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [2, 4], keys = 16, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: an append beside attention takes warps of 32 threads, found 8}}
  kf.kernel @append(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32>
      attributes {schedule = #kf.flash<workgroup = [1, 2], keys = 16, threads = [8]>} {
    kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
    kf.yield %0 : tensor<?x4x32xf32>
  }
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @append_of_blocks(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32> {
    // expected-error @below {{no CUDA kernel for attention to '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>' with an append; append in a kernel of its own}}
    kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
    kf.yield %0 : tensor<?x4x32xf32>
  }
}

// -----

//===----------------------------------------------------------------------===//
// what ops of a kernel read of one another
//===----------------------------------------------------------------------===//

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @product_of_softmax(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
    %0 = kf.softmax %x : tensor<?x64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.matmul' that reads 'tensor<?x64xf32>' from 'kf.softmax'; compute that in a kernel of its own}}
    %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<96x64xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}

// -----

// A norm of rows in memory is computed with the product, but no norm of a norm.
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @product_of_norm(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
    %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
    %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<96x64xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
  kf.kernel @product_of_two_norms(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
    %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
    %1 = kf.rms_norm %0, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.matmul' that reads 'tensor<?x64xf32>' from 'kf.rms_norm'}}
    %2 = kf.matmul %1, %w : tensor<?x64xf32>, tensor<96x64xf32>
    kf.yield %2 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @transposed_product(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<96x4xf32> {
    %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.transpose' that reads 'tensor<4x96xf32>' from 'kf.matmul'; compute that in a kernel of its own}}
    %1 = kf.transpose %0 permutation = [1, 0] : tensor<4x96xf32>
    %2 = kf.copy %1 : tensor<96x4xf32>
    kf.yield %2 : tensor<96x4xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @computed_weight(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32> {
    %0 = kf.softmax %w : tensor<96x64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.matmul' that reads 'tensor<96x64xf32>' from 'kf.softmax'}}
    %1 = kf.matmul %x, %0 : tensor<?x64xf32>, tensor<96x64xf32>
    kf.yield %1 : tensor<?x96xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @computed_outliers(%x: tensor<?x64xf16>, %o: tensor<?x64xf32>, %w: tensor<96x64xf16>) -> tensor<?x96xf32> {
    %0 = kf.softmax %o : tensor<?x64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.matmul' that reads 'tensor<?x64xf32>' from 'kf.softmax'}}
    %1 = kf.matmul %x outliers(%0 : tensor<?x64xf32>), %w wide : tensor<?x64xf16>, tensor<96x64xf16>
    kf.yield %1 : tensor<?x96xf32>
  }
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @append_of_normalized_keys(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %g: tensor<32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32> {
    %n = kf.rms_norm %k, %g eps(1.0e-5) : tensor<?x2x32xf32>, tensor<32xf32>
    // expected-error @below {{no CUDA kernel for 'kf.kv_append' that reads 'tensor<?x2x32xf32>' from 'kf.rms_norm'; compute that in a kernel of its own}}
    kf.kv_append %c, %k, %n, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
    kf.yield %0 : tensor<?x4x32xf32>
  }
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @changed_attention(%q: tensor<?x4x32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32> {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
    // expected-error @below {{no CUDA kernel for 'arith.negf' that reads 'tensor<?x4x32xf32>' from 'kf.attention'; compute that in a kernel of its own}}
    %1 = arith.negf %0 : tensor<?x4x32xf32>
    kf.yield %1 : tensor<?x4x32xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @computed_settings(%x: tensor<?x40xf32>, %t: tensor<?x1xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
    %0 = kf.softmax %t : tensor<?x1xf32>
    // expected-error @below {{no CUDA kernel for 'tensor.collapse_shape' that reads 'tensor<?x1xf32>' from 'kf.softmax'}}
    %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
    %2 = kf.sample %x temperature(%1) top_k(%i) top_p(%1) min_p(%1) seed(%s) counter(%i)
        : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
    kf.yield %2 : tensor<?xi32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @choice_beside_product(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4xi32> {
    %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32>
    // expected-error @below {{no CUDA kernel for 'kf.argmax' beside 'kf.matmul'; form a kernel of each}}
    %1 = kf.argmax %0 : tensor<4x96xf32>
    kf.yield %1 : tensor<4xi32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // Sums of rows are stored as they are.
  kf.kernel @scatter_add_of_which_more_is_made(%ids: tensor<?xi32>, %x: tensor<?x8xf32>, %s: tensor<12x8xf32>) -> tensor<12x8xf32> {
    %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x8xf32> to tensor<12x8xf32>
    // expected-error @below {{no CUDA kernel for 'arith.addf' that reads 'tensor<12x8xf32>' from 'kf.scatter_add'; compute that in a kernel of its own}}
    %1 = arith.addf %0, %s : tensor<12x8xf32>
    kf.yield %1 : tensor<12x8xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @scatter_add_transposed(%ids: tensor<?xi32>, %x: tensor<?x8xf32>) -> tensor<8x12xf32> {
    %0 = kf.scatter_add %ids, %x : tensor<?xi32>, tensor<?x8xf32> to tensor<12x8xf32>
    // expected-error @below {{no CUDA kernel for 'kf.transpose' that reads 'tensor<12x8xf32>' from 'kf.scatter_add'; compute that in a kernel of its own}}
    %1 = kf.transpose %0 permutation = [1, 0] : tensor<12x8xf32>
    kf.yield %1 : tensor<8x12xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: workgroup is [rows, columns] of matmul, and [1, rows, columns] of batch_matmul, which has units of NVIDIA GPUs and parts = 1}}
  kf.kernel @k(%x: tensor<2x64x64xf32>, %w: tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
    %0 = kf.batch_matmul %x, %w : tensor<2x64x64xf32>, tensor<2x64x64xf32>
    kf.yield %0 : tensor<2x64x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: sums = shared needs two threads or more}}
  kf.kernel @k(%x: tensor<64x64xf32>) -> tensor<64xf32>
      attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [1], sums = shared>} {
    %0 = kf.reduce(sum) %x dims = [1] : tensor<64x64xf32>
    kf.yield %0 : tensor<64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  // expected-error @below {{schedule cannot run on a GPU: sums = shared is for matmul, and for a kf.reduce of floats along the last dimensions, alone but for elementwise ops}}
  kf.kernel @k(%x: tensor<64x64xf32>) -> tensor<64xf32>
      attributes {schedule = #kf.simt<workgroup = [0, 1], threads = [64], sums = shared>} {
    %0 = kf.reduce(sum) %x dims = [0] : tensor<64x64xf32>
    kf.yield %0 : tensor<64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {
  // expected-error @below {{schedule cannot run on a GPU: workgroup is [rows, columns] of matmul, and [rows, 1, columns] of expert_matmul}}
  kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x48x64xbf16, #kf.fragments>) -> tensor<?x2x48xf32>
      attributes {schedule = #kf.stream<workgroup = [4, 16], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x48x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x2x48xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {
  // expected-error @below {{schedule cannot run on a GPU: #kf.stream multiplies at most 64 rows, found 65}}
  kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x48x64xbf16, #kf.fragments>) -> tensor<?x2x48xf32>
      attributes {schedule = #kf.stream<workgroup = [65, 1, 16], warps = 1, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = shared>} {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x48x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x2x48xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {
  // expected-error @below {{and f32 by f32 without #kf.fragments with unit = mma_sync, found f32 and f32}}
  kf.kernel @k(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma>} {
    %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<64x64xf32>
    kf.yield %0 : tensor<64x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: attention to tensors needs a workgroup of 1 for each batch and head, and of 64 rows, 16 of each warp}}
  kf.kernel @k(%q: tensor<4x100x64xbf16>) -> tensor<4x100x64xbf16>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 32], keys = 32, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>} {
    %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x100x64xbf16>, tensor<4x100x64xbf16>, tensor<4x100x64xbf16>
    kf.yield %0 : tensor<4x100x64xbf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: attention to tensors needs unit = mma_sync, rows = rounded}}
  kf.kernel @k(%q: tensor<4x100x64xbf16>) -> tensor<4x100x64xbf16>
      attributes {schedule = #kf.flash_mma<workgroup = [1, 64], keys = 32, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>} {
    %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x100x64xbf16>, tensor<4x100x64xbf16>, tensor<4x100x64xbf16>
    kf.yield %0 : tensor<4x100x64xbf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // expected-error @below {{schedule cannot run on a GPU: attention to tensors needs #kf.flash_mma}}
  kf.kernel @k(%q: tensor<4x100x64xbf16>) -> tensor<4x100x64xbf16>
      attributes {schedule = #kf.simt<workgroup = [1, 64], threads = [128]>} {
    %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x100x64xbf16>, tensor<4x100x64xbf16>, tensor<4x100x64xbf16>
    kf.yield %0 : tensor<4x100x64xbf16>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @k(%q: tensor<4x100x24xbf16>) -> tensor<4x100x24xbf16> {
    // expected-error @below {{no CUDA kernel for 'kf.scaled_dot_product_attention' on 'tensor<4x100x24xbf16>'; run kf-expand-tensors first, which leaves what has one}}
    %0 = kf.scaled_dot_product_attention %q, %q, %q : tensor<4x100x24xbf16>, tensor<4x100x24xbf16>, tensor<4x100x24xbf16>
    kf.yield %0 : tensor<4x100x24xbf16>
  }
}

// -----

// What it reads is in memory.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @k(%q: tensor<100x4x32xbf16>) -> tensor<4x100x32xbf16> {
    %0 = kf.transpose %q permutation = [1, 0, 2] : tensor<100x4x32xbf16>
    // expected-error @below {{no CUDA kernel for 'kf.scaled_dot_product_attention' that reads 'tensor<4x100x32xbf16>' from 'kf.transpose'; compute that in a kernel of its own}}
    %1 = kf.scaled_dot_product_attention %0, %0, %0 : tensor<4x100x32xbf16>, tensor<4x100x32xbf16>, tensor<4x100x32xbf16>
    kf.yield %1 : tensor<4x100x32xbf16>
  }
}
