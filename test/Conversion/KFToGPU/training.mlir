// RUN: kf-opt %s --kf-set-target=target=cuda --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s

// All threads share a row's sum, and the first one stores what is made of it.
// CHECK-LABEL: gpu.func @rows(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: memref<?xf32>, %[[R:[a-z0-9]+]]: memref<?xf32>
// CHECK:         %[[THREAD:.*]] = gpu.thread_id x
// CHECK:         %[[OWN:.*]] = scf.for %{{.*}} = %[[THREAD]] to %c1000 step %c64 iter_args
// CHECK:           memref.load %[[X]]
// CHECK:           arith.addf
// CHECK:         nvvm.shfl.sync bfly %{{.*}}, %[[OWN]],
// CHECK:         arith.cmpi eq, %[[THREAD]], %c0
// CHECK:         scf.if
// CHECK:           math.sqrt
// CHECK:           memref.store %{{.*}}, %[[R]]
kf.kernel @rows(%x: tensor<300x1000xf32>) -> tensor<300x1xf32>
    attributes {schedule = #kf.simt<workgroup = [1, 0], threads = [64], sums = shared>} {
  %0 = kf.reduce(sum) %x dims = [1] keep_dims : tensor<300x1000xf32>
  %1 = math.sqrt %0 : tensor<300x1xf32>
  kf.yield %1 : tensor<300x1xf32>
}

// So they do where the tile is the whole result.
// CHECK-LABEL: gpu.func @whole(
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c1000 step %c64 iter_args
// CHECK:         nvvm.shfl.sync
// CHECK:         scf.if
// CHECK:           arith.addf
kf.kernel @whole(%x: tensor<1000xf32>, %y: tensor<1xf32>) -> tensor<1xf32>
    attributes {schedule = #kf.simt<workgroup = [0], threads = [64], sums = shared>} {
  %0 = kf.reduce(sum) %x dims = [0] keep_dims : tensor<1000xf32>
  %1 = arith.addf %y, %0 : tensor<1xf32>
  kf.yield %1 : tensor<1xf32>
}

// A batch's product: elements of f32 lie in workgroup memory as they are, and become
// what is rounded to bf16 and what that leaves in registers. What would round to an
// infinity is the largest number of bf16.
// CHECK-LABEL: gpu.func @batches(
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 3.38953139E+38 : f32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant -3.38953139E+38 : f32
// CHECK:         gpu.block_id x
// CHECK:         memref.load
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK:         nvvm.cp.async.wait.group 1
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK:         %[[X:.*]] = vector.extract %{{.*}}[0] : f32 from vector<4xf32>
// CHECK:         %[[BELOW:.*]] = arith.minnumf %[[X]], %[[MOST]] : f32
// CHECK:         arith.maxnumf %[[BELOW]], %[[LEAST]] : f32
// CHECK:         %[[PAIR:.*]] = arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK:         %[[BACK:.*]] = arith.extf %[[PAIR]]
// CHECK:         %[[HIGH:.*]] = vector.extract %[[BACK]][0]
// CHECK:         arith.subf %[[X]], %[[HIGH]] : f32
// CHECK:         nvvm.mma.sync A[{{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK:         memref.store
kf.kernel @batches(%x: tensor<4x100x64xf32>, %w: tensor<4x72x64xf32>) -> tensor<4x100x72xf32>
    attributes {schedule = #kf.mma<workgroup = [1, 64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
  %0 = kf.batch_matmul %x, %w : tensor<4x100x64xf32>, tensor<4x72x64xf32>
  kf.yield %0 : tensor<4x100x72xf32>
}

// A weight whose neighbours in memory are of different lines is copied 16 bytes at a
// time, and turned on the way to registers: of 16 bits by the instruction that loads
// them, ...
// CHECK-LABEL: gpu.func @turned(
// CHECK-NOT:     memref.load
// CHECK:         nvvm.cp.async.shared.global
// CHECK:         nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK-NOT:     memref.load
// CHECK:         nvvm.mma.sync
kf.kernel @turned(%x: tensor<128x64xbf16>, %w: tensor<64x136xbf16>) -> tensor<128x136xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
  %0 = kf.transpose %w permutation = [1, 0] : tensor<64x136xbf16>
  %1 = kf.matmul %x, %0 wide : tensor<128x64xbf16>, tensor<136x64xbf16>
  kf.yield %1 : tensor<128x136xf32>
}

// ... of f32 column by column.
// CHECK-LABEL: gpu.func @turned_wide(
// CHECK-NOT:     memref.load
// CHECK:         nvvm.cp.async.shared.global
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     memref.load
// CHECK:         nvvm.mma.sync
kf.kernel @turned_wide(%dy: tensor<2048x16xf32>, %x: tensor<2048x72xf32>) -> tensor<16x72xf32>
    attributes {schedule = #kf.mma<workgroup = [16, 64], warps = [1, 4], reduction = 32, stages = 3, unit = mma_sync>} {
  %0 = kf.transpose %dy permutation = [1, 0] : tensor<2048x16xf32>
  %1 = kf.transpose %x permutation = [1, 0] : tensor<2048x72xf32>
  %2 = kf.matmul %0, %1 : tensor<16x2048xf32>, tensor<72x2048xf32>
  kf.yield %2 : tensor<16x72xf32>
}

// Where rows in memory are no multiple of 16 bytes, elements come one by one.
// CHECK-LABEL: gpu.func @turned_odd(
// CHECK:         memref.load %{{.*}} : memref<?xi16>
// CHECK-NOT:     layout = #nvvm.mma_layout<col>
// CHECK:         nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<row>
// CHECK-NOT:     layout = #nvvm.mma_layout<col>
// CHECK:         nvvm.mma.sync
kf.kernel @turned_odd(%x: tensor<128x64xbf16>, %w: tensor<64x133xbf16>) -> tensor<128x133xf32>
    attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
  %0 = kf.transpose %w permutation = [1, 0] : tensor<64x133xbf16>
  %1 = kf.matmul %x, %0 wide : tensor<128x64xbf16>, tensor<133x64xbf16>
  kf.yield %1 : tensor<128x133xf32>
}
