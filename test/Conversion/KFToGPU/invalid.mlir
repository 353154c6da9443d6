// RUN: kf-opt %s -split-input-file --convert-kf-to-gpu -verify-diagnostics

// expected-error @below {{convert-kf-to-gpu: kernel is not tiled; run kf-tile-kernels first}}
kf.kernel @untiled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kf.softmax %x : tensor<?x8xf32>
  kf.yield %0 : tensor<?x8xf32>
}
