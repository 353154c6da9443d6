// RUN: kf-opt %s --kf-check-input -split-input-file -verify-diagnostics

// expected-error @+1 {{'memref.global' op cannot be compiled; a file holds func.func, kf.kernel and kf.program}}
memref.global "private" @data : memref<4xf32>

// -----

// expected-error @+1 {{'kf.kernel' op is tiled already; give the text that --compile-to=program prints}}
kf.kernel @tiled(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {grid = #kf.grid<tokens = [0], counts = [1]>} {
  kf.yield %x : tensor<4xf32>
}

// -----

func.func @foreign(%x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %f = arith.constant 1.0 : f32
  // expected-error @+1 {{'tensor.insert' op kf-check-input: has no place in a kernel; use kf ops, the elementwise ops of arith and math on tensors, and tensor.{extract_slice,expand_shape,collapse_shape,concat,cast,dim}}}
  %0 = tensor.insert %f into %x[%i] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @nested(%x: tensor<4xf32>, %c: i1) {
  // expected-error @+1 {{'scf.if' op kf-check-input: has no place in a kernel}}
  scf.if %c {
  }
  return
}

// -----

// expected-error @+1 {{'func.func' op kf-check-input: has a value of type 'vector<4xf32>'; values are caches, ranked tensors and numbers}}
func.func private @vectors(%x: vector<4xf32>)

// -----

// expected-error @+1 {{kf-check-input: elements are numbers of up to 64 bits or blocks, found 'tensor<4xcomplex<f32>>'}}
func.func @complex(%x: tensor<4xcomplex<f32>>) {
  return
}

// -----

// expected-error @+1 {{kf-check-input: elements are numbers of up to 64 bits or blocks, found 'tensor<4xindex>'}}
func.func @indices(%x: tensor<4xindex>) {
  return
}

// -----

func.func @wide() {
  // expected-error @+1 {{'arith.constant' op kf-check-input: elements are numbers of up to 64 bits or blocks, found 'tensor<2xi65>'}}
  %0 = arith.constant dense<1> : tensor<2xi65>
  return
}

// -----

func.func @wide_scalar(%x: tensor<4xf32>) {
  // expected-error @+1 {{'arith.constant' op kf-check-input: has a value of type 'i16777215'}}
  %0 = arith.constant 7 : i16777215
  return
}

// -----

// expected-error @+1 {{kf-check-input: a tensor has at most 8 dimensions, found 'tensor<?x1x1x1x1x1x1x1x2xf32>'}}
func.func @rank(%x: tensor<?x1x1x1x1x1x1x1xf32>, %y: tensor<?x1x1x1x1x1x1x1x2xf32>) {
  return
}

// -----

func.func @extent() {
  %0 = kf.weight ["a"] : tensor<2147483647x4xf32>
  // expected-error @+1 {{'kf.weight' op kf-check-input: a dimension is at most 2147483647, found 'tensor<2147483648x4xf32>'}}
  %1 = kf.weight ["b"] : tensor<2147483648x4xf32>
  return
}

// -----

func.func @elements() {
  %0 = kf.weight ["a"] : tensor<1048576x1048576xf32>
  // expected-error @+1 {{'kf.weight' op kf-check-input: a tensor, or a position of a cache, has at most 1099511627776 elements, found 'tensor<1048576x1048577xf32>'}}
  %1 = kf.weight ["b"] : tensor<1048576x1048577xf32>
  return
}

// -----

// The product overflows 64 bits.
func.func @overflow() {
  // expected-error @+1 {{kf-check-input: a tensor, or a position of a cache, has at most 1099511627776 elements}}
  %0 = kf.weight ["a"] : tensor<2147483647x2147483647x2147483647x2147483647xf32>
  return
}

// -----

// expected-error @+1 {{kf-check-input: a tensor, or a position of a cache, has at most 1099511627776 elements, found '!kf.kv_cache<layers = 2147483647, kv_heads = 2147483647, head_dim = 65536, type = f32>'}}
func.func @cache(%c: !kf.kv_cache<layers = 2147483647, kv_heads = 2147483647, head_dim = 65536, type = f32>) {
  return
}

// -----

// expected-error @+1 {{kf-check-input: kf.max_tokens is an i64 from 1 to 2147483647, found 0 : i64}}
func.func @no_tokens() attributes {kf.max_tokens = 0 : i64} {
  return
}

// -----

// expected-error @+1 {{kf-check-input: kf.max_tokens is an i64 from 1 to 2147483647, found "many"}}
func.func @many() attributes {kf.max_tokens = "many"} {
  return
}

// -----

// expected-error @+1 {{kf-check-input: max_tokens is an i64 from 1 to 2147483647, found 2147483648 : i64}}
kf.program @tokens() attributes {max_tokens = 2147483648 : i64} {
  kf.yield
}
