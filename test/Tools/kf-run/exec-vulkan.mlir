// REQUIRES: vulkan
// The ops that the Vulkan device computes, and the error for one that it does
// not.

// RUN: kf-run exec %s --device vulkan --function add \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 --input 2x3xf32=10 \
// RUN:   '--expected=2x3xf32=[11 12 13][14 15 16]'
func.func @add(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = arith.addf %a, %b : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// RUN: kf-run exec %s --device vulkan --function rms_norm \
// RUN:   --input 2x4xf32=1,1,1,1,2,-2,2,-2 --input 4xf32=1,2,3,4 \
// RUN:   '--expected=2x4xf32=[1 2 3 4][1 -2 3 -4]'
func.func @rms_norm(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> tensor<?x4xf32> {
  %0 = kf.rms_norm %x, %w eps(0.0) : tensor<?x4xf32>, tensor<4xf32>
  return %0 : tensor<?x4xf32>
}

// RUN: kf-run exec %s --device vulkan --function softmax \
// RUN:   --input 1x4xf32=0 --expected 1x4xf32=0.25
func.func @softmax(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kf.softmax %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// RUN: kf-run exec %s --device vulkan --function matmul \
// RUN:   --input 2x3xf32=1,2,3,4,5,6 --input 2x3xf32=1,0,0,0,1,1 \
// RUN:   '--expected=2x2xf32=[1 5][4 11]'
func.func @matmul(%x: tensor<?x3xf32>, %w: tensor<2x3xf32>) -> tensor<?x2xf32> {
  %0 = kf.matmul %x, %w : tensor<?x3xf32>, tensor<2x3xf32>
  return %0 : tensor<?x2xf32>
}

// RUN: %fails 1 kf-run exec %s --device vulkan --function double \
// RUN:   --input 2x4xf64=1 | FileCheck %s
// CHECK: {{^}}{{.*}}exec-vulkan.mlir:{{[0-9]+}}:{{[0-9]+}}: error: no Vulkan kernel for 'arith.negf' on 'tensor<?x4xf64>'
func.func @double(%x: tensor<?x4xf64>) -> tensor<?x4xf64> {
  %0 = arith.negf %x : tensor<?x4xf64>
  return %0 : tensor<?x4xf64>
}
