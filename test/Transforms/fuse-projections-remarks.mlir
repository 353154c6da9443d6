// RUN: kf-opt %s --kf-fuse-projections --remark-policy=all --remarks-filter=kf-fuse-projections \
// RUN:   2>&1 >/dev/null | FileCheck %s

// CHECK: remarks.mlir:[[#@LINE+4]]:8: remark: [Passed] Projections | {{.*}}Function=joined | Remark="products of the same rows joined"
func.func @joined(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK: remarks.mlir:[[#@LINE+5]]:8: remark: [Missed] Projections | {{.*}}Function=biases | Reason="their biases or scales are not loaded alike, or some have none", Remark="products of the same rows apart"
func.func @biases(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %b = kf.weight ["b"] : tensor<64xf32>
  %q = kf.matmul %x, %wq bias(%b) : tensor<?x64xf32>, tensor<64x64xbf16>, tensor<64xf32>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK: remarks.mlir:[[#@LINE+7]]:8: remark: [Missed] Projections | {{.*}}Function=gate | Reason="their weights are not loaded alike: {{.*}}", Remark="gate and up apart"
func.func @gate(%x: tensor<?x64xf32>, %wu: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %wg = kf.weight ["gate"] : tensor<96x64xbf16>
  %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<96x64xbf16>
  %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<96x64xbf16>
  %a = kf.activation(silu) %g : tensor<?x96xf32>
  // At the product of both.
  %0 = arith.mulf %a, %u : tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
