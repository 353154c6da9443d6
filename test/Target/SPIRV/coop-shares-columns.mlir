// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-compile | FileCheck %s

// Subgroups without columns of K have zeros of the weight: an infinity of the last
// columns would make a NaN with their rows, which are zeros.
// CHECK-LABEL: spirv.module @floats
// CHECK:         spirv.Load "StorageBuffer"
// CHECK-NOT:     spirv.mlir.loop
// CHECK-COUNT-2: spirv.Select {{.*}} : i1, vector<4xi32>
// CHECK:         spirv.mlir.loop
kf.kernel @floats(%x: tensor<?x96xf16>, %w: tensor<64x96xf16, #kf.fragments>) -> tensor<?x64xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x96xf16>, tensor<64x96xf16, #kf.fragments>
  kf.yield %0 : tensor<?x64xf32>
}

// CHECK-LABEL: spirv.module @blocks
// CHECK:         spirv.Load "StorageBuffer"
// CHECK-NOT:     spirv.mlir.loop
// CHECK:         spirv.Select {{.*}} : i1, vector<4xi32>
// CHECK:         spirv.mlir.loop
kf.kernel @blocks(%x: tensor<?x256xf16>, %w: tensor<64x256x!kf.quant<q4_k>, #kf.fragments>) -> tensor<?x64xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x256xf16>, tensor<64x256x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<?x64xf32>
}

// No zeros where each has as many.
// CHECK-LABEL: spirv.module @all
// CHECK-NOT:     spirv.Select {{.*}} : i1, vector<4xi32>
// CHECK:         spirv.KHR.CooperativeMatrixMulAdd
kf.kernel @all(%x: tensor<?x256xf16>, %w: tensor<64x256xf16, #kf.fragments>) -> tensor<?x64xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>} {
  %0 = kf.matmul %x, %w wide : tensor<?x256xf16>, tensor<64x256xf16, #kf.fragments>
  kf.yield %0 : tensor<?x64xf32>
}
