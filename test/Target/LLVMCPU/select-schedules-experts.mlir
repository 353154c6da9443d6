// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-select-schedules | kf-opt -o /dev/null
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v4 workers=64" --kf-select-schedules | FileCheck %s --check-prefix=WIDE

// Of one token, a workgroup has columns of one expert.
// CHECK-LABEL: kf.kernel @one(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [1, 1, 192], tile = [1, 32, 1], lanes = 16, unroll = 4, accumulators = 4, groups = in_turn>
kf.kernel @one(%x: tensor<1x2048xf32>, %e: tensor<1x8xi32>, %w: tensor<2x128x768x2048xf32>) -> tensor<1x8x768xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<1x2048xf32>, tensor<1x8xi32>, tensor<2x128x768x2048xf32>
  kf.yield %0 : tensor<1x8x768xf32>
}

// Of 512, one has columns of all experts: 32 rows of each, if rows choose all
// alike, and up to 128 at a time.
// CHECK-LABEL: kf.kernel @many(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [512, 0, 32], tile = [7, 32, 133], lanes = 16, unroll = 8>
// More workers do not read its panels several times.
// WIDE-LABEL: kf.kernel @many(
// WIDE-SAME:    schedule = #kf.vector<workgroup = [512, 0, 32], tile = [7, 32, 133], lanes = 16, unroll = 8>
kf.kernel @many(%x: tensor<?x2048xf32>, %e: tensor<?x8xi32>, %w: tensor<2x128x768x2048xf32>) -> tensor<?x8x768xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x2048xf32>, tensor<?x8xi32>, tensor<2x128x768x2048xf32>
  kf.yield %0 : tensor<?x8x768xf32>
}

// CHECK-LABEL: kf.kernel @blocks(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [512, 0, 64], tile = [8, 32, 128], lanes = 16, dot = i8, panels = unpacked>
kf.kernel @blocks(%x: tensor<?x8x768xf32>, %e: tensor<?x8xi32>, %w: tensor<1x128x2048x768x!kf.quant<q4_0>>) -> tensor<?x8x2048xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x8x768xf32>, tensor<?x8xi32>, tensor<1x128x2048x768x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x8x2048xf32>
}

// So many tokens are divided, and their rows taken in turns.
// CHECK-LABEL: kf.kernel @tokens(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [256, 0, 32], tile = [14, 32, 4354]
kf.kernel @tokens(%x: tensor<1000000x8xf32>, %e: tensor<1000000x17xi32>, %w: tensor<1x2x32x8xf32>) -> tensor<1000000x17x32xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<1000000x8xf32>, tensor<1000000x17xi32>, tensor<1x2x32x8xf32>
  kf.yield %0 : tensor<1000000x17x32xf32>
}

// Where columns are few, as the lines of an adapter are, workers share the tokens.
// WIDE-LABEL: kf.kernel @adapters(
// WIDE-SAME:    schedule = #kf.vector<workgroup = [2, 0, 32], tile = [14, 32, 14], lanes = 16, unroll = 8, row_tiles = even>
// CHECK-LABEL: kf.kernel @adapters(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [16, 0, 32], tile = [14, 32, 28], lanes = 16, unroll = 8, row_tiles = even>
kf.kernel @adapters(%x: tensor<?x2048xf32>, %e: tensor<?x1xi32>, %w: tensor<1x9x16x2048xbf16>) -> tensor<?x1x16xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x2048xf32>, tensor<?x1xi32>, tensor<1x9x16x2048xbf16>
  kf.yield %0 : tensor<?x1x16xf32>
}
