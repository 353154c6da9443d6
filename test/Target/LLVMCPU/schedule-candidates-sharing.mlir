// Up to where register tiles of 8-bit products share the units of a panel.
// RUN: kf-opt %s -split-input-file --kf-set-target="target=cpu:x86-64-v3 workers=1" --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=AVX2
// RUN: kf-opt %s -split-input-file --kf-set-target="target=cpu:icelake-server workers=1" --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --check-prefix=AVX512

// Three tiles share them; two take them apart each.
// AVX2-LABEL: kernel @ten,
// AVX2-DAG:     s #kf.vector<workgroup = [10, {{[0-9]+}}], tile = [5, 16], lanes = 8, dot = i8, row_tiles = even> (default)
// AVX2-DAG:     s #kf.vector<workgroup = [12, {{[0-9]+}}], tile = [4, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even>
// AVX512-LABEL: kernel @ten,
kf.program @rows_ten(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 10 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @ten(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @ten(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}

// -----

// From 32 rows on, tiles of five rows do, and of six find the panel unpacked.
// AVX2-LABEL: kernel @forty_eight,
// AVX2-DAG:     s #kf.vector<workgroup = [50, {{[0-9]+}}], tile = [5, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even> (default)
// AVX512-LABEL: kernel @forty_eight,
// AVX512-DAG:   s #kf.vector<workgroup = [28, {{[0-9]+}}], tile = [7, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>
// AVX512-DAG:   s #kf.vector<workgroup = [50, {{[0-9]+}}], tile = [5, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>
// AVX512-DAG:   s #kf.vector<workgroup = [48, {{[0-9]+}}], tile = [6, 32], lanes = 16, dot = i8, panels = unpacked>
kf.program @rows_forty_eight(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 48 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @forty_eight(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @forty_eight(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}

// -----

// Up to 64 rows; more find it unpacked.
// AVX2-LABEL: kernel @sixty_four,
// AVX2-DAG:     s #kf.vector<workgroup = [60, {{[0-9]+}}], tile = [5, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even> (default)
// AVX2-DAG:     s #kf.vector<workgroup = [64, {{[0-9]+}}], tile = [4, 16], lanes = 8, dot = i8, panels = shared, row_tiles = even>
// AVX2-DAG:     s #kf.vector<workgroup = [65, {{[0-9]+}}], tile = [5, 16], lanes = 8, dot = i8, panels = unpacked>
// AVX2-DAG:     s #kf.vector<workgroup = [66, {{[0-9]+}}], tile = [3, 16], lanes = 8, dot = i8, panels = unpacked>
// AVX512-LABEL: kernel @sixty_four,
// AVX512-DAG:   s #kf.vector<workgroup = [64, {{[0-9]+}}], tile = [4, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>
// AVX512-DAG:   s #kf.vector<workgroup = [65, {{[0-9]+}}], tile = [5, 32], lanes = 16, dot = i8, panels = unpacked>
kf.program @rows_sixty_four(%x: tensor<?x512xf32>) -> tensor<?x512xf32> attributes {max_tokens = 64 : i64} {
  %w = kf.weight ["w"] : tensor<512x512x!kf.quant<q4_0>>
  %0 = kf.dispatch @sixty_four(%x, %w) : (tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @sixty_four(%x: tensor<?x512xf32>, %w: tensor<512x512x!kf.quant<q4_0>>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<512x512x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x512xf32>
}
