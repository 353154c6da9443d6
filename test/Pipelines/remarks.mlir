// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program --kf-schedule \
// RUN:   --remark-policy=all --remarks-filter='kf-.*' 2>&1 >/dev/null | FileCheck %s

// What was fused, laid out and scheduled, at the op of the source.
// CHECK-DAG: remarks.mlir:[[#@LINE+9]]:8: remark: [Passed] Kernel | Category:kf-form-kernels | Function=f | Ops="kf.rms_norm, kf.matmul, arith.addf", Remark=fused
// CHECK-DAG: remarks.mlir:[[#@LINE+8]]:8: remark: [Passed] Layout | Category:kf-set-layouts | Function=rms_norm_matmul_add_0 | Layout="#kf.layout<panel = 32, interleave = 16>", Remark="packed weight"
// CHECK-DAG: remarks.mlir:[[#@LINE+7]]:8: remark: [Passed] Schedule | Category:kf-select-schedules | Function=rms_norm_matmul_add_0 | Remark=chosen, Rows=512, Schedule="#kf.vector<workgroup = [56, 64], tile = [14, 32], lanes = 16, unroll = 8, panels = unpacked>"
// CHECK-DAG: remarks.mlir:[[#@LINE+7]]:8: remark: [Passed] Kernel | Category:kf-form-kernels | Function=f | Ops=kf.argmax, Remark=alone
func.func @f(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %r: tensor<?x64xf32>)
    -> tensor<?xi32> {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<64x64xbf16>
  %2 = arith.addf %1, %r : tensor<?x64xf32>
  %3 = kf.argmax %2 : tensor<?x64xf32>
  return %3 : tensor<?xi32>
}
