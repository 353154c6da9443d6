// RUN: kf-opt %s --kf-check-input | FileCheck %s

// All that a source may hold, some of it as large as it may be.

// CHECK: kf.kernel @k
kf.kernel @k(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = math.sqrt %x : tensor<?x4xf32>
  kf.yield %0 : tensor<?x4xf32>
}

// CHECK: kf.program @p
kf.program @p(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {max_tokens = 2147483647 : i64} {
  %0 = kf.dispatch @k(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  kf.yield %0 : tensor<?x4xf32>
}

// CHECK: func.func @f
func.func @f(%x: tensor<?x4xf32>, %ids: tensor<?xi32>,
    %cache: !kf.kv_cache<layers = 126, kv_heads = 8, head_dim = 128, type = bf16>)
    -> tensor<?x256xf32> attributes {kf.max_tokens = 1 : i64} {
  // CHECK: tensor<53248x16384xbf16>
  %w = kf.weight ["w"] : tensor<53248x16384xbf16>
  %q = kf.weight ["q"] : tensor<256000x256x!kf.quant<q8_0>>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // CHECK: arith.constant dense<0.000000e+00> : tensor<1048576x1048576xf32>
  %z = arith.constant dense<0.0> : tensor<1048576x1048576xf32>
  %0 = kf.embedding %ids, %q : tensor<?xi32>, tensor<256000x256x!kf.quant<q8_0>>
  %1 = tensor.cast %x : tensor<?x4xf32> to tensor<?x4xf32>
  %2 = tensor.extract_slice %1[0, 0] [%n, 4] [1, 1]
      : tensor<?x4xf32> to tensor<?x4xf32>
  %3 = tensor.expand_shape %2 [[0], [1, 2]] output_shape [%n, 2, 2]
      : tensor<?x4xf32> into tensor<?x2x2xf32>
  %4 = tensor.collapse_shape %3 [[0], [1, 2]]
      : tensor<?x2x2xf32> into tensor<?x4xf32>
  return %0 : tensor<?x256xf32>
}

func.func private @external(tensor<4xf64>)
