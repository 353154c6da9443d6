// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 256, memory = 16384, subgroup = 32, shuffle = true, types = [f16, i16], matrices = [f16, bf16], multiprocessors = 132>"' --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=SMALL
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 1024, memory = 32768, subgroup = 64, shuffle = true, types = [f16, i16], matrices = [f16, bf16], multiprocessors = 96>"' --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=WIDE
// RUN: kf-opt %s --kf-set-target=target=vulkan:lavapipe --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=PLAIN
// RUN: kf-opt %s --kf-set-target='target="#kf.vulkan_target<threads = 1024, memory = 32768, subgroup = 64, types = [f16, i16], matrices = [f16, bf16], multiprocessors = 96>"' --kf-set-layouts --kf-select-schedules | FileCheck %s --check-prefix=PLAIN
// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile | FileCheck %s --check-prefix=SPIRV

// Products of few rounded rows are on cooperative matrices, whose subgroups divide
// K, where these multiply their type.
module {
  kf.program @p(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %b: tensor<?x4096xbf16>, %z: tensor<4x4096xf32>, %s: tensor<16x64xbf16>) -> (tensor<?x6144xf32>, tensor<?x14336xf32>, tensor<?x1024xf32>, tensor<4x512xf32>, tensor<16x96xf32>) attributes {max_tokens = 16 : i64} {
    %w = kf.weight ["w"] : tensor<6144x4096x!kf.quant<q4_k>>
    %g = kf.weight ["gate", "up"] {stacked} : tensor<2x14336x4096xf16>
    %h = kf.weight ["h"] : tensor<1024x4096xbf16>
    %f = kf.weight ["f"] : tensor<512x4096xbf16>
    %i = kf.weight ["i"] : tensor<96x64xbf16>
    %0 = kf.dispatch @blocks(%x, %y, %w) : (tensor<?x4096xf16>, tensor<?x4096xf32>, tensor<6144x4096x!kf.quant<q4_k>>) -> tensor<?x6144xf32>
    %1 = kf.dispatch @gated(%x, %y, %g) : (tensor<?x4096xf16>, tensor<?x4096xf32>, tensor<2x14336x4096xf16>) -> tensor<?x14336xf32>
    %2 = kf.dispatch @narrow(%b, %h) : (tensor<?x4096xbf16>, tensor<1024x4096xbf16>) -> tensor<?x1024xf32>
    %3 = kf.dispatch @four(%z, %f) : (tensor<4x4096xf32>, tensor<512x4096xbf16>) -> tensor<4x512xf32>
    %4 = kf.dispatch @short(%s, %i) : (tensor<16x64xbf16>, tensor<96x64xbf16>) -> tensor<16x96xf32>
    kf.yield %0, %1, %2, %3, %4 : tensor<?x6144xf32>, tensor<?x14336xf32>, tensor<?x1024xf32>, tensor<4x512xf32>, tensor<16x96xf32>
  }

  // Codes are taken apart by twice as many subgroups. Little workgroup memory, and
  // few threads, are for fewer; subgroups of 64 threads have 32 lines at a time.
  // Those that exchange no registers have no products.
  // CHECK-LABEL: kf.kernel @blocks
  // CHECK-SAME:    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 16>
  // SMALL-LABEL: kf.kernel @blocks
  // SMALL-SAME:    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4>
  // WIDE-LABEL: kf.kernel @blocks
  // WIDE-SAME:    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
  // PLAIN-LABEL: kf.kernel @blocks
  // PLAIN-SAME:    #kf.lanes
  // SPIRV-LABEL: spirv.module @blocks Logical Vulkan
  // Each share has 16 rows, and 16 lines at a time, which its sums replace.
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<1280 x vector<4xi32>>)>, Workgroup>
  // SPIRV-DAG:     !spirv.ptr<!spirv.struct<(!spirv.array<5120 x i32>)>, Workgroup>
  // Both passes of a step.
  // SPIRV:         spirv.ControlBarrier <Subgroup>, <Subgroup>, <AcquireRelease|WorkgroupMemory|MakeAvailable|MakeVisible>
  // SPIRV:         spirv.ControlBarrier <Subgroup>
  // SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
  // SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
  // SPIRV-NEXT:    spirv.ControlBarrier <Subgroup>
  // SPIRV-NOT:     CooperativeMatrixMulAdd
  // SPIRV:         spirv.ControlBarrier <Subgroup>
  // SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
  // SPIRV:         spirv.ControlBarrier <Workgroup>
  // SPIRV:         spirv.KHR.CooperativeMatrixStore {{.*}}, <RowMajor>, <NonPrivatePointer> : !spirv.ptr<i32, Workgroup>, !spirv.coopmatrix<16x16xf32, Subgroup, MatrixAcc>
  // SPIRV:         spirv.ControlBarrier <Workgroup>
  kf.kernel @blocks(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %w: tensor<6144x4096x!kf.quant<q4_k>>) -> tensor<?x6144xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x4096xf32>), %w wide : tensor<?x4096xf16>, tensor<6144x4096x!kf.quant<q4_k>>
    kf.yield %0 : tensor<?x6144xf32>
  }

  // Gate and up, of 16 lines each 8.
  // CHECK-LABEL: kf.kernel @gated
  // CHECK-SAME:    #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
  // WIDE-LABEL: kf.kernel @gated
  // WIDE-SAME:    #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
  kf.kernel @gated(%x: tensor<?x4096xf16>, %y: tensor<?x4096xf32>, %w: tensor<2x14336x4096xf16>) -> tensor<?x14336xf32> {
    %0 = kf.matmul %x outliers(%y : tensor<?x4096xf32>), %w glu(silu) wide : tensor<?x4096xf16>, tensor<2x14336x4096xf16>
    kf.yield %0 : tensor<?x14336xf32>
  }

  // Few columns are divided among more workgroups.
  // CHECK-LABEL: kf.kernel @narrow
  // CHECK-SAME:    #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16, shares = 8>
  // Subgroups of 64 threads have no fewer lines than they have tiles of.
  // WIDE-LABEL: kf.kernel @narrow
  // WIDE-SAME:    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16, shares = 8>
  kf.kernel @narrow(%x: tensor<?x4096xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<?x1024xf32> {
    %0 = kf.matmul %x, %w wide : tensor<?x4096xbf16>, tensor<1024x4096xbf16>
    kf.yield %0 : tensor<?x1024xf32>
  }

  // Four rows are multiplied by threads.
  // CHECK-LABEL: kf.kernel @four
  // CHECK-SAME:    #kf.lanes
  kf.kernel @four(%x: tensor<4x4096xf32>, %w: tensor<512x4096xbf16>) -> tensor<4x512xf32> {
    %0 = kf.matmul %x, %w : tensor<4x4096xf32>, tensor<512x4096xbf16>
    kf.yield %0 : tensor<4x512xf32>
  }

  // Where K is too short to be divided, one subgroup has all of it.
  // CHECK-LABEL: kf.kernel @short
  // CHECK-SAME:    #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16>
  // WIDE-LABEL: kf.kernel @short
  // WIDE-SAME:    #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16>
  kf.kernel @short(%x: tensor<16x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<16x96xf32> {
    %0 = kf.matmul %x, %w wide : tensor<16x64xbf16>, tensor<96x64xbf16>
    kf.yield %0 : tensor<16x96xf32>
  }
}
