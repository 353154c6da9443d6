// RUN: kf-opt %s --canonicalize --kf-form-kernels -verify-diagnostics

// Upstream's folders make constants that have no size.
func.func @unknown_rows(%x: tensor<?x2xi32>) -> tensor<?x2xi32> {
  // expected-error @+1 {{'arith.constant' op kf-form-kernels: a constant has a static shape; fold by kf-canonicalize}}
  %0 = arith.xori %x, %x : tensor<?x2xi32>
  return %0 : tensor<?x2xi32>
}
