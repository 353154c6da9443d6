// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-fuse --kf-program | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-compile -o /dev/null

// What attention reads becomes a view once its rounding goes: f32 that was bf16.
// CHECK-LABEL: kf.program @widened(
// CHECK:         %[[COPY:.*]] = kf.dispatch @copy_0(%{{.*}}) : (tensor<32x64xbf16>) -> tensor<4x32x16xbf16>
// CHECK:         kf.dispatch @scaled_dot_product_attention_0(%[[COPY]])
// CHECK-LABEL: kf.kernel @copy_0(
// CHECK:         kf.transpose
func.func @widened(%x: tensor<32x64xf32>) -> tensor<4x32x16xf32> {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %0 = kf.matmul %x, %w : tensor<32x64xf32>, tensor<64x64xbf16>
  %1 = arith.truncf %0 : tensor<32x64xf32> to tensor<32x64xbf16>
  %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [32, 4, 16] : tensor<32x64xbf16> into tensor<32x4x16xbf16>
  %3 = kf.transpose %2 permutation = [1, 0, 2] : tensor<32x4x16xbf16>
  %4 = arith.extf %3 : tensor<4x32x16xbf16> to tensor<4x32x16xf32>
  %5 = kf.scaled_dot_product_attention %4, %4, %4 : tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>
  return %5 : tensor<4x32x16xf32>
}
