// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v4 workers=2" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null | FileCheck %s

// Rows of an expert at a time (32 of each, if all are chosen alike), heights of
// tiles, and columns; a workgroup has all experts.
// CHECK:     kernel @many, up to 512 rows: {{[0-9]+}} candidates
// CHECK-DAG: #kf.vector<workgroup = [512, 0, 96], tile = [7, 32, 133], lanes = 16, unroll = 8, panels = unpacked> (default)
// CHECK-DAG: #kf.vector<workgroup = [512, 0, 96], tile = [7, 32, 70], lanes = 16, unroll = 8, panels = unpacked>
// CHECK-DAG: #kf.vector<workgroup = [512, 0, 96], tile = [7, 32, 266], lanes = 16, unroll = 8, panels = unpacked>
// CHECK-DAG: #kf.vector<workgroup = [512, 0, 384], tile = [4, 32, 136], lanes = 16, unroll = 8, panels = unpacked>
// CHECK-NOT: workgroup = [{{[0-9]+}}, 1,
kf.kernel @many(%x: tensor<?x2048xf32>, %e: tensor<?x8xi32>, %w: tensor<2x128x768x2048xbf16>) -> tensor<?x8x768xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x2048xf32>, tensor<?x8xi32>, tensor<2x128x768x2048xbf16>
  kf.yield %0 : tensor<?x8x768xf32>
}

// Of one token, columns of one expert.
// CHECK:     kernel @one
// CHECK-DAG: #kf.vector<workgroup = [1, 1, 768], tile = [1, 32, 1]{{.*}}
// CHECK-DAG: #kf.vector<workgroup = [1, 1, 384], tile = [1, 32, 1]{{.*}}
// CHECK-NOT: workgroup = [{{[0-9]+}}, 0,
kf.kernel @one(%x: tensor<1x2048xf32>, %e: tensor<1x8xi32>, %w: tensor<2x128x768x2048xbf16>) -> tensor<1x8x768xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x2048xf32>, tensor<1x8xi32>, tensor<2x128x768x2048xbf16>
  kf.yield %0 : tensor<1x8x768xf32>
}
