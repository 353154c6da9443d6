// RUN: kf-opt %s -split-input-file --kf-set-target="target=#kf.cpu_target<cpu=\"x86-64-v4\",lanes=16,workers=1>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s
// RUN: kf-opt %s -split-input-file --kf-set-target="target=#kf.cpu_target<cpu=\"x86-64-v4\",lanes=16,int8_dot=true,workers=2>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=VNNI
// RUN: kf-opt %s -split-input-file --kf-set-target="target=#kf.cpu_target<cpu=\"x86-64-v3\",lanes=8,workers=1>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=FEW-REGISTERS

// Workgroups and register tiles of many rows; unrolling for each tile. The last of
// workgroups of 14 rows has 12.
// CHECK-LABEL: kernel @prefill
// CHECK-DAG:     s #kf.vector<workgroup = [14, 32], tile = [14, 32], lanes = 16, unroll = 8, row_tiles = even>
// CHECK-DAG:     s #kf.vector<workgroup = [96, 768], tile = [12, 32], lanes = 16, unroll = 2>
// CHECK-NOT:     tile = [16, 32]
kf.kernel @prefill(%x: tensor<96x256xf32>, %w: tensor<768x256xf32>) -> tensor<96x768xf32> {
  %0 = kf.matmul %x, %w : tensor<96x256xf32>, tensor<768x256xf32>
  kf.yield %0 : tensor<96x768xf32>
}

// -----

// Sums of one row that hide the latency of additions, and without requests for
// lines of the weight. It is small: once is what twice is.
// CHECK-LABEL: kernel @decode
// CHECK-NOT:     prefetch = once
// CHECK-DAG:     s #kf.vector<{{.*}}prefetch = hardware>
// CHECK-DAG:     s #kf.vector<{{.*}}tile = [1, 32], lanes = 16, unroll = 8, accumulators = 8>
// CHECK-DAG:     s #kf.vector<{{.*}}tile = [1, 32], lanes = 16, unroll = 2, accumulators = 2>
kf.kernel @decode(%x: tensor<1x256xf32>, %w: tensor<768x256xbf16>) -> tensor<1x768xf32> {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<1x768xf32>
}

// -----

// Other ways to ask for lines of a larger weight, each of which this register
// tile reads once.
// CHECK-LABEL: kernel @large_decode
// CHECK-DAG:     s #kf.vector<{{.*}}prefetch = once>
// CHECK-DAG:     s #kf.vector<{{.*}}prefetch = hardware>
kf.kernel @large_decode(%x: tensor<1x1024xf32>, %w: tensor<2048x1024xbf16>) -> tensor<1x2048xf32> {
  %0 = kf.matmul %x, %w : tensor<1x1024xf32>, tensor<2048x1024xbf16>
  kf.yield %0 : tensor<1x2048xf32>
}

// -----

// The same of gate and up, which are summed up in turn; with 16 registers, too,
// nothing is predicted to be much faster than the default.
// CHECK-LABEL: kernel @gated
// CHECK-DAG:     s #kf.vector<{{.*}}tile = [1, 32], lanes = 16, unroll = 8, accumulators = 8, groups = in_turn>
// FEW-REGISTERS-LABEL: kernel @gated
// FEW-REGISTERS-NEXT:    s #kf.vector<
// FEW-REGISTERS-NEXT:    s #kf.vector<{{.*}}unroll = 4, accumulators = 4, groups = in_turn> (default)
kf.kernel @gated(%x: tensor<1x2048xf32>, %w: tensor<2x5632x2048xbf16>) -> tensor<1x5632xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x2048xf32>, tensor<2x5632x2048xbf16>
  kf.yield %0 : tensor<1x5632xf32>
}

// -----

// Both orders of groups; of a few rows of any number, all that tiles can share.
// CHECK-LABEL: kernel @few
// CHECK-DAG:     s #kf.vector<workgroup = [24, {{[0-9]+}}], tile = [12, 32], lanes = 16, unroll = 8, row_tiles = even, groups = in_turn> (default)
// CHECK-DAG:     s #kf.vector<workgroup = [24, {{[0-9]+}}], tile = [12, 32], lanes = 16, unroll = 8, row_tiles = even>
// CHECK-DAG:     s #kf.vector<workgroup = [24, {{[0-9]+}}], tile = [12, 32], lanes = 16, unroll = 8>
// CHECK-DAG:     s #kf.vector<workgroup = [24, {{[0-9]+}}], tile = [12, 32], lanes = 16, unroll = 8, panels = unpacked>
// CHECK-DAG:     s #kf.vector<workgroup = [24, {{[0-9]+}}], tile = [12, 32], lanes = 16, unroll = 8, panels = unpacked, groups = in_turn>
kf.program @few_rows(%x: tensor<?x256xf32>) -> tensor<?x768xf32> attributes {max_tokens = 24 : i64} {
  %w = kf.weight ["a", "b"] : tensor<2x768x256xbf16>
  %0 = kf.dispatch @few(%x, %w) : (tensor<?x256xf32>, tensor<2x768x256xbf16>) -> tensor<?x768xf32>
  kf.yield %0 : tensor<?x768xf32>
}
kf.kernel @few(%x: tensor<?x256xf32>, %w: tensor<2x768x256xbf16>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x256xf32>, tensor<2x768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}

// -----

// VNNI-LABEL: kernel @few_blocks
// VNNI-DAG:     tile = [8, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even> (default)
// VNNI-DAG:     tile = [8, 32], lanes = 16, dot = i8, row_tiles = even>
// VNNI-DAG:     tile = [8, 32], lanes = 16, dot = i8>
// VNNI-DAG:     tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>
kf.program @few_rows(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @few_blocks(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @few_blocks(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}

// -----

// What the default multiplies in stays, whatever else would run.
// CHECK-LABEL: kernel @blocks
// CHECK-NOT:     dot = i8
// VNNI-LABEL:  kernel @blocks
// VNNI-NOT:      lanes = 16>
// VNNI:          (default)
kf.kernel @blocks(%x: tensor<16x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<16x512xf32> {
  %0 = kf.matmul %x, %w : tensor<16x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<16x512xf32>
}

// -----

// Keys of a block lie in one page; the heads of a KV head stay together.
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16, page = 32>
// CHECK-LABEL: kernel @attention
// CHECK-DAG:     s #kf.vector<workgroup = [1, 4], tile = [4], reduction = 16, lanes = 16>
// CHECK-DAG:     s #kf.vector<workgroup = [8, 4], tile = [8], reduction = 32, lanes = 16>
// CHECK-NOT:     reduction = 64
kf.kernel @attention(%q: tensor<?x8x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x8x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<?x8x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x8x64xf32>
}

// -----

// Rows of a workgroup, no more than there are.
// CHECK-LABEL: kernel @rows
// CHECK-DAG:     s #kf.vector<workgroup = [2], lanes = 16>
// CHECK-DAG:     s #kf.vector<workgroup = [64], lanes = 16>
// CHECK-NOT:     workgroup = [128]
kf.kernel @rows(%x: tensor<48x256xf32>) -> tensor<48x256xf32> {
  %0 = kf.softmax %x : tensor<48x256xf32>
  kf.yield %0 : tensor<48x256xf32>
}

// -----

// Of a table, the row that is looked up is read: 16388 bytes in all, at 10 GB/s.
// CHECK-LABEL: kernel @lookup, up to 512 rows: 2 candidates
// CHECK-COUNT-2: 1.889e-06 s
kf.kernel @lookup(%i: tensor<1xi32>, %w: tensor<32000x2048xf32>) -> tensor<1x2048xf32> {
  %0 = kf.embedding %i, %w : tensor<1xi32>, tensor<32000x2048xf32>
  kf.yield %0 : tensor<1x2048xf32>
}

// -----

// A kernel without a loop to tile has one schedule.
// CHECK-LABEL: kernel @number, up to 512 rows: 1 candidates
kf.kernel @number(%x: tensor<f32>) -> tensor<f32> {
  %0 = arith.negf %x : tensor<f32>
  kf.yield %0 : tensor<f32>
}
