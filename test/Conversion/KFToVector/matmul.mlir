// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Rows of x go to scratch once; a register tile of 2 x 32 runs over all of K,
// unrolled by 2: 2 * 2 sums, 2 * 2 * 2 multiply-adds a step. Tiles read each
// panel: shares of the next one, 8192 bytes in 32 steps of as many tiles as there
// are, are prefetched meanwhile.
// CHECK-LABEL: func.func @k(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xf32>, %[[W:.*]]: memref<3x1x64x32xf32>, %[[R:.*]]: memref<?x96xf32> {llvm.noalias}, %[[SCALARS:.*]]: memref<8xi64>, %[[SCRATCH:.*]]: memref<?xi8> {llvm.noalias}, %[[GROUP:.*]]: index)
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [4, 0], counts = [0, 1]>, kf.scratch_bytes = 1280 : i64
// CHECK-DAG:     %[[ROWS:.*]] = memref.view %[[SCRATCH]]{{.*}} to memref<4x80xf32>
// CHECK-DAG:     %[[N:.*]] = memref.load %[[SCALARS]][%c0]
// CHECK:         %[[LOADED:.*]] = vector.load %[[X]]{{.*}}, vector<16xf32>
// CHECK-NEXT:    vector.store %[[LOADED]], %[[ROWS]]
// CHECK:         %[[REST:.*]] = arith.divui %c63, %{{.*}}
// CHECK-NEXT:    %[[SHARE:.*]] = arith.addi %[[REST]], %c1
// Panels, tiles of rows, K:
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c3 step %c1
// CHECK:           scf.for
// CHECK:             scf.for %[[K:.*]] = %c0 to %c64 step %c2 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:               arith.muli %{{.*}}, %[[SHARE]]
// CHECK:               scf.for %{{.*}} = %c0 to %[[SHARE]] step %c16
// CHECK:                 %[[NEXT:.*]] = arith.addi %[[PANEL]], %c1
// CHECK:                 memref.prefetch %[[W]][%[[NEXT]], %c0, %c0, %{{.*}}], read, locality<2>, data
// CHECK-NOT:           memref.prefetch
// CHECK:               vector.load %[[W]][%[[PANEL]], %c0, %[[K]], %c0]
// CHECK-NEXT:          vector.load %[[W]][%[[PANEL]], %c0, %[[K]], %c16]
// CHECK-NEXT:          memref.load %[[ROWS]]
// CHECK-NEXT:          vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK-COUNT-8:       vector.fma
// CHECK-NOT:           vector.fma
// CHECK:               scf.yield
// CHECK:             vector.store %{{.*}}, %[[R]]
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 96], tile = [2, 32], lanes = 16, unroll = 2>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Another schedule of the same kernel: vectors of 8, one row, four steps of K
// in two sums each.
// CHECK-LABEL: func.func @k(
// CHECK-SAME:    memref<6x1x64x16xf32>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [1, 0], counts = [0, 3]>
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c4 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK-COUNT-8:   vector.fma {{.*}} : vector<8xf32>
// CHECK-NOT:       vector.fma
// CHECK:           scf.yield
// CHECK:         arith.addf %{{.*}} : vector<8xf32>
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 16>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 16], lanes = 8, unroll = 4, accumulators = 2>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// bf16: one load holds 2 x 16 weights; their halves are shifted and masked to
// f32. One row reads the weight, of 2 MiB, once: for each row of the panel a line
// is prefetched far ahead, 256 rows, and one 64 rows ahead into the nearest cache.
// CHECK-LABEL: func.func @bf16(
// CHECK-SAME:    %{{.*}}: memref<1x64xf32>, %[[W:.*]]: memref<512x1x64x32xbf16>
// CHECK:         %[[FAR:.*]] = arith.addi %[[K:.*]], %c256
// CHECK-NEXT:    memref.prefetch %[[W]][%{{.*}}, %c0, %[[FAR]], %c0], read, locality<2>, data
// CHECK-NEXT:    %[[NEAR:.*]] = arith.addi %[[K]], %c64
// CHECK-NEXT:    memref.prefetch %[[W]][%{{.*}}, %c0, %[[NEAR]], %c0], read, locality<3>, data
// CHECK-NOT:     memref.prefetch
// CHECK:         %[[PAIRS:.*]] = vector.load %{{.*}} : memref<512x1x64x32xbf16>, vector<32xbf16>
// CHECK-NEXT:    %[[BITS:.*]] = vector.bitcast %[[PAIRS]] : vector<32xbf16> to vector<16xi32>
// CHECK-DAG:     arith.shli %[[BITS]]
// CHECK-DAG:     arith.andi %[[BITS]]
// CHECK:         vector.fma
kf.kernel @bf16(%x: tensor<1x64xf32>, %w: tensor<16384x64xbf16, #kf.layout<panel = 32, interleave = 16>>)
    -> tensor<1x16384xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<16384x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<1x16384xf32>
}

// -----

// Unpacked, a panel of f16 becomes f32 in scratch once. What is left of K comes
// one by one. A line of the result is prefetched in each step, of 4 of a tile.
// CHECK-LABEL: func.func @unpacked(
// CHECK-SAME:    %[[X:.*]]: memref<32x38xf32>, %[[W:.*]]: memref<3x1x38x32xf16>, %[[R:.*]]: memref<32x96xf32>
// CHECK-DAG:     %[[PANEL:.*]] = memref.view {{.*}} to memref<38x2x16xf32>
// CHECK-DAG:     %[[ROWS:.*]] = memref.view {{.*}} to memref<32x48xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           scf.for %{{.*}} = %c0 to %c38
// CHECK:             vector.load %[[W]]
// CHECK:             arith.extf
// CHECK:             vector.store %{{.*}}, %[[PANEL]]
// CHECK:           scf.for %{{.*}} = %c0 to %c16
// CHECK:             scf.for %{{.*}} = %c0 to %c36 step %c4 iter_args{{.*}}
// CHECK:               memref.prefetch %[[W]]{{.*}}, read, locality<2>, data
// CHECK:               %[[LINE:.*]] = arith.minui %{{.*}}, %c3
// CHECK-NEXT:          %[[ROW:.*]] = arith.divui %[[LINE]], %c2
// CHECK-NEXT:          arith.remui %[[LINE]], %c2
// CHECK:               memref.prefetch %[[R]]{{.*}}, write, locality<3>, data
// CHECK-NEXT:          vector.load %[[PANEL]]
// CHECK-NOT:           arith.extf
// CHECK:             scf.for %{{.*}} = %c36 to %c38 step %c1 iter_args
// CHECK-COUNT-4:       vector.fma
kf.kernel @unpacked(%x: tensor<32x38xf32>, %w: tensor<96x38xf16, #kf.layout<panel = 32>>)
    -> tensor<32x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 96], tile = [2, 32], lanes = 16, unroll = 4, panels = unpacked>} {
  %0 = kf.matmul %x, %w : tensor<32x38xf32>, tensor<96x38xf16, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<32x96xf32>
}

// -----

// Apart, each tile widens what it multiplies, and there is no such scratch.
// CHECK-LABEL: func.func @apart(
// CHECK-SAME:    %{{.*}}: memref<32x38xf32>, %[[W:.*]]: memref<3x1x38x32xf16>
// CHECK-NOT:     memref<38x2x16xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK-NOT:       arith.extf
// CHECK:           scf.for %{{.*}} = %c0 to %c16
// CHECK:             scf.for %{{.*}} = %c0 to %c36 step %c4 iter_args{{.*}}
// CHECK:               vector.load %[[W]]
// CHECK:               arith.extf
// CHECK:               vector.fma
kf.kernel @apart(%x: tensor<32x38xf32>, %w: tensor<96x38xf16, #kf.layout<panel = 32>>)
    -> tensor<32x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 96], tile = [2, 32], lanes = 16, unroll = 4>} {
  %0 = kf.matmul %x, %w : tensor<32x38xf32>, tensor<96x38xf16, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<32x96xf32>
}

// -----

// The norm is computed on the rows' way to scratch; bias, activation and
// residual on the sums' way to the result. 40 columns: the last ones are masked.
// CHECK-LABEL: func.func @fused(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xf32>, %{{.*}}: memref<64xf32>, %{{.*}}: memref<3x1x64x16xf32>, %[[B:.*]]: memref<40xf32>, %[[RES:.*]]: memref<?x40xf32>, %[[R:.*]]: memref<?x40xf32>
// CHECK:         math.sqrt
// CHECK:         vector.fma
// CHECK:         vector.create_mask
// CHECK:         %[[BIAS:.*]] = vector.maskedload %[[B]]
// CHECK:         arith.addf %{{.*}}, %[[BIAS]]
// CHECK:         arith.maximumf
// CHECK:         vector.maskedload %[[RES]]
// CHECK:         arith.addf
// CHECK:         vector.maskedstore %[[R]]
kf.kernel @fused(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<40x64xf32, #kf.layout<panel = 16>>,
                 %b: tensor<40xf32>, %r: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 48], tile = [2, 16], lanes = 16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w bias(%b) : tensor<?x64xf32>, tensor<40x64xf32, #kf.layout<panel = 16>>, tensor<40xf32>
  %2 = kf.activation(relu) %1 : tensor<?x40xf32>
  %3 = arith.addf %2, %r : tensor<?x40xf32>
  kf.yield %3 : tensor<?x40xf32>
}

// -----

// A gated product has two sums for each output, here one after the other, and one
// result.
// CHECK-LABEL: func.func @gated(
// CHECK-SAME:    memref<2x2x64x16xf32>
// CHECK:         iter_args({{.*}}) -> (vector<16xf32>) {
// CHECK:         iter_args({{.*}}) -> (vector<16xf32>) {
// CHECK:         math.exp
// CHECK:         arith.mulf
// CHECK:         vector.store
kf.kernel @gated(%x: tensor<1x64xf32>, %w: tensor<2x32x64xf32, #kf.layout<panel = 16>>)
    -> tensor<1x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 16], lanes = 16, groups = in_turn>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x64xf32>, tensor<2x32x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<1x32xf32>
}

// -----

// Together, both are summed up in one loop, which reads x once.
// CHECK-LABEL: func.func @gated_together(
// CHECK:         iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>) {
// CHECK-COUNT-2:   vector.fma
// CHECK-NOT:     vector.fma
kf.kernel @gated_together(%x: tensor<1x64xf32>, %w: tensor<2x32x64xf32, #kf.layout<panel = 16>>)
    -> tensor<1x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 16], lanes = 16>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x64xf32>, tensor<2x32x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<1x32xf32>
}

// -----

// f8E4M3FN: codes are shifted to where f16 has its bits, and what that makes of
// them is 2^-8 of their values. Sums are scaled before the bias is added.
// CHECK-LABEL: func.func @float8(
// CHECK-SAME:    %{{.*}}: memref<1x64xf32>, %[[W:.*]]: memref<3x1x64x32xi8>, %[[S:.*]]: memref<96xf32>, %[[B:.*]]: memref<96xf32>
// CHECK:         %[[CODES:.*]] = vector.load %[[W]]{{.*}} : memref<3x1x64x32xi8>, vector<16xi8>
// CHECK:         %[[BITS:.*]] = arith.extui %[[CODES]] : vector<16xi8> to vector<16xi16>
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[BITS]], %{{.*}} : vector<16xi16>
// CHECK:         %[[NAN:.*]] = arith.cmpi eq, %[[MAGNITUDE]]
// CHECK:         %[[HALF:.*]] = arith.ori
// CHECK:         arith.bitcast %[[HALF]] : vector<16xi16> to vector<16xf16>
// CHECK:         arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK:         %[[VALUE:.*]] = arith.mulf
// CHECK:         arith.select %[[NAN]], %{{.*}}, %[[VALUE]]
// CHECK:         vector.fma
// CHECK:         vector.load %[[S]]
// CHECK:         %[[SCALED:.*]] = arith.mulf
// CHECK:         vector.load %[[B]]
// CHECK:         arith.addf %[[SCALED]]
kf.kernel @float8(%x: tensor<1x64xf32>, %w: tensor<96x64xf8E4M3FN, #kf.layout<panel = 32>>, %s: tensor<96xf32>, %b: tensor<96xf32>)
    -> tensor<1x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 32], tile = [1, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<96xf32>) bias(%b)
      : tensor<1x64xf32>, tensor<96x64xf8E4M3FN, #kf.layout<panel = 32>>, tensor<96xf32>
  kf.yield %0 : tensor<1x96xf32>
}

// -----

// Even tiles of 3, 2 and 1 rows, each of which sums up a group after the other,
// so that registers hold more rows; a step prefetches its share of a panel of
// both groups. The lower ones have as many sums as the highest.
// CHECK-LABEL: func.func @few_gated(
// CHECK-SAME:    %{{.*}}: memref<?x64xf32>, %[[W:.*]]: memref<3x2x64x16xf32>, %[[R:.*]]: memref<?x48xf32>
// CHECK:         %[[LARGER:.*]] = arith.remui %[[ROWS:.*]], %[[TILES:.*]] :
// CHECK-NEXT:    arith.subi %[[TILES]], %[[LARGER]]
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c3
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK:             scf.for %{{.*}} = %c0 to %c64 step %c1 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK:               vector.load %[[W]][%[[PANEL]], %c0,
// CHECK-NOT:           vector.load %[[W]][%[[PANEL]], %c1,
// CHECK-COUNT-6:       vector.fma
// CHECK:             scf.for %{{.*}} = %c0 to %c64 step %c1 iter_args
// CHECK:               arith.addi %{{.*}}, %c64
// CHECK:               vector.load %[[W]][%[[PANEL]], %c1,
// CHECK-COUNT-6:       vector.fma
// CHECK-NOT:           vector.fma
// CHECK-COUNT-6:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:             scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-8:     vector.fma
// CHECK-NOT:         vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:             scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-4:     vector.fma
// CHECK-NOT:         vector.fma
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:         return
kf.kernel @few_gated(%x: tensor<?x64xf32>, %w: tensor<2x48x64xf32, #kf.layout<panel = 16>>)
    -> tensor<?x48xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 48], tile = [3, 16], lanes = 8, row_tiles = even, groups = in_turn>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x48x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<?x48xf32>
}

// -----

// Whole tiles of the same rows: those that are left make tiles of 2 and 1.
// CHECK-LABEL: func.func @few_whole(
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           %[[WHOLE:.*]] = arith.divui %[[ROWS:.*]], %c3
// CHECK:           scf.for %{{.*}} = %c0 to %[[WHOLE]]
// CHECK:           %[[FIRST:.*]] = arith.muli %[[WHOLE]], %c3
// CHECK:           %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[FIRST]]
// CHECK:           arith.andi %[[LEFT]], %c2
// CHECK:           arith.andi %[[LEFT]], %c1
// CHECK:         return
kf.kernel @few_whole(%x: tensor<?x64xf32>, %w: tensor<2x48x64xf32, #kf.layout<panel = 16>>)
    -> tensor<?x48xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 48], tile = [3, 16], lanes = 8>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x48x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<?x48xf32>
}
