// RUN: kf-opt %s --split-input-file --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s
// RUN: kf-opt %s --split-input-file --kf-tile-kernels --convert-kf-to-gpu --canonicalize --cse | FileCheck %s --check-prefix=UNITS

// Four warps multiply 64 lines with all 64 rows. Of three stages, 1 KiB more
// for where they begin, one is copied, one multiplied, and one may still be.
// CHECK-LABEL: gpu.func @even(
// CHECK-SAME:    workgroup(%{{.*}} : memref<50176xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK:         scf.for {{.*}} step %c128
// CHECK-COUNT-2:   "fence.proxy.async.shared::cta;"
// CHECK:         "wgmma.wait_group.sync.aligned 0;", "=f,
// UNITS-LABEL: gpu.func @even(
// UNITS:         nvvm.cp.async.wait.group 0
// UNITS-NEXT:    llvm.inline_asm has_side_effects {{.*}} "fence.proxy.async.shared::cta;"
// UNITS-NEXT:    gpu.barrier
// One piece of code has all products of a step.
// UNITS:         "wgmma.fence.sync.aligned;
// UNITS-SAME:    m64n64k16{{.*}}m64n64k16{{.*}}m64n64k16{{.*}}m64n64k16.f32.bf16.bf16
// UNITS-SAME:    wgmma.commit_group.sync.aligned;"
// UNITS:         "wgmma.wait_group.sync.aligned 1;"
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @even(%x: tensor<?x256xbf16>, %w: tensor<96x256xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<?x256xbf16>, tensor<96x256xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// Of an odd number of steps, each waits for its products.
// CHECK-LABEL: gpu.func @odd(
// CHECK:         scf.for {{.*}} step %c64
// CHECK:           "fence.proxy.async.shared::cta;"
// CHECK-NOT:       "fence.proxy.async.shared::cta;"
// UNITS-LABEL: gpu.func @odd(
// UNITS:         wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// UNITS:         "wgmma.wait_group.sync.aligned 0;", "~{memory}"
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @odd(%x: tensor<?x192xbf16>, %w: tensor<96x192xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<?x192xbf16>, tensor<96x192xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// Codes are taken apart in the registers that units read, a tile of 256 columns
// in four steps, the last of which has zeros here. Behind three stages of rows
// is room for two tiles of each of four row blocks.
// CHECK-LABEL: gpu.func @codes(
// CHECK-SAME:    workgroup(%{{.*}} : memref<60416xi8, #gpu.address_space<workgroup>>
// CHECK:         scf.for {{.*}} step %c256
// CHECK-COUNT-4:   "fence.proxy.async.shared::cta;"
// CHECK-NOT:     llvm.store {{.*}} !llvm.ptr<3>
// CHECK:         "wgmma.wait_group.sync.aligned 0;", "=f,
// UNITS-LABEL: gpu.func @codes(
// UNITS:         wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// UNITS:         "wgmma.wait_group.sync.aligned 1;", "~{memory}"
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @codes(%x: tensor<?x448xf16>, %w: tensor<96x448x!kf.quant<q8_0>, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<?x448xf16>, tensor<96x448x!kf.quant<q8_0>, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// What finds the scales of q4_k is divided among the four lanes of a group, each
// of which reads those of one of a tile's four steps, and has the others' words
// in that step.
// CHECK-LABEL: gpu.func @scales(
// CHECK:         scf.for {{.*}} step %c256
// CHECK:           llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> i16
// CHECK:           llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK-NOT:       {alignment = 2 : i64}
// CHECK-NOT:       {alignment = 8 : i64}
// CHECK:         "wgmma.wait_group.sync.aligned 0;", "=f,
// UNITS-LABEL: gpu.func @scales(
// UNITS:         scf.for
// UNITS-NOT:       nvvm.shfl
// UNITS-COUNT-4:   nvvm.shfl.sync  idx %c-1_i32, %{{.*}}, %c0_i32, %c7199_i32
// UNITS-NOT:       nvvm.shfl
// UNITS:           wgmma.mma_async
// UNITS-NOT:       nvvm.shfl
// UNITS-COUNT-4:   nvvm.shfl.sync  idx %c-1_i32, %{{.*}}, %c1_i32, %c7199_i32
// UNITS-NOT:       nvvm.shfl
// UNITS:           wgmma.mma_async
// UNITS-NOT:       nvvm.shfl
// UNITS-COUNT-4:   nvvm.shfl.sync  idx %c-1_i32, %{{.*}}, %c2_i32, %c7199_i32
// UNITS-NOT:       nvvm.shfl
// UNITS:           wgmma.mma_async
// UNITS-NOT:       nvvm.shfl
// UNITS-COUNT-4:   nvvm.shfl.sync  idx %c-1_i32, %{{.*}}, %c3_i32, %c7199_i32
// UNITS-NOT:       nvvm.shfl
// UNITS:           wgmma.mma_async
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  kf.kernel @scales(%x: tensor<?x512xf16>, %w: tensor<96x512x!kf.quant<q4_k>, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = wgmma>} {
    %0 = kf.matmul %x, %w wide : tensor<?x512xf16>, tensor<96x512x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}

// -----

// Chips without warpgroups multiply the same tile by units of a warp.
// CHECK-LABEL: gpu.func @others(
// CHECK-NOT:     wgmma
// CHECK:         nvvm.mma.sync
// UNITS-LABEL: gpu.func @others(
module attributes {kf.target = #kf.cuda_target<chip = "sm_90">} {
  kf.kernel @others(%x: tensor<?x256xbf16>, %w: tensor<96x256xbf16, #kf.fragments>) -> tensor<?x96xf32>
      attributes {schedule = #kf.mma<workgroup = [64, 64], warps = [1, 4], reduction = 64, stages = 3, unit = mma_sync>} {
    %0 = kf.matmul %x, %w wide : tensor<?x256xbf16>, tensor<96x256xbf16, #kf.fragments>
    kf.yield %0 : tensor<?x96xf32>
  }
}
