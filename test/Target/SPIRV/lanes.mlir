// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=LAVAPIPE
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 --kf-set-layouts --kf-compile | FileCheck %s --check-prefix=SPIRV

// Weights that are loaded are packed, and products of few rows are by threads
// that take them apart.
module {
  kf.program @p(%x: tensor<1x4096xf32>, %y: tensor<?x4096xf32>, %z: tensor<6x4096xf32>) -> (tensor<1x512xf32>, tensor<6x256xf32>, tensor<?x512xf32>) attributes {max_tokens = 512 : i64} {
    %w = kf.weight ["w"] : tensor<512x4096x!kf.quant<q4_k>>
    %v = kf.weight ["gate", "up"] {stacked} : tensor<2x256x4096xf16>
    %0 = kf.dispatch @one(%x, %w) : (tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>) -> tensor<1x512xf32>
    %1 = kf.dispatch @gated(%z, %v) : (tensor<6x4096xf32>, tensor<2x256x4096xf16>) -> tensor<6x256xf32>
    %2 = kf.dispatch @many(%y, %w) : (tensor<?x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>) -> tensor<?x512xf32>
    kf.yield %0, %1, %2 : tensor<1x512xf32>, tensor<6x256xf32>, tensor<?x512xf32>
  }

  // CHECK-LABEL: kf.kernel @one
  // CHECK-SAME:    tensor<512x4096x!kf.quant<q4_k>, #kf.fragments>
  // CHECK-SAME:    #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1>
  // LAVAPIPE-LABEL: kf.kernel @one
  // LAVAPIPE-SAME:    #kf.lanes<workgroup = [1, 16], warps = 8, tiles = 1>
  // Vectors of 16 bytes are read, and rows are in workgroup memory as vectors.
  // SPIRV-LABEL: spirv.module @one
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<1024 x vector<4xf32>>)>, Workgroup>
  // SPIRV-DAG:     bind(0, 1) : !spirv.ptr<!spirv.struct<(!spirv.rtarray<vector<4xi32>, stride=16> [0])>, StorageBuffer>
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.mlir.loop
  // SPIRV:         spirv.ControlBarrier
  // SPIRV:         spirv.Store "StorageBuffer"
  kf.kernel @one(%x: tensor<1x4096xf32>, %w: tensor<512x4096x!kf.quant<q4_k>>) -> tensor<1x512xf32> {
    %0 = kf.matmul %x, %w : tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>
    kf.yield %0 : tensor<1x512xf32>
  }

  // Gate and up are 8 columns each of a row block, and rows are divided.
  // CHECK-LABEL: kf.kernel @gated
  // CHECK-SAME:    #kf.lanes<workgroup = [3, 8], warps = 8, tiles = 4, reduction = 2048>
  kf.kernel @gated(%x: tensor<6x4096xf32>, %w: tensor<2x256x4096xf16>) -> tensor<6x256xf32> {
    %0 = kf.matmul %x, %w glu(silu) : tensor<6x4096xf32>, tensor<2x256x4096xf16>
    kf.yield %0 : tensor<6x256xf32>
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
