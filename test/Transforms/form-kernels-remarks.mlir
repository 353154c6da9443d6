// RUN: kf-opt %s --kf-form-kernels --remark-policy=all --remarks-filter=kf-form-kernels \
// RUN:   2>&1 >/dev/null | FileCheck %s

// What became one kernel, and why the others stay out of it.
// CHECK-DAG: remarks.mlir:[[#@LINE+8]]:8: remark: [Missed] Fusion | Category:kf-form-kernels | Function=f | Consumer=kf.matmul, Reason="its result is read outside of the kernel and has to reach memory"
// CHECK-DAG: remarks.mlir:[[#@LINE+8]]:8: remark: [Missed] Fusion | Category:kf-form-kernels | Function=f | Consumer=kf.softmax, Reason="its reader takes this operand from memory"
// CHECK-DAG: remarks.mlir:[[#@LINE+8]]:8: remark: [Missed] Fusion | Category:kf-form-kernels | Function=f | Consumer=arith.addf, Reason="another op decides the loops of the kernel"
// CHECK-DAG: remarks.mlir:[[#@LINE+7]]:8: remark: [Passed] Kernel | Category:kf-form-kernels | Function=f | Ops=kf.softmax, Remark=alone
// CHECK-DAG: remarks.mlir:[[#@LINE+8]]:8: remark: [Passed] Kernel | Category:kf-form-kernels | Function=f | Ops="arith.addf, kf.argmax", Remark=fused
func.func @f(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %r: tensor<?x64xf32>)
    -> (tensor<?xi32>, tensor<?x64xf32>) {
  %w = kf.weight ["w"] : tensor<64x64xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<64x64xbf16>
  %2 = kf.softmax %1 : tensor<?x64xf32>
  %3 = arith.addf %2, %r : tensor<?x64xf32>
  %4 = kf.argmax %3 : tensor<?x64xf32>
  return %4, %0 : tensor<?xi32>, tensor<?x64xf32>
}
