// RUN: kf-opt %s -split-input-file --kf-set-target=target=cuda --kf-set-layouts --kf-print-schedule-candidates -o /dev/null | FileCheck %s
// RUN: kf-opt %s -split-input-file --kf-set-target=target="#kf.vulkan_target<threads=64,memory=16384>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=SMALL
// RUN: kf-opt %s -split-input-file --kf-set-target=target=vulkan:arc --kf-set-layouts --kf-print-schedule-candidates -o /dev/null | FileCheck %s --check-prefix=HALVES

// CHECK-LABEL: kernel @gemv
// CHECK-DAG:     #kf.stream<workgroup = [1, 16], {{.*}}> (default)
// CHECK-DAG:     #kf.simt<workgroup = [1, 8], threads = [32, 4, 1], tile = [1, 2], unroll = 2, sums = shared>
// CHECK-DAG:     #kf.simt<workgroup = [1, 4], threads = [128, 4, 1], tile = [1, 1], unroll = 4, sums = shared>
// Threads that the device does not have are no candidates.
// SMALL-LABEL: kernel @gemv
// SMALL-NOT:     threads = [128,
kf.kernel @gemv(%x: tensor<1x64xf32>, %w: tensor<40x64x!kf.quant<q5_0>>) -> tensor<1x40xf32> {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<40x64x!kf.quant<q5_0>>
  kf.yield %0 : tensor<1x40xf32>
}

// -----

// CHECK-LABEL: kernel @matmul
// CHECK-DAG:     #kf.simt<workgroup = [32, 32], threads = [16, 16, 1], tile = [2, 2], reduction = 16> (default)
// CHECK-DAG:     #kf.simt<workgroup = [64, 64], threads = [16, 16, 1], tile = [4, 4], reduction = 8>
// SMALL-LABEL: kernel @matmul
// SMALL-NOT:     threads = [16, 16,
// SMALL:         threads = [8, 8, 1]
kf.kernel @matmul(%x: tensor<512x1024xf32>, %w: tensor<2048x1024xf32>) -> tensor<512x2048xf32> {
  %0 = kf.matmul %x, %w : tensor<512x1024xf32>, tensor<2048x1024xf32>
  kf.yield %0 : tensor<512x2048xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 32>
// CHECK-LABEL: kernel @attention
// CHECK-DAG:     #kf.flash_mma<workgroup = [16, 4], keys = 32, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared> (default)
// CHECK-DAG:     #kf.flash_mma<workgroup = [8, 4], keys = 32, threads = [32, 2, 4], unit = mma_sync, rows = split, held = registers>
// CHECK-DAG:     #kf.flash<workgroup = [8, 4], keys = 16, threads = [256]>
// CHECK-NOT:     keys = 64
// SMALL-LABEL: kernel @attention
// SMALL-NOT:     #kf.flash_mma
kf.kernel @attention(%q: tensor<?x8x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x8x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<?x8x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x64xf32>
}

// -----

// CHECK-LABEL: kernel @rows
// CHECK-DAG:     #kf.simt<workgroup = [1], threads = [64], unroll = 4> (default)
// CHECK-DAG:     #kf.simt<workgroup = [4], threads = [256]>
kf.kernel @rows(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = kf.softmax %x : tensor<?x256xf32>
  kf.yield %0 : tensor<?x256xf32>
}

// -----

// Matrix units, or threads. Vulkan has no such schedule.
// CHECK-LABEL: kernel @many_rows
// CHECK-DAG:     #kf.mma<workgroup = [{{[0-9]+, [0-9]+}}], warps = {{.*}}> (default)
// CHECK-DAG:     #kf.mma<workgroup = [64, 128], warps = [1, 4], reduction = 64, stages = 2, unit = mma_sync>
// CHECK-DAG:     #kf.simt<
// SMALL-LABEL: kernel @many_rows
// SMALL-NOT:     #kf.mma
kf.kernel @many_rows(%x: tensor<512x1024xbf16>, %w: tensor<2048x1024xbf16>) -> tensor<512x2048xf32> {
  %0 = kf.matmul %x, %w wide : tensor<512x1024xbf16>, tensor<2048x1024xbf16>
  kf.yield %0 : tensor<512x2048xf32>
}

// -----

// CHECK-LABEL: kernel @few_rows
// CHECK-NOT:     #kf.mma
// SMALL-LABEL: kernel @few_rows
kf.kernel @few_rows(%x: tensor<16x1024xbf16>, %w: tensor<2048x1024xbf16>) -> tensor<16x2048xbf16> {
  %0 = kf.matmul %x, %w : tensor<16x1024xbf16>, tensor<2048x1024xbf16>
  kf.yield %0 : tensor<16x2048xbf16>
}

// -----

// Threads that take a packed weight apart, where matrix units have no code.
// CHECK-LABEL: kernel @packed
// CHECK-NOT:     #kf.lanes
// SMALL-LABEL: kernel @packed
// SMALL-DAG:     #kf.lanes<workgroup = [2, 16], warps = 2, tiles = 1> (default)
// SMALL-DAG:     #kf.lanes<workgroup = [2, 64], warps = 2, tiles = 1, block_warps = 2>
// SMALL-NOT:     #kf.lanes<{{.*}} warps = 4
kf.kernel @packed(%x: tensor<2x512xf32>, %w: tensor<80x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2x80xf32> {
  %0 = kf.matmul %x, %w : tensor<2x512xf32>, tensor<80x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<2x80xf32>
}

// -----

// Row blocks in rounds are for devices with f16.
// SMALL-LABEL: kernel @few_rows
// SMALL:         #kf.lanes<
// SMALL-NOT:     rounds =
// HALVES-LABEL: kernel @few_rows
// HALVES:         #kf.lanes<{{.*}} rounds = 2
kf.kernel @few_rows(%x: tensor<2x512xf32>, %w: tensor<4096x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2x4096xf32> {
  %0 = kf.matmul %x, %w : tensor<2x512xf32>, tensor<4096x512x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<2x4096xf32>
}
