// RUN: kf-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(kf-fuse-projections))' | FileCheck %s

// What adapters add to parts of a joined product is [T, 1, N], and a view of it
// would be added: on NVIDIA GPUs sums, an activation and the product of both come
// before the view, where they are the epilogue of the adapters' products.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: func.func @adapted(
  // CHECK:         %[[Y:.*]] = kf.matmul
  // CHECK:         %[[G:.*]] = tensor.extract_slice %[[Y]][0, 0]
  // CHECK:         %[[U:.*]] = tensor.extract_slice %[[Y]][0, 64]
  // CHECK:         %[[GE:.*]] = tensor.expand_shape %[[G]]
  // CHECK-NEXT:    %[[GS:.*]] = arith.addf %[[GE]], %{{.*}} : tensor<?x1x64xf32>
  // CHECK:         %[[UE:.*]] = tensor.expand_shape %[[U]]
  // CHECK-NEXT:    %[[US:.*]] = arith.addf %[[UE]], %{{.*}} : tensor<?x1x64xf32>
  // CHECK:         %[[A:.*]] = kf.activation(silu) %[[GS]] : tensor<?x1x64xf32>
  // CHECK-NEXT:    %[[M:.*]] = arith.mulf %[[A]], %[[US]] : tensor<?x1x64xf32>
  // CHECK-NEXT:    %[[V:.*]] = tensor.collapse_shape %[[M]]
  // CHECK-NEXT:    return %[[V]]
  func.func @adapted(%x: tensor<?x64xf32>, %r: tensor<?x8xf32>, %e: tensor<?x1xi32>, %w: tensor<1x3x64x8xbf16>) -> tensor<?x64xf32> {
    %wg = kf.weight ["g"] : tensor<64x64xbf16>
    %wu = kf.weight ["u"] : tensor<64x64xbf16>
    %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<64x64xbf16>
    %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<64x64xbf16>
    %0 = kf.expert_matmul %r experts(%e), %w : tensor<?x8xf32>, tensor<?x1xi32>, tensor<1x3x64x8xbf16>
    %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x1x64xf32> into tensor<?x64xf32>
    %2 = arith.addf %g, %1 : tensor<?x64xf32>
    %3 = kf.expert_matmul %r experts(%e), %w : tensor<?x8xf32>, tensor<?x1xi32>, tensor<1x3x64x8xbf16>
    %4 = tensor.collapse_shape %3 [[0], [1, 2]] : tensor<?x1x64xf32> into tensor<?x64xf32>
    %5 = arith.addf %u, %4 : tensor<?x64xf32>
    %6 = kf.activation(silu) %2 : tensor<?x64xf32>
    %7 = arith.mulf %6, %5 : tensor<?x64xf32>
    return %7 : tensor<?x64xf32>
  }
  // A product by itself has an epilogue.
  // CHECK-LABEL: func.func @alone(
  // CHECK:         arith.addf %{{.*}} : tensor<?x64xf32>
  func.func @alone(%x: tensor<?x64xf32>, %r: tensor<?x8xf32>, %e: tensor<?x1xi32>, %w: tensor<1x3x64x8xbf16>) -> tensor<?x64xf32> {
    %wg = kf.weight ["g"] : tensor<64x64xbf16>
    %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<64x64xbf16>
    %0 = kf.expert_matmul %r experts(%e), %w : tensor<?x8xf32>, tensor<?x1xi32>, tensor<1x3x64x8xbf16>
    %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x1x64xf32> into tensor<?x64xf32>
    %2 = arith.addf %g, %1 : tensor<?x64xf32>
    return %2 : tensor<?x64xf32>
  }
}

// -----

// Elsewhere they stay what they are: on CPUs a kernel more is faster.
module {
  // CHECK-LABEL: func.func @elsewhere(
  // CHECK-COUNT-2: arith.addf %{{.*}} : tensor<?x64xf32>
  func.func @elsewhere(%x: tensor<?x64xf32>, %r: tensor<?x8xf32>, %e: tensor<?x1xi32>, %w: tensor<1x3x64x8xbf16>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    %wg = kf.weight ["g"] : tensor<64x64xbf16>
    %wu = kf.weight ["u"] : tensor<64x64xbf16>
    %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<64x64xbf16>
    %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<64x64xbf16>
    %0 = kf.expert_matmul %r experts(%e), %w : tensor<?x8xf32>, tensor<?x1xi32>, tensor<1x3x64x8xbf16>
    %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<?x1x64xf32> into tensor<?x64xf32>
    %2 = arith.addf %g, %1 : tensor<?x64xf32>
    %3 = kf.expert_matmul %r experts(%e), %w : tensor<?x8xf32>, tensor<?x1xi32>, tensor<1x3x64x8xbf16>
    %4 = tensor.collapse_shape %3 [[0], [1, 2]] : tensor<?x1x64xf32> into tensor<?x64xf32>
    %5 = arith.addf %u, %4 : tensor<?x64xf32>
    return %2, %5 : tensor<?x64xf32>, tensor<?x64xf32>
  }
}
