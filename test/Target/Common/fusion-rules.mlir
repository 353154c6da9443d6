// RUN: kf-opt %s --kf-set-target=target=cuda --kf-fuse --kf-program | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-fuse --kf-program | FileCheck %s

// Each workgroup of a product computes the statistics of its rows again: a norm
// of many rows is a kernel of its own.

// CHECK-LABEL: kf.program @few
// CHECK:         kf.dispatch @rms_norm_matmul_0
// CHECK-NOT:     kf.dispatch
func.func @few(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<40x64xf32>)
    -> tensor<?x40xf32> attributes {kf.max_tokens = 16 : i64} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<40x64xf32>
  return %1 : tensor<?x40xf32>
}

// CHECK-LABEL: kf.program @many
// CHECK:         %[[X:.*]] = kf.dispatch @rms_norm_0
// CHECK-NEXT:    kf.dispatch @matmul_0(%[[X]]
// CHECK-NOT:     kf.dispatch
func.func @many(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<40x64xf32>)
    -> tensor<?x40xf32> attributes {kf.max_tokens = 17 : i64} {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<40x64xf32>
  return %1 : tensor<?x40xf32>
}
