// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:rdna3 --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=RDNA3
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 1024, memory = 32768, subgroup = 32, shuffle = true, types = [f16, i16], matrices = [f16, bf16], multiprocessors = 132>"' --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=SMALL
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=PLAIN
// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | FileCheck %s --check-prefix=SPIRV

// Products of many rounded rows are on cooperative matrices where subgroups
// multiply their type.
module {
  kf.program @p(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %b: tensor<?x4096xbf16>, %r: tensor<?x512xf32>, %s: tensor<?x65536xf32>) -> (tensor<?x512xf32>, tensor<?x256xf32>, tensor<?x512xf32>, tensor<?x65536xf32>) attributes {max_tokens = 512 : i64} {
    %w = kf.weight ["w"] : tensor<512x4096x!kf.quant<q4_k>>
    %g = kf.weight ["gate", "up"] {stacked} : tensor<2x256x4096xf16>
    %h = kf.weight ["h"] : tensor<512x4096xbf16>
    %l = kf.weight ["l"] : tensor<65536x4096xbf16>
    %0 = kf.dispatch @blocks(%x, %y, %w) : (tensor<?x4096xf16>, tensor<?x4096xf32>, tensor<512x4096x!kf.quant<q4_k>>) -> tensor<?x512xf32>
    %1 = kf.dispatch @gated(%x, %y, %g) : (tensor<?x4096xf16>, tensor<?x4096xf32>, tensor<2x256x4096xf16>) -> tensor<?x256xf32>
    %2 = kf.dispatch @residual(%b, %h, %r) : (tensor<?x4096xbf16>, tensor<512x4096xbf16>, tensor<?x512xf32>) -> tensor<?x512xf32>
    %3 = kf.dispatch @large(%b, %l, %s) : (tensor<?x4096xbf16>, tensor<65536x4096xbf16>, tensor<?x65536xf32>) -> tensor<?x65536xf32>
    kf.yield %0, %1, %2, %3 : tensor<?x512xf32>, tensor<?x256xf32>, tensor<?x512xf32>, tensor<?x65536xf32>
  }

  // CHECK-LABEL: kf.kernel @blocks
  // CHECK-SAME:    tensor<512x4096x!kf.quant<q4_k>, #kf.fragments>
  // CHECK-SAME:    #kf.mma<workgroup = [32, 64], warps = [1, 2], reduction = 32, stages = 2, unit = coop_f16>
  // RDNA3-LABEL: kf.kernel @blocks
  // RDNA3-SAME:    unit = coop_f16
  // PLAIN-LABEL: kf.kernel @blocks
  // PLAIN-SAME:    #kf.simt<workgroup = [32, 32], threads = [16, 16, 1], tile = [2, 2], reduction = 32>
  // SPIRV-LABEL: spirv.module @blocks Logical Vulkan
  // SPIRV-SAME:    #spirv.vce<v1.6
  // SPIRV-SAME:    CooperativeMatrixKHR
  // Rows and lines have 64 bytes and 16 of padding; sums are f32.
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<160 x vector<4xi32>>)>, Workgroup>
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<1280 x i32>)>, Workgroup>
  // SPIRV:         spirv.ControlBarrier <Workgroup>, <Workgroup>, <AcquireRelease|WorkgroupMemory|MakeAvailable|MakeVisible>
  // SPIRV:         spirv.Store "Workgroup" {{.*}} ["NonPrivatePointer"] : vector<4xi32>
  // SPIRV:         spirv.FConvert {{.*}} : vector<2xf32> to vector<2xf16>
  // SPIRV:         spirv.KHR.CooperativeMatrixLoad {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<vector<4xi32>, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixA>
  // SPIRV:         spirv.KHR.CooperativeMatrixLoad {{.*}}, <ColumnMajor>, <NonPrivatePointer> : !spirv.ptr<i32, Workgroup>, i32 -> !spirv.coopmatrix<16x16xf16, Subgroup, MatrixB>
  // SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
  // SPIRV:         spirv.KHR.CooperativeMatrixStore {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<f32, Workgroup>
  // What is not finite is looked for, and has the loop around all of it go on.
  // SPIRV:         spirv.AtomicOr <Workgroup> <None>
  kf.kernel @blocks(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %w: tensor<512x4096x!kf.quant<q4_k>>) -> tensor<?x512xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x4096xf32>), %w wide : tensor<?x4096xf16>, tensor<512x4096x!kf.quant<q4_k>>
    kf.yield %0 : tensor<?x512xf32>
  }

  // Of gate and up, 16 lines are 8 columns.
  // CHECK-LABEL: kf.kernel @gated
  // CHECK-SAME:    #kf.mma<workgroup = [32, 32], warps = [1, 2], reduction = 32, stages = 2, unit = coop_f16>
  // PLAIN-LABEL: kf.kernel @gated
  // PLAIN-SAME:    #kf.simt
  // SPIRV-LABEL: spirv.module @gated
  // SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
  kf.kernel @gated(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %w: tensor<2x256x4096xf16>) -> tensor<?x256xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x4096xf32>), %w glu(silu) wide : tensor<?x4096xf16>, tensor<2x256x4096xf16>
    kf.yield %0 : tensor<?x256xf32>
  }

  // Rows of bf16 have no outliers; RDNA3 multiplies f16 alone.
  // CHECK-LABEL: kf.kernel @residual
  // CHECK-SAME:    unit = coop_bf16
  // RDNA3-LABEL: kf.kernel @residual
  // RDNA3-SAME:    #kf.simt
  // SPIRV-LABEL: spirv.module @residual
  // SPIRV-SAME:    BFloat16CooperativeMatrixKHR
  // SPIRV-SAME:    SPV_KHR_bfloat16
  // SPIRV:         !spirv.coopmatrix<16x16xbf16, Subgroup, MatrixA>
  // SPIRV-NOT:     spirv.AtomicOr
  kf.kernel @residual(%x: tensor<?x4096xbf16>, %w: tensor<512x4096xbf16>, %r: tensor<?x512xf32>) -> tensor<?x512xf32> {
    %0 = kf.matmul %x, %w wide : tensor<?x4096xbf16>, tensor<512x4096xbf16>
    %1 = arith.addf %r, %0 : tensor<?x512xf32>
    kf.yield %1 : tensor<?x512xf32>
  }

  // Of many tiles, the largest; 32 KiB have no room for it.
  // CHECK-LABEL: kf.kernel @large
  // CHECK-SAME:    #kf.mma<workgroup = [128, 256], warps = [2, 4], reduction = 32, stages = 2, unit = coop_bf16>
  // SMALL-LABEL: kf.kernel @large
  // SMALL-SAME:    #kf.mma<workgroup = [64, 128], warps = [2, 2]
  // SPIRV-LABEL: spirv.module @large
  // Sums of 16 rows are in workgroup memory at a time.
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<4160 x f32>)>, Workgroup>
  // A thread has read what is added to eight elements before it stores one.
  // SPIRV:         spirv.KHR.CooperativeMatrixStore
  // SPIRV:         spirv.ControlBarrier
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Store "StorageBuffer"
  // SPIRV:         spirv.Load "StorageBuffer" {{.*}} : f32
  // SPIRV-NOT:     spirv.Load "StorageBuffer"
  // SPIRV-COUNT-8: spirv.Store "StorageBuffer" {{.*}} : f32
  kf.kernel @large(%x: tensor<?x4096xbf16>, %w: tensor<65536x4096xbf16>, %r: tensor<?x65536xf32>) -> tensor<?x65536xf32> {
    %0 = kf.matmul %x, %w wide : tensor<?x4096xbf16>, tensor<65536x4096xbf16>
    %1 = arith.addf %r, %0 : tensor<?x65536xf32>
    kf.yield %1 : tensor<?x65536xf32>
  }
}
