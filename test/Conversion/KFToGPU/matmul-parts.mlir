// RUN: kf-opt %s --split-input-file --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s

// Four workgroups divide 8 steps of K, two in turn. They are a cluster along the
// last dimension of the grid.
// CHECK-LABEL: gpu.func @even(
// CHECK-SAME:    kf.grid = #kf.grid<tokens = [64, 0, 0], counts = [0, 2, 4]>
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 1, 1, 4>
// CHECK-DAG:     %[[PART:.*]] = gpu.block_id z
// CHECK-DAG:     %[[BEGIN:.*]] = arith.muli %[[PART]], %c128
// CHECK-DAG:     %[[END:.*]] = arith.addi %[[BEGIN]], %c128
// The weight's first steps are asked for before the kernels before this one end.
// CHECK:         nvvm.cp.async.shared.global
// CHECK-NOT:     nvvm.cp.async.commit.group
// CHECK:         nvvm.griddepcontrol wait
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c128
// Each reads what all have of its part of the tile, in their order.
// CHECK-COUNT-4: nvvm.mapa
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK:         llvm.store
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<7> -> f32
// CHECK:         memref.store
// And none ends before they have.
// CHECK:         nvvm.cluster.arrive
// CHECK-NEXT:    nvvm.cluster.wait
// CHECK-NEXT:    gpu.return
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @even(%x: tensor<?x512xbf16>, %w: tensor<96x512xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<?x512xbf16>, tensor<96x512xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// Of five steps, one workgroup has three: the other ends where K does, and steps
// go one after the other.
// CHECK-LABEL: gpu.func @odd(
// CHECK:         %[[BEGIN:.*]] = arith.muli %{{.*}}, %c192
// CHECK:         %[[NEXT:.*]] = arith.addi %[[BEGIN]], %c192
// CHECK:         %[[IS_INSIDE:.*]] = arith.cmpi ult, %[[NEXT]], %c320
// CHECK:         %[[END:.*]] = arith.select %[[IS_INSIDE]], %[[NEXT]], %c320
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c64
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @odd(%x: tensor<?x320xbf16>, %w: tensor<96x320xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 2>} {
    %0 = kf.matmul %x, %w wide : tensor<?x320xbf16>, tensor<96x320xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// Not all multiprocessors are in clusters of four: two workgroups are to have
// registers on one, where there is memory for them. With 64 rows they have. Two
// workgroups of a cluster are everywhere, and need no more than one. CUDA keeps
// 1 KiB of each workgroup's memory, which 96 rows that may have outliers lack.
// CHECK-LABEL: gpu.func @halves(
// CHECK-SAME:    nvvm.minctasm = 2
// CHECK-LABEL: gpu.func @few_sums(
// CHECK-NOT:     nvvm.minctasm
// CHECK-LABEL: gpu.func @pairs(
// CHECK-NOT:     nvvm.minctasm
// CHECK-LABEL: gpu.func @outliers(
// CHECK-NOT:     nvvm.minctasm
// CHECK:         gpu.return
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  kf.kernel @halves(%x: tensor<?x2048xbf16>, %w: tensor<128x2048xbf16, #kf.fragments>) -> tensor<?x128xf32>
      attributes {schedule = #kf.mma<workgroup = [80, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<?x2048xbf16>, tensor<128x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
  kf.kernel @few_sums(%x: tensor<?x2048xbf16>, %w: tensor<128x2048xbf16, #kf.fragments>) -> tensor<?x128xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<?x2048xbf16>, tensor<128x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
  kf.kernel @pairs(%x: tensor<?x2048xbf16>, %w: tensor<128x2048xbf16, #kf.fragments>) -> tensor<?x128xf32>
      attributes {schedule = #kf.mma<workgroup = [80, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 2>} {
    %0 = kf.matmul %x, %w wide : tensor<?x2048xbf16>, tensor<128x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
  kf.kernel @outliers(%x: tensor<?x2048xf16>, %o: tensor<?x2048xf32>, %w: tensor<128x2048xf16, #kf.fragments>) -> tensor<?x128xf32>
      attributes {schedule = #kf.mma<workgroup = [96, 128], warps = [1, 8], reduction = 64, stages = 4, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x outliers(%o : tensor<?x2048xf32>), %w wide : tensor<?x2048xf16>, tensor<128x2048xf16, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
}

// -----

// Rows that may have outliers are scaled where they lie row by row: they are not
// turned on the way to registers.
// CHECK-LABEL: gpu.func @transposed_outliers(
// CHECK-NOT:     layout = #nvvm.mma_layout<col>
// CHECK:         nvvm.mma.sync
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  kf.kernel @transposed_outliers(%x: tensor<2048x64xf16>, %o: tensor<64x2048xf32>, %w: tensor<128x2048xf16, #kf.fragments>) -> tensor<64x128xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 128], warps = [2, 4], reduction = 64, stages = 3, unit = mma_sync>} {
    %0 = kf.transpose %x permutation = [1, 0] : tensor<2048x64xf16>
    %1 = kf.matmul %0 outliers(%o : tensor<64x2048xf32>), %w wide : tensor<64x2048xf16>, tensor<128x2048xf16, #kf.fragments>
    kf.yield %1 : tensor<64x128xf32>
  }
}

// -----

// Of whole tiles a thread reads four columns of each part at once.
// CHECK-LABEL: gpu.func @whole(
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<7> -> vector<4xf32>
// CHECK-NOT:     !llvm.ptr<7> -> f32
// CHECK:         gpu.return
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @whole(%x: tensor<?x512xbf16>, %w: tensor<128x512xbf16, #kf.fragments>) -> tensor<?x128xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma, parts = 4>} {
    %0 = kf.matmul %x, %w wide : tensor<?x512xbf16>, tensor<128x512xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x128xf32>
  }
}
