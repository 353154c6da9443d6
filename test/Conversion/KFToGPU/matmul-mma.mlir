// RUN: kf-opt %s --kf-set-target=target=cuda --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s

// Two stages of 64 rows and 32 lines of 32 elements: 12 KiB. Four warps, of
// which each has 16 lines and 32 rows.
// CHECK-LABEL: gpu.func @aligned(
// CHECK-SAME:    %[[X:.*]]: memref<?xi16>, %[[W:.*]]: memref<?xi16>, %[[R:.*]]: memref<?xf32>, %{{.*}}: memref<?xi32>
// CHECK-SAME:    workgroup(%{{.*}} : memref<12288xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// The first stage: two chunks of rows, one of lines.
// CHECK-COUNT-3: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK-NEXT:    gpu.barrier
// What is multiplied first: two pairs of tiles of rows, and one of lines.
// CHECK-COUNT-3: nvvm.ldmatrix %{{.*}} {{{.*}}num = 4 : i32
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK-COUNT-3:     nvvm.cp.async.shared.global
// CHECK:           nvvm.cp.async.commit.group
// Before each of two steps of 16 is multiplied, the next one is loaded.
// CHECK-COUNT-3:   nvvm.ldmatrix
// CHECK-COUNT-4:   nvvm.mma.sync A[{{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}(i32, i32, f32)
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK-NEXT:      gpu.barrier
// CHECK-COUNT-3:   nvvm.ldmatrix
// CHECK-COUNT-4:   nvvm.mma.sync
// CHECK-NOT:       nvvm.mma.sync
// CHECK:           scf.yield
// Sums are stored by neighbouring threads, where there is a row: four columns at
// a time.
// CHECK:         gpu.barrier
// CHECK-COUNT-16: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK-NOT:     llvm.store
// CHECK:         gpu.barrier
// CHECK:         scf.for
// CHECK-COUNT-4:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-16:  memref.store %{{.*}}, %[[R]]
// CHECK-NOT:       memref.store
// CHECK:         gpu.return
kf.kernel @aligned(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16>
  kf.yield %0 : tensor<?x96xf32>
}

// What is rounded to 16 bits needs no exact activation. Pairs are rounded at once,
// and four columns of a row are behind one condition.
// CHECK-LABEL: gpu.func @rounded(
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK:         math.exp %{{.*}} fastmath<afn>
// CHECK:         arith.divf %{{.*}} fastmath<afn>
// CHECK:         scf.if
// CHECK:           arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-2:   memref.store
// CHECK:           arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-2:   memref.store
kf.kernel @rounded(%x: tensor<?x64xbf16>, %w: tensor<2x96x64xbf16>) -> tensor<?x96xbf16>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w glu(silu) wide : tensor<?x64xbf16>, tensor<2x96x64xbf16>
  %1 = arith.truncf %0 : tensor<?x96xf32> to tensor<?x96xbf16>
  kf.yield %1 : tensor<?x96xbf16>
}

// What f16 does not hold is looked for in all four at once.
// CHECK-LABEL: gpu.func @rounded_half(
// CHECK:         scf.for
// CHECK:         scf.if
// CHECK:           arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK-COUNT-2:   memref.store {{.*}} : memref<?xf16>
// CHECK:           arith.truncf %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK-COUNT-2:   memref.store {{.*}} : memref<?xf16>
// CHECK-COUNT-3:   arith.maxnumf
// CHECK:           scf.if
// CHECK-COUNT-4:     scf.if
kf.kernel @rounded_half(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16>) -> (tensor<?x96xf16>, tensor<?x96xf32>)
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16>
  %h, %o = kf.round_half %0 : tensor<?x96xf32>
  kf.yield %h, %o : tensor<?x96xf16>, tensor<?x96xf32>
}

// Gate and up are in one lane. Rows whose bytes begin anywhere are copied element
// by element, and those past the last column are zeros.
// CHECK-LABEL: gpu.func @gated_odd(
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>, !llvm.ptr<3>
// CHECK:         scf.for
// CHECK-COUNT-2:   nvvm.mma.sync A[{{.*}}: (vector<2xf16>, vector<2xf16>, f32)
// CHECK-NOT:       nvvm.mma.sync
// CHECK:         math.exp
// CHECK:         scf.if
// CHECK:           memref.store
kf.kernel @gated_odd(%x: tensor<?x37xf16>, %w: tensor<2x50x37xf16>) -> tensor<?x50xf16>
    attributes {schedule = #kf.mma<workgroup = [16, 16], warps = [1, 2], reduction = 16, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x37xf16>, tensor<2x50x37xf16>
  kf.yield %0 : tensor<?x50xf16>
}

// A packed weight is copied as it lies, and a lane's words are one load.
// CHECK-LABEL: gpu.func @packed(
// CHECK-COUNT-3: nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK:         scf.for
// CHECK-COUNT-3:   nvvm.cp.async.shared.global
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64}
// CHECK-COUNT-2:   nvvm.ldmatrix
// CHECK-COUNT-4:   nvvm.mma.sync
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64}
// CHECK-COUNT-2:   nvvm.ldmatrix
// CHECK-COUNT-4:   nvvm.mma.sync
kf.kernel @packed(%x: tensor<?x64xbf16>, %w: tensor<96x64xbf16, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<96x64xbf16, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// Blocks are dequantized, and rounded, on their way to shared memory; rows are
// copied as they are.
// CHECK-LABEL: gpu.func @blocks(
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         scf.if %{{.*}} -> (vector<8xi16>)
// CHECK-COUNT-8:   arith.truncf %{{.*}} : f32 to f16
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xi16>, !llvm.ptr<3>
// CHECK:         scf.for
// CHECK:         nvvm.mma.sync A[{{.*}}: (vector<2xf16>, vector<2xf16>, f32)
kf.kernel @blocks(%x: tensor<?x64xf16>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xf16>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x96xf32>
}

// Of packed blocks, each warp copies a row block, 16 lines of 256 columns, of
// 4352 bytes: eight times 16 for each lane, and 16 for half of them. They are
// taken apart in registers, and not stored again.
// CHECK-LABEL: gpu.func @packed_blocks(
// CHECK-SAME:    workgroup(%{{.*}} : memref<43008xi8, #gpu.address_space<workgroup>>
// CHECK-COUNT-8: nvvm.cp.async.shared.global
// CHECK:         scf.if
// CHECK:           nvvm.cp.async.shared.global
// CHECK:         scf.for {{.*}} step %c256
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// Both codes of a word at once.
// CHECK:           %[[CODES:.*]] = arith.subf %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK-NEXT:      arith.mulf %[[CODES]], %{{.*}} : vector<2xf16>
// CHECK-NOT:       llvm.store
// CHECK:           nvvm.mma.sync A[{{.*}}: (vector<2xf16>, vector<2xf16>, f32)
kf.kernel @packed_blocks(%x: tensor<?x320xf16>, %w: tensor<96x320x!kf.quant<q8_0>, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x320xf16>, tensor<96x320x!kf.quant<q8_0>, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// Of floats with scales that f16 does not hold, elements are bf16: a code has
// its bits where bf16 has them, is multiplied by what exponents differ in, and
// scaled.
// CHECK-LABEL: gpu.func @packed_floats(
// CHECK:         %[[FAR:.*]] = arith.constant dense<8.507050e+37> : vector<2xbf16>
// CHECK:         scf.for {{.*}} step %c256
// CHECK:           %[[CODES:.*]] = arith.mulf %{{.*}}, %[[FAR]] : vector<2xbf16>
// CHECK-NEXT:      arith.mulf %[[CODES]], %{{.*}} : vector<2xbf16>
// CHECK:           nvvm.mma.sync A[{{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
kf.kernel @packed_floats(%x: tensor<?x320xbf16>, %w: tensor<96x320x!kf.quant<mxfp4>, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<96x320x!kf.quant<mxfp4>, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// The last 16 bytes of a row have columns of the argument that are not the
// slice's.
// CHECK-LABEL: gpu.func @sliced(
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         nvvm.mma.sync
// CHECK-NOT:     nvvm.cp.async.shared.global
// CHECK:         gpu.return
kf.kernel @sliced(%x: tensor<32x80xf16>, %w: tensor<96x44xf16>) -> tensor<32x96xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 32], warps = [2, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %s = tensor.extract_slice %x[0, 8] [32, 44] [1, 1] : tensor<32x80xf16> to tensor<32x44xf16>
  %0 = kf.matmul %s, %w wide : tensor<32x44xf16>, tensor<96x44xf16>
  kf.yield %0 : tensor<32x96xf32>
}

// f8E4M3FN becomes f16 in registers: 16 bytes of a lane are a tile of 32
// columns, of which K has two, and the others of eight are zeros.
// CHECK-LABEL: gpu.func @float8(
// CHECK-SAME:    %[[X:.*]]: memref<?xf16>, %[[W:[a-z0-9]+]]: memref<?xi8>, %[[S:[a-z0-9]+]]: memref<?xf32>
// CHECK-COUNT-8: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}}
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK:         nvvm.mma.sync {{.*}} : (vector<2xf16>, vector<2xf16>, f32)
// CHECK:         memref.load %[[S]]
kf.kernel @float8(%x: tensor<?x64xf16>, %w: tensor<32x64xf8E4M3FN, #kf.fragments>, %s: tensor<32xf32>) -> tensor<?x32xf32>
    attributes {schedule = #kf.mma<workgroup = [32, 32], warps = [1, 2], reduction = 32, stages = 2, unit = mma_sync>} {
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<32xf32>) wide : tensor<?x64xf16>, tensor<32x64xf8E4M3FN, #kf.fragments>
  kf.yield %0 : tensor<?x32xf32>
}
