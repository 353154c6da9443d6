// RUN: kf-opt %s --kf-set-target=target=vulkan:h200 --kf-print-schedule-candidates -o /dev/null | FileCheck %s

// Where the default has all of K, others divide it, and threads may be faster.
// CHECK-LABEL: kernel @short
// CHECK-DAG:     #kf.mma<workgroup = [16, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16> (default)
// CHECK-DAG:     #kf.mma<workgroup = [16, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 2>
// CHECK-DAG:     #kf.lanes
kf.kernel @short(%x: tensor<16x64xf16>, %w: tensor<96x64xf16, #kf.fragments>) -> tensor<16x96xf32> {
  %0 = kf.matmul %x, %w wide : tensor<16x64xf16>, tensor<96x64xf16, #kf.fragments>
  kf.yield %0 : tensor<16x96xf32>
}

// Up to 64 rows, subgroups may divide K of each tile's height, which threads do not.
// CHECK-LABEL: kernel @rows
// CHECK-NOT:     #kf.lanes
// CHECK-DAG:     #kf.mma<workgroup = [64, 16], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 4> (default)
// CHECK-DAG:     #kf.mma<workgroup = [32, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 8>
// CHECK-DAG:     #kf.mma<workgroup = [64, 32], warps = [1, 1], reduction = 32, stages = 2, unit = coop_f16, shares = 2>
kf.kernel @rows(%x: tensor<64x1024xf16>, %w: tensor<96x1024xf16, #kf.fragments>) -> tensor<64x96xf32> {
  %0 = kf.matmul %x, %w wide : tensor<64x1024xf16>, tensor<96x1024xf16, #kf.fragments>
  kf.yield %0 : tensor<64x96xf32>
}

// Many rows are not for either.
// CHECK-LABEL: kernel @many
// CHECK-NOT:     shares
// CHECK-NOT:     #kf.lanes
kf.kernel @many(%x: tensor<512x1024xf16>, %w: tensor<96x1024xf16, #kf.fragments>) -> tensor<512x96xf32> {
  %0 = kf.matmul %x, %w wide : tensor<512x1024xf16>, tensor<96x1024xf16, #kf.fragments>
  kf.yield %0 : tensor<512x96xf32>
}
