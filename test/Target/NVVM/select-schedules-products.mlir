// RUN: kf-opt %s --split-input-file --kf-select-schedules | FileCheck %s

// Of 64 rows there are fewer tiles than multiprocessors: K is divided, until each
// has eight warps.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @o
  // CHECK-SAME:    #kf.mma<workgroup = [64, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>
  kf.kernel @o(%x: tensor<64x4096xbf16>, %w: tensor<4096x4096xbf16, #kf.fragments>) -> tensor<64x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<64x4096xbf16>, tensor<4096x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @down
  // CHECK-SAME:    #kf.mma<workgroup = [64, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>
  kf.kernel @down(%x: tensor<64x14336xbf16>, %w: tensor<4096x14336xbf16, #kf.fragments>) -> tensor<64x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<64x14336xbf16>, tensor<4096x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x4096xf32>
  }
  // Blocks are divided among smaller workgroups.
  // CHECK-LABEL: kf.kernel @blocks
  // CHECK-SAME:    #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 4, unit = wgmma, parts = 4>
  kf.kernel @blocks(%x: tensor<64x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<64x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<64x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<64x4096xf32>
  }
  // Of up to 24 rows of blocks, warps hold x, but not where a workgroup would have
  // to have more columns than there is memory for their sums.
  // CHECK-LABEL: kf.kernel @rows_24
  // CHECK-SAME:    #kf.stream<workgroup = [24, {{.*}}rows = rounded, held = registers, reduction = 2048, parts = 4>
  kf.kernel @rows_24(%x: tensor<24x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<24x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<24x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<24x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @head_24
  // CHECK-SAME:    #kf.mma<workgroup = [32, {{.*}}unit = wgmma
  kf.kernel @head_24(%x: tensor<24x4096xf16>, %w: tensor<128256x4096x!kf.quant<q4_k>, #kf.fragments>) -> tensor<24x128256xf32> {
    %0 = kf.matmul %x, %w wide : tensor<24x4096xf16>, tensor<128256x4096x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<24x128256xf32>
  }
  // CHECK-LABEL: kf.kernel @floats_24
  // CHECK-SAME:    #kf.mma<
  kf.kernel @floats_24(%x: tensor<24x14336xbf16>, %w: tensor<4096x14336xbf16, #kf.fragments>) -> tensor<24x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<24x14336xbf16>, tensor<4096x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<24x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @rows_25
  // CHECK-SAME:    #kf.mma<
  kf.kernel @rows_25(%x: tensor<25x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<25x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<25x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<25x4096xf32>
  }
  // A tile has as many rows as there are, where these are no power of two.
  // CHECK-LABEL: kf.kernel @rows_48
  // CHECK-SAME:    #kf.mma<workgroup = [48, 128], warps = [1, 8], {{.*}}parts = 4
  kf.kernel @rows_48(%x: tensor<48x14336xbf16>, %w: tensor<4096x14336xbf16, #kf.fragments>) -> tensor<48x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<48x14336xbf16>, tensor<4096x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<48x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @rows_80
  // CHECK-SAME:    #kf.mma<workgroup = [80, 128], warps = [1, 8], {{.*}}parts = 4
  kf.kernel @rows_80(%x: tensor<80x14336xbf16>, %w: tensor<4096x14336xbf16, #kf.fragments>) -> tensor<80x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<80x14336xbf16>, tensor<4096x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<80x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @rows_96
  // CHECK-SAME:    #kf.mma<workgroup = [96, 64], warps = [1, 4], {{.*}}parts = 4
  kf.kernel @rows_96(%x: tensor<96x14336xf16>, %w: tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>) -> tensor<96x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<96x14336xf16>, tensor<4096x14336x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<96x4096xf32>
  }
  // Of 128 lines of f16, four stages and what tells of outliers leave no memory for
  // another workgroup, with what CUDA keeps of each: 32 clusters of four would take
  // two rounds.
  // CHECK-LABEL: kf.kernel @rows_96_of_f16
  // CHECK-SAME:    #kf.mma<workgroup = [96, 64], warps = [1, 4], {{.*}}parts = 4
  kf.kernel @rows_96_of_f16(%x: tensor<96x14336xf16>, %o: tensor<96x14336xf32>, %w: tensor<4096x14336xf16, #kf.fragments>) -> tensor<96x4096xf32> {
    %0 = kf.matmul %x outliers(%o : tensor<96x14336xf32>), %w wide : tensor<96x14336xf16>, tensor<4096x14336xf16, #kf.fragments>
    kf.yield %0 : tensor<96x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @rows_192
  // CHECK-SAME:    #kf.mma<workgroup = [192, 64], warps = [1, 8],
  kf.kernel @rows_192(%x: tensor<192x4096xf16>, %w: tensor<2x14336x4096x!kf.quant<q4_k>, #kf.fragments>) -> tensor<192x14336xf32> {
    %0 = kf.matmul %x, %w glu(silu) wide : tensor<192x4096xf16>, tensor<2x14336x4096x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<192x14336xf32>
  }
  // Not all multiprocessors are in clusters of four: 32 of them, whose workgroups
  // have one each, would take two rounds.
  // CHECK-LABEL: kf.kernel @rounds
  // CHECK-SAME:    parts = 2>
  kf.kernel @rounds(%x: tensor<256x28672xbf16>, %w: tensor<4096x28672xbf16, #kf.fragments>) -> tensor<256x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<256x28672xbf16>, tensor<4096x28672xbf16, #kf.fragments>
    kf.yield %0 : tensor<256x4096xf32>
  }
  // Where tiles are enough, and where K is short, they are whole.
  // CHECK-LABEL: kf.kernel @gate_up
  // CHECK-SAME:    #kf.mma<workgroup = [64, 64], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma>
  kf.kernel @gate_up(%x: tensor<64x4096xbf16>, %w: tensor<2x14336x4096xbf16, #kf.fragments>) -> tensor<64x14336xf32> {
    %0 = kf.matmul %x, %w glu(silu) wide : tensor<64x4096xbf16>, tensor<2x14336x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x14336xf32>
  }
  // CHECK-LABEL: kf.kernel @short
  // CHECK-SAME:    unit = wgmma>
  kf.kernel @short(%x: tensor<64x256xbf16>, %w: tensor<4096x256xbf16, #kf.fragments>) -> tensor<64x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<64x256xbf16>, tensor<4096x256xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x4096xf32>
  }
}

// -----

// There are no clusters.
module attributes {kf.target = #kf.cuda_target<chip = "sm_80", multiprocessors = 108, memory = 166912>} {
  // CHECK-LABEL: kf.kernel @o
  // CHECK-SAME:    unit = mma_sync>
  kf.kernel @o(%x: tensor<64x4096xbf16>, %w: tensor<4096x4096xbf16, #kf.fragments>) -> tensor<64x4096xf32> {
    %0 = kf.matmul %x, %w wide : tensor<64x4096xbf16>, tensor<4096x4096xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x4096xf32>
  }
}
