// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   --canonicalize --cse | FileCheck %s

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {

// Four warps of 16 queries. Keys and values of 32 rows go through two stages, of
// which one is on its way; what is multiplied stays in registers.
kf.kernel @forward(%q: tensor<2x4x128x32xbf16>, %k: tensor<2x2x128x32xbf16>) -> tensor<2x4x128x32xbf16>
    attributes {schedule = #kf.flash_mma<workgroup = [1, 1, 64], keys = 32, threads = [32, 4, 1], unit = mma_sync, rows = rounded, held = shared>} {
  %0 = kf.scaled_dot_product_attention %q, %k, %k {causal} : tensor<2x4x128x32xbf16>, tensor<2x2x128x32xbf16>, tensor<2x2x128x32xbf16>
  kf.yield %0 : tensor<2x4x128x32xbf16>
}
// CHECK-LABEL: gpu.func @forward(
// 64 rows of queries, and twice 32 of keys and of values, of 80 bytes.
// CHECK-SAME:    memref<15360xi8, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK-COUNT-2: nvvm.cp.async.shared.global
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         nvvm.cp.async.wait.group 0
// CHECK:         gpu.barrier
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}num = 4
// CHECK:         scf.for
// CHECK:           nvvm.cp.async.wait.group 0
// CHECK:           gpu.barrier
// CHECK-COUNT-2:   nvvm.cp.async.shared.global
// Two steps of 16 columns for each 8 keys; then each 16 keys for 8 columns.
// CHECK-COUNT-8:   nvvm.mma.sync
// CHECK:           arith.cmpi sle
// CHECK:           nvvm.shfl.sync {{ ?}}bfly
// CHECK:           llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// CHECK:           nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK-COUNT-8:   nvvm.mma.sync
// CHECK-NOT:       nvvm.mma.sync
// CHECK:           scf.yield
// CHECK:         arith.divf
// CHECK:         memref.store %{{.*}} : memref<?xi16>
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", memory = 232448>} {

// Rows of keys see queries of all heads that read them; the last block has some
// that there are not, and nobody sees.
kf.kernel @keys(%q: tensor<4x40x16xbf16>, %k: tensor<2x40x16xbf16>, %n: tensor<4x40xf32>, %m: tensor<40x40xi1>) -> (tensor<2x40x16xf32>, tensor<2x40x16xf32>)
    attributes {schedule = #kf.flash_mma<workgroup = [1, 32], keys = 16, threads = [32, 2, 1], unit = mma_sync, rows = rounded, held = shared>} {
  %0:2 = kf.attention_kvgrad %q, %k, %k, %q, %n, %n mask(%m) : tensor<4x40x16xbf16>, tensor<2x40x16xbf16>, tensor<2x40x16xbf16>, tensor<4x40x16xbf16>, tensor<4x40xf32>, tensor<40x40xi1>
  kf.yield %0#0, %0#1 : tensor<2x40x16xf32>, tensor<2x40x16xf32>
}
// CHECK-LABEL: gpu.func @keys(
// CHECK-SAME:    memref<6144xi8, #gpu.address_space<workgroup>>
// CHECK-SAME:    known_block_size = array<i32: 64, 1, 1>
// Two heads of three blocks.
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c6 step %c1
// CHECK:           gpu.barrier
// CHECK:           llvm.load %{{.*}} : !llvm.ptr<1> -> i8
// CHECK-COUNT-2:   nvvm.mma.sync
// CHECK:           arith.cmpi slt, %{{.*}}, %c40_i32
// CHECK:           arith.cmpi ne
// dv, dp and dk.
// CHECK-COUNT-6:   nvvm.mma.sync
// CHECK-NOT:       nvvm.mma.sync
// CHECK:           scf.yield
// CHECK:         memref.store %{{.*}} : memref<?xf32>
}
