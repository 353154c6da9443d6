// RUN: kf-opt %s -verify-diagnostics -split-input-file

// Normalizations, softmax, activation, quantize and dequantize.

func.func @f(%x: tensor<4x?xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements and a static last dimension, found 'tensor<4x?xf32>'}}
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<4x?xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements and a static last dimension, found 'tensor<f32>'}}
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<f32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements}}
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<4x8xi32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<9xf32>) {
  // expected-error @+1 {{C2: weight must be [8] of a float type}}
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<4x8xf32>, tensor<9xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C3: eps must be finite and not negative}}
  %0 = kf.rms_norm %x, %w eps(-1.0e-5) : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C3: eps must be finite and not negative}}
  %0 = kf.rms_norm %x, %w eps(0x7FC00000) : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

// rms_norm C4
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.rms_norm"(%x, %w) <{eps = 0.0 : f32}> : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements and a static last dimension, found 'tensor<4x?xf32>'}}
  %0 = kf.layer_norm %x, %w eps(1.0e-5) : tensor<4x?xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements and a static last dimension, found 'tensor<f32>'}}
  %0 = kf.layer_norm %x, %w eps(1.0e-5) : tensor<f32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C1: x must have float elements}}
  %0 = kf.layer_norm %x, %w eps(1.0e-5) : tensor<4x8xi32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<9xf32>) {
  // expected-error @+1 {{C2: weight and bias must be [8] of a float type}}
  %0 = kf.layer_norm %x, %w eps(1.0e-5) : tensor<4x8xf32>, tensor<9xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C3: eps must be finite and not negative}}
  %0 = kf.layer_norm %x, %w eps(-1.0e-5) : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{C3: eps must be finite and not negative}}
  %0 = kf.layer_norm %x, %w eps(0x7FC00000) : tensor<4x8xf32>, tensor<8xf32>
  return
}

// -----

// layer_norm C4
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.layer_norm"(%x, %w) <{eps = 0.0 : f32}> : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{C2: weight and bias must be [8] of a float type}}
  %0 = kf.layer_norm %x, %w bias(%b) eps(1.0e-5) : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{C1: x must have float elements and a static last dimension, found 'tensor<4x?xf32>'}}
  %0 = kf.softmax %x : tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<4x0xf32>) {
  // expected-error @+1 {{needs tensors without a dimension of size 0, found 'tensor<4x0xf32>'}}
  %0 = kf.softmax %x : tensor<4x0xf32>
  return
}

// -----

// softmax C2
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<8x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.softmax"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi32>) {
  // expected-error @+1 {{C1: x must have float elements, found 'tensor<4x8xi32>'}}
  %0 = kf.activation(relu) %x : tensor<4x8xi32>
  return
}

// -----

// activation C2
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.activation"(%x) <{kind = #kf.activation_kind<relu>}> : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{unknown activation 'swish'; known: identity, silu, gelu, gelu_tanh, relu}}
  %0 = kf.activation(swish) %x : tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf16>) {
  // expected-error @+1 {{C1: x must have f32 elements, found 'tensor<4x32xf16>'}}
  %0 = kf.quantize %x <q8_0> : tensor<4x32xf16>
  return
}

// -----

func.func @f(%x: tensor<4x33xf32>) {
  // expected-error @+1 {{C2: last dimension of 'tensor<4x33xf32>' must be static and a multiple of 32}}
  %0 = kf.quantize %x <q8_0> : tensor<4x33xf32>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{C2: last dimension of 'tensor<4x32xf32>' must be static and a multiple of 256}}
  %0 = kf.quantize %x <q6_k> : tensor<4x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error @+1 {{C2: last dimension of 'tensor<?xf32>' must be static}}
  %0 = kf.quantize %x <q4_0> : tensor<?xf32>
  return
}

// -----

// quantize C3
func.func @f(%x: tensor<32xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<32x!kf.quant<q8_0>>' are incompatible with return type(s) of operation 'tensor<32x!kf.quant<q4_0>>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.quantize"(%x) <{format = #kf.block_format<q8_0>}> : (tensor<32xf32>) -> tensor<32x!kf.quant<q4_0>>
  return
}

// -----

func.func @f(%x: tensor<32xf32>) {
  // expected-error @+1 {{requires attribute 'format'}}
  %0 = "kf.quantize"(%x) : (tensor<32xf32>) -> tensor<32x!kf.quant<q8_0>>
  return
}

// -----

func.func @f(%x: tensor<4x32xf32>) {
  // expected-error @+1 {{C1: x must have !kf.quant elements, found 'tensor<4x32xf32>'}}
  %0 = kf.dequantize %x : tensor<4x32xf32>
  return
}

// -----

func.func @f(%x: tensor<4x16x!kf.quant<q8_0>>) {
  // expected-error @+1 {{C2: last dimension of 'tensor<4x16x!kf.quant<q8_0>>' must be static and a multiple of 32}}
  %0 = kf.dequantize %x : tensor<4x16x!kf.quant<q8_0>>
  return
}

// -----

// dequantize C3
func.func @f(%x: tensor<32x!kf.quant<q8_0>>) {
  // expected-error @+2 {{inferred type(s) 'tensor<32xf32>' are incompatible with return type(s) of operation 'tensor<32xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.dequantize"(%x) : (tensor<32x!kf.quant<q8_0>>) -> tensor<32xf16>
  return
}
