// RUN: kf-opt %s --kf-form-kernels -split-input-file -verify-diagnostics

func.func @other_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tensor.pad' op kf-form-kernels: has no place in a kernel; use kf ops, the elementwise ops of arith and math on tensors, and tensor.{extract_slice,expand_shape,collapse_shape,concat,cast,dim}}}
  %0 = tensor.pad %x low[0] high[0] {
  ^bb0(%i: index):
    %c = arith.constant 0.0 : f32
    tensor.yield %c : f32
  } : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Elementwise, but not on tensors.
func.func @scalars(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 1.0 : f32
  // expected-error @+1 {{'arith.addf' op kf-form-kernels: has no place in a kernel}}
  %0 = arith.addf %c, %c : f32
  %1 = kf.softmax %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @callee(tensor<4xf32>) -> tensor<4xf32>
func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op kf-form-kernels: has no place in a kernel}}
  %0 = func.call @callee(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{kf-form-kernels: 'tensor<4x?xf32>' is neither a cache nor a tensor whose dimensions are static but for the first, and not 0}}
func.func @dynamic_inner(%x: tensor<4x?xf32>) {
  return
}

// -----

// expected-error @+1 {{kf-form-kernels: 'tensor<0x4xf32>' is neither}}
func.func @empty(%x: tensor<0x4xf32>) {
  return
}

// -----

// expected-error @+1 {{kf-form-kernels: 'f32' is neither}}
func.func @scalar(%x: f32) {
  return
}

// -----

// expected-error @+1 {{kf-form-kernels: takes 'tensor<32x4xf32, #kf.layout<panel = 32>>', and a caller knows nothing of layouts; take 'tensor<32x4xf32>' and kf.pack it}}
func.func @takes_packed(%x: tensor<2x4xf32>, %w: tensor<32x4xf32, #kf.layout<panel = 32>>)
    -> tensor<2x32xf32> {
  %0 = kf.matmul %x, %w : tensor<2x4xf32>, tensor<32x4xf32, #kf.layout<panel = 32>>
  return %0 : tensor<2x32xf32>
}

// -----

// expected-error @+1 {{kf-form-kernels: returns 'tensor<1x4xf32, #kf.layout<panel = 32>>', and a caller knows nothing of layouts; return 'tensor<1x4xf32>' and leave out kf.pack}}
func.func @returns_packed(%w: tensor<1x4xf32>) -> tensor<1x4xf32, #kf.layout<panel = 32>> {
  %0 = kf.pack %w : tensor<1x4xf32> to tensor<1x4xf32, #kf.layout<panel = 32>>
  return %0 : tensor<1x4xf32, #kf.layout<panel = 32>>
}

// -----

// expected-error @+1 {{kf-form-kernels: takes 'tensor<4xf32, "rows">'}}
func.func @takes_other_encoding(%x: tensor<4xf32, "rows">) {
  return
}

// -----

// expected-error @+1 {{kf-form-kernels: a program has one block, found control flow}}
func.func @control_flow(%x: tensor<4xf32>) {
  cf.br ^bb1
^bb1:
  return
}

// -----

!cache = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8, type = f32>
// expected-error @+1 {{kf-form-kernels: a cache is a reference; it cannot be returned}}
func.func @returns_cache(%c: !cache) -> !cache {
  return %c : !cache
}

// -----

// expected-error @+1 {{kf-form-kernels: returns 'tensor<32x!kf.quant<q8_0>>' that no kernel makes, and blocks are not copied; kf.dequantize it}}
func.func @returns_blocks(%x: tensor<32x!kf.quant<q8_0>>) -> tensor<32x!kf.quant<q8_0>> {
  return %x : tensor<32x!kf.quant<q8_0>>
}

// -----

// expected-error @+1 {{kf-form-kernels: kf.max_tokens must be positive, found 0}}
func.func @no_tokens(%x: tensor<4xf32>) -> tensor<4xf32> attributes {kf.max_tokens = 0 : i64} {
  %0 = kf.softmax %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{kf-form-kernels: kf.size_ranges has 'wanted', which no tensor of the function is called after}}
func.func @no_such_size(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {kf.size_ranges = [#kf.size_range<wanted, most = 4>]} {
  %0 = kf.softmax %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{kf-form-kernels: kf.size_ranges must be a list of #kf.size_range}}
func.func @no_ranges(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
    attributes {kf.size_ranges = 4} {
  %0 = kf.softmax %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{kf-form-kernels: takes 'tensor<4x4xf32, #kf.size<wanted>>', and #kf.size is the name of a `?`; leave it out}}
func.func @static(%x: tensor<4x4xf32, #kf.size<wanted>>) -> tensor<4x4xf32, #kf.size<wanted>> {
  %0 = kf.softmax %x : tensor<4x4xf32, #kf.size<wanted>>
  return %0 : tensor<4x4xf32, #kf.size<wanted>>
}

// -----

// expected-error @+1 {{kf-form-kernels: a module has at most 6 named sizes, found 7}}
module {
func.func @many(%0: tensor<?x4xf32, #kf.size<a>>, %1: tensor<?x4xf32, #kf.size<b>>,
                %2: tensor<?x4xf32, #kf.size<c>>, %3: tensor<?x4xf32, #kf.size<d>>,
                %4: tensor<?x4xf32, #kf.size<e>>, %5: tensor<?x4xf32, #kf.size<f>>,
                %6: tensor<?x4xf32, #kf.size<g>>) -> tensor<?x4xf32, #kf.size<a>> {
  %7 = kf.softmax %0 : tensor<?x4xf32, #kf.size<a>>
  return %7 : tensor<?x4xf32, #kf.size<a>>
}
}

// -----

func.func @cast(%x: tensor<?x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'tensor.cast' op kf-form-kernels: changes what a type says of a tensor's size, and nothing checks it when the program runs; give the tensor one type}}
  %0 = tensor.cast %x : tensor<?x8xf32> to tensor<4x8xf32>
  %1 = kf.softmax %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
