// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   -verify-diagnostics

// expected-error @below {{convert-kf-to-gpu: no GPU code for 'tensor<?x8xbf16>' yet; f32 and i32 tensors of rank 1 or more are supported}}
kf.kernel @bf16(%x: tensor<?x8xbf16>) -> tensor<?x8xbf16>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.softmax %x : tensor<?x8xbf16>
  kf.yield %0 : tensor<?x8xbf16>
}

// -----

kf.kernel @rope(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  // expected-error @below {{convert-kf-to-gpu: no GPU code for this op yet}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x2x8xf32>, tensor<?xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}
