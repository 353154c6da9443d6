// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_80 --kf-select-schedules | FileCheck %s --check-prefix=UNITS

// One token: its heads are parts of 8 rows, warps divide the keys.
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16>
// CHECK-LABEL: kf.kernel @decode
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>
kf.kernel @decode(%q: tensor<1x8x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x3xi32>) -> tensor<1x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x8x128xf32>, !cache, tensor<1xi32>, tensor<1x3xi32>
  kf.yield %0 : tensor<1x8x128xf32>
}
// Scores are capped without them.
// CHECK-LABEL: kf.kernel @softcap
// CHECK-SAME:    #kf.flash<
kf.kernel @softcap(%q: tensor<1x8x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x3xi32>) -> tensor<1x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32, softcap = 50.0 : f32} : tensor<1x8x128xf32>, !cache, tensor<1xi32>, tensor<1x3xi32>
  kf.yield %0 : tensor<1x8x128xf32>
}
// So are rows with sinks.
// CHECK-LABEL: kf.kernel @sinks
// CHECK-SAME:    #kf.flash<
kf.kernel @sinks(%q: tensor<1x8x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x3xi32>, %sink: tensor<8xf32>) -> tensor<1x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t sinks(%sink : tensor<8xf32>) {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x8x128xf32>, !cache, tensor<1xi32>, tensor<1x3xi32>
  kf.yield %0 : tensor<1x8x128xf32>
}
// Of a long context, the workgroups of a cluster divide the keys.
// CHECK-LABEL: kf.kernel @long
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, parts = 8>
kf.kernel @long(%q: tensor<1x32x128xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x128xi32>) -> tensor<1x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x32x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, tensor<1xi32>, tensor<1x128xi32>
  kf.yield %0 : tensor<1x32x128xf32>
}
// CHECK-LABEL: kf.kernel @partial
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 4, 1], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>
kf.kernel @partial(%q: tensor<1x8x128xf32>, %c: !cache, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x4xi32>) -> (tensor<1x8x2xf32>, tensor<1x8x2xf32>, tensor<1x8x2x128xf32>) {
  %0, %1, %2 = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 1.0 : f32} : tensor<1x8x128xf32>, !cache, tensor<1xi32>, tensor<1x4xi32>
  kf.yield %0, %1, %2 : tensor<1x8x2xf32>, tensor<1x8x2xf32>, tensor<1x8x2x128xf32>
}
// A head to a workgroup.
// CHECK-LABEL: kf.kernel @combine
// CHECK-SAME:    #kf.simt<workgroup = [1, 1], threads = [128]>
kf.kernel @combine(%m: tensor<1x8x2xf32>, %n: tensor<1x8x2xf32>, %v: tensor<1x8x2x128xf32>) -> tensor<1x8x128xf32> {
  %0 = kf.attention_combine %m, %n, %v : tensor<1x8x2xf32>, tensor<1x8x2x128xf32>
  kf.yield %0 : tensor<1x8x128xf32>
}

// Many tokens: 64 rows, 16 to a warp, as 128 would leave multiprocessors idle.
// CHECK-LABEL: kf.kernel @prefill
// CHECK-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>
kf.kernel @prefill(%q: tensor<?x8x128xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8x128xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x128xf32>
}

// Of several sequences, as many are mostly of one each, and have keys of their
// own. The more there are, the fewer warps divide these, but never fewer than
// four, or two of more than 128 rows.
// CHECK-LABEL: kf.kernel @generating
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>
kf.kernel @generating(%q: tensor<64x8x128xf32>, %c: !cache, %p: tensor<64xi32>, %s: tensor<64xi32>, %t: tensor<40x4xi32>) -> tensor<64x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<64x8x128xf32>, !cache, tensor<64xi32>, tensor<40x4xi32>
  kf.yield %0 : tensor<64x8x128xf32>
}
// CHECK-LABEL: kf.kernel @many_generating
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 2], unit = mma_sync, rows = split, held = registers>
kf.kernel @many_generating(%q: tensor<256x32x128xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, %p: tensor<256xi32>, %s: tensor<256xi32>, %t: tensor<256x4xi32>) -> tensor<256x32x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<256x32x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, tensor<256xi32>, tensor<256x4xi32>
  kf.yield %0 : tensor<256x32x128xf32>
}
// More heads than a warp has rows: several warps have some, which alone would be
// taken for rows that share keys.
// CHECK-LABEL: kf.kernel @many_heads
// CHECK-SAME:    #kf.flash_mma<workgroup = [1, 48], keys = 16, threads = [32, 3, 2], unit = mma_sync, rows = split, held = registers>
kf.kernel @many_heads(%q: tensor<256x384x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, %p: tensor<256xi32>, %s: tensor<256xi32>, %t: tensor<256x4xi32>) -> tensor<256x384x64xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<256x384x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, tensor<256xi32>, tensor<256x4xi32>
  kf.yield %0 : tensor<256x384x64xf32>
}
// CHECK-LABEL: kf.kernel @prompts
// CHECK-SAME:    rows = rounded, held = shared>
kf.kernel @prompts(%q: tensor<257x8x128xf32>, %c: !cache, %p: tensor<257xi32>, %s: tensor<257xi32>, %t: tensor<40x4xi32>) -> tensor<257x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<257x8x128xf32>, !cache, tensor<257xi32>, tensor<40x4xi32>
  kf.yield %0 : tensor<257x8x128xf32>
}

// More tokens: 64 rows for warpgroups still, 128 where there are none.
// CHECK-LABEL: kf.kernel @warpgroups
// CHECK-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>
kf.kernel @warpgroups(%q: tensor<4000x32x128xf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, %p: tensor<4000xi32>, %s: tensor<4000xi32>, %t: tensor<1x64xi32>) -> tensor<4000x32x128xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<4000x32x128xf16>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, tensor<4000xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<4000x32x128xf16>
}
// CHECK-LABEL: kf.kernel @warps
// CHECK-SAME:    #kf.flash_mma<workgroup = [32, 4], keys = 64, threads = [32, 8, 1], unit = mma_sync, rows = rounded, held = shared>
kf.kernel @warps(%q: tensor<4000x32x96xf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 96, type = f16>, %p: tensor<4000xi32>, %s: tensor<4000xi32>, %t: tensor<1x64xi32>) -> tensor<4000x32x96xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<4000x32x96xf16>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 96, type = f16>, tensor<4000xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<4000x32x96xf16>
}

// Without warpgroups, rows of several sequences leave registers for fewer keys.
// CHECK-LABEL: kf.kernel @sequences
// CHECK-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>
// UNITS-LABEL: kf.kernel @sequences
// UNITS-SAME:    #kf.flash_mma<workgroup = [32, 4], keys = 32, threads = [32, 8, 1], unit = mma_sync, rows = rounded, held = shared>
kf.kernel @sequences(%q: tensor<4000x32x128xf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, %p: tensor<4000xi32>, %s: tensor<4000xi32>, %t: tensor<2x64xi32>) -> tensor<4000x32x128xf16> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<4000x32x128xf16>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 128, type = f16>, tensor<4000xi32>, tensor<2x64xi32>
  kf.yield %0 : tensor<4000x32x128xf16>
}

// A rotation alone: a token to a workgroup, some pairs to each thread.
// CHECK-LABEL: kf.kernel @rotation
// CHECK-SAME:    #kf.simt<workgroup = [1, 0, 0], threads = [256], unroll = 8>
kf.kernel @rotation(%q: tensor<?x32x128xf32>, %p: tensor<?xi32>) -> tensor<?x32x128xf16> {
  %0 = kf.rope %q, %p {rotary_dim = 128 : i64, theta = 1.0e4 : f64} : tensor<?x32x128xf32>, tensor<?xi32>
  %1 = arith.truncf %0 : tensor<?x32x128xf32> to tensor<?x32x128xf16>
  kf.yield %1 : tensor<?x32x128xf16>
}

// Wide heads: the fewest keys, and as many warps of few workgroups as of many,
// for more columns. Pages of 16 keys have no larger block.
// CHECK-LABEL: kf.kernel @wide_heads
// CHECK-SAME:    #kf.flash_mma<workgroup = [32, 4], keys = 16, threads = [32, 8, 1], unit = mma_sync, rows = rounded, held = shared>
kf.kernel @wide_heads(%q: tensor<4000x8x256xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 256, type = f16>, %p: tensor<4000xi32>, %s: tensor<4000xi32>, %t: tensor<1x64xi32>) -> tensor<4000x8x256xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<4000x8x256xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 256, type = f16>, tensor<4000xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<4000x8x256xf32>
}
// CHECK-LABEL: kf.kernel @few_wide_heads
// CHECK-SAME:    #kf.flash_mma<workgroup = [32, 4], keys = 16, threads = [32, 8, 1], unit = mma_sync, rows = rounded, held = shared>
kf.kernel @few_wide_heads(%q: tensor<100x8x256xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 256, type = f16>, %p: tensor<100xi32>, %s: tensor<100xi32>, %t: tensor<1x64xi32>) -> tensor<100x8x256xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<100x8x256xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 256, type = f16>, tensor<100xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<100x8x256xf32>
}
// CHECK-LABEL: kf.kernel @short_pages
// CHECK-SAME:    #kf.flash_mma<workgroup = [16, 4], keys = 16, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>
kf.kernel @short_pages(%q: tensor<?x8x128xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16, page = 16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8x128xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16, page = 16>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x128xf32>
}

// Neither f32 nor pages of a few keys are for matrix units.
!wide = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f32>
// CHECK-LABEL: kf.kernel @wide
// CHECK-SAME:    #kf.flash<workgroup = [2, 4], keys = 32, threads = [128]>
kf.kernel @wide(%q: tensor<?x8x128xf32>, %c: !wide, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8x128xf32>, !wide, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x128xf32>
}
!small = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 128, type = f16, page = 24>
// CHECK-LABEL: kf.kernel @small
// CHECK-SAME:    #kf.flash<workgroup = [2, 4], keys = 8, threads = [128]>
kf.kernel @small(%q: tensor<?x8x128xf32>, %c: !small, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x8x128xf32> {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8x128xf32>, !small, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x128xf32>
}
