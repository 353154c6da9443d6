// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=LAVAPIPE
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 --kf-set-layouts --kf-compile | FileCheck %s --check-prefix=SPIRV

// Weights that are loaded are packed, and products of few rows are by threads
// that take them apart.
module {
  kf.program @p(%x: tensor<1x4096xf32>, %y: tensor<?x4096xf32>, %z: tensor<6x4096xf32>, %s: tensor<6x1024xf32>) -> (tensor<1x512xf32>, tensor<6x256xf32>, tensor<?x512xf32>, tensor<6x14336xf32>, tensor<6x96xf32>, tensor<1x512xf32>) attributes {max_tokens = 512 : i64} {
    %w = kf.weight ["w"] : tensor<512x4096x!kf.quant<q4_k>>
    %v = kf.weight ["gate", "up"] {stacked} : tensor<2x256x4096xf16>
    %0 = kf.dispatch @one(%x, %w) : (tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>) -> tensor<1x512xf32>
    %1 = kf.dispatch @gated(%z, %v) : (tensor<6x4096xf32>, tensor<2x256x4096xf16>) -> tensor<6x256xf32>
    %2 = kf.dispatch @many(%y, %w) : (tensor<?x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>) -> tensor<?x512xf32>
    %u = kf.weight ["u"] : tensor<14336x4096x!kf.quant<q2_k>>
    %3 = kf.dispatch @wide(%z, %u) : (tensor<6x4096xf32>, tensor<14336x4096x!kf.quant<q2_k>>) -> tensor<6x14336xf32>
    %t = kf.weight ["t"] : tensor<96x1024x!kf.quant<q2_k>>
    %4 = kf.dispatch @rounds(%s, %t) : (tensor<6x1024xf32>, tensor<96x1024x!kf.quant<q2_k>>) -> tensor<6x96xf32>
    %r = kf.weight ["r"] : tensor<512x4096x!kf.quant<q6_k>>
    %5 = kf.dispatch @signed(%x, %r) : (tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q6_k>>) -> tensor<1x512xf32>
    kf.yield %0, %1, %2, %3, %4, %5 : tensor<1x512xf32>, tensor<6x256xf32>, tensor<?x512xf32>, tensor<6x14336xf32>, tensor<6x96xf32>, tensor<1x512xf32>
  }

  // CHECK-LABEL: kf.kernel @one
  // CHECK-SAME:    tensor<512x4096x!kf.quant<q4_k>, #kf.fragments>
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1, codes = halves>
  // LAVAPIPE-LABEL: kf.kernel @one
  // LAVAPIPE-SAME:    #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1>
  // Vectors of 16 bytes are read, before rows are staged, which are in workgroup
  // memory as vectors. A mask leaves two codes, each of which is widened. Codes in
  // the upper bytes of halves are moved down by one shift.
  // SPIRV-LABEL: spirv.module @one
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<1024 x vector<4xf32>>)>, Workgroup>
  // SPIRV-DAG:     bind(0, 1) : !spirv.ptr<!spirv.struct<(!spirv.rtarray<vector<4xi32>, stride=16> [0])>, StorageBuffer>
  // SPIRV:         spirv.Constant 983055 : i32
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : vector<4xi32>
  // SPIRV:         spirv.Store "Workgroup"
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.mlir.loop
  // SPIRV:         spirv.BitwiseAnd %{{.*}}, %cst983055_i32
  // SPIRV-NEXT:    spirv.Bitcast %{{.*}} : i32 to vector<2xf16>
  // SPIRV:         spirv.FConvert %{{.*}} : f16 to f32
  // SPIRV:         [[MOVED:%.*]] = spirv.ShiftRightLogical %{{.*}}, %cst8_i32
  // SPIRV:         spirv.BitwiseAnd [[MOVED]], %cst983055_i32
  // SPIRV:         spirv.BitwiseAnd [[MOVED]], %cst15728880_i32
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.Store "StorageBuffer"
  kf.kernel @one(%x: tensor<1x4096xf32>, %w: tensor<512x4096x!kf.quant<q4_k>>) -> tensor<1x512xf32> {
    %0 = kf.matmul %x, %w : tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>
    kf.yield %0 : tensor<1x512xf32>
  }

  // Gate and up are 8 columns each of a row block, and rows are divided.
  // CHECK-LABEL: kf.kernel @gated
  // CHECK-SAME:    #kf.lanes<workgroup = [3, 8], warps = 8, tiles = 8, reduction = 2048>
  kf.kernel @gated(%x: tensor<6x4096xf32>, %w: tensor<2x256x4096xf16>) -> tensor<6x256xf32> {
    %0 = kf.matmul %x, %w glu(silu) : tensor<6x4096xf32>, tensor<2x256x4096xf16>
    kf.yield %0 : tensor<6x256xf32>
  }

  // Where multiprocessors have many row blocks each, workgroups take some one
  // after the other, with the rows that they have brought to workgroup memory.
  // CHECK-LABEL: kf.kernel @wide
  // CHECK-SAME:    #kf.lanes<workgroup = [3, 112], warps = 8, tiles = 1, reduction = 2048, rounds = 7, codes = halves>
  // LAVAPIPE-LABEL: kf.kernel @wide
  // LAVAPIPE-NOT:   rounds
  // LAVAPIPE-LABEL: kf.kernel @rounds
  kf.kernel @wide(%x: tensor<6x4096xf32>, %w: tensor<14336x4096x!kf.quant<q2_k>>) -> tensor<6x14336xf32> {
    %0 = kf.matmul %x, %w : tensor<6x4096xf32>, tensor<14336x4096x!kf.quant<q2_k>>
    kf.yield %0 : tensor<6x14336xf32>
  }

  // In the loop of rounds, of which each warp has one step, the weight of the next
  // one is read before sums are exchanged, which takes one barrier.
  // SPIRV-LABEL: spirv.module @rounds
  // SPIRV:         spirv.Store "Workgroup" %{{.*}} : vector<4xf32>
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.mlir.loop
  // SPIRV-NOT:     spirv.mlir.merge
  // SPIRV:         spirv.Load "StorageBuffer" %{{.*}} : vector<4xi32>
  // SPIRV-NOT:     spirv.mlir.merge
  // SPIRV:         spirv.Store "Workgroup"
  // SPIRV:         spirv.ControlBarrier
  // SPIRV-NOT:     spirv.ControlBarrier
  // SPIRV:         spirv.Return
  kf.kernel @rounds(%x: tensor<6x1024xf32>, %w: tensor<96x1024x!kf.quant<q2_k>>) -> tensor<6x96xf32>
      attributes {schedule = #kf.lanes<workgroup = [2, 48], warps = 8, tiles = 1, rounds = 3>} {
    %0 = kf.matmul %x, %w : tensor<6x1024xf32>, tensor<96x1024x!kf.quant<q2_k>>
    kf.yield %0 : tensor<6x96xf32>
  }

  // What signed codes are above is subtracted from both of a word, which is exact
  // where subnormal numbers of f16 are kept and nothing is contracted.
  // CHECK-LABEL: kf.kernel @signed
  // CHECK-SAME:    codes = halves
  // SPIRV-LABEL: spirv.module @signed
  // SPIRV:         spirv.Bitcast %{{.*}} : i32 to vector<2xf16>
  // SPIRV-NEXT:    spirv.FSub %{{.*}}, %cst_vec_2xf16{{.*}} {no_contraction} : vector<2xf16>
  // SPIRV:         spirv.FConvert %{{.*}} : f16 to f32
  // SPIRV:         spirv.ExecutionMode @signed "DenormPreserve", 16
  kf.kernel @signed(%x: tensor<1x4096xf32>, %w: tensor<512x4096x!kf.quant<q6_k>>) -> tensor<1x512xf32> {
    %0 = kf.matmul %x, %w : tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q6_k>>
    kf.yield %0 : tensor<1x512xf32>
  }

  // Many rows have spans of 32 columns of both operands in workgroup memory.
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.simt<workgroup = [32, 32], threads = [16, 16, 1], tile = [2, 2], reduction = 32>
  // SPIRV-LABEL: spirv.module @many
  // SPIRV:         !spirv.rtarray<vector<4xi32>, stride=16>
  kf.kernel @many(%x: tensor<?x4096xf32>, %w: tensor<512x4096x!kf.quant<q4_k>>) -> tensor<?x512xf32> {
    %0 = kf.matmul %x, %w : tensor<?x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>
    kf.yield %0 : tensor<?x512xf32>
  }
}
