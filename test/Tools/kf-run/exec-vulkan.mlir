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

// RUN: %fails 1 kf-run exec %s --device vulkan --function sample \
// RUN:   --input 2x4xf32=1 --input 2xf32=0 --input 2xi32=0 --input 2xi64=0 \
// RUN:   | FileCheck %s
// CHECK: {{^}}{{.*}}exec-vulkan.mlir:{{[0-9]+}}:{{[0-9]+}}: error: {{.*}}kf.sample
func.func @sample(%x: tensor<?x4xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      : (tensor<?x4xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return %0 : tensor<?xi32>
}
