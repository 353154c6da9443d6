// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=LAVAPIPE
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=LEAST
// RUN: kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=16,memory=16384>" --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=NARROW
// RUN: kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=128,memory=4096,types=[f16,i16],multiprocessors=4>" --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=SMALL
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 --kf-set-layouts --kf-compile | FileCheck %s --check-prefix=SPIRV
// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-print-schedule-candidates=most=1000 -o /dev/null | FileCheck %s --check-prefix=OTHERS

// Weights of experts that are loaded are packed, and multiplied by threads that
// take them apart.
module {
  kf.program @p(%x: tensor<1x2048xf32>, %h: tensor<1x8x768xf32>, %e: tensor<1x8xi32>, %y: tensor<16x2048xf32>, %f: tensor<16x8xi32>, %z: tensor<512x2048xf32>, %g: tensor<512x8xi32>, %v: tensor<2x320xf32>, %i: tensor<2x4xi32>, %b: tensor<2x3x40xf32>) -> (tensor<1x8x768xf32>, tensor<1x8x2048xf32>, tensor<16x8x768xf32>, tensor<512x8x768xf32>, tensor<2x4x40xf32>) attributes {max_tokens = 512 : i64} {
    %w = kf.weight ["w"] : tensor<2x128x768x2048x!kf.quant<q4_k>>
    %d = kf.weight ["d"] : tensor<1x128x2048x768x!kf.quant<q4_k>>
    %m = kf.weight ["m"] : tensor<2x3x40x320x!kf.quant<mxfp4>>
    %0 = kf.dispatch @one(%x, %e, %w) : (tensor<1x2048xf32>, tensor<1x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<1x8x768xf32>
    %1 = kf.dispatch @down(%h, %e, %d) : (tensor<1x8x768xf32>, tensor<1x8xi32>, tensor<1x128x2048x768x!kf.quant<q4_k>>) -> tensor<1x8x2048xf32>
    %2 = kf.dispatch @few(%y, %f, %w) : (tensor<16x2048xf32>, tensor<16x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<16x8x768xf32>
    %3 = kf.dispatch @many(%z, %g, %w) : (tensor<512x2048xf32>, tensor<512x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<512x8x768xf32>
    %4 = kf.dispatch @codes(%v, %i, %m, %b) : (tensor<2x320xf32>, tensor<2x4xi32>, tensor<2x3x40x320x!kf.quant<mxfp4>>, tensor<2x3x40xf32>) -> tensor<2x4x40xf32>
    kf.yield %0, %1, %2, %3, %4 : tensor<1x8x768xf32>, tensor<1x8x2048xf32>, tensor<16x8x768xf32>, tensor<512x8x768xf32>, tensor<2x4x40xf32>
  }

  // Of one token, each place is by itself: where its weight begins follows from
  // the number of its expert, and nothing is looked for.
  // CHECK-LABEL: kf.kernel @one
  // CHECK-SAME:    tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 16], warps = 8, tiles = 1, rounds = 2, codes = halves>
  // LAVAPIPE-LABEL: kf.kernel @one
  // LAVAPIPE-SAME:   #kf.lanes<workgroup = [1, 1, 16], warps = 8, tiles = 1>
  // Where sums of rounds leave memory for no slice of K, there is one round.
  // SMALL-LABEL: kf.kernel @one
  // SMALL-SAME:    #kf.lanes<workgroup = [1, 1, 16], warps = 4, tiles = 1, block_warps = 2, reduction = 512, codes = halves>
  // SPIRV-LABEL: spirv.module @one
  // SPIRV:         spirv.GL.SMax
  // SPIRV:         [[EXPERT:%.*]] = spirv.GL.SMin
  // SPIRV-NOT:     spirv.ControlBarrier
  // SPIRV:         spirv.IMul [[EXPERT]], %cst96_i32
  // SPIRV-NOT:     spirv.ControlBarrier
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : vector<4xi32>
  // SPIRV:         spirv.BitwiseAnd %{{.*}}, %cst983055_i32
  // SPIRV:         spirv.Store "StorageBuffer"
  kf.kernel @one(%x: tensor<1x2048xf32>, %e: tensor<1x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<1x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x2048xf32>, tensor<1x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>
    kf.yield %0 : tensor<1x8x768xf32>
  }
  // Where K has three tiles, as many warps divide it, and twice as many the rest.
  // CHECK-LABEL: kf.kernel @down
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 32], warps = 6, tiles = 1, block_warps = 2, codes = halves>
  kf.kernel @down(%x: tensor<1x8x768xf32>, %e: tensor<1x8xi32>, %w: tensor<1x128x2048x768x!kf.quant<q4_k>>) -> tensor<1x8x2048xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x8x768xf32>, tensor<1x8xi32>, tensor<1x128x2048x768x!kf.quant<q4_k>>
    kf.yield %0 : tensor<1x8x2048xf32>
  }
  // Of one row for each expert, that is so, too.
  // CHECK-LABEL: kf.kernel @few
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 128], warps = 8, tiles = 1, rounds = 16, codes = halves>
  kf.kernel @few(%x: tensor<16x2048xf32>, %e: tensor<16x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<16x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<16x2048xf32>, tensor<16x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>
    kf.yield %0 : tensor<16x8x768xf32>
  }
  // Of many, numbers of experts come to workgroup memory, where threads count
  // those of a part, and list those that go together. These are multiplied one
  // group after the other.
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.lanes<workgroup = [4, 1, 192], warps = 8, tiles = 1, block_warps = 8, reduction = 1024, rounds = 3, codes = halves>
  // LAVAPIPE-LABEL: kf.kernel @many
  // LAVAPIPE-SAME:   #kf.lanes<workgroup = [4, 1, 128], warps = 8, tiles = 1, block_warps = 8, reduction = 704>
  // LEAST-LABEL: kf.kernel @many
  // LEAST-SAME:    #kf.lanes<workgroup = [4, 1, 64], warps = 4, tiles = 1, block_warps = 4, reduction = 128>
  // OTHERS-LABEL: kernel @many
  // OTHERS-DAG:    #kf.lanes<workgroup = [4, 1, 192], {{.*}}> (default)
  // OTHERS-DAG:    #kf.lanes<workgroup = [2, 1, {{.*}}
  // OTHERS-DAG:    #kf.lanes<workgroup = [1, 1, {{.*}}
  // OTHERS-LABEL: kernel @codes
  // SPIRV-LABEL: spirv.module @many
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<2048 x i32>)>, Workgroup>
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : i32
  // SPIRV:         spirv.Store "Workgroup" %{{.*}} : i32
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.mlir.loop
  // SPIRV:         spirv.Store "Workgroup" %{{.*}} : i32
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.mlir.loop
  // SPIRV:         spirv.mlir.selection
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : vector<4xi32>
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.Return
  kf.kernel @many(%x: tensor<512x2048xf32>, %e: tensor<512x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>>) -> tensor<512x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<512x2048xf32>, tensor<512x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>>
    kf.yield %0 : tensor<512x8x768xf32>
  }
  // Codes that are floats, with biases and a bounded gate, in f32. K has five
  // steps: no more warps divide it.
  // CHECK-LABEL: kf.kernel @codes
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 8], warps = 5, tiles = 1>
  // Workgroups with fewer threads than a warp have no such code.
  // NARROW-LABEL: kf.kernel @codes
  // NARROW-SAME:    schedule = #kf.simt<
  // SPIRV-LABEL: spirv.module @codes
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : vector<4xi32>
  // SPIRV:         spirv.GL.Exp
  kf.kernel @codes(%x: tensor<2x320xf32>, %e: tensor<2x4xi32>, %w: tensor<2x3x40x320x!kf.quant<mxfp4>>, %b: tensor<2x3x40xf32>) -> tensor<2x4x40xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w bias(%b) glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<2x320xf32>, tensor<2x4xi32>, tensor<2x3x40x320x!kf.quant<mxfp4>>, tensor<2x3x40xf32>
    kf.yield %0 : tensor<2x4x40xf32>
  }

  // Two warps divide K of such codes, whose steps are short, where there are
  // row blocks enough for the others.
  // CHECK-LABEL: kf.kernel @codes_one
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 32], warps = 8, tiles = 1, block_warps = 4>
  kf.kernel @codes_one(%x: tensor<1x2880xf32>, %e: tensor<1x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<1x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x2880xf32>, tensor<1x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>
    kf.yield %0 : tensor<1x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @codes_down
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 32], warps = 8, tiles = 1, block_warps = 2>
  kf.kernel @codes_down(%x: tensor<1x4x2880xf32>, %e: tensor<1x4xi32>, %w: tensor<1x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<1x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<1x4x2880xf32>, tensor<1x4xi32>, tensor<1x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>
    kf.yield %0 : tensor<1x4x2880xf32>
  }
  // CHECK-LABEL: kf.kernel @codes_many
  // CHECK-SAME:    #kf.lanes<workgroup = [4, 1, 160], warps = 8, tiles = 1, block_warps = 4, reduction = 1024, rounds = 5>
  kf.kernel @codes_many(%x: tensor<512x2880xf32>, %e: tensor<512x4xi32>, %w: tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<512x4x2880xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<512x2880xf32>, tensor<512x4xi32>, tensor<2x32x2880x2880x!kf.quant<mxfp4>, #kf.fragments>
    kf.yield %0 : tensor<512x4x2880xf32>
  }

  // With 4096 experts of each token, workgroup memory has the numbers of two
  // tokens, but not of four; of 16384 not even those of two: each place is by
  // itself then.
  // CHECK-LABEL: kf.kernel @numbers
  // CHECK-SAME:    #kf.lanes<workgroup = [2, 1, 256],
  kf.kernel @numbers(%x: tensor<64x64xf32>, %e: tensor<64x4096xi32>, %w: tensor<1x4096x16x64xbf16, #kf.fragments>) -> tensor<64x4096x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<64x64xf32>, tensor<64x4096xi32>, tensor<1x4096x16x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x4096x16xf32>
  }
  // CHECK-LABEL: kf.kernel @more_numbers
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 1, 256],
  kf.kernel @more_numbers(%x: tensor<64x64xf32>, %e: tensor<64x16384xi32>, %w: tensor<1x4096x16x64xbf16, #kf.fragments>) -> tensor<64x16384x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<64x64xf32>, tensor<64x16384xi32>, tensor<1x4096x16x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<64x16384x16xf32>
  }
  // A dimension of the grid has places, another one groups of tokens: where
  // these are more than devices promise, schedules take more of them at a time.
  // CHECK-LABEL: kf.kernel @places
  // CHECK-SAME:    schedule = #kf.simt<
  // SPIRV-LABEL: spirv.module @places
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : i8
  kf.kernel @places(%x: tensor<2x256xf32>, %e: tensor<2x40000xi32>, %w: tensor<1x8x16x256x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2x40000x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<2x256xf32>, tensor<2x40000xi32>, tensor<1x8x16x256x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<2x40000x16xf32>
  }
  // CHECK-LABEL: kf.kernel @tokens
  // CHECK-SAME:    schedule = #kf.simt<
  kf.kernel @tokens(%x: tensor<300000x64xf32>, %e: tensor<300000x1xi32>, %w: tensor<1x4x16x64xbf16, #kf.fragments>) -> tensor<300000x1x16xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<300000x64xf32>, tensor<300000x1xi32>, tensor<1x4x16x64xbf16, #kf.fragments>
    kf.yield %0 : tensor<300000x1x16xf32>
  }
}
