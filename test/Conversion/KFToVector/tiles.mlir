// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' -split-input-file | FileCheck %s

// Rows of x in bf16, in tiles of 16 rows and 32 elements; K is 40, so that the
// second tile is filled up with zeros. Lanes of a panel's
// row hold columns that are 16 apart, those of a tile two rows of the panel.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME:    %{{.*}}: memref<?x40xf32>, %[[W:.*]]: memref<2x1x40x32xbf16>
// CHECK-DAG:     %[[X:.*]] = memref.view {{.*}} to memref<4x2x16x32xbf16>
// CHECK-DAG:     %[[B:.*]] = memref.view {{.*}} to memref<1x2x2x16x32xbf16>
// CHECK-DAG:     %[[SUMS:.*]] = memref.view {{.*}} to memref<2x2x16x16xf32>
// CHECK:         scf.for %[[TILE:.*]] = %c0 to
// CHECK:           %[[LINES:.*]] = arith.minui
// CHECK:           scf.for %[[LINE:.*]] = %c0 to %[[LINES]]
// CHECK:             %[[E:.*]] = vector.load %{{.*}} : memref<?x40xf32>, vector<16xf32>
// CHECK:             %[[ROUNDED:.*]] = arith.truncf %[[E]] : vector<16xf32> to vector<16xbf16>
// CHECK:             vector.store %[[ROUNDED]], %[[X]][%[[TILE]], %c0, %[[LINE]], %c0]
// CHECK:           scf.for %[[LINE:.*]] = %c0 to %[[LINES]]
// CHECK:             vector.store %{{.*}}, %[[X]]{{.*}} : memref<4x2x16x32xbf16>, vector<32xbf16>
// CHECK:             vector.load %{{.*}} : memref<?x40xf32>, vector<8xf32>
// CHECK:             vector.store %{{.*}}, %[[X]][%[[TILE]], %c1, %[[LINE]], %c0] : memref<4x2x16x32xbf16>, vector<8xbf16>
// CHECK:         scf.for %[[P:.*]] = %c0 to %c2
// CHECK:           vector.load %[[W]][%[[P]], %c0, %{{.*}}, %c0] : memref<2x1x40x32xbf16>, vector<32xbf16>
// CHECK:           vector.store %{{.*}}, %[[B]]
// CHECK:           scf.for
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK:             scf.for {{.*}} -> (!llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx)
// CHECK-COUNT-2:       llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// What a step of the next panel is made of comes nearer meanwhile: 1280 bytes,
// half of them for each of the two tiles of rows.
// CHECK-COUNT-10:      memref.prefetch %[[W]]{{.*}}, read, locality<2>, data
// CHECK-NOT:           memref.prefetch
// CHECK:               llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"
// CHECK-COUNT-2:       llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:               llvm.call_intrinsic "llvm.x86.tileloaddt164.internal"
// CHECK-COUNT-2:       llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT:           tdpbf16ps
// CHECK:               scf.yield
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK:             scf.for
// CHECK:               vector.load %[[SUMS]]
// CHECK:               vector.maskedstore
kf.kernel @halves(%x: tensor<?x40xf32>, %w: tensor<45x40xbf16, #kf.layout<panel = 32, interleave = 16>>)
    -> tensor<?x45xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 64], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<45x40xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x45xf32>
}

// -----

// Blocks become bf16. K in two parts: a workgroup's sums
// wait in memory, and rows are stored after the last part.
// CHECK-LABEL: func.func @parts(
// CHECK-DAG:     memref.view {{.*}} to memref<4x3x16x32xbf16>
// CHECK-DAG:     memref.view {{.*}} to memref<1x2x2x16x32xbf16>
// CHECK-DAG:     %[[SUMS:.*]] = memref.view {{.*}} to memref<4x6x16x16xf32>
// CHECK:         scf.for %[[PART:.*]] = %c0 to %c2
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK:           %[[LAST:.*]] = arith.cmpi eq, %[[PART]], %c1
// CHECK:           scf.for
// CHECK:             vector.fma
// CHECK:             scf.if %[[FIRST]] -> (!llvm.x86_amx)
// CHECK:               "llvm.x86.tilezero.internal"
// CHECK:             } else {
// CHECK:               "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-4:     "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT:         tdpbf16ps
// CHECK:             scf.if %[[LAST]]
// CHECK:               vector.load %[[SUMS]]
kf.kernel @parts(%x: tensor<?x96xf32>, %w: tensor<96x96x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 96], tile = [32, 32], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x96xf32>, tensor<96x96x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Rows of bf16 are copied; those that are normalized here are computed one after
// the other.
// CHECK-LABEL: func.func @rounded(
// CHECK-SAME:    %[[ROWS:.*]]: memref<?x64xbf16>
// CHECK:         %[[X:.*]] = memref.view {{.*}} to memref<4x2x16x32xbf16>
// CHECK:         %[[E:.*]] = vector.load %[[ROWS]]
// CHECK-NOT:     arith.truncf
// CHECK:         vector.store %[[E]], %[[X]]
kf.kernel @rounded(%x: tensor<?x64xbf16>, %w: tensor<64x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 64], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<64x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

// CHECK-LABEL: func.func @normalized(
// CHECK:         scf.for %[[ROW:.*]] = %c0 to
// CHECK:           math.{{r?sqrt}}
// CHECK:           scf.for %[[COLUMN:.*]] = %c0 to
// CHECK:             arith.divui %[[ROW]], %c16
// CHECK:             arith.divui %[[COLUMN]], %c32
kf.kernel @normalized(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<64x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 64], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<64x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

// A workgroup has eight tiles of rows, and K turns of eight steps: of the next
// panel, or of the next part of the first, a quad of a step is unpacked beside
// each step, into the other half of scratch. What tiles of rows that are not
// there would have unpacked comes behind them; nothing after the last panel of
// the last part.
// CHECK-LABEL: func.func @ahead(
// CHECK-DAG:     %[[W:.*]] = memref.view {{.*}} to memref<2x2x8x16x32xbf16>
// CHECK:         scf.for %[[PART:.*]] = %c0 to %c2
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[PART]], %c0
// CHECK:           scf.if %[[FIRST]]
// CHECK:             scf.for
// CHECK:               vector.store %{{.*}}, %[[W]][%c0, %c0,
// CHECK:           scf.for %[[P:.*]] = %c0 to %[[PANELS:.*]] step
// CHECK:             arith.cmpi eq, %{{.*}}, %[[PANELS]]
// CHECK:             %[[BEFORE:.*]] = arith.muli %[[PART]], %[[PANELS]]
// CHECK:             %[[NUMBER:.*]] = arith.addi %[[BEFORE]], %[[P]]
// CHECK:             %[[ISEND:.*]] = arith.andi
// CHECK:             %[[COUNT:.*]] = arith.minui
// CHECK:             %[[NEXT:.*]] = arith.addi %[[NUMBER]], %c1
// CHECK:             %[[HALF:.*]] = arith.remui %[[NEXT]], %c2
// CHECK:             %[[END:.*]] = arith.select %[[ISEND]], %c0, %[[COUNT]]
// CHECK:             scf.for %[[TILE:.*]] = %c0 to
// CHECK:               %[[OTHER:.*]] = arith.subi %c1, %[[HALF]]
// CHECK:               scf.for {{.*}} step %c8 iter_args
// CHECK:                 %[[STEP:.*]] = arith.minui
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c1, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c3, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c5, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c7, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c9, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c11, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c13, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK:                 vector.store %{{.*}}, %[[W]][%[[HALF]], %c1, %[[STEP]], %c15, %c0]
// CHECK-COUNT-4:         llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT:             tdpbf16ps
// CHECK:                 scf.yield
// CHECK:             scf.for %{{.*}} to %[[END]] step
// CHECK:               vector.store %{{.*}}, %[[W]][%[[HALF]], %c0,
kf.kernel @ahead(%x: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [256, 96], tile = [32, 32], reduction = 256, lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<96x512x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// The same of two groups of bf16, with all of K in one part.
// CHECK-LABEL: func.func @halves_ahead(
// CHECK-DAG:     %[[W:.*]] = memref.view {{.*}} to memref<2x4x16x16x32xbf16>
// CHECK:         scf.for
// CHECK:           vector.store %{{.*}}, %[[W]][%c0, %c3,
// CHECK:         scf.for %[[P:.*]] = %c0 to %c2
// CHECK:           %[[HALF:.*]] = arith.remui {{.*}}, %c2
// CHECK:           scf.for {{.*}} step %c8 iter_args
// CHECK:             vector.store %{{.*}}, %[[W]][%[[HALF]], %c0,
// CHECK:             tdpbf16ps
// CHECK:           scf.for {{.*}} step %c8 iter_args
// CHECK:             vector.store %{{.*}}, %[[W]][%[[HALF]], %c2,
// CHECK:             tdpbf16ps
kf.kernel @halves_ahead(%x: tensor<?x512xf32>, %w: tensor<2x64x512xbf16, #kf.layout<panel = 32, interleave = 16>>)
    -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [256, 64], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x512xf32>, tensor<2x64x512xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

// A panel that is alone, with all of K in one part, has nothing to be unpacked
// beside.
// CHECK-LABEL: func.func @alone(
// CHECK-DAG:     memref.view {{.*}} to memref<1x2x16x16x32xbf16>
// CHECK-NOT:     step %c8
// CHECK:         return
kf.kernel @alone(%x: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [256, 32], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<96x512x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}
