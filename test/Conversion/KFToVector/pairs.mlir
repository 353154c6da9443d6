// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Rows of x are rounded on their way to scratch. A step of K is two elements:
// lanes of a panel's row hold columns that are 16 apart, those of a pair two
// rows of the panel. Two tiles read them where they are stored; of 19 steps, 4
// at a time, three are left.
// CHECK-LABEL: func.func @few(
// CHECK-SAME:    %[[X:.*]]: memref<4x38xf32>, %[[W:.*]]: memref<2x1x38x32xbf16>
// CHECK-DAG:     %[[ROWS:.*]] = memref.view {{.*}} to memref<4x96xbf16>
// CHECK:         %[[E:.*]] = vector.load %[[X]]{{.*}} : memref<4x38xf32>, vector<16xf32>
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[E]] : vector<16xf32> to vector<16xbf16>
// CHECK:         vector.store %[[ROUNDED]], %[[ROWS]]
// CHECK:         scf.for %[[K:.*]] = %c0 to %c16 step %c4 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:           %[[EVEN:.*]] = vector.load %[[W]]{{.*}}, vector<32xbf16>
// CHECK-NEXT:      %[[A:.*]] = vector.bitcast %[[EVEN]] : vector<32xbf16> to vector<16xi32>
// CHECK-NEXT:      %[[ODD:.*]] = vector.load %[[W]]{{.*}}, vector<32xbf16>
// CHECK-NEXT:      %[[B:.*]] = vector.bitcast %[[ODD]] : vector<32xbf16> to vector<16xi32>
// CHECK-DAG:       %[[A0:.*]] = arith.andi %[[A]], %{{.*}}
// CHECK-DAG:       %[[B0:.*]] = arith.shli %[[B]], %{{.*}}
// CHECK-DAG:       %[[LOW:.*]] = arith.ori %[[A0]], %[[B0]]
// CHECK-DAG:       %[[A1:.*]] = arith.shrui %[[A]], %{{.*}}
// CHECK-DAG:       %[[B1:.*]] = arith.andi %[[B]], %{{.*}}
// CHECK-DAG:       arith.ori %[[A1]], %[[B1]]
// CHECK-DAG:       %[[PAIRS:.*]] = vector.bitcast %[[LOW]] : vector<16xi32> to vector<32xbf16>
// CHECK:           %[[PAIR:.*]] = vector.load %[[ROWS]]{{.*}} : memref<4x96xbf16>, vector<2xbf16>
// CHECK:           vector.broadcast %{{.*}} : i32 to vector<16xi32>
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}, %{{.*}}, %[[PAIRS]]) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// CHECK-COUNT-15:  dpbf16ps
// CHECK-NOT:       dpbf16ps
// CHECK:           scf.yield
// CHECK:         scf.for %{{.*}} = %c16 to %c19 step %c1
// CHECK-COUNT-4:   dpbf16ps
// CHECK-NOT:       dpbf16ps
kf.kernel @few(%x: tensor<4x38xf32>, %w: tensor<64x38xbf16, #kf.layout<panel = 32, interleave = 16>>)
    -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 64], tile = [2, 32], lanes = 16, unroll = 4, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x38xf32>, tensor<64x38xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// 32 rows to a workgroup: pairs are put together once. Rows that are
// bf16 already are copied.
// CHECK-LABEL: func.func @unpacked(
// CHECK-SAME:    %[[X:.*]]: memref<?x64xbf16>, %[[W:.*]]: memref<2x1x64x32xbf16>
// CHECK-DAG:     %[[ROWS:.*]] = memref.view {{.*}} to memref<32x96xbf16>
// CHECK-DAG:     %[[PANEL:.*]] = memref.view {{.*}} to memref<32x2x32xbf16>
// CHECK:         scf.for %{{.*}} = %c0 to %c2
// CHECK:           scf.for %{{.*}} = %c0 to %c32
// CHECK-COUNT-2:     vector.load %[[W]]
// CHECK-COUNT-2:     vector.store %{{.*}}, %[[PANEL]]
// CHECK:           scf.for %{{.*}} = %c0 to %c32 step %c2 iter_args
// CHECK-NOT:         vector.load %[[W]]
// CHECK:             vector.load %[[PANEL]]{{.*}} : memref<32x2x32xbf16>, vector<32xbf16>
// CHECK-COUNT-8:     dpbf16ps
// CHECK-NOT:         dpbf16ps
// CHECK:             scf.yield
kf.kernel @unpacked(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16, #kf.layout<panel = 32, interleave = 16>>)
    -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 64], tile = [2, 32], lanes = 16, unroll = 2, dot = bf16_pairs, panels = unpacked>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<64x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

// Panels of one vector are not interleaved: the pairs of a step are elements of
// two rows, in turns.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME:    %{{.*}}: memref<4x38xf32>, %[[W:.*]]: memref<3x1x38x16xbf16>
// CHECK:         scf.for %{{.*}} = %c0 to %c16 step %c4 iter_args
// CHECK:           %[[EVEN:.*]] = vector.load %[[W]]{{.*}}, vector<16xbf16>
// CHECK:           %[[ODD:.*]] = vector.load %[[W]]{{.*}}, vector<16xbf16>
// CHECK:           %[[PAIRS:.*]] = vector.interleave %[[EVEN]], %[[ODD]] : vector<16xbf16> -> vector<32xbf16>
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%{{.*}}, %{{.*}}, %[[PAIRS]])
// CHECK-COUNT-7:   dpbf16ps
// CHECK-NOT:       dpbf16ps
// CHECK:           scf.yield
kf.kernel @narrow(%x: tensor<4x38xf32>, %w: tensor<48x38xbf16, #kf.layout<panel = 16>>)
    -> tensor<4x48xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 48], tile = [2, 16], lanes = 16, unroll = 4, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x38xf32>, tensor<48x38xbf16, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<4x48xf32>
}
