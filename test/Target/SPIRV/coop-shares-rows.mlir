// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-select-schedules --split-input-file | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-set-layouts --kf-compile --split-input-file | FileCheck %s --check-prefix=SPIRV

// Subgroups divide K of up to 64 rows. Codes are taken apart for 32 of them: many
// columns have wide tiles with few subgroups, others have narrow ones with more.
kf.program @p(%x: tensor<?x4096xf16>, %b: tensor<?x4096xbf16>) -> (tensor<?x14336xf32>, tensor<?x4096xf32>, tensor<?x6144xf32>) attributes {max_tokens = 64 : i64} {
  %g = kf.weight ["gate", "up"] {stacked} : tensor<2x14336x4096x!kf.quant<q4_k>>
  %w = kf.weight ["w"] : tensor<4096x4096x!kf.quant<q4_k>>
  %h = kf.weight ["h"] : tensor<6144x4096xbf16>
  %0 = kf.dispatch @gated(%x, %g) : (tensor<?x4096xf16>, tensor<2x14336x4096x!kf.quant<q4_k>>) -> tensor<?x14336xf32>
  %1 = kf.dispatch @narrow(%x, %w) : (tensor<?x4096xf16>, tensor<4096x4096x!kf.quant<q4_k>>) -> tensor<?x4096xf32>
  %2 = kf.dispatch @plain(%b, %h) : (tensor<?x4096xbf16>, tensor<6144x4096xbf16>) -> tensor<?x6144xf32>
  kf.yield %0, %1, %2 : tensor<?x14336xf32>, tensor<?x4096xf32>, tensor<?x6144xf32>
}
// CHECK-LABEL: kf.kernel @gated
// CHECK-SAME:    #kf.mma<workgroup = [32, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4>
// Numbers of blocks are rounded to f16 as the kernel asks for, and lanes that have
// a row in common have its scales from one another: of a word, two, with what is
// added to them.
// SPIRV-LABEL: spirv.module @gated Logical Vulkan requires
// SPIRV-SAME:    GroupNonUniformShuffle
// SPIRV-SAME:    RoundingModeRTE
// SPIRV:         spirv.GroupNonUniformShuffle <Subgroup> {{.*}} : f32, i32
// What the next pass stores is made while matrices of the one before are
// multiplied: behind the barrier that these wait for.
// SPIRV:         spirv.ControlBarrier <Subgroup>
// SPIRV:         spirv.ControlBarrier <Subgroup>
// SPIRV:         spirv.FConvert {{.*}} : vector<2xf32> to vector<2xf16>
// SPIRV:         spirv.KHR.CooperativeMatrixMulAdd
// SPIRV-NEXT:    spirv.KHR.CooperativeMatrixMulAdd
// SPIRV-NOT:     spirv.FConvert {{.*}} : vector<2xf32> to vector<2xf16>
// SPIRV:         spirv.ControlBarrier <Subgroup>
// SPIRV:         spirv.ExecutionMode @gated "RoundingModeRTE", 16
kf.kernel @gated(%x: tensor<?x4096xf16>, %w: tensor<2x14336x4096x!kf.quant<q4_k>>) -> tensor<?x14336xf32> {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x4096xf16>, tensor<2x14336x4096x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x14336xf32>
}
// CHECK-LABEL: kf.kernel @narrow
// CHECK-SAME:    #kf.mma<workgroup = [32, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
kf.kernel @narrow(%x: tensor<?x4096xf16>, %w: tensor<4096x4096x!kf.quant<q4_k>>) -> tensor<?x4096xf32> {
  %0 = kf.matmul %x, %w wide : tensor<?x4096xf16>, tensor<4096x4096x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x4096xf32>
}
// What has no codes is read once for all rows, and nothing of it is rounded.
// CHECK-LABEL: kf.kernel @plain
// CHECK-SAME:    #kf.mma<workgroup = [64, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_bf16, shares = 4>
// SPIRV-LABEL: spirv.module @plain
// SPIRV-NOT:     spirv.GroupNonUniformShuffle
// SPIRV-NOT:     "RoundingModeRTE"
// SPIRV:         spirv.ExecutionMode @plain "LocalSize"
kf.kernel @plain(%x: tensor<?x4096xbf16>, %w: tensor<6144x4096xbf16>) -> tensor<?x6144xf32> {
  %0 = kf.matmul %x, %w wide : tensor<?x4096xbf16>, tensor<6144x4096xbf16>
  kf.yield %0 : tensor<?x6144xf32>
}

// -----

// Of more rows, subgroups divide tiles, and where K is too short for several.
kf.program @q(%x: tensor<?x4096xf16>, %s: tensor<64x64xbf16>) -> (tensor<?x4096xf32>, tensor<64x4096xf32>) attributes {max_tokens = 65 : i64} {
  %w = kf.weight ["w"] : tensor<4096x4096x!kf.quant<q4_k>>
  %0 = kf.dispatch @more(%x, %w) : (tensor<?x4096xf16>, tensor<4096x4096x!kf.quant<q4_k>>) -> tensor<?x4096xf32>
  %v = kf.weight ["v"] : tensor<4096x64xbf16>
  %1 = kf.dispatch @short(%s, %v) : (tensor<64x64xbf16>, tensor<4096x64xbf16>) -> tensor<64x4096xf32>
  kf.yield %0, %1 : tensor<?x4096xf32>, tensor<64x4096xf32>
}
// CHECK-LABEL: kf.kernel @more
// CHECK-SAME:    #kf.mma<{{.*}}, unit = coop_f16>
kf.kernel @more(%x: tensor<?x4096xf16>, %w: tensor<4096x4096x!kf.quant<q4_k>>) -> tensor<?x4096xf32> {
  %0 = kf.matmul %x, %w wide : tensor<?x4096xf16>, tensor<4096x4096x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x4096xf32>
}
// CHECK-LABEL: kf.kernel @short
// CHECK-SAME:    #kf.mma<workgroup = [32, 64], warps = [1, 2], reduction = 32, stages = 2, unit = coop_bf16>
kf.kernel @short(%x: tensor<64x64xbf16>, %w: tensor<4096x64xbf16>) -> tensor<64x4096xf32> {
  %0 = kf.matmul %x, %w wide : tensor<64x64xbf16>, tensor<4096x64xbf16>
  kf.yield %0 : tensor<64x4096xf32>
}
