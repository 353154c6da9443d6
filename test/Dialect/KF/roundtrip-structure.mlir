// RUN: kf-opt %s | FileCheck %s
// RUN: kf-opt %s | kf-opt | FileCheck %s
// RUN: kf-opt %s --mlir-print-op-generic | kf-opt | FileCheck %s
// RUN: kf-opt %s --emit-bytecode | kf-opt | FileCheck %s

!cache = !kf.kv_cache<layers = 8, kv_heads = 2, head_dim = 64, type = f32>
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32>

// CHECK-LABEL: @weights
func.func @weights(%x: tensor<96x64xbf16>) {
  // CHECK: kf.weight ["norm"] : tensor<256xbf16>
  %0 = kf.weight ["norm"] : tensor<256xbf16>
  // CHECK: kf.weight ["q", "k", "v"] : tensor<512x256xbf16>
  %1 = kf.weight ["q", "k", "v"] : tensor<512x256xbf16>
  // CHECK: kf.weight ["gate", "up"] {stacked} : tensor<2x704x256xbf16>
  %2 = kf.weight ["gate", "up"] {stacked} : tensor<2x704x256xbf16>
  // CHECK: kf.weight ["c_attn"] {transposed} : tensor<192x64xf32>
  %3 = kf.weight ["c_attn"] {transposed} : tensor<192x64xf32>
  // CHECK: kf.weight ["a", "b"] {stacked, transposed} : tensor<2x192x64xf32>
  %4 = kf.weight ["a", "b"] {stacked, transposed} : tensor<2x192x64xf32>
  // CHECK: kf.pack %{{.*}} : tensor<96x64xbf16> to tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  %5 = kf.pack %x : tensor<96x64xbf16> to tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  // CHECK: kf.weight ["w"] : tensor<40x72xf16, #kf.fragments>
  %w = kf.weight ["w"] : tensor<40x72xf16, #kf.fragments>
  // CHECK: kf.pack %{{.*}} : tensor<96x64xbf16> to tensor<96x64xbf16, #kf.layout<panel = 20>>
  %6 = kf.pack %x : tensor<96x64xbf16> to tensor<96x64xbf16, #kf.layout<panel = 20>>
  return
}

// Fields with their default values are not printed; an empty list is.
// CHECK-LABEL: @schedules
// CHECK-SAME: b = #kf.vector<workgroup = [56, 128], tile = [14, 32], lanes = 16, unroll = 4>
// CHECK-SAME: b8 = #kf.vector<tile = [6, 32], lanes = 16, dot = i8>
// CHECK-SAME: c = #kf.simt<workgroup = [0, 1], threads = [16, 16, 1], tile = [4], reduction = 64, unroll = 8>
// CHECK-SAME: c2 = #kf.flash<workgroup = [4, 8], keys = 32, threads = [64]>
// CHECK-SAME: c3 = #kf.stream<workgroup = [1, 32], warps = 8, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>
// CHECK-SAME: c4 = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 256>
// CHECK-SAME: c5 = #kf.mma<workgroup = [128, 64], warps = [2, 4], reduction = 32, stages = 3, unit = mma_sync>
// CHECK-SAME: c6 = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers>
// CHECK-SAME: c7 = #kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, parts = 8>
// CHECK-SAME: d = #kf.grid<tokens = [56, 0], counts = [0, 4]>
// CHECK-SAME: e = #kf.grid<tokens = [], counts = []>
func.func private @schedules() attributes {
  b = #kf.vector<unroll = 4, lanes = 16, tile = [14, 32], workgroup = [56, 128]>,
  b8 = #kf.vector<dot = i8, tile = [6, 32], lanes = 16>,
  c = #kf.simt<tile = [4], reduction = 64, unroll = 8, threads = [16, 16, 1], workgroup = [0, 1]>,
  c2 = #kf.flash<threads = [64], keys = 32, workgroup = [4, 8]>,
  c3 = #kf.stream<stages = 3, unit = mma_sync, rows = split, held = shared, tiles = 4, warps = 8, workgroup = [1, 32], reduction = 0>,
  c4 = #kf.stream<workgroup = [16, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 256>,
  c5 = #kf.mma<stages = 3, warps = [2, 4], reduction = 32, workgroup = [128, 64], unit = mma_sync>,
  c6 = #kf.flash_mma<threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, keys = 16, workgroup = [1, 4], parts = 1>,
  c7 = #kf.flash_mma<parts = 8, threads = [32, 1, 8], unit = mma_sync, rows = split, held = registers, keys = 16, workgroup = [1, 4]>,
  d = #kf.grid<tokens = [56, 0], counts = [0, 4]>,
  e = #kf.grid<tokens = [], counts = []>}

// CHECK-LABEL: kf.kernel @scale(
// CHECK-SAME:    %{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<64xf32>) -> tensor<?x64xf32>
// CHECK-SAME:    attributes {grid = #kf.grid<tokens = [8], counts = [0]>, schedule = #kf.vector<workgroup = [8]>}
kf.kernel @scale(%x: tensor<?x64xf32>, %w: tensor<64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8]>,
                grid = #kf.grid<tokens = [8], counts = [0]>} {
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  // CHECK: kf.yield %{{.*}} : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}

// CHECK-LABEL: kf.kernel @append(
kf.kernel @append(%c: !layer, %k: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  // CHECK: kf.yield{{$}}
  kf.yield
}

// CHECK-LABEL: kf.program @step(
// CHECK-SAME: attributes {arena_bytes = 4096 : i64, max_tokens = 8 : i64}
kf.program @step(%x: tensor<?x64xf32>, %k: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache)
    -> tensor<?x64xf32> attributes {max_tokens = 8 : i64, arena_bytes = 4096 : i64} {
  %w = kf.weight ["norm"] : tensor<64xf32>
  // CHECK: kf.cache_layer %{{.*}}[3] : !kf.kv_cache<layers = 8, {{.*}}> to !kf.kv_cache<layers = 1, {{.*}}>
  %l = kf.cache_layer %c[3] : !cache to !layer
  // CHECK: kf.dispatch @append({{.*}}) : (!kf.kv_cache<layers = 1, {{.*}}>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> ()
  kf.dispatch @append(%l, %k, %p, %sp, %pt)
      : (!layer, tensor<?x2x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> ()
  // CHECK: kf.dispatch @scale(%{{.*}}, %{{.*}}) {offsets = array<i64: 1024>} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  %0 = kf.dispatch @scale(%x, %w) {offsets = array<i64: 1024>}
      : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  %1 = kf.dispatch @scale(%0, %w) {offsets = array<i64: -1>}
      : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  kf.yield %1 : tensor<?x64xf32>
}

// A dispatch of what a kernel was lowered to.
func.func private @lowered(memref<4xf32>)
// CHECK-LABEL: kf.program @of_lowered(
kf.program @of_lowered(%x: tensor<4xf32>) attributes {max_tokens = 1 : i64} {
  // CHECK: kf.dispatch @lowered
  kf.dispatch @lowered(%x) : (tensor<4xf32>) -> ()
  kf.yield
}
