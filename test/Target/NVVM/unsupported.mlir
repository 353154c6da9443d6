// RUN: kf-opt %s --kf-set-target=target=cuda --kf-select-schedules -verify-diagnostics

// Functions that CUDA has no code for, and Vulkan has.

kf.kernel @tan(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{no CUDA kernel for 'math.tan' yet; use --device=cpu or --device=reference}}
  %0 = math.tan %x : tensor<2xf32>
  kf.yield %0 : tensor<2xf32>
}
