// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse | FileCheck %s
// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse=vector-lanes=8 | FileCheck %s --check-prefix=AVX2
// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse=target=vulkan | FileCheck %s --check-prefix=VULKAN
// RUN: kf-opt %S/Inputs/block.mlir --kf-fuse=target=reference | FileCheck %s --check-prefix=REFERENCE
// RUN: not kf-opt %S/Inputs/block.mlir --kf-fuse=target=abacus 2>&1 | FileCheck %s --check-prefix=ERROR

// ERROR: Cannot find option named 'abacus'

// The CPU's cache has the key block of its vectors; projections are joined.
// CHECK-LABEL: func.func @block(
// CHECK-SAME:    key_block = 16>
// CHECK:         kf.matmul %{{.*}} : tensor<?x32xf32>, tensor<64x32xf32>
// CHECK:         kf.matmul %{{.*}} glu(silu) : tensor<?x32xf32>, tensor<2x64x32xf32>
// CHECK-NOT:     kf.mlp

// AVX2: key_block = 8>

// VULKAN-LABEL: func.func @block(
// VULKAN-NOT:     key_block
// VULKAN:         glu(silu)

// The reference runs ops as they are written.
// REFERENCE-LABEL: func.func @block(
// REFERENCE-NOT:     key_block
// REFERENCE-COUNT-4: kf.matmul %{{.*}} : tensor<?x32xf32>
// REFERENCE:         kf.mlp
