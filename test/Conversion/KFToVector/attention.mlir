// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// A table for one sequence: all rows are one run. Online softmax: blocks of `reduction` keys, tiles of query rows. Keys lie in
// blocks of key_block, transposed, so that scores of 16 keys are one vector.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:    %[[Q:.*]]: memref<?x2x16xf32>, %[[C:.*]]: memref<?xf32>, %[[P:.*]]: memref<?xi32>, %{{.*}}: memref<?xi32>, %[[T:.*]]: memref<1x4xi32>, %[[R:.*]]: memref<?x2x16xf32>
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [4, 0], counts = [0, 1]>
// The scaled queries and their positions:
// CHECK:         memref.load %[[P]]
// CHECK:         vector.load %[[Q]]
// CHECK-NEXT:    arith.mulf %{{.*}}, %cst{{.*}} : vector<16xf32>
// Blocks of keys, each in one page of the cache, tiles of two rows that see some of them, and the scores of 16
// keys:
// CHECK:         scf.for %[[KEY:.*]] = %c0 to %{{.*}} step %c16
// CHECK-NEXT:      arith.remui %[[KEY]], %c64
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.divui %[[KEY]], %c64
// CHECK-NEXT:      %[[ENTRY:.*]] = memref.load %[[T]][%c0, %[[NUMBER]]]
// CHECK-NEXT:      %[[PAGE:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
// CHECK:           arith.minui %[[PAGE]]
// CHECK-NEXT:      arith.muli %{{.*}}, %c2048
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK:               scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:                 memref.prefetch %[[C]]{{.*}}, read, locality<2>
// CHECK:                 vector.load %[[C]]{{.*}}, vector<16xf32>
// CHECK:                 vector.fma
// No key after the query's position, and the new maximum:
// CHECK:               arith.cmpi sle
// CHECK-COUNT-4:       arith.cmpf ogt, %{{.*}} : vector<{{[0-9]+}}xf32>
// CHECK:               arith.cmpf ogt, %{{.*}} : f32
// CHECK:               math.exp
// CHECK:               vector.reduction <add>
// The values that both rows see; behind them, each row takes those it sees:
// CHECK:               scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:               scf.for
// CHECK:                 scf.for %{{.*}} = %c0 to %c2
// CHECK:                   %[[SEEN:.*]] = arith.cmpi sle
// CHECK:                   scf.if %[[SEEN]] {
// CHECK:                     vector.load %[[C]]
// CHECK:         vector.store %{{.*}}, %[[R]]
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
kf.kernel @attention(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 16, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x16xf32>
}

// -----

// Another schedule: vectors of 8, 64 keys a block, 4 rows of query heads; four
// vectors of scores a row.
// CHECK-LABEL: func.func @attention(
// CHECK:         scf.for %{{.*}} = %c0 to %{{.*}} step %c64
// CHECK:         iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT:     vector<16xf32>
// CHECK:         return
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 8>
kf.kernel @attention(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [4], reduction = 64, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x16xf32>
}

// -----

// Rotated queries of a windowed attention with a bf16 cache of two KV heads.
// CHECK-LABEL: func.func @rotated(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xbf16>
// CHECK-SAME:    %[[GROUP:[a-z0-9]+]]: index) attributes {kf.grid = #kf.grid<tokens = [4, 0], counts = [0, 2]>
// CHECK-DAG:     arith.remui %[[GROUP]], %c2
// CHECK-DAG:     arith.divui %[[GROUP]], %c2
// CHECK:         vector.load %[[C]]{{.*}}, vector<16xbf16>
// CHECK:         arith.extf
// CHECK:         arith.cmpi sle
// CHECK:         arith.cmpi sge
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = bf16, key_block = 16>
kf.kernel @rotated(%q: tensor<?x4x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !layer) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 16, lanes = 16>} {
  %0 = kf.rope %q, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x4x16xf32>, tensor<?xi32>
  %1 = kf.attention %0, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32, window = 8 : i64}
      : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %1 : tensor<?x4x16xf32>
}

// -----

// A table for three sequences: a run ends where another sequence begins, and
// each run is computed as if it were alone.
// CHECK-LABEL: func.func @sequences(
// CHECK-SAME:    %{{.*}}: memref<?x2x16xf32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xi32>, %[[S:.*]]: memref<?xi32>, %[[T:.*]]: memref<3x4xi32>
// CHECK:         scf.for %[[TOKEN:.*]] = %c0 to
// CHECK:           memref.load %[[S]]
// CHECK-NEXT:      %[[OWN:.*]] = arith.index_cast
// CHECK:           memref.load %[[S]]
// CHECK-NEXT:      %[[BEFORE:.*]] = arith.index_cast
// CHECK-NEXT:      %[[DIFFERS:.*]] = arith.cmpi ne, %[[BEFORE]], %[[OWN]] : index
// CHECK-NEXT:      %[[BEGINS:.*]] = arith.ori %{{.*}}, %[[DIFFERS]]
// CHECK-NEXT:      scf.if %[[BEGINS]] {
// CHECK:             %[[END:.*]] = scf.for {{.*}} iter_args({{.*}}) -> (index)
// CHECK:             arith.subi %[[END]], %[[TOKEN]]
// CHECK:             %[[KNOWN:.*]] = arith.minui %{{.*}}, %c2
// CHECK:             memref.load %[[T]][%[[KNOWN]]
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
kf.kernel @sequences(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<3x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 16, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<3x4xi32>
  kf.yield %0 : tensor<?x2x16xf32>
}

// -----

// As many sequences as the step has.
// CHECK-LABEL: func.func @any_sequences(
// CHECK-SAME:    %[[T:[^ ]*]]: memref<?x4xi32>
// CHECK-SAME:    %[[SCALARS:[^ ]*]]: memref<8xi64>
// CHECK:         %[[SIZE:.*]] = memref.load %[[SCALARS]][%c2]
// CHECK-NEXT:    %[[COUNT:.*]] = arith.index_cast %[[SIZE]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:         %[[KNOWN:.*]] = arith.minui %{{.*}}, %[[LAST]]
// CHECK:         memref.load %[[T]][%[[KNOWN]]
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
module attributes {kf.sizes = ["sequences"]} {
kf.kernel @any_sequences(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<?x4xi32, #kf.size<sequences>>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 16, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<?x4xi32, #kf.size<sequences>>
  kf.yield %0 : tensor<?x2x16xf32>
}
}

// -----

// A token that is alone of its sequence has tiles of its own: no row of them is
// computed in vain.
// CHECK-LABEL: func.func @alone(
// CHECK:         %[[END:.*]] = scf.for {{.*}} -> (index) {
// CHECK:         %[[COUNT:.*]] = arith.subi %[[END]], %{{.*}} : index
// CHECK:         %[[ALONE:.*]] = arith.cmpi eq, %[[COUNT]], %c1
// CHECK:         scf.if %[[ALONE]] {
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>) {
// CHECK:         } else {
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
kf.kernel @alone(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<3x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [6, 2], reduction = 16, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<3x4xi32>
  kf.yield %0 : tensor<?x2x16xf32>
}

// -----

// Blocks: for each 32 elements of head_dim, the scales of 16 keys are loaded,
// then codes, which are multiplied by them; the scale of a value is one number.
// CHECK-LABEL: func.func @blocks(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xi8>
// CHECK:         scf.for %{{.*}} = %c0 to %c2 {{.*}} iter_args
// CHECK:           vector.load %[[C]]{{.*}}, vector<32xi8>
// CHECK-NEXT:      vector.bitcast %{{.*}} : vector<32xi8> to vector<16xf16>
// CHECK-NEXT:      %[[SCALES:.*]] = arith.extf
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %c32
// CHECK:             memref.prefetch %[[C]]{{.*}}, read, locality<3>
// CHECK:             %[[CODES:.*]] = vector.load %[[C]]{{.*}}, vector<16xi8>
// CHECK-NEXT:        %[[WIDE:.*]] = arith.extsi %[[CODES]]
// CHECK-NEXT:        %[[FLOATS:.*]] = arith.sitofp %[[WIDE]]
// CHECK-NEXT:        arith.mulf %[[FLOATS]], %[[SCALES]]
// CHECK:         math.exp
// CHECK:         vector.load %[[C]]{{.*}}, vector<2xi8>
// CHECK:         vector.load %[[C]]{{.*}}, vector<16xi8>
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>, key_block = 16>
kf.kernel @blocks(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 16, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

// Tiles of AMX: queries in bf16; keys and values of a block in bf16, two of
// them next to one another, once for all rows.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xf16>
// CHECK-DAG:     %[[SCORES:.*]] = memref.view {{.*}} to memref<16x64xf32>
// CHECK-DAG:     %[[SUMS:.*]] = memref.view {{.*}} to memref<47x64xf32>
// CHECK-DAG:     %[[LARGEST:.*]] = memref.view {{.*}} to memref<32xi16>
// CHECK-DAG:     %[[WEIGHTS:.*]] = memref.view {{.*}} to memref<16x64xbf16>
// CHECK-DAG:     %[[QUERIES:.*]] = memref.view {{.*}} to memref<47x64xbf16>
// CHECK:         %[[Q:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK-NEXT:    vector.store %[[Q]], %[[QUERIES]]
// CHECK-NOT:     memref<47x64xf32>, vector<16xbf16>
// CHECK:         scf.for %[[KEY:.*]] = %c0 to %{{.*}} step %c64
// CHECK:           scf.for %[[STEP:.*]] = %c0 to %c2
// CHECK:             scf.for %[[LINE:.*]] = %c0 to %c16
// CHECK-COUNT-4:       memref.prefetch %[[C]]{{.*}}, read, locality<2>
// CHECK-COUNT-8:       vector.load %[[C]]{{.*}}, vector<16xf16>
// CHECK:               %[[EVEN:.*]] = arith.truncf %{{.*}} to vector<16xbf16>
// CHECK-NEXT:          %[[ODD:.*]] = arith.truncf %{{.*}} to vector<16xbf16>
// CHECK-NEXT:          %[[PAIRS:.*]] = vector.interleave %[[EVEN]], %[[ODD]]
// CHECK-NEXT:          vector.store %[[PAIRS]], %{{.*}}[%c0, %[[STEP]], %[[LINE]], %c0] : memref<4x2x16x32xbf16>
// Of values, the largest is known.
// CHECK:           %[[MOST:.*]] = scf.for {{.*}} -> (vector<32xi16>)
// CHECK:             vector.interleave
// CHECK:             arith.maxui
// CHECK:           vector.store %[[MOST]], %[[LARGEST]]
// Rows that see some of the block: scores of 64 keys, weights, in bf16 too.
// CHECK:           scf.for
// CHECK:             scf.if
// CHECK-COUNT-4:       llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK:               scf.for
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT:             tdpbf16ps
// CHECK:               extract_aligned_pointer_as_index %[[SCORES]]
// CHECK-COUNT-4:       llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK:               scf.for %{{.*}} = %c0 to %c16
// CHECK:                 vector.load %[[SCORES]]
// CHECK:                 arith.cmpi sle
// CHECK:                 vector.store %{{.*}}, %[[SCORES]]
// CHECK-NOT:             math.exp
// One branch where the maximum of one of 16 rows has changed.
// CHECK:               %[[FACTORS:.*]] = math.exp %{{.*}} : vector<16xf32>
// CHECK:               %[[SAME:.*]] = vector.reduction <and>, %{{.*}} : vector<16xi1> into i1
// CHECK-NEXT:          %[[OTHER:.*]] = arith.xori %[[SAME]], %true
// CHECK-NEXT:          scf.if %[[OTHER]] {
// CHECK:               scf.for %{{.*}} = %c0 to %c16
// CHECK-NOT:             scf.if
// CHECK:                 math.exp
// CHECK:                 vector.store %{{.*}}, %[[SCORES]]
// CHECK:                 vector.store %{{.*}}, %[[WEIGHTS]]
// All values have a weight, unless one is not finite: then those that are seen.
// CHECK:               %[[BITS:.*]] = vector.load %[[LARGEST]]
// CHECK-NEXT:          %[[LARGE:.*]] = vector.reduction <maxui>, %[[BITS]]
// CHECK-NEXT:          %[[FINITE:.*]] = arith.cmpi ult, %[[LARGE]], %c32640_i16
// CHECK-NEXT:          scf.if %[[FINITE]] {
// CHECK:                 extract_aligned_pointer_as_index %[[SUMS]]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK:               } else {
// CHECK:                 vector.load %[[C]]
// CHECK:                 vector.fma
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, key_block = 16>
kf.kernel @tiles(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 2], tile = [16], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

// A token that is alone of its sequence is multiplied in f32, others by tiles.
// CHECK-LABEL: func.func @tiles_and_alone(
// CHECK-DAG:     memref.view {{.*}} to memref<23x96xbf16>
// CHECK-DAG:     memref.view {{.*}} to memref<23x96xf32>
// CHECK:         %[[ALONE:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK:         scf.if %[[ALONE]] {
// CHECK-NOT:       llvm.x86
// CHECK:           vector.fma
// CHECK-NOT:       llvm.x86
// CHECK:         } else {
// CHECK:           llvm.x86.tdpbf16ps
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 96, type = !kf.quant<q8_0>, key_block = 16>
kf.kernel @tiles_and_alone(%q: tensor<?x2x96xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<3x4xi32>) -> tensor<?x2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [16, 2], reduction = 32, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x2x96xf32>, !layer, tensor<?xi32>, tensor<3x4xi32>
  kf.yield %0 : tensor<?x2x96xf32>
}
