// Functions without a softmax go.
// RUN: kf-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-softmax.sh' | FileCheck %s

// CHECK:     func.func @interesting
// CHECK:       kf.softmax
// CHECK-NOT: func.func
func.func @boring(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = kf.activation(silu) %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @interesting(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = kf.softmax %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @dull(%x: tensor<4x8xf32>, %w: tensor<2x8xf32>) -> tensor<4x2xf32> {
  %0 = kf.matmul %x, %w : tensor<4x8xf32>, tensor<2x8xf32>
  return %0 : tensor<4x2xf32>
}
