// RUN: kf-opt %s -split-input-file --kf-select-schedules | FileCheck %s

// A workgroup's part of the heads divides them.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @twenty
  // CHECK-SAME:    #kf.simt<workgroup = [1, 5, 0, 0]
  kf.kernel @twenty(%x: tensor<?x20x512xf32>, %e: tensor<?x20xi32>, %w: tensor<1x20x128x512xbf16>) -> tensor<?x20x128xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x20x512xf32>, tensor<?x20xi32>, tensor<1x20x128x512xbf16>
    kf.yield %0 : tensor<?x20x128xf32>
  }
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.simt<workgroup = [1, 43, 0, 0]
  kf.kernel @many(%x: tensor<?x129x8xf32>, %e: tensor<?x129xi32>, %w: tensor<1x129x12x8xbf16>) -> tensor<?x129x12xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x129x8xf32>, tensor<?x129xi32>, tensor<1x129x12x8xbf16>
    kf.yield %0 : tensor<?x129x12xf32>
  }
  // Wide ones have workgroups of their own.
  // CHECK-LABEL: kf.kernel @wide
  // CHECK-SAME:    #kf.simt<workgroup = [1, 1, 1024, 0]
  kf.kernel @wide(%x: tensor<?x12x64xf32>, %e: tensor<?x12xi32>, %w: tensor<1x12x1536x64xbf16>) -> tensor<?x12x1536xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x12x64xf32>, tensor<?x12xi32>, tensor<1x12x1536x64xbf16>
    kf.yield %0 : tensor<?x12x1536xf32>
  }
}

// -----

// Weights in the order of matrix units are multiplied by these: a place of a
// token at a time, with fewer warps where K has three tiles; or rows of the same
// expert together, with all of K to a warp.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @one
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, 16], warps = 8, tiles = 1, stages = 3, unit = mma_sync, rows = split, held = shared>
  kf.kernel @one(%x: tensor<1x2048xf32>, %e: tensor<1x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x2048xf32>, tensor<1x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<1x8x768xf32>
  }
  // CHECK-LABEL: kf.kernel @one_down
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, 48], warps = 3, tiles = 1, stages = 3, unit = mma_sync, rows = split, held = shared>
  kf.kernel @one_down(%x: tensor<1x8x768xf32>, %e: tensor<1x8xi32>, %w: tensor<1x128x2048x768x!kf.quant<q4_k>, #kf.fragments>) -> tensor<1x8x2048xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x8x768xf32>, tensor<1x8xi32>, tensor<1x128x2048x768x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<1x8x2048xf32>
  }
  // CHECK-LABEL: kf.kernel @few
  // CHECK-SAME:    #kf.stream<workgroup = [4, 1, 64], warps = 8, tiles = 1, stages = 3, unit = mma_sync, rows = split, held = shared>
  kf.kernel @few(%x: tensor<16x2048xf32>, %e: tensor<16x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>) -> tensor<16x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<16x2048xf32>, tensor<16x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<16x8x768xf32>
  }
  // Beside codes they are rounded, as rows of other products; beside floats not.
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.stream<workgroup = [32, 1, 128], warps = 16, tiles = 1, stages = {{[23]}}, unit = mma_sync, rows = rounded, held = shared, block_warps = 16, reduction = {{[0-9]+}}>
  kf.kernel @many(%x: tensor<2048x2048xf32>, %e: tensor<2048x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2048x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<2048x2048xf32>, tensor<2048x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<2048x8x768xf32>
  }
  // A short K is whole: of two parts of 512, most of the second would be past
  // its end.
  // CHECK-LABEL: kf.kernel @many_down
  // CHECK-SAME:    #kf.stream<workgroup = [32, 1, {{[0-9]+}}], {{.*}} rows = rounded, held = shared, {{.*}}reduction = 768>
  kf.kernel @many_down(%x: tensor<2048x8x768xf32>, %e: tensor<2048x8xi32>, %w: tensor<1x128x2048x768x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2048x8x2048xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2048x8x768xf32>, tensor<2048x8xi32>, tensor<1x128x2048x768x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<2048x8x2048xf32>
  }
  // A router's rows go in tiles of 16; with more columns than the nearer cache
  // gives again and again, threads multiply them.
  // CHECK-LABEL: kf.kernel @router
  // CHECK-SAME:    #kf.stream<workgroup = [16, {{[0-9]+}}], {{.*}} unit = tf32_pairs, rows = f32, held = shared
  kf.kernel @router(%x: tensor<?x2048xf32>, %w: tensor<128x2048xf32, #kf.fragments>) -> tensor<?x128xf32> {
    %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<128x2048xf32, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
  // CHECK-LABEL: kf.kernel @wide_router
  // CHECK-SAME:    #kf.simt<
  kf.kernel @wide_router(%x: tensor<?x2048xf32>, %w: tensor<1024x2048xf32, #kf.fragments>) -> tensor<?x1024xf32> {
    %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<1024x2048xf32, #kf.fragments>
    kf.yield %0 : tensor<?x1024xf32>
  }
  // CHECK-LABEL: kf.kernel @many_bf16
  // CHECK-SAME:    #kf.stream<workgroup = [16, 1, 128], warps = 8, tiles = 4, stages = {{[23]}}, unit = mma_sync, rows = split, held = shared, block_warps = 8, blocks = 2, reduction = {{[0-9]+}}>
  kf.kernel @many_bf16(%x: tensor<2048x2048xf32>, %e: tensor<2048x8xi32>, %w: tensor<2x128x768x2048xbf16, #kf.fragments>) -> tensor<2048x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<2048x2048xf32>, tensor<2048x8xi32>, tensor<2x128x768x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x8x768xf32>
  }
}

// -----

// Experts of gpt-oss: codes that are floats, with a bias and a bounded gate, of
// rows that are no multiple of a tile's.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @gate_1(
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, {{[0-9]+}}], {{.*}} rows = split, held = shared
  kf.kernel @gate_1(%x: tensor<1x2880xf32>, %e: tensor<1x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, %b: tensor<2x32x2880xf32>) -> tensor<1x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<1x2880xf32>, tensor<1x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, tensor<2x32x2880xf32>
    kf.yield %0 : tensor<1x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @gate_16(
  // CHECK-SAME:    #kf.stream<workgroup = [4, 1, {{[0-9]+}}], {{.*}} rows = split, held = shared
  kf.kernel @gate_16(%x: tensor<16x2880xf32>, %e: tensor<16x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, %b: tensor<2x32x2880xf32>) -> tensor<16x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<16x2880xf32>, tensor<16x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, tensor<2x32x2880xf32>
    kf.yield %0 : tensor<16x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @gate_64(
  // CHECK-SAME:    #kf.stream<workgroup = [16, 1, {{[0-9]+}}], {{.*}} rows = rounded, held = shared
  kf.kernel @gate_64(%x: tensor<64x2880xf32>, %e: tensor<64x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, %b: tensor<2x32x2880xf32>) -> tensor<64x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<64x2880xf32>, tensor<64x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, tensor<2x32x2880xf32>
    kf.yield %0 : tensor<64x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @gate_512(
  // CHECK-SAME:    #kf.stream<workgroup = [32, 1, {{[0-9]+}}], {{.*}} rows = rounded, held = shared
  kf.kernel @gate_512(%x: tensor<512x2880xf32>, %e: tensor<512x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, %b: tensor<2x32x2880xf32>) -> tensor<512x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<512x2880xf32>, tensor<512x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, tensor<2x32x2880xf32>
    kf.yield %0 : tensor<512x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @down_1(
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, {{[0-9]+}}], {{.*}} rows = split, held = shared
  kf.kernel @down_1(%x: tensor<1x4x2880xf32>, %e: tensor<1x4xi32>, %w: tensor<1x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, %b: tensor<1x32x2880xf32>) -> tensor<1x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) : tensor<1x4x2880xf32>, tensor<1x4xi32>, tensor<1x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>, tensor<1x32x2880xf32>
    kf.yield %0 : tensor<1x4x2880xf32>
  }
}

// -----

// Adapters: A has so few lines that each of a few rows has a workgroup, whose
// warps divide K, with all of x, whatever K is; and so has B, whose K is read at
// once, two row blocks to a warp. Of many rows, some go together.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @a_8(
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, 16], warps = 16, tiles = 4, stages = 4, unit = mma_sync, rows = split, held = shared>
  kf.kernel @a_8(%x: tensor<8x14336xf32>, %e: tensor<8x1xi32>, %w: tensor<1x9x16x14336xbf16, #kf.fragments>) -> tensor<8x1x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<8x14336xf32>, tensor<8x1xi32>, tensor<1x9x16x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<8x1x16xf32>
  }
  // CHECK-LABEL: kf.kernel @a_2048(
  // CHECK-SAME:    #kf.stream<workgroup = [2, 1, 16], warps = 16, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared>
  kf.kernel @a_2048(%x: tensor<2048x14336xf32>, %e: tensor<2048x1xi32>, %w: tensor<1x9x16x14336xbf16, #kf.fragments>) -> tensor<2048x1x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2048x14336xf32>, tensor<2048x1xi32>, tensor<1x9x16x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x1x16xf32>
  }
  // CHECK-LABEL: kf.kernel @b_8(
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, 128], warps = 4, tiles = 4, stages = 3, unit = mma_sync, rows = split, held = shared, block_warps = 4, blocks = 2, reduction = 64>
  kf.kernel @b_8(%x: tensor<8x16xf32>, %e: tensor<8x1xi32>, %w: tensor<1x9x4096x16xbf16, #kf.fragments>) -> tensor<8x1x4096xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<8x16xf32>, tensor<8x1xi32>, tensor<1x9x4096x16xbf16, #kf.fragments>
    kf.yield %0 : tensor<8x1x4096xf32>
  }
  // CHECK-LABEL: kf.kernel @b_2048(
  // CHECK-SAME:    #kf.stream<workgroup = [16, 1, 256], warps = 8, tiles = 4, {{.*}}, block_warps = 8, blocks = 2, reduction = 64>
  kf.kernel @b_2048(%x: tensor<2048x16xf32>, %e: tensor<2048x1xi32>, %w: tensor<1x9x4096x16xbf16, #kf.fragments>) -> tensor<2048x1x4096xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2048x16xf32>, tensor<2048x1xi32>, tensor<1x9x4096x16xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x1x4096xf32>
  }
}

// -----

// With less memory, fewer warps have all of K, rather than one a part of it. An A
// of many lines is divided as other experts are where rows are many, and so are
// experts of models, however few lines a rank has of them.
module attributes {kf.target = #kf.cuda_target<chip = "sm_89", multiprocessors = 128, memory = 101376>} {
  // CHECK-LABEL: kf.kernel @a_1_small(
  // CHECK-SAME:    #kf.stream<workgroup = [1, 1, 16], warps = 8,
  kf.kernel @a_1_small(%x: tensor<1x14336xf32>, %e: tensor<1x1xi32>, %w: tensor<1x9x16x14336xbf16, #kf.fragments>) -> tensor<1x1x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x14336xf32>, tensor<1x1xi32>, tensor<1x9x16x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<1x1x16xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @a_2048_wide(
  // CHECK-SAME:    #kf.stream<workgroup = [16, 1, 256],
  kf.kernel @a_2048_wide(%x: tensor<2048x14336xf32>, %e: tensor<2048x1xi32>, %w: tensor<1x9x256x14336xbf16, #kf.fragments>) -> tensor<2048x1x256xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2048x14336xf32>, tensor<2048x1xi32>, tensor<1x9x256x14336xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x1x256xf32>
  }
  // CHECK-LABEL: kf.kernel @b_2048_narrow(
  // CHECK-SAME:    #kf.stream<workgroup = [2, 1, 256], warps = 8,
  kf.kernel @b_2048_narrow(%x: tensor<2048x16xf32>, %e: tensor<2048x1xi32>, %w: tensor<1x9x256x16xbf16, #kf.fragments>) -> tensor<2048x1x256xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2048x16xf32>, tensor<2048x1xi32>, tensor<1x9x256x16xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x1x256xf32>
  }
  // CHECK-LABEL: kf.kernel @part_of_experts(
  // CHECK-SAME:    #kf.stream<workgroup = [16, 1, 96], warps = 6,
  kf.kernel @part_of_experts(%x: tensor<2048x2048xf32>, %e: tensor<2048x8xi32>, %w: tensor<2x128x96x2048xbf16, #kf.fragments>) -> tensor<2048x8x96xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<2048x2048xf32>, tensor<2048x8xi32>, tensor<2x128x96x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x8x96xf32>
  }
}

// -----

// Of a prompt for whose tiles there are not workgroups enough, none has more row
// blocks than there are: warps would have none.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  kf.program @prompt(%x: tensor<?x2048xf32>) -> tensor<?x128xf32> attributes {max_tokens = 8192 : i64} {
    %w = kf.weight ["w"] : tensor<128x2048xf32, #kf.fragments>
    %0 = kf.dispatch @router(%x, %w) : (tensor<?x2048xf32>, tensor<128x2048xf32, #kf.fragments>) -> tensor<?x128xf32>
    kf.yield %0 : tensor<?x128xf32>
  }
  // CHECK-LABEL: kf.kernel @router
  // CHECK-SAME:    #kf.stream<workgroup = [16, 64], {{.*}} block_warps = 2, blocks = 2
  kf.kernel @router(%x: tensor<?x2048xf32>, %w: tensor<128x2048xf32, #kf.fragments>) -> tensor<?x128xf32> {
    %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<128x2048xf32, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
}
