// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// dot = i8: the row is rounded to bytes, with a scale for each 32 elements and
// their sum. Panels of q4_0: 32 rows, 2 blocks of 32 elements,
// 18 bytes a row and block: 64 bytes of d, then 4 chunks of 128 bytes. Lines of
// blocks behind are prefetched.
// CHECK-LABEL: func.func @int8(
// CHECK-SAME:    %{{.*}}: memref<1x64xf32>, %[[W:.*]]: memref<3x1x2x576xi8>
// CHECK-DAG:     %[[CODES:.*]] = memref.view {{.*}} to memref<1x64xi8>
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<1x2xf32>
// CHECK:         arith.maxsi
// CHECK:         arith.divf
// CHECK:         vector.store %{{.*}}, %[[CODES]]{{.*}} vector<16xi8>
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c3
// CHECK:           scf.for %[[BLOCK:.*]] = %c0 to %c2 {{.*}} -> (vector<16xf32>, vector<16xf32>)
// CHECK:             vector.load %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %c0{{.*}}] : memref<3x1x2x576xi8>, vector<32xi8>
// CHECK:             vector.bitcast {{.*}} : vector<32xi8> to vector<16xf16>
// CHECK-COUNT-9:     memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %{{.*}}], read, locality<3>, data : memref<3x1x2x576xi8>
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.load %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %c64{{.*}}] : memref<3x1x2x576xi8>, vector<64xi8>
// CHECK-COUNT-16:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK:             scf.yield
kf.kernel @int8(%x: tensor<1x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<1x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 96], tile = [1, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x96xf32>
}

// -----

// Lines of a weight of 2 MiB are prefetched early, too, into the second cache.
// Groups of one row are read one after the other, as they lie in memory.
// CHECK-LABEL: func.func @int8_glu(
// CHECK-SAME:    %{{.*}}: memref<1x1024xf32>, %[[W:.*]]: memref<64x2x32x576xi8>
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c64
// CHECK:           scf.for %[[BLOCK:.*]] = %c0 to %c32 step %c1 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:             memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %c16384], read, locality<2>, data
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %c4096], read, locality<3>, data
// CHECK:           scf.for %[[BLOCK2:.*]] = %c0 to %c32 step %c1 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:             memref.prefetch %[[W]][%[[PANEL]], %c1, %[[BLOCK2]], %c16384], read, locality<2>, data
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c1, %[[BLOCK2]], %c4096], read, locality<3>, data
kf.kernel @int8_glu(%x: tensor<1x1024xf32>, %w: tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<1x2048xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x1024xf32>, tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x2048xf32>
}

// -----

// The schedule may say that they are prefetched once, into the nearest.
// CHECK-LABEL: func.func @once(
// CHECK-SAME:    %{{.*}}: memref<1x1024xf32>, %[[W:.*]]: memref<64x2x32x576xi8>
// CHECK-NOT:     memref.prefetch %[[W]]
// CHECK:         memref.prefetch %[[W]][%{{.*}}, %c0, %{{.*}}, %c8192], read, locality<3>, data
// CHECK-NOT:     locality<2>
// CHECK:         memref.prefetch %[[W]][%{{.*}}, %c1, %{{.*}}, %c8192], read, locality<3>, data
// CHECK-NOT:     locality<2>
kf.kernel @once(%x: tensor<1x1024xf32>, %w: tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<1x2048xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = once>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x1024xf32>, tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x2048xf32>
}

// -----

// Or not at all: the CPU's prefetchers see one stream of lines.
// CHECK-LABEL: func.func @hardware(
// CHECK-SAME:    %{{.*}}: memref<1x1024xf32>, %[[W:.*]]: memref<64x2x32x576xi8>
// CHECK-NOT:     memref.prefetch %[[W]]
kf.kernel @hardware(%x: tensor<1x1024xf32>, %w: tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<1x2048xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = hardware>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<1x1024xf32>, tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x2048xf32>
}

// -----

// Nor is a share of the next panel, by several tiles of several rows.
// CHECK-LABEL: func.func @hardware_tiles(
// CHECK-SAME:    memref<?x1024xf32>, %[[W:.*]]: memref<64x1x32x576xi8>
// CHECK-NOT:     memref.prefetch %[[W]]
kf.kernel @hardware_tiles(%x: tensor<?x1024xf32>, %w: tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x2048xf32>
    attributes {max_tokens = 4 : i64, schedule = #kf.vector<workgroup = [4, 2048], tile = [2, 32], lanes = 16, dot = i8, prefetch = hardware>} {
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x2048xf32>
}

// -----

// Or not by two rows alone, which are multiplied as fast as q4_0 comes. With three
// rows, and where two are beside others, a share of the next panel is asked for.
// CHECK-LABEL: func.func @hardware_rows(
// CHECK-SAME:    memref<?x1024xf32>, %[[W:.*]]: memref<64x1x32x576xi8>
// CHECK:         memref.prefetch %[[W]]
// CHECK-COUNT-48:  kf.dp4a
// CHECK-NOT:     memref.prefetch
// CHECK:         %[[ARE_MORE:.*]] = arith.cmpi ugt, %{{.*}}, %c2 : index
// CHECK-NEXT:    scf.if %[[ARE_MORE]] {
// CHECK:           memref.prefetch %[[W]]
kf.kernel @hardware_rows(%x: tensor<?x1024xf32>, %w: tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x2048xf32>
    attributes {max_tokens = 4 : i64, schedule = #kf.vector<workgroup = [4, 2048], tile = [3, 32], lanes = 16, dot = i8, hardware_rows = 2, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x2048xf32>
}

// -----

// Groups of several rows that are multiplied in f32 are read side by side:
// behind the end of one, at 32 * 576 bytes, comes the same one of the next
// panel.
// CHECK-LABEL: func.func @side_by_side(
// CHECK-SAME:    %{{.*}}: memref<2x1024xf32>, %[[W:.*]]: memref<64x2x32x576xi8>
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c64
// CHECK:           scf.for %[[BLOCK:.*]] = %c0 to %c32
// CHECK:             %[[AT:.*]] = arith.muli %[[BLOCK]], %c576
// CHECK-NEXT:        %[[PAST:.*]] = arith.cmpi uge, %[[AT]], %c2048
// CHECK-NEXT:        %[[SKIP:.*]] = arith.select %[[PAST]], %c18432, %c0
// CHECK-NEXT:        %[[FAR:.*]] = arith.addi %[[SKIP]], %c16384
// CHECK-NEXT:        %[[PAST2:.*]] = arith.cmpi uge, %[[AT]], %c14336
// CHECK-NEXT:        %[[SKIP2:.*]] = arith.select %[[PAST2]], %c18432, %c0
// CHECK-NEXT:        %[[NEAR:.*]] = arith.addi %[[SKIP2]], %c4096
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %[[FAR]]], read, locality<2>, data
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %[[NEAR]]], read, locality<3>, data
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c1, %[[BLOCK]], %[[FAR]]], read, locality<2>, data
// CHECK-NEXT:        memref.prefetch %[[W]][%[[PANEL]], %c1, %[[BLOCK]], %[[NEAR]]], read, locality<3>, data
kf.kernel @side_by_side(%x: tensor<2x1024xf32>, %w: tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<2x2048xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 2048], tile = [2, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<2x1024xf32>, tensor<2x2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<2x2048xf32>
}

// -----

// A tile of several rows: lines near by, and into the second cache a unit's
// share of the next panel, of whose two groups each is read in 2 units: 2304
// bytes in 4 steps. Groups are summed up one after the other.
// CHECK-LABEL: func.func @int8_rows(
// CHECK-SAME:    %{{.*}}: memref<2x64xf32>, %[[W:.*]]: memref<3x2x2x576xi8>
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c3
// CHECK:           scf.for %[[BLOCK:.*]] = %c0 to %c2
// CHECK-COUNT-9:     memref.prefetch %[[W]][%[[PANEL]], %c0, %[[BLOCK]], %{{.*}}], read, locality<3>, data
// CHECK:             %[[SHARE:.*]] = arith.muli %[[BLOCK]], %c576
// CHECK:             %[[NEXT:.*]] = arith.addi %[[PANEL]], %c1
// CHECK:             memref.prefetch %[[W]][%[[NEXT]], %c0, %c0, %[[SHARE]]], read, locality<2>, data
// CHECK-COUNT-8:     memref.prefetch %[[W]][%[[NEXT]], %c0, %c0, %{{.*}}], read, locality<2>, data
// CHECK-NOT:         memref.prefetch
// CHECK-COUNT-32:    kf.dp4a
// CHECK:           scf.for %[[BLOCK:.*]] = %c0 to %c2
// CHECK-COUNT-9:     memref.prefetch %[[W]][%[[PANEL]], %c1, %[[BLOCK]], %{{.*}}], read, locality<3>, data
// CHECK:             %[[UNIT:.*]] = arith.addi %[[BLOCK]], %c2
// CHECK:             %[[SHARE:.*]] = arith.muli %[[UNIT]], %c576
// CHECK:             memref.prefetch %[[W]][%{{.*}}, %c0, %c0, %[[SHARE]]], read, locality<2>, data
kf.kernel @int8_rows(%x: tensor<2x64xf32>, %w: tensor<2x96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 96], tile = [2, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<2x64xf32>, tensor<2x96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<2x96xf32>
}

// -----

// 32 rows to a workgroup: a panel's codes become bytes in scratch once. Sums of integers begin at 1.5 * 2^23 less 8 times the row's sum; taken
// as floats, they get the number off and the scale on by one multiply-add.
// Meanwhile, shares of the next panel, 1152 bytes in 16 tiles of 2 units, are
// prefetched, and all 4 lines of the result that a tile writes with the first.
// CHECK-LABEL: func.func @unpacked(
// CHECK-SAME:    %{{.*}}: memref<32x64xf32>, %[[W:.*]]: memref<3x1x2x576xi8>, %[[R:.*]]: memref<32x96xf32>
// CHECK-DAG:     %[[SHARE:.*]] = arith.constant 36 : index
// CHECK-DAG:     %[[BASE:.*]] = arith.constant dense<0xCB400000> : vector<16xf32>
// CHECK-DAG:     %[[BITS:.*]] = arith.constant dense<1262485504> : vector<2xi32>
// CHECK-DAG:     %[[CODES:.*]] = memref.view {{.*}} to memref<16x2x64xi8>
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<2x2x2x16xf32>
// CHECK:         %[[START:.*]] = arith.subi %[[BITS]]
// CHECK-NEXT:    vector.store %[[START]], %[[STARTS:[a-z_0-9]+]][
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           arith.mulf %{{.*}}, %[[BASE]]
// CHECK:           vector.store %{{.*}}, %[[SCALES]]
// CHECK-COUNT-16:  vector.store %{{.*}}, %[[CODES]]
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:             arith.muli %{{.*}}, %[[SHARE]]
// CHECK:             memref.prefetch %[[W]]{{.*}}, read, locality<2>, data
// CHECK-NOT:         memref.prefetch
// CHECK:             arith.minui %{{.*}}, %c3
// CHECK-COUNT-4:     memref.prefetch %[[R]]{{.*}}, write, locality<3>, data
// CHECK-NOT:         memref.prefetch
// CHECK:             memref.load %[[STARTS]]
// CHECK:             vector.load %[[CODES]]
// CHECK-COUNT-32:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK:             vector.bitcast %{{.*}} : vector<16xi32> to vector<16xf32>
// CHECK-COUNT-8:     vector.fma
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
kf.kernel @unpacked(%x: tensor<32x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<32x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 96], tile = [2, 32], lanes = 16, dot = i8, panels = unpacked>} {
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<32x96xf32>
}

// -----

// Minimums of unpacked panels; the groups of a gated product, one after the
// other.
// CHECK-LABEL: func.func @unpacked_mins(
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<8x3x4x16xf32>
// CHECK-DAG:     %[[TOTALS:.*]] = memref.view {{.*}} to memref<32x8xf32>
// CHECK:         scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-6:   vector.load %[[SCALES]]
// CHECK-COUNT-32:  kf.dp4a
// CHECK-NOT:       kf.dp4a
// CHECK-COUNT-4:   vector.fma
// CHECK:           memref.load %[[TOTALS]]
// CHECK-COUNT-2:   vector.fma
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK-COUNT-32:  kf.dp4a
// CHECK-NOT:       kf.dp4a
kf.kernel @unpacked_mins(%x: tensor<32x256xf32>, %w: tensor<2x96x256x!kf.quant<q4_k>, #kf.layout<panel = 32>>)
    -> tensor<32x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 96], tile = [2, 32], lanes = 16, dot = i8, panels = unpacked>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<32x256xf32>, tensor<2x96x256x!kf.quant<q4_k>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<32x96xf32>
}

// -----

// Many rows of a number that changes: whole register tiles, and tiles of 4, 2
// and 1 for those that are left. No row past the last is computed.
// CHECK-LABEL: func.func @left_rows(
// CHECK-SAME:    %{{.*}}: memref<?x64xf32>, %[[W:.*]]: memref<3x1x2x576xi8>, %[[R:.*]]: memref<?x96xf32>
// CHECK:         scf.for %[[PANEL:.*]] = %c0 to %c3
// CHECK:           %[[WHOLE:.*]] = arith.divui %[[ROWS:.*]], %c8
// CHECK-NEXT:      scf.for %[[TILE:.*]] = %c0 to %[[WHOLE]]
// CHECK-COUNT-128:   kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-NOT:         scf.if
// CHECK-COUNT-16:    vector.store %{{.*}}, %[[R]]
// CHECK:           %[[FIRST:.*]] = arith.muli %[[WHOLE]], %c8
// CHECK:           %[[LEFT:.*]] = arith.subi %[[ROWS]], %[[FIRST]]
// CHECK:           %[[FOUR:.*]] = arith.andi %[[LEFT]], %c4
// CHECK:           %[[HAS_FOUR:.*]] = arith.cmpi {{.*}} %[[FOUR]]
// CHECK:           scf.if %[[HAS_FOUR]] {
// CHECK-COUNT-64:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-8:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:           arith.addi %[[FIRST]], %[[FOUR]]
// CHECK:           arith.andi %[[LEFT]], %c2
// CHECK:           scf.if
// CHECK-COUNT-32:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[R]]
// CHECK:           arith.andi %[[LEFT]], %c1
// CHECK:           scf.if
// CHECK-COUNT-16:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:         return
kf.kernel @left_rows(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 96], tile = [8, 32], lanes = 16, dot = i8, panels = unpacked>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Even ones: tiles of any height, as few as there can be, of which some have a
// row more. Each takes the panel apart. Sums wait until they are stored, a row at
// a time.
// CHECK-LABEL: func.func @two_tiles(
// CHECK-SAME:    %{{.*}}: memref<?x64xf32>, %[[W:.*]]: memref<3x1x2x576xi8>, %[[R:.*]]: memref<?x96xf32>
// CHECK-DAG:     %[[SUMS:.*]] = memref.view {{.*}} to memref<1x6x2x16xf32>
// CHECK:         %[[LARGER:.*]] = arith.remui %[[ROWS:.*]], %[[TILES:.*]] :
// CHECK-NEXT:    arith.subi %[[TILES]], %[[LARGER]]
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK-COUNT-48:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-6:     vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT:         vector.store
// CHECK-COUNT-32:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT:         vector.store
// CHECK-COUNT-16:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT:         vector.store
// CHECK:           scf.for %{{.*}} = %c0 to %[[ROWS]]
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:         vector.store
// CHECK:         return
kf.kernel @two_tiles(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [6, 96], tile = [3, 32], lanes = 16, dot = i8, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Tiles that are more than one share what the first of them, of a row here, takes
// apart of a unit: 16 vectors of codes. The others, of 3 or 2 rows, find them in
// scratch, and read nothing of the weight.
// CHECK-LABEL: func.func @shared_units(
// CHECK-SAME:    %{{.*}}: memref<?x64xf32>, %[[W:.*]]: memref<3x2x2x576xi8>, %[[R:.*]]: memref<?x96xf32>
// CHECK-DAG:     %[[CODES:.*]] = memref.view {{.*}} to memref<8x2x64xi8>
// CHECK-DAG:     %[[SUMS:.*]] = memref.view {{.*}} to memref<2x18x2x16xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           scf.for %[[GROUP:.*]] = %c0 to %c2
// CHECK:             scf.if
// CHECK-COUNT-96:      kf.dp4a
// CHECK-NOT:           kf.dp4a
// CHECK:             scf.if
// CHECK:               scf.for %[[UNIT:.*]] = %c0 to %c2
// CHECK:                 vector.load %[[W]][%{{.*}}, %[[GROUP]], %[[UNIT]], %c64{{.*}}]
// CHECK:                 vector.store %{{.*}}, %[[CODES]]
// CHECK-COUNT-16:        kf.dp4a
// CHECK-NOT:             kf.dp4a
// CHECK:                 vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT:             vector.load %[[W]]
// CHECK:                 scf.for
// CHECK:                   vector.load %[[CODES]]
// CHECK-COUNT-48:          kf.dp4a
// CHECK-NOT:               kf.dp4a
// CHECK-COUNT-6:           vector.store %{{.*}}, %[[SUMS]]
// CHECK-NOT:             vector.load %[[W]]
// CHECK:                 scf.for
// CHECK-COUNT-32:          kf.dp4a
// CHECK-NOT:               kf.dp4a
// CHECK-COUNT-4:           vector.store %{{.*}}, %[[SUMS]]
// CHECK:           scf.for
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[R]]
// CHECK-NOT:       vector.store
// CHECK:         return
kf.kernel @shared_units(%x: tensor<?x64xf32>, %w: tensor<2x96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 96], tile = [3, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// One row that is left of pairs joins the last of them.
// CHECK-LABEL: func.func @odd_rows(
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK:           %[[ODD:.*]] = arith.andi %[[ROWS:.*]], %c1
// CHECK:           %[[IS_ODD:.*]] = arith.cmpi {{.*}} %[[ODD]]
// CHECK:           %[[JOINED:.*]] = arith.andi %[[IS_ODD]]
// CHECK:           arith.select %[[JOINED]]
// CHECK-COUNT-32:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK:           scf.if %[[JOINED]] {
// CHECK-COUNT-48:    kf.dp4a
// CHECK-NOT:         kf.dp4a
// CHECK:           arith.cmpi ult, %[[ROWS]], %c2
// CHECK:           scf.if
// CHECK-COUNT-16:    kf.dp4a
// CHECK-NOT:         kf.dp4a
kf.kernel @odd_rows(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 96], tile = [2, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Of a number that does not: one tile of what is left.
// CHECK-LABEL: func.func @three_left(
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK-COUNT-64:  kf.dp4a
// CHECK-NOT:       scf.if
// CHECK-COUNT-48:  kf.dp4a
// CHECK-NOT:       kf.dp4a
kf.kernel @three_left(%x: tensor<7x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<7x96xf32>
    attributes {schedule = #kf.vector<workgroup = [7, 96], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<7x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<7x96xf32>
}

// -----

// Evenly, five of them are tiles of 3 and of 2.
// CHECK-LABEL: func.func @five_even(
// CHECK:         scf.for %{{.*}} = %c0 to %c3
// CHECK-COUNT-48:  kf.dp4a
// CHECK-NOT:       kf.dp4a
// CHECK-COUNT-6:   vector.store
// CHECK-COUNT-32:  kf.dp4a
// CHECK-NOT:       kf.dp4a
kf.kernel @five_even(%x: tensor<5x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<5x96xf32>
    attributes {schedule = #kf.vector<workgroup = [5, 96], tile = [4, 32], lanes = 16, dot = i8, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<5x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<5x96xf32>
}

// -----

// Without an instruction that multiplies, adds and rounds once, 1.5 * 2^23 is
// taken off a sum before it is multiplied by the scale.
module attributes {kf.target = #kf.cpu_target<cpu = "x86-64-v2", lanes = 4, int8_dot = true, byte_dot = pmaddubsw>} {
// CHECK-LABEL: func.func @unfused(
// CHECK-DAG:     %[[BASE:.*]] = arith.constant dense<0x4B400000> : vector<4xf32>
// CHECK-DAG:     %[[SCALES:.*]] = memref.view {{.*}} to memref<2x1x2x4xf32>
// CHECK-COUNT-32:  kf.dp4a
// CHECK-NOT:       kf.dp4a
// CHECK:           %[[BITS:.*]] = vector.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
// CHECK-NEXT:      %[[SUM:.*]] = arith.subf %[[BITS]], %[[BASE]]
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[SUM]]
// CHECK-NEXT:      vector.fma %[[SCALED]]
kf.kernel @unfused(%x: tensor<32x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 8>>)
    -> tensor<32x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 96], tile = [2, 8], lanes = 4, dot = i8, panels = unpacked>} {
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 8>>
  kf.yield %0 : tensor<32x96xf32>
}
}

// -----

// dot = f32: 8 units of a block in a loop; codes become floats in registers,
// 4 bytes of a lane one after the other.
// CHECK-LABEL: func.func @float(
// CHECK-SAME:    memref<6x1x1x2368xi8>
// CHECK-NOT:     kf.dp4a
// CHECK:         scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// CHECK:           arith.extui {{.*}} : vector<8xi8> to vector<8xi32>
// CHECK:           arith.sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-COUNT-128: vector.fma
// CHECK-NOT:       vector.fma
kf.kernel @float(%x: tensor<2x256xf32>, %w: tensor<96x256x!kf.quant<q4_k>, #kf.layout<panel = 16>>)
    -> tensor<2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 96], tile = [2, 16], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<2x256xf32>, tensor<96x256x!kf.quant<q4_k>, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<2x96xf32>
}

// -----

// An embedding reads rows of blocks as the file has them.
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME:    memref<?xi32>, %[[T:.*]]: memref<50x34xi8>
// CHECK:         vector.load %[[T]]{{.*}} vector<2xi8>
// CHECK:         vector.bitcast {{.*}} : vector<2xi8> to vector<1xf16>
// CHECK:         vector.load %[[T]]{{.*}} vector<16xi8>
kf.kernel @embedding(%ids: tensor<?xi32>, %table: tensor<50x32x!kf.quant<q8_0>>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<50x32x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// A table may be a view of rows of another rank.
// CHECK-LABEL: func.func @viewed_table(
// CHECK-SAME:    memref<?xi32>, %[[T:.*]]: memref<2x4x68xi8>
// CHECK:         vector.load %[[T]][%{{.*}}, %{{.*}}, %{{.*}}] : memref<2x4x68xi8>, vector<16xi8>
kf.kernel @viewed_table(%ids: tensor<?xi32>, %table: tensor<2x4x64x!kf.quant<q8_0>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = tensor.collapse_shape %table [[0, 1], [2]] : tensor<2x4x64x!kf.quant<q8_0>> into tensor<8x64x!kf.quant<q8_0>>
  %1 = kf.embedding %ids, %0 : tensor<?xi32>, tensor<8x64x!kf.quant<q8_0>>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

// A scale of a byte of exponent is half of the power of two that it stands for,
// the least two of which are subnormal, or NaN.
// CHECK-LABEL: func.func @exponents(
// CHECK:         %[[BYTE:.*]] = memref.load %{{.*}} : memref<50x17xi8>
// CHECK:         %[[B:.*]] = arith.extui %[[BYTE]] : i8 to i32
// CHECK:         %[[E:.*]] = arith.subi %[[B]], %c1_i32
// CHECK:         %[[NORMAL:.*]] = arith.shli %[[E]], %c23_i32
// CHECK:         %[[M:.*]] = arith.addi %[[B]], %c1_i32
// CHECK:         %[[SUBNORMAL:.*]] = arith.shli %[[M]], %c21_i32
// CHECK:         %[[SMALL:.*]] = arith.cmpi ult, %[[B]], %c2_i32
// CHECK:         %[[BITS:.*]] = arith.select %[[SMALL]], %[[SUBNORMAL]], %[[NORMAL]]
// CHECK:         %[[NAN:.*]] = arith.cmpi eq, %[[B]], %c255_i32
// CHECK:         %[[ALL:.*]] = arith.select %[[NAN]], %c2143289344_i32, %[[BITS]]
// CHECK:         arith.bitcast %[[ALL]] : i32 to f32
kf.kernel @exponents(%ids: tensor<?xi32>, %table: tensor<50x32x!kf.quant<mxfp4>>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<50x32x!kf.quant<mxfp4>>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// The table of a format is one constant of a module, found by what it holds.
// CHECK:       memref.global "private" constant @kf_block_table : memref<16xf32> = dense<0.0
// CHECK:       memref.global "private" constant @kf_block_table_0 : memref<16xf32> = dense<[-1.270000e+02, -1.040000e+02
// CHECK-NOT:   memref.global
// CHECK-LABEL: func.func @first(
// CHECK:         memref.get_global @kf_block_table_0
// CHECK-LABEL: func.func @second(
// CHECK:         memref.get_global @kf_block_table_0
memref.global "private" constant @kf_block_table : memref<16xf32> = dense<0.0>
kf.kernel @first(%ids: tensor<?xi32>, %table: tensor<50x32x!kf.quant<iq4_nl>>) -> tensor<?x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<50x32x!kf.quant<iq4_nl>>
  kf.yield %0 : tensor<?x32xf32>
}
kf.kernel @second(%ids: tensor<?xi32>, %table: tensor<50x64x!kf.quant<iq4_nl>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<50x64x!kf.quant<iq4_nl>>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

// Sub-blocks of 16 share the scale of x: their sums are added before it is
// applied, once a row and vector.
module attributes {kf.target = #kf.cpu_target<cpu = "x86-64-v4", lanes = 16, int8_dot = true, byte_dot = vpdpbusd>} {
// CHECK-LABEL: func.func @short_blocks(
// CHECK:           scf.for
// CHECK-COUNT-8:   kf.dp4a
// CHECK:           %[[FIRST:.*]] = vector.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK:           kf.dp4a
// CHECK:           %[[SECOND:.*]] = vector.fma
// CHECK-NEXT:      %[[BOTH:.*]] = arith.addf %[[FIRST]], %[[SECOND]]
// CHECK-NEXT:      vector.fma %[[BOTH]], %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK-NEXT:      memref.load
kf.kernel @short_blocks(%x: tensor<2x256xf32>, %w: tensor<32x256x!kf.quant<q6_k>, #kf.layout<panel = 16>>)
    -> tensor<2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [2, 32], tile = [2, 16], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<2x256xf32>, tensor<32x256x!kf.quant<q6_k>, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<2x32xf32>
}
}
