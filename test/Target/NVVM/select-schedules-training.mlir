// RUN: kf-opt %s --kf-select-schedules | FileCheck %s

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // Products of batches, of f32, are multiplied by matrix units.
  // CHECK-LABEL: kf.kernel @scores
  // CHECK-SAME:    #kf.mma<workgroup = [1, {{[0-9]+}}, {{[0-9]+}}], {{.*}}unit = {{[a-z_]+}}>
  kf.kernel @scores(%q: tensor<128x2048x128xf32>, %k: tensor<128x2048x128xf32>) -> tensor<128x2048x2048xf32> {
    %0 = kf.batch_matmul %q, %k : tensor<128x2048x128xf32>, tensor<128x2048x128xf32>
    kf.yield %0 : tensor<128x2048x2048xf32>
  }
  // Not what a reduction reads: it asks for one element at a time.
  // CHECK-LABEL: kf.kernel @reduced
  // CHECK-SAME:    #kf.simt
  kf.kernel @reduced(%q: tensor<8x64x32xf32>, %k: tensor<8x64x32xf32>) -> tensor<8x64xf32> {
    %0 = kf.batch_matmul %q, %k : tensor<8x64x32xf32>, tensor<8x64x32xf32>
    %1 = kf.reduce(sum) %0 dims = [2] : tensor<8x64x64xf32>
    kf.yield %1 : tensor<8x64xf32>
  }
  // Attention to tensors, and its gradients, which have fewer keys in a block.
  // CHECK-LABEL: kf.kernel @attention
  // CHECK-SAME:    #kf.flash_mma<workgroup = [1, 1, 64], keys = 64, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>
  kf.kernel @attention(%q: tensor<4x32x2048x128xbf16>, %k: tensor<4x8x2048x128xbf16>) -> tensor<4x32x2048x128xbf16> {
    %0 = kf.scaled_dot_product_attention %q, %k, %k {causal} : tensor<4x32x2048x128xbf16>, tensor<4x8x2048x128xbf16>, tensor<4x8x2048x128xbf16>
    kf.yield %0 : tensor<4x32x2048x128xbf16>
  }
  // CHECK-LABEL: kf.kernel @keys
  // CHECK-SAME:    #kf.flash_mma<workgroup = [1, 64], keys = 32, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>
  kf.kernel @keys(%q: tensor<32x100x64xbf16>, %n: tensor<32x100xf32>) -> (tensor<32x100x64xf32>, tensor<32x100x64xf32>) {
    %0:2 = kf.attention_kvgrad %q, %q, %q, %q, %n, %n : tensor<32x100x64xbf16>, tensor<32x100x64xbf16>, tensor<32x100x64xbf16>, tensor<32x100x64xbf16>, tensor<32x100xf32>
    kf.yield %0#0, %0#1 : tensor<32x100x64xf32>, tensor<32x100x64xf32>
  }
  // The gradient of an adapter's matrix has few rows and a long K, which is
  // divided.
  // CHECK-LABEL: kf.kernel @gradient
  // CHECK-SAME:    #kf.mma<{{.*}}parts = {{[248]}}>
  kf.kernel @gradient(%dy: tensor<8192x16xf32>, %x: tensor<8192x4096xf32>) -> tensor<16x4096xf32> {
    %0 = kf.transpose %dy permutation = [1, 0] : tensor<8192x16xf32>
    %1 = kf.transpose %x permutation = [1, 0] : tensor<8192x4096xf32>
    %2 = kf.matmul %0, %1 : tensor<16x8192xf32>, tensor<4096x8192xf32>
    kf.yield %2 : tensor<16x4096xf32>
  }
  // Products with matrices of low rank read x once: tiles are as narrow as the
  // matrix, and K is divided, too.
  // CHECK-LABEL: kf.kernel @rank_16
  // CHECK-SAME:    #kf.mma<workgroup = [{{[0-9]+}}, 16], {{.*}}unit = mma_sync, parts = {{[248]}}>
  kf.kernel @rank_16(%x: tensor<8192x4096xf32>, %a: tensor<16x4096xf32>) -> tensor<8192x16xf32> {
    %0 = kf.matmul %x, %a : tensor<8192x4096xf32>, tensor<16x4096xf32>
    kf.yield %0 : tensor<8192x16xf32>
  }
  // CHECK-LABEL: kf.kernel @rank_1
  // CHECK-SAME:    #kf.mma<workgroup = [{{[0-9]+}}, 16], {{.*}}unit = mma_sync, parts = {{[248]}}>
  kf.kernel @rank_1(%x: tensor<8192x4096xf32>, %a: tensor<1x4096xf32>) -> tensor<8192x1xf32> {
    %0 = kf.matmul %x, %a : tensor<8192x4096xf32>, tensor<1x4096xf32>
    kf.yield %0 : tensor<8192x1xf32>
  }
  // CHECK-LABEL: kf.kernel @rank_64
  // CHECK-SAME:    #kf.mma<workgroup = [{{[0-9]+}}, 64], {{.*}}unit = mma_sync
  kf.kernel @rank_64(%x: tensor<8192x4096xf32>, %a: tensor<64x4096xf32>) -> tensor<8192x64xf32> {
    %0 = kf.matmul %x, %a : tensor<8192x4096xf32>, tensor<64x4096xf32>
    kf.yield %0 : tensor<8192x64xf32>
  }
  // 32 tiles of 128 x 128 in four parts would be as many workgroups as there are
  // multiprocessors, not all of which can be in a cluster of four.
  // CHECK-LABEL: kf.kernel @clusters
  // CHECK-SAME:    parts = 2>
  kf.kernel @clusters(%dy: tensor<8192x1024xf32>, %x: tensor<8192x512xf32>) -> tensor<1024x512xf32> {
    %0 = kf.transpose %dy permutation = [1, 0] : tensor<8192x1024xf32>
    %1 = kf.transpose %x permutation = [1, 0] : tensor<8192x512xf32>
    %2 = kf.matmul %0, %1 : tensor<1024x8192xf32>, tensor<512x8192xf32>
    kf.yield %2 : tensor<1024x512xf32>
  }
  // A workgroup of a gated product has the lines of gate and up for its columns:
  // 128 tiles are enough for all multiprocessors, undivided.
  // CHECK-LABEL: kf.kernel @gated
  // CHECK-SAME:    #kf.mma<workgroup = [128, 128], {{.*}}unit = mma_sync>
  kf.kernel @gated(%x: tensor<512x8192xf32>, %w: tensor<2x4096x8192xf32>) -> tensor<512x4096xf32> {
    %0 = kf.matmul %x, %w glu(silu) : tensor<512x8192xf32>, tensor<2x4096x8192xf32>
    kf.yield %0 : tensor<512x4096xf32>
  }
  // A few rows that lie as they are multiplied are for threads, which share
  // the sums: most of a tile would be padding.
  // CHECK-LABEL: kf.kernel @few
  // CHECK-SAME:    #kf.simt<{{.*}}sums = shared>
  kf.kernel @few(%x: tensor<1x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<1x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<1x4096xf32>, tensor<4096x4096xf32>
    kf.yield %0 : tensor<1x4096xf32>
  }
  // Products of steps are by threads, to f32.
  // CHECK-LABEL: kf.kernel @step
  // CHECK-SAME:    #kf.simt
  kf.kernel @step(%x: tensor<?x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<?x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<?x4096xf32>, tensor<4096x4096xf32>
    kf.yield %0 : tensor<?x4096xf32>
  }
  // The threads of a workgroup have a row's sum together.
  // CHECK-LABEL: kf.kernel @squares
  // CHECK-SAME:    #kf.simt<workgroup = [1, 0], threads = [512], unroll = 8, sums = shared>
  kf.kernel @squares(%x: tensor<8192x4096xf32>) -> tensor<8192x1xf32> {
    %0 = arith.mulf %x, %x : tensor<8192x4096xf32>
    %1 = kf.reduce(mean) %0 dims = [1] keep_dims : tensor<8192x4096xf32>
    %2 = math.rsqrt %1 : tensor<8192x1xf32>
    kf.yield %2 : tensor<8192x1xf32>
  }
  // Sums of a fourth dimension, for which a grid has no workgroups, would be one
  // after another.
  // CHECK-LABEL: kf.kernel @fourth
  // CHECK-NOT:     shared
  // CHECK-LABEL: kf.kernel @fourth_of_few
  // CHECK-SAME:    sums = shared
  kf.kernel @fourth(%x: tensor<2x3x4x64x256xf32>) -> tensor<2x3x4x64xf32> {
    %0 = kf.reduce(sum) %x dims = [4] : tensor<2x3x4x64x256xf32>
    kf.yield %0 : tensor<2x3x4x64xf32>
  }
  kf.kernel @fourth_of_few(%x: tensor<2x3x64x4x256xf32>) -> tensor<2x3x64x4xf32> {
    %0 = kf.reduce(sum) %x dims = [4] : tensor<2x3x64x4x256xf32>
    kf.yield %0 : tensor<2x3x64x4xf32>
  }
  // Sums of a few, and those across rows, are a thread's.
  // CHECK-LABEL: kf.kernel @heads
  // CHECK-NOT:     shared
  kf.kernel @heads(%x: tensor<4x8x4x2048x128xf32>) -> tensor<4x8x2048x128xf32> {
    %0 = kf.reduce(sum) %x dims = [2] : tensor<4x8x4x2048x128xf32>
    kf.yield %0 : tensor<4x8x2048x128xf32>
  }
  // However often a sum's elements are read, each value is asked for once.
  // CHECK-LABEL: kf.kernel @powers
  // CHECK-SAME:    sums = shared
  kf.kernel @powers(%x: tensor<4096x512xf32>) -> tensor<4096x1xf32> {
    %1 = kf.reduce(sum) %x dims = [1] keep_dims : tensor<4096x512xf32>
    %2 = arith.mulf %1, %1 : tensor<4096x1xf32>
    %3 = arith.mulf %2, %2 : tensor<4096x1xf32>
    %4 = arith.mulf %3, %3 : tensor<4096x1xf32>
    %5 = arith.mulf %4, %4 : tensor<4096x1xf32>
    %6 = arith.mulf %5, %5 : tensor<4096x1xf32>
    %7 = arith.mulf %6, %6 : tensor<4096x1xf32>
    %8 = arith.mulf %7, %7 : tensor<4096x1xf32>
    %9 = arith.mulf %8, %8 : tensor<4096x1xf32>
    %10 = arith.mulf %9, %9 : tensor<4096x1xf32>
    %11 = arith.mulf %10, %10 : tensor<4096x1xf32>
    %12 = arith.mulf %11, %11 : tensor<4096x1xf32>
    %13 = arith.mulf %12, %12 : tensor<4096x1xf32>
    %14 = arith.mulf %13, %13 : tensor<4096x1xf32>
    %15 = arith.mulf %14, %14 : tensor<4096x1xf32>
    %16 = arith.mulf %15, %15 : tensor<4096x1xf32>
    %17 = arith.mulf %16, %16 : tensor<4096x1xf32>
    %18 = arith.mulf %17, %17 : tensor<4096x1xf32>
    %19 = arith.mulf %18, %18 : tensor<4096x1xf32>
    %20 = arith.mulf %19, %19 : tensor<4096x1xf32>
    %21 = arith.mulf %20, %20 : tensor<4096x1xf32>
    %22 = arith.mulf %21, %21 : tensor<4096x1xf32>
    %23 = arith.mulf %22, %22 : tensor<4096x1xf32>
    %24 = arith.mulf %23, %23 : tensor<4096x1xf32>
    %25 = arith.mulf %24, %24 : tensor<4096x1xf32>
    %26 = arith.mulf %25, %25 : tensor<4096x1xf32>
    %27 = arith.mulf %26, %26 : tensor<4096x1xf32>
    %28 = arith.mulf %27, %27 : tensor<4096x1xf32>
    %29 = arith.mulf %28, %28 : tensor<4096x1xf32>
    %30 = arith.mulf %29, %29 : tensor<4096x1xf32>
    %31 = arith.mulf %30, %30 : tensor<4096x1xf32>
    %32 = arith.mulf %31, %31 : tensor<4096x1xf32>
    %33 = arith.mulf %32, %32 : tensor<4096x1xf32>
    kf.yield %33 : tensor<4096x1xf32>
  }
}
