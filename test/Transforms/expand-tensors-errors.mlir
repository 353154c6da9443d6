// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-expand-tensors))' -verify-diagnostics

func.func @glu(%x: tensor<?x5x8xf32>, %w: tensor<2x7x8xf32>) -> tensor<?x5x7xf32> {
  // expected-error @+1 {{'kf.matmul' op kf-expand-tensors: batches with a `?` behind the first dimension, or with glu, have no kernel; use static ones}}
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x5x8xf32>, tensor<2x7x8xf32>
  return %0 : tensor<?x5x7xf32>
}
