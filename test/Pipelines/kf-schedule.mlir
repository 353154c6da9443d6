// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse --kf-program --kf-schedule | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse=vector-lanes=8 --kf-program --kf-schedule=vector-lanes=8 \
// RUN:   | FileCheck %s --check-prefix=AVX2
// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse=target=reference --kf-program=target=reference \
// RUN:   --kf-schedule=target=reference | FileCheck %s --check-prefix=REFERENCE

// Memory is planned, weights have the layout that kernels read, kernels are
// scheduled and tiled.
// CHECK-LABEL: kf.program @block(
// CHECK-SAME:    arena_bytes = 6144 : i64
// CHECK:         kf.weight ["q", "k", "v"] : tensor<64x32xf32, #kf.layout<panel = 32>>
// CHECK:         kf.dispatch @argmax_0({{.*}}) {offsets = array<i64: -1>}
// CHECK-LABEL: kf.kernel @rms_norm_matmul_0(
// CHECK-SAME:    tensor<64x32xf32, #kf.layout<panel = 32>>
// CHECK-SAME:    grid = #kf.grid<{{.*}}schedule = #kf.schedule<{{.*}}tile = [8, 32], vector = 16
// CHECK:         scf.forall

// AVX2: kf.weight ["q", "k", "v"] : tensor<64x32xf32, #kf.layout<panel = 16>>
// AVX2: vector = 8

// The reference needs memory, and no schedule.
// REFERENCE-LABEL: kf.program @block(
// REFERENCE-SAME:    arena_bytes =
// REFERENCE-NOT:     #kf.layout
// REFERENCE-NOT:     #kf.schedule
// REFERENCE-NOT:     scf.forall
// REFERENCE:         kf.mlp
