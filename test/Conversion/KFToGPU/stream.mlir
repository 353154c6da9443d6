// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

// Copies of all slots but one are under way before x is read. Then each step
// waits for the oldest, starts those of a later step and multiplies: two tiles,
// which share a load of x.
kf.kernel @plain(%x: tensor<1x256xf32>, %w: tensor<96x256xbf16, #kf.fragments>) -> tensor<1x96xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 32], warps = 4, tiles = 2, stages = 3, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<96x256xbf16, #kf.fragments>
  kf.yield %0 : tensor<1x96xf32>
}
// CHECK-LABEL: gpu.func @plain
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<64xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[RING:.*]] : memref<768xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[SUMS:.*]] : memref<256xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [0, 0], counts = [1, 3]>
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK-COUNT-2: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %c16_i32
// CHECK:         nvvm.cp.async.commit.group
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.commit.group
// CHECK-NOT:     nvvm.cp.async
// CHECK:         scf.for
// CHECK:           arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-2:   memref.store %{{.*}}, %[[X]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             nvvm.cp.async.wait.group 1
// CHECK-COUNT-2:     memref.load %[[RING]]
// CHECK:             scf.if
// CHECK-COUNT-2:       nvvm.cp.async.shared.global
// CHECK:             nvvm.cp.async.commit.group
// CHECK:             memref.load %[[X]]
// CHECK-COUNT-2:     nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}<m = 16, n = 8, k = 16>
// CHECK-NOT:         nvvm.mma.sync
// CHECK-COUNT-4:   memref.store %{{.*}}, %[[SUMS]]
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK-COUNT-8:   memref.load %[[SUMS]]
// CHECK-NOT:       memref.load %[[SUMS]]
// CHECK:           memref.store %{{.*}}, %arg2

// -----

// The scale of a norm is multiplied to the sums; x past the end is zero, and so
// are tiles, which are not read then. x comes in parts, between which copies go
// on. Rows 8 to 15 have columns of their own.
kf.kernel @norm_in_parts(%x: tensor<?x300xf32>, %g: tensor<300xf32>, %w: tensor<2x40x300xf16, #kf.fragments>) -> tensor<?x40xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 8], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared, reduction = 256>} {
  %n = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x300xf32>, tensor<300xf32>
  %0 = kf.matmul %n, %w glu(silu) : tensor<?x300xf32>, tensor<2x40x300xf16, #kf.fragments>
  kf.yield %0 : tensor<?x40xf32>
}
// CHECK-LABEL: gpu.func @norm_in_parts
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<1024xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[RING:.*]] : memref<256xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[SUMS:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[SQUARES:.*]] : memref<256xf32, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[SCALES:.*]] : memref<16xf32, #gpu.address_space<workgroup>>,
// CHECK:         %[[BYTES:.*]] = arith.select %{{.*}}, %c16_i32, %c0_i32 : i32
// CHECK:         nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[BYTES]]
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK-NEXT:      gpu.barrier
// CHECK:           scf.for
// CHECK-COUNT-2:     nvvm.shfl.sync {{ ?}}bfly
// CHECK:             memref.store %{{.*}}, %[[SQUARES]]
// CHECK:           gpu.barrier
// CHECK:           scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:             nvvm.cp.async.wait.group 0
// CHECK:             nvvm.cp.async.commit.group
// CHECK-COUNT-8:     nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT:         nvvm.mma.sync
// CHECK:         memref.store %{{.*}}, %[[SUMS]]
// CHECK:         gpu.barrier
// CHECK:         math.sqrt
// CHECK:         memref.store %{{.*}}, %[[SCALES]]
// CHECK:         gpu.barrier
// CHECK:         memref.load %[[SCALES]]

// -----

// Each of two warps has two of three row blocks, and both shares of K one after
// the other: it adds up what they have, from -0 on, so that there is one sum
// of each element. A load of x is for both row blocks, and a row block that
// there is not is neither read nor stored.
kf.kernel @blocks_of_warps(%x: tensor<8x128xf32>, %w: tensor<48x128xbf16, #kf.fragments>) -> tensor<8x48xf32>
    attributes {schedule = #kf.stream<workgroup = [8, 48], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared, block_warps = 2, blocks = 2>} {
  %0 = kf.matmul %x, %w : tensor<8x128xf32>, tensor<48x128xbf16, #kf.fragments>
  kf.yield %0 : tensor<8x48xf32>
}
// CHECK-LABEL: gpu.func @blocks_of_warps
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<128xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[RING:.*]] : memref<512xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[SUMS:.*]] : memref<768xf32, #gpu.address_space<workgroup>>)
// CHECK:         %[[NOTHING:.*]] = arith.constant -0.000000e+00 : f32
// CHECK:         arith.cmpi {{.*}}%c3
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args({{.*}} = %[[NOTHING]]
// CHECK-NEXT:      gpu.barrier
// CHECK:           gpu.barrier
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-COUNT-4:   memref.load %[[RING]]
// CHECK:           memref.load %[[X]]
// CHECK-COUNT-4:   nvvm.mma.sync
// CHECK:           memref.load %[[X]]
// CHECK-COUNT-4:   nvvm.mma.sync
// CHECK-NOT:       nvvm.mma.sync
// CHECK:           arith.addf
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[SUMS]]

// -----

// Other norms are computed before.
kf.kernel @layer_norm(%x: tensor<2x64xf32>, %g: tensor<64xf32>, %w: tensor<16x64xf16, #kf.fragments>) -> tensor<2x16xf32>
    attributes {schedule = #kf.stream<workgroup = [2, 16], warps = 2, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
  %n = kf.layer_norm %x, %g eps(1.0e-5) : tensor<2x64xf32>, tensor<64xf32>
  %0 = kf.matmul %n, %w : tensor<2x64xf32>, tensor<16x64xf16, #kf.fragments>
  kf.yield %0 : tensor<2x16xf32>
}
// CHECK-LABEL: gpu.func @layer_norm
// CHECK:         math.sqrt
// CHECK:         nvvm.cp.async.shared.global
// CHECK-COUNT-2: nvvm.mma.sync

// -----

// Of blocks, lanes share what they have copied. A unit's two products begin with
// what its sums of x subtract, and are scaled before they are added.
kf.kernel @blocks(%x: tensor<1x256xf32>, %w: tensor<16x256x!kf.quant<q4_0>, #kf.fragments>) -> tensor<1x16xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<16x256x!kf.quant<q4_0>, #kf.fragments>
  kf.yield %0 : tensor<1x16xf32>
}
// CHECK-LABEL: gpu.func @blocks
// CHECK-SAME:    memref<288xvector<4xi32>, #gpu.address_space<workgroup>>
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK:         scf.if
// CHECK:           nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.commit.group
// CHECK-COUNT-2: nvvm.shfl.sync {{ ?}}bfly
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK:         nvvm.bar.warp.sync
// CHECK-COUNT-6: llvm.load
// CHECK-COUNT-2: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-COUNT-4: math.fma
// CHECK-COUNT-14: nvvm.mma.sync
// Where a sum is not finite, all once more, of rows that are scaled.
// CHECK:         %[[ODD:.*]] = arith.cmpf une, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    scf.if %[[ODD]] {
// CHECK-NEXT:      memref.store %c1_i32, %[[FLAG:.*]][%c0]
// CHECK:         gpu.barrier
// CHECK-NEXT:    %[[NOTED:.*]] = memref.load %[[FLAG]][%c0]
// CHECK-NEXT:    %[[AGAIN:.*]] = arith.cmpi ne, %[[NOTED]], %c0_i32 : i32
// CHECK-NEXT:    scf.if %[[AGAIN]] {
// CHECK:           memref.atomic_rmw maxu
// CHECK-COUNT-16:  nvvm.mma.sync
// CHECK-NOT:     nvvm.mma.sync

// -----

// Of floats, codes are masked out of their words as f16: nothing is above their
// values, so that no sums of x are made. Scales are bytes of exponents, of which
// 255 makes a NaN.
kf.kernel @floats(%x: tensor<1x256xf32>, %w: tensor<16x256x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<1x16xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<16x256x!kf.quant<mxfp4>, #kf.fragments>
  kf.yield %0 : tensor<1x16xf32>
}
// CHECK-LABEL: gpu.func @floats
// CHECK-SAME:    memref<272xvector<4xi32>, #gpu.address_space<workgroup>>
// CHECK-NOT:     nvvm.shfl.sync
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK:         nvvm.bar.warp.sync
// CHECK-DAG:     arith.andi %{{.*}}, %c-1912566272_i32 : i32
// CHECK-COUNT-2: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK:         %[[BITS:.*]] = arith.andi %{{.*}}, %c2139095040_i32 : i32
// CHECK-NEXT:    %[[MOST:.*]] = arith.maxui %[[BITS]], %c4194304_i32 : i32
// CHECK-NEXT:    %[[POWER:.*]] = arith.bitcast %[[MOST]] : i32 to f32
// CHECK-NEXT:    math.fma %[[POWER]], %cst{{.*}}, %[[POWER]] : f32
// CHECK-COUNT-14: nvvm.mma.sync

// -----

// Codes of few bits are scaled as f16 before they are multiplied, where their
// integers are those of halves of a span: these come out of the lowest bits of
// 1024, for both rows at once, and one operation scales two codes and subtracts
// what they are above. Bits above the two of a plane are moved once for all of a
// row's. Codes of a span's second half stay four bits above those of the first,
// their integers being that much smaller. Products of all spans add up, those of
// halves by themselves, and there are no sums of x.
kf.kernel @scaled(%x: tensor<1x256xf32>, %w: tensor<16x256x!kf.quant<q3_k>, #kf.fragments>) -> tensor<1x16xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<16x256x!kf.quant<q3_k>, #kf.fragments>
  kf.yield %0 : tensor<1x16xf32>
}
// CHECK-LABEL: gpu.func @scaled
// CHECK-DAG:     %[[BY:.*]] = arith.constant dense<[6.250000e-02, 3.125000e-02]> : vector<2xf16>
// CHECK-DAG:     %[[ABOVE:.*]] = arith.constant dense<[-7.200000e+01, -3.600000e+01]> : vector<2xf16>
// CHECK-NOT:     nvvm.shfl.sync
// CHECK:         nvvm.bar.warp.sync
// CHECK:         llvm.call_intrinsic "llvm.nvvm.prmt"(%[[WORD:.*]], %c1684300900_i32, %c16960_i32)
// CHECK:         %[[SCALES:.*]] = math.fma %{{.*}} : vector<2xf16>
// CHECK-NEXT:    arith.mulf %[[SCALES]], %{{.*}} : vector<2xf16>
// CHECK-NEXT:    arith.andi %[[LOW:.*]], %c196611_i32 : i32
// CHECK-NEXT:    %[[HIGH:.*]] = arith.shli %{{.*}}, %c2_i32 : i32
// CHECK-NEXT:    arith.andi %[[HIGH]], %c262148_i32 : i32
// CHECK:         math.fma
// CHECK-NEXT:    %[[LOWER:.*]] = arith.shrui %[[LOW]], %c7_i32 : i32
// CHECK-NEXT:    arith.andi %[[LOWER]], %c393222_i32 : i32
// CHECK-NEXT:    arith.andi %[[HIGH]], %c524296_i32 : i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.prmt"(%[[WORD]], %c1684300900_i32, %c17217_i32)
// CHECK-NEXT:    llvm.bitcast
// CHECK-NEXT:    math.fma %{{.*}}, %[[BY]], %[[ABOVE]] : vector<2xf16>
// CHECK:         %[[FIRST:.*]] = nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NEXT:    %[[SUM:.*]] = llvm.extractvalue %[[FIRST]][0]
// CHECK:         %[[SECOND:.*]] = nvvm.mma.sync
// CHECK-NEXT:    %[[OTHER:.*]] = llvm.extractvalue %[[SECOND]][0]
// CHECK:         nvvm.mma.sync {{.*}} C[%[[SUM]],
// CHECK:         nvvm.mma.sync {{.*}} C[%[[OTHER]],
// CHECK-COUNT-12: nvvm.mma.sync

// -----

// Rows of 16 bits are held: a lane reads 8 columns at a time, of 16 rows two
// times as many, and they go through workgroup memory, 8 rows at a time. Both
// warps multiply two tiles of each row block, and what they have of two of them
// is added behind one barrier.
kf.kernel @held(%x: tensor<16x64xbf16>, %w: tensor<48x64xbf16, #kf.fragments>) -> tensor<16x48xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 48], warps = 2, tiles = 2, stages = 3, unit = mma_sync, rows = rounded, held = registers>} {
  %0 = kf.matmul %x, %w wide : tensor<16x64xbf16>, tensor<48x64xbf16, #kf.fragments>
  kf.yield %0 : tensor<16x48xf32>
}
// CHECK-LABEL: gpu.func @held(
// CHECK-SAME:    workgroup(%{{.*}} : memref<6144xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64},
// CHECK-SAME:              %{{.*}} : memref<8960xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     llvm.load
// CHECK:         llvm.store
// CHECK-NEXT:    nvvm.bar.warp.sync
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK:         nvvm.bar.warp.sync
// CHECK:         llvm.store
// CHECK-NEXT:    nvvm.bar.warp.sync
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK:           nvvm.cp.async.wait.group 1
// CHECK-COUNT-2:   llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:           nvvm.cp.async.commit.group
// CHECK-COUNT-4:   nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}<m = 16, n = 8, k = 16>
// CHECK-NOT:       nvvm.mma.sync
// CHECK-COUNT-2:   llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<3>
// CHECK:           scf.if
// CHECK:             gpu.barrier
// CHECK:             scf.for
// CHECK-COUNT-2:       llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:           llvm.load
// CHECK:               memref.store

// -----

// Of blocks, the sums of a unit's columns are at hand in registers, too, and
// what codes are above values is one product more for each tile. K comes in
// slices, whose sums are in workgroup memory; x past its end is zero, and there
// are fewer rows than 8.
kf.kernel @held_blocks(%x: tensor<?x544xf16>, %w: tensor<2x8x544x!kf.quant<q4_0>, #kf.fragments>) -> tensor<?x8xf32>
    attributes {schedule = #kf.stream<workgroup = [7, 8], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 256>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x544xf16>, tensor<2x8x544x!kf.quant<q4_0>, #kf.fragments>
  kf.yield %0 : tensor<?x8xf32>
}
// CHECK-LABEL: gpu.func @held_blocks
// CHECK-SAME:    workgroup(%{{.*}} : memref<4608xi8, #gpu.address_space<workgroup>> {{{[^}]*}}},
// CHECK-SAME:              %{{.*}} : memref<4224xi8, #gpu.address_space<workgroup>> {{{[^}]*}}},
// CHECK-SAME:              %[[TOTALS:.*]] : memref<112xf32, #gpu.address_space<workgroup>>)
// CHECK:         scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-16:  nvvm.shfl.sync {{ ?}}bfly
// CHECK-NOT:       nvvm.shfl.sync
// CHECK:           gpu.barrier
// CHECK-COUNT-17:    nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT:         nvvm.mma.sync
// CHECK:             memref.store %{{.*}}, %[[TOTALS]]
// CHECK:         gpu.barrier
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> f32

// -----

// Codes that are floats want no sums, and no product more.
kf.kernel @held_floats(%x: tensor<?x544xf16>, %w: tensor<2x8x544x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<?x8xf32>
    attributes {schedule = #kf.stream<workgroup = [7, 8], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 256>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x544xf16>, tensor<2x8x544x!kf.quant<mxfp4>, #kf.fragments>
  kf.yield %0 : tensor<?x8xf32>
}
// CHECK-LABEL: gpu.func @held_floats
// CHECK-NOT:       nvvm.shfl.sync
// CHECK-COUNT-16:    nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT:         nvvm.mma.sync

// -----

// Scaled codes of held rows add up in one sum of each; minimums are what sums of
// x are for, those of all halves in two products.
kf.kernel @held_scaled(%x: tensor<?x512xf16>, %w: tensor<2x8x512x!kf.quant<q2_k>, #kf.fragments>) -> tensor<?x8xf32>
    attributes {schedule = #kf.stream<workgroup = [7, 8], warps = 1, tiles = 1, stages = 2, unit = mma_sync, rows = rounded, held = registers, reduction = 256>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x512xf16>, tensor<2x8x512x!kf.quant<q2_k>, #kf.fragments>
  kf.yield %0 : tensor<?x8xf32>
}
// CHECK-LABEL: gpu.func @held_scaled
// CHECK-COUNT-32: nvvm.shfl.sync {{ ?}}bfly
// CHECK:         arith.andi %{{.*}}, %c252645135_i32 : i32
// CHECK:         arith.subf %{{.*}} : vector<2xf16>
// CHECK:         %[[FIRST:.*]] = nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NEXT:    %[[SUM:.*]] = llvm.extractvalue %[[FIRST]][0]
// CHECK:         nvvm.mma.sync {{.*}} C[%[[SUM]],
// CHECK-COUNT-16: nvvm.mma.sync
// CHECK-NOT:     nvvm.mma.sync

// -----

// Threads that take elements one by one find them in their tiles: row 8 to 15
// of a row block in the second and fourth word of a lane.
kf.kernel @by_element(%x: tensor<1x40xf32>, %w: tensor<30x40xbf16, #kf.fragments>) -> tensor<1x30xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 8], threads = [8, 4], tile = [1, 2], sums = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x40xf32>, tensor<30x40xbf16, #kf.fragments>
  kf.yield %0 : tensor<1x30xf32>
}
// CHECK-LABEL: gpu.func @by_element
// CHECK-SAME:    %[[W:.*]]: memref<?xi16>
// CHECK:         scf.for
// CHECK:           %[[BITS:.*]] = memref.load %arg1
// CHECK:           arith.extui %[[BITS]] : i16 to i32

// -----

// A tile of f8E4M3FN has 32 columns, which become the left operands of two
// products of f16; its sums are scaled where they are stored. Where the chip
// does not convert codes, bits are moved.
kf.kernel @float8(%x: tensor<1x256xf32>, %w: tensor<16x256xf8E4M3FN, #kf.fragments>, %s: tensor<16xf32>) -> tensor<1x16xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 16], warps = 4, tiles = 2, stages = 2, unit = mma_sync, rows = split, held = shared>} {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<16xf32>) : tensor<1x256xf32>, tensor<16x256xf8E4M3FN, #kf.fragments>
  kf.yield %0 : tensor<1x16xf32>
}
// CHECK-LABEL: gpu.func @float8
// CHECK-SAME:    %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xi8>, %[[S:[a-z0-9]+]]: memref<?xf32>
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<64xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[RING:.*]] : memref<512xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK:         arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK-COUNT-2: memref.load %[[RING]]
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK:         memref.load %[[X]]
// CHECK-COUNT-2: nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT:     nvvm.mma.sync
// CHECK:         %[[SCALE:.*]] = memref.load %[[S]]
// CHECK:         arith.mulf %{{.*}}, %[[SCALE]]

// -----

// A weight of f32 is split when it is multiplied, and so is what matrix units
// multiply it with: a load of x is for two tiles, and each tile's rest and its
// larger part are multiplied one after the other.
kf.kernel @singles(%x: tensor<1x256xf32>, %w: tensor<96x256xf32, #kf.fragments>) -> tensor<1x96xf32>
    attributes {schedule = #kf.stream<workgroup = [1, 32], warps = 4, tiles = 4, stages = 3, unit = tf32_pairs, rows = f32, held = shared>} {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<96x256xf32, #kf.fragments>
  kf.yield %0 : tensor<1x96xf32>
}
// CHECK-LABEL: gpu.func @singles
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<64xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-SAME:              %[[RING:.*]] : memref<1536xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-DAG:     %[[TF32:.*]] = arith.constant -8192 : i32
// CHECK-DAG:     %[[INFINITY:.*]] = arith.constant 0x7F800000 : f32
// CHECK:         nvvm.cp.async.wait.group 1
// CHECK-COUNT-4: memref.load %[[RING]]
// CHECK:         memref.load %[[X]]
// CHECK:         %[[LARGE:.*]] = arith.andi %[[BITS:.*]], %[[TF32]]
// CHECK:         %[[ABS:.*]] = math.absf %[[VALUE:.*]] : f32
// CHECK:         %[[INFINITE:.*]] = arith.cmpf oeq, %[[ABS]], %[[INFINITY]]
// CHECK:         %[[REST:.*]] = arith.subf %[[VALUE]], %
// CHECK:         arith.select %[[INFINITE]], %{{.*}}, %[[REST]]
// CHECK:         arith.select %[[INFINITE]], %c0_i32, %[[LARGE]]
// CHECK-COUNT-4: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}<m = 16, n = 8, k = 8>
// CHECK:         memref.load %[[X]]
// CHECK-COUNT-4: nvvm.mma.sync
// CHECK-NOT:     nvvm.mma.sync

// -----

// Both parts of 16 rows have columns of their own.
kf.kernel @rows_of_singles(%x: tensor<16x256xf32>, %w: tensor<96x256xf32, #kf.fragments>) -> tensor<16x96xf32>
    attributes {schedule = #kf.stream<workgroup = [16, 32], warps = 4, tiles = 4, stages = 3, unit = tf32_pairs, rows = f32, held = shared, blocks = 2>} {
  %0 = kf.matmul %x, %w : tensor<16x256xf32>, tensor<96x256xf32, #kf.fragments>
  kf.yield %0 : tensor<16x96xf32>
}
// CHECK-LABEL: gpu.func @rows_of_singles
// CHECK-SAME:    workgroup(%[[X:.*]] : memref<1024xvector<4xi32>, #gpu.address_space<workgroup>>,
// CHECK-COUNT-2:  memref.load %[[X]]
// CHECK-COUNT-32: nvvm.mma.sync {{.*}}tf32
// CHECK-COUNT-2:  memref.load %[[X]]
// CHECK-COUNT-32: nvvm.mma.sync {{.*}}tf32
// CHECK-NOT:      nvvm.mma.sync
