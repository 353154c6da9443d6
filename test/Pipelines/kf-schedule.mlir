// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program --kf-schedule | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v3 --kf-fuse --kf-program --kf-schedule \
// RUN:   | FileCheck %s --check-prefix=AVX2
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=reference --kf-fuse --kf-program \
// RUN:   --kf-schedule | FileCheck %s --check-prefix=REFERENCE

// Memory is planned, weights have the layout that kernels read, kernels are
// scheduled and tiled.
// CHECK-LABEL: kf.program @block(
// CHECK-SAME:    key_block = 16>
// CHECK-SAME:    arena_bytes = 6144 : i64
// CHECK:         kf.weight ["q", "k", "v"] : tensor<64x32xf32, #kf.layout<panel = 32>>
// CHECK:         kf.dispatch @argmax_0({{.*}}) {offsets = array<i64: -1>}
// CHECK-LABEL: kf.kernel @rms_norm_matmul_0(
// CHECK-SAME:    tensor<64x32xf32, #kf.layout<panel = 32>>
// CHECK-SAME:    grid = #kf.grid<{{.*}}schedule = #kf.vector<{{.*}}tile = [8, 32], lanes = 16
// CHECK:         scf.forall

// AVX2: key_block = 8>
// AVX2: kf.weight ["q", "k", "v"] : tensor<64x32xf32, #kf.layout<panel = 16>>
// AVX2: lanes = 8

// The reference needs memory, and no schedule.
// REFERENCE-LABEL: kf.program @block(
// REFERENCE-SAME:    arena_bytes =
// REFERENCE-NOT:     key_block
// REFERENCE-NOT:     #kf.layout
// REFERENCE-NOT:     schedule =
// REFERENCE-NOT:     scf.forall
// REFERENCE:         kf.mlp
