// RUN: kf-opt %s -split-input-file --kf-tile-kernels --convert-kf-to-gpu \
// RUN:   -verify-diagnostics

// expected-error @below {{convert-kf-to-gpu: no GPU code for 'tensor<?x8xf64>'; elements may be f32, f16, bf16, integers of up to 64 bits and blocks, in the order of the tensor's shape}}
kf.kernel @f64(%x: tensor<?x8xf64>) -> tensor<?x8xf64>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = arith.negf %x : tensor<?x8xf64>
  kf.yield %0 : tensor<?x8xf64>
}

// -----

// expected-error @below {{convert-kf-to-gpu: no GPU code for 'tensor<8x64xf32, #kf.layout<panel = 4>>'; elements may be}}
kf.kernel @packed(%x: tensor<?x64xf32>, %w: tensor<8x64xf32, #kf.layout<panel = 4>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.softmax %x : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

// expected-error @below {{convert-kf-to-gpu: no GPU code for a result of 'tensor<?x64x!kf.quant<q8_0>>' yet; --device=reference computes it}}
kf.kernel @quantize(%x: tensor<?x64xf32>) -> tensor<?x64x!kf.quant<q8_0>>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  %0 = kf.quantize %x <q8_0> : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64x!kf.quant<q8_0>>
}

// -----

kf.kernel @rope(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [8]>} {
  // expected-error @below {{convert-kf-to-gpu: no GPU code for this op yet}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x2x8xf32>, tensor<?xi32>
  kf.yield %0 : tensor<?x2x8xf32>
}
