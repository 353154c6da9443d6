// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Eight query rows at most: 16 rows of the units' tile are two parts of each,
// which are added up. Warps that divide the keys meet in workgroup memory, and
// what is not finite is computed again.
kf.kernel @decode(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> tensor<1x4x64xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2], keys = 16, threads = [32, 1, 4], unit = mma_sync, rows = split, held = registers>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<1x4x64xf32>
}
// CHECK-LABEL: gpu.func @decode(
// Sums, maxima and totals of four warps of 8 rows.
// CHECK-SAME:    %[[MEMORY:[a-z0-9]+]] : memref<8448xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-SAME:    %[[FLAG:[a-z0-9]+]] : memref<1xi32, #gpu.address_space<workgroup>>
// CHECK-SAME:    known_block_size = array<i32: 32, 1, 4>
// CHECK-SAME:    nvvm.minctasm = 1
// The rounded part and what it leaves.
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:         memref.store %{{.*}} : memref<1024xf16, #gpu.address_space<workgroup>>
// CHECK:         gpu.barrier
// CHECK-COUNT-3: nvvm.shfl.sync {{ ?}}bfly
// Four fragments of queries, of two steps for each 32 columns.
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         scf.for %{{.*}} step %c64
// CHECK-NOT:       gpu.barrier
// Values first: four rows, 64 columns.
// CHECK-COUNT-4:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-2:   nvvm.mma.sync {{.*}}layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>{{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK:           scf.if
// CHECK:             arith.cmpi sle
// CHECK:           nvvm.shfl.sync {{ ?}}bfly
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK-COUNT-8:   nvvm.mma.sync
// CHECK:         gpu.barrier
// CHECK:         memref.store
// CHECK:         gpu.barrier
// CHECK:         arith.divf
// CHECK:         memref.store %{{.*}}, %[[FLAG]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[FLAG]]
// CHECK:         scf.if
// CHECK:           math.exp

// -----

// More rows: both parts are multiplied. No warp waits for another.
kf.kernel @apart(%q: tensor<?x4x80xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 80, type = bf16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x80xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [8, 4], keys = 32, threads = [32, 2, 2], unit = mma_sync, rows = split, held = registers>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32, window = 100 : i64} : tensor<?x4x80xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 80, type = bf16>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x4x80xf32>
}
// CHECK-LABEL: gpu.func @apart(
// CHECK:         scf.for
// Columns 80 to 95 are not there.
// CHECK:           llvm.load volatile
// CHECK:           nvvm.mma.sync {{.*}} : (i32, i32, f32)
// CHECK:           llvm.select
// CHECK:           llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32

// -----

// Chunks.
kf.kernel @chunks(%q: tensor<?x4x80xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 80, type = bf16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x80xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [8, 4], keys = 32, threads = [32, 2, 2], unit = mma_sync, rows = split, held = registers>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32, window = 100 : i64, chunked} : tensor<?x4x80xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 80, type = bf16>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x4x80xf32>
}
// CHECK-LABEL: gpu.func @chunks(
// CHECK:         arith.remsi %{{.*}}, %c100 : index
// CHECK:         arith.remsi %{{.*}}, %c100_i32 : i32

// -----

// Codes become bf16 in registers; scales go to scores and to weights.
kf.kernel @blocks(%q: tensor<1x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, %p: tensor<1xi32>, %s: tensor<1xi32>, %t: tensor<1x8xi32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2x64xf32>)
    attributes {schedule = #kf.flash_mma<workgroup = [1, 2, 1], keys = 16, threads = [32, 1, 1], unit = mma_sync, rows = split, held = registers>} {
  %0, %1, %2 = kf.attention_partial %q, %c, %p, %s, %t splits(2) {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>, tensor<1xi32>, tensor<1x8xi32>
  kf.yield %0, %1, %2 : tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2x64xf32>
}
// CHECK-LABEL: gpu.func @blocks(
// CHECK:         scf.for
// CHECK:           llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:           llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK:           llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK:           nvvm.mma.sync {{.*}} : (i32, i32, f32)
// CHECK:           math.fma

// -----

// Many rows, and warps that divide them alone: they share two stages of keys
// and values, rows of 80 columns in 11 chunks. Positions of all warps say which
// keys these are. The last tokens come first.
kf.kernel @prefill(%q: tensor<?x4x80xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 80, type = bf16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x80xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [16, 2], keys = 32, threads = [32, 2, 1], unit = mma_sync, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = -0.125 : f32, window = 100 : i64} : tensor<?x4x80xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 80, type = bf16>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x4x80xf32>
}
// CHECK-LABEL: gpu.func @prefill(
// Both stages of 32 rows of keys and values, and positions of two warps.
// CHECK-SAME:    memref<22544xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-DAG:     %[[TILES:.*]] = gpu.grid_dim x
// CHECK-DAG:     %[[HEADS:.*]] = gpu.grid_dim y
// CHECK:         arith.divui %[[ALL:.*]], %[[HEADS]]
// CHECK:         arith.remui %[[ALL]], %[[HEADS]]
// CHECK:         arith.subi %[[TILES]]
// CHECK:         gpu.barrier
// CHECK:         nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK:         nvvm.cp.async.commit.group
// One part of each query, with the sign of the scale, eight at once.
// CHECK:         arith.mulf %{{.*}}, %cst{{[_0-9]*}}
// CHECK-COUNT-8: arith.truncf %{{.*}} : f32 to bf16
// CHECK-NOT:     arith.truncf
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK:         gpu.barrier
// Fragments of five steps.
// CHECK-COUNT-5: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:         scf.for %{{.*}} step %c32
// CHECK-NEXT:      gpu.barrier
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           nvvm.ldmatrix %{{.*}}layout = #nvvm.mma_layout<row>
// CHECK-COUNT-2:   nvvm.mma.sync
// CHECK:           scf.if
// CHECK:           math.fma
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK:           nvvm.ldmatrix %{{.*}}layout = #nvvm.mma_layout<col>
// CHECK:           nvvm.cp.async.wait.group 0
// A row that sees keys, and weighs none, is computed again, too.
// CHECK:         %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[TOTAL:.*]] : f32
// CHECK:         %[[FACTOR:.*]] = arith.select %{{.*}}, %[[INVERSE]], %{{.*}} : f32
// CHECK:         arith.addf %[[TOTAL]], %[[FACTOR]] : f32

// -----

// Codes go through registers, and are f16 in the stages.
kf.kernel @prefill_blocks(%q: tensor<?x4x96xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = !kf.quant<q8_0>>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x96xf32>
    attributes {schedule = #kf.flash_mma<workgroup = [8, 4], keys = 16, threads = [32, 2, 1], unit = mma_sync, rows = rounded, held = shared>} {
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x96xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x8xi32>
  kf.yield %0 : tensor<?x4x96xf32>
}
// CHECK-LABEL: gpu.func @prefill_blocks(
// CHECK-NOT:     nvvm.cp.async
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:         scf.for %{{.*}} step %c16
// CHECK-NEXT:      gpu.barrier
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:           nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK:           arith.subf %{{.*}} : vector<2xf16>
// CHECK:           arith.mulf %{{.*}} : vector<2xf16>
// CHECK:           llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>

// -----

// Queries that are rounded already are read as fragments: 32 bits of two rows
// at eight places. Four warps multiply 64 rows by what is staged in two panels
// of 64 columns, which begin at a multiple of 1 KiB.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @warpgroups(%q: tensor<?x4x128xf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 128, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x128xf16>
      attributes {schedule = #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = wgmma, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x128xf16>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 128, type = f16>, tensor<?xi32>, tensor<1x8xi32>
    kf.yield %0 : tensor<?x4x128xf16>
  }
}
// CHECK-LABEL: gpu.func @warpgroups(
// Two stages of 32 KiB, 1 KiB for where they begin, and positions.
// CHECK-SAME:    memref<66592xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-NOT:     arith.truncf %{{.*}} : f32 to f16
// CHECK:         nvvm.cp.async.commit.group
// CHECK-COUNT-32: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK-NEXT:    "fence.proxy.async.shared::cta;"
// CHECK:         gpu.barrier
// Keys of the second block, and scores of the first.
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         "wgmma.fence.sync.aligned;
// CHECK-SAME:    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, 1, 1, 1, 0;
// CHECK-SAME:    wgmma.commit_group.sync.aligned;"
// CHECK:         "wgmma.wait_group.sync.aligned 0;"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK-NEXT:    "fence.proxy.async.shared::cta;"
// CHECK:         scf.for %{{.*}} step %c64
// CHECK:           gpu.barrier
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// CHECK:           "wgmma.wait_group.sync.aligned 0;"
// Values are added while weights are computed.
// CHECK:           "wgmma.fence.sync.aligned;
// CHECK-SAME:      wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{.*}}, 1, 1, 1, 1;
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK:           "wgmma.wait_group.sync.aligned 0;"
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-NEXT:      "fence.proxy.async.shared::cta;"
// CHECK-NEXT:      scf.yield
// CHECK:         gpu.barrier
// CHECK:         wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// CHECK:         "wgmma.wait_group.sync.aligned 0;"

// -----

// Codes are stored in two chunks, whose places differ in each row.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @warpgroups_blocks(%q: tensor<?x4x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x64xf32>
      attributes {schedule = #kf.flash_mma<workgroup = [32, 4], keys = 32, threads = [32, 8, 1], unit = wgmma, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x8xi32>
    kf.yield %0 : tensor<?x4x64xf32>
  }
}
// CHECK-LABEL: gpu.func @warpgroups_blocks(
// CHECK-NOT:     nvvm.cp.async
// CHECK:         "fence.proxy.async.shared::cta;"
// CHECK:         wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
// CHECK:         scf.for %{{.*}} step %c32
// CHECK:           wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
// CHECK:           wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}}, 1, 1, 1, 1;
// CHECK:           llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK:           "fence.proxy.async.shared::cta;"

// -----

// Heads of other widths are multiplied by warps.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @no_panels(%q: tensor<?x4x96xf16>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = f16>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x8xi32>) -> tensor<?x4x96xf16>
      attributes {schedule = #kf.flash_mma<workgroup = [16, 4], keys = 64, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>} {
    %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x96xf16>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = f16>, tensor<?xi32>, tensor<1x8xi32>
    kf.yield %0 : tensor<?x4x96xf16>
  }
}
// CHECK-LABEL: gpu.func @no_panels(
// CHECK-COUNT-24: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
