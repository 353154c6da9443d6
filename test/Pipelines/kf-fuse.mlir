// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=cpu:x86-64-v4 --kf-fuse | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=vulkan --kf-fuse | FileCheck %s --check-prefix=VULKAN
// RUN: kf-opt %S/Inputs/block.mlir --kf-set-target=target=reference --kf-fuse | FileCheck %s --check-prefix=REFERENCE
// RUN: not kf-opt %S/Inputs/block.mlir --kf-set-target=target=abacus 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: error: kf-set-target: there is no target 'abacus'; there are cpu, cuda, reference, vulkan

// Projections are joined.
// CHECK-LABEL: func.func @block(
// CHECK:         kf.matmul %{{.*}} : tensor<?x32xf32>, tensor<64x32xf32>
// CHECK:         kf.matmul %{{.*}} glu(silu) : tensor<?x32xf32>, tensor<2x64x32xf32>
// CHECK-NOT:     kf.mlp

// VULKAN-LABEL: func.func @block(
// VULKAN:         glu(silu)

// The reference runs ops as they are written.
// REFERENCE-LABEL: func.func @block(
// REFERENCE-COUNT-4: kf.matmul %{{.*}} : tensor<?x32xf32>
// REFERENCE:         kf.mlp
