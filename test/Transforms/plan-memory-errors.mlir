// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.program(kf-plan-memory))' -split-input-file -verify-diagnostics
// RUN: not kf-opt %s --pass-pipeline='builtin.module(kf.program(kf-plan-memory{alignment=48}))' 2>&1 | FileCheck %s

// CHECK: error: kf-plan-memory: alignment must be a power of two up to 1 MiB, found 48
kf.kernel @huge(%x: tensor<?x4xf32>, %w: tensor<4611686018427387904x4xf32>)
    -> tensor<?x4611686018427387904xf32> {
  %0 = kf.matmul %x, %w : tensor<?x4xf32>, tensor<4611686018427387904x4xf32>
  kf.yield %0 : tensor<?x4611686018427387904xf32>
}
kf.program @overflow(%x: tensor<?x4xf32>, %w: tensor<4611686018427387904x4xf32>)
    attributes {max_tokens = 8 : i64} {
  // expected-error @+1 {{kf-plan-memory: with 'tensor<?x4611686018427387904xf32>' of 8 rows, the arena's size overflows 64 bits}}
  %0 = kf.dispatch @huge(%x, %w) : (tensor<?x4xf32>, tensor<4611686018427387904x4xf32>)
      -> tensor<?x4611686018427387904xf32>
  kf.yield
}

// -----

// Each fits, their sum does not.
kf.kernel @large(%x: tensor<?x4xf32>) -> tensor<?x1152921504606846xf32> {
  %w = kf.weight ["w"] : tensor<1152921504606846x4xf32>
  %0 = kf.matmul %x, %w : tensor<?x4xf32>, tensor<1152921504606846x4xf32>
  kf.yield %0 : tensor<?x1152921504606846xf32>
}
kf.program @sum(%x: tensor<?x4xf32>) attributes {max_tokens = 240 : i64} {
  %0 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %1 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %2 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %3 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %4 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %5 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %6 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  %7 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  // expected-error @+1 {{the arena's size overflows 64 bits}}
  %8 = kf.dispatch @large(%x) : (tensor<?x4xf32>) -> tensor<?x1152921504606846xf32>
  kf.yield
}
