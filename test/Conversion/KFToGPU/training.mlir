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

// A batch's product: elements of f32 become what is rounded to bf16, or what that
// leaves, by the number of the chunk of eight in three. What rounds to an infinity
// is cut off instead.
// CHECK-LABEL: gpu.func @batches(
// CHECK:         gpu.block_id x
// CHECK-DAG:     arith.divui %{{.*}}, %c8
// CHECK:         arith.remui %{{.*}}, %c3
// CHECK:         %[[CUT:.*]] = arith.andi %{{.*}}, %c-65536_i32 : i32
// CHECK:         %[[LOW:.*]] = arith.bitcast %[[CUT]] : i32 to f32
// CHECK:         %[[OVERFLOWS:.*]] = arith.cmpi eq, %{{.*}}, %c2139095040_i32 : i32
// CHECK:         %[[HIGH:.*]] = arith.select %[[OVERFLOWS]], %[[LOW]], %{{.*}} : f32
// CHECK:         arith.subf %{{.*}}, %[[HIGH]] : f32
// CHECK:         arith.select
// CHECK:         nvvm.mma.sync A[{{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK:         memref.store
kf.kernel @batches(%x: tensor<4x100x64xf32>, %w: tensor<4x72x64xf32>) -> tensor<4x100x72xf32>
    attributes {schedule = #kf.mma<workgroup = [1, 64, 64], warps = [2, 2], reduction = 32, stages = 3, unit = mma_sync>} {
  %0 = kf.batch_matmul %x, %w : tensor<4x100x64xf32>, tensor<4x72x64xf32>
  kf.yield %0 : tensor<4x100x72xf32>
}
