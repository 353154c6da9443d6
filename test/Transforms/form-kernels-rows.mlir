// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-form-kernels | FileCheck %s

// A norm joins a product of few rows, whatever the program's other products have.
// CHECK-LABEL: kf.program @f(
// CHECK-NEXT:    kf.weight
// CHECK-NEXT:    kf.dispatch @rms_norm_0(
// CHECK-NEXT:    kf.dispatch @matmul_0(
// CHECK-NEXT:    kf.dispatch @rms_norm_matmul_0(
// CHECK-NEXT:    kf.dispatch @rms_norm_matmul_1(
// CHECK-NEXT:    kf.yield
func.func @f(%x: tensor<?x64xf32>, %y: tensor<?x64xf32, #kf.size<few>>, %z: tensor<3x64xf32>, %g: tensor<64xf32>)
    -> (tensor<?x32xf32>, tensor<?x32xf32, #kf.size<few>>, tensor<3x32xf32>)
    attributes {kf.max_tokens = 512 : i64, kf.size_ranges = [#kf.size_range<few, most = 16>]} {
  %w = kf.weight ["w"] : tensor<32x64xf32>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<32x64xf32>
  %2 = kf.rms_norm %y, %g eps(1.0e-5) : tensor<?x64xf32, #kf.size<few>>, tensor<64xf32>
  %3 = kf.matmul %2, %w : tensor<?x64xf32, #kf.size<few>>, tensor<32x64xf32>
  %4 = kf.rms_norm %z, %g eps(1.0e-5) : tensor<3x64xf32>, tensor<64xf32>
  %5 = kf.matmul %4, %w : tensor<3x64xf32>, tensor<32x64xf32>
  return %1, %3, %5 : tensor<?x32xf32>, tensor<?x32xf32, #kf.size<few>>, tensor<3x32xf32>
}
