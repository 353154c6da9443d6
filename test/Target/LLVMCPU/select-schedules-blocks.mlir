// RUN: kf-opt %s --kf-set-target=target=cpu:icelake-server --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target="target=cpu:icelake-server workers=1" --kf-select-schedules | FileCheck %s --check-prefix=ALONE
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-select-schedules | FileCheck %s --check-prefix=AVX2
// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v3 workers=1" --kf-select-schedules | FileCheck %s --check-prefix=AVX2-ALONE
// RUN: not kf-opt %S/Inputs/dense-int8.mlir --kf-set-target=target=cpu:icelake-server --kf-select-schedules 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DENSE

// RUN: kf-opt %s --kf-set-target=target=cpu:knl --kf-select-schedules | FileCheck %s --check-prefix=FLOAT
// RUN: kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/cortex-a76 --kf-select-schedules | FileCheck %s --check-prefix=NEON

// DENSE: error: schedule cannot run on this CPU: dot = i8 is for matmuls with block-quantized weights

// With products of bytes rows of x are rounded to 8 bits; sums of integers take registers
// beside those of floats, so the register tile has fewer rows.
// CHECK-LABEL: kf.kernel @many(
// CHECK-SAME:    workgroup = [32, 192], tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>
// AVX2-LABEL:  kf.kernel @many(
// AVX2-SAME:     workgroup = [8, 512], tile = [2, 16], lanes = 8, dot = i8>
// FLOAT-LABEL: kf.kernel @many(
// FLOAT-SAME:    tile = [10, 32], lanes = 16, panels = unpacked>
// NEON-LABEL:  kf.kernel @many(
// NEON-SAME:     tile = [8, 8], lanes = 4, dot = i8, panels = unpacked>
kf.kernel @many(%x: tensor<96x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<96x512xf32> {
  %0 = kf.matmul %x, %w : tensor<96x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<96x512xf32>
}

// A few rows, of any number, are divided evenly: with 16 registers tiles share what
// is taken apart of a panel, and have 5 rows, for the sums of blocks wait in memory.
// CHECK-LABEL: kf.kernel @any_few(
// CHECK-SAME:    tile = [8, 32], lanes = 16, dot = i8, row_tiles = even>
// AVX2-LABEL:  kf.kernel @any_few(
// AVX2-SAME:     workgroup = [20, {{[0-9]+}}], tile = [5, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even>
// NEON-LABEL:  kf.kernel @any_few(
// NEON-SAME:     tile = [8, 8], lanes = 4, dot = i8, row_tiles = even>
kf.program @few(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @any_few(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @any_few(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}

// Of many rows of any number, workgroups have as many as share it: 12 tiles. Higher
// ones, and those of more rows, find it unpacked.
// CHECK-LABEL: kf.kernel @any_many(
// CHECK-SAME:    tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>
// ALONE-LABEL: kf.kernel @any_many(
// ALONE-SAME:    workgroup = [512, 512], tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>
// AVX2-ALONE-LABEL: kf.kernel @any_many(
// AVX2-ALONE-SAME:    workgroup = [60, 512], tile = [5, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even>
// NEON-LABEL:  kf.kernel @any_many(
// NEON-SAME:     tile = [8, 8], lanes = 4, dot = i8, panels = unpacked>
kf.program @many_rows(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @any_many(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @any_many(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}

// Scales of sub-blocks of 16 come twice as often: a row less, where a last tile
// of few rows is little beside the others. Workgroups of 28 rows leave the last one
// 16, so that all divide what they have evenly. Alone, a worker takes 128 rows of
// 1 MiB together with the last tile.
// CHECK-LABEL: kf.kernel @short_blocks(
// CHECK-SAME:    workgroup = [28, 256], tile = [7, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>
// ALONE-LABEL: kf.kernel @short_blocks(
// ALONE-SAME:    workgroup = [133, 512], tile = [7, 32], lanes = 16, dot = i8, panels = unpacked>
// CHECK-LABEL: kf.kernel @short_blocks_of_few(
// CHECK-SAME:    tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>
kf.kernel @short_blocks(%x: tensor<128x8192xf32>, %w: tensor<512x8192x!kf.quant<q6_k>>) -> tensor<128x512xf32> {
  %0 = kf.matmul %x, %w : tensor<128x8192xf32>, tensor<512x8192x!kf.quant<q6_k>>
  kf.yield %0 : tensor<128x512xf32>
}
kf.kernel @short_blocks_of_few(%x: tensor<96x512xf32>, %w: tensor<512x512x!kf.quant<q6_k>>) -> tensor<96x512xf32> {
  %0 = kf.matmul %x, %w : tensor<96x512xf32>, tensor<512x512x!kf.quant<q6_k>>
  kf.yield %0 : tensor<96x512xf32>
}

// CHECK-LABEL: kf.kernel @one(
// CHECK-SAME:    tile = [1, 32], lanes = 16, dot = i8>
// AVX2-LABEL:  kf.kernel @one(
// AVX2-SAME:     tile = [1, 16], lanes = 8, dot = i8>
kf.kernel @one(%x: tensor<1x512xf32>, %w: tensor<512x512x!kf.quant<q4_k>>) -> tensor<1x512xf32> {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<512x512x!kf.quant<q4_k>>
  kf.yield %0 : tensor<1x512xf32>
}

// Codes of 8 bits keep their sign where the instruction wants one.
// CHECK-LABEL: kf.kernel @bytes(
// CHECK-SAME:    dot = i8>
// AVX2-LABEL:  kf.kernel @bytes(
// AVX2-SAME:     dot = s8>
// NEON-LABEL:  kf.kernel @bytes(
// NEON-SAME:     dot = s8>
kf.kernel @bytes(%x: tensor<1x512xf32>, %w: tensor<512x512x!kf.quant<q8_0>>) -> tensor<1x512xf32> {
  %0 = kf.matmul %x, %w : tensor<1x512xf32>, tensor<512x512x!kf.quant<q8_0>>
  kf.yield %0 : tensor<1x512xf32>
}
