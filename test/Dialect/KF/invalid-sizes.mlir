// RUN: kf-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{n_tokens is the `?` of a tensor without #kf.size}}
func.func private @reserved(tensor<?x4xf32, #kf.size<n_tokens>>)

// -----

// expected-error @+1 {{#kf.size names the first dimension; the others must be static}}
func.func private @second(tensor<4x?xf32, #kf.size<wanted>>)

// -----

// expected-error @+1 {{#kf.size needs a tensor of rank 1 or more}}
func.func private @scalar(tensor<f32, #kf.size<wanted>>)

// -----

func.func @mixed(%x: tensor<?x4x8xf32, #kf.size<wanted>>, %p: tensor<?xi32>)
    -> tensor<?x4x8xf32, #kf.size<wanted>> {
  // expected-error @+1 {{C2: positions must be i32, one for each row of x}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64}
      : tensor<?x4x8xf32, #kf.size<wanted>>, tensor<?xi32>
  return %0 : tensor<?x4x8xf32, #kf.size<wanted>>
}

// -----

// expected-error @+1 {{kf.sizes lists names on a module}}
module attributes {kf.sizes = [1]} {}

// -----

// expected-error @+1 {{kf.sizes has 'a' twice}}
module attributes {kf.sizes = ["a", "a"]} {}

// -----

// expected-error @+1 {{kf.sizes: a module has at most 6 named sizes, found 7}}
module attributes {kf.sizes = ["a", "b", "c", "d", "e", "f", "g"]} {}

// -----

// expected-error @+1 {{C5: the module's kf.sizes lacks 'wanted'}}
kf.kernel @unknown(%x: tensor<?x4xf32, #kf.size<wanted>>)
    -> tensor<?x4xf32, #kf.size<wanted>> {
  %0 = arith.addf %x, %x : tensor<?x4xf32, #kf.size<wanted>>
  kf.yield %0 : tensor<?x4xf32, #kf.size<wanted>>
}

// -----

module attributes {kf.sizes = ["wanted"]} {
// expected-error @+1 {{C3: 'tensor<8x4xf32, #kf.size<wanted>>' has an encoding that is neither the #kf.layout or #kf.fragments of a static tensor nor the #kf.size of a dynamic one}}
kf.kernel @static(%x: tensor<8x4xf32, #kf.size<wanted>>)
    -> tensor<8x4xf32, #kf.size<wanted>> {
  %0 = arith.addf %x, %x : tensor<8x4xf32, #kf.size<wanted>>
  kf.yield %0 : tensor<8x4xf32, #kf.size<wanted>>
}
}

// -----

module attributes {kf.sizes = ["wanted"]} {
kf.kernel @k(%x: tensor<?x4xf32, #kf.size<wanted>>)
    -> tensor<?x4xf32, #kf.size<wanted>> {
  %0 = arith.addf %x, %x : tensor<?x4xf32, #kf.size<wanted>>
  kf.yield %0 : tensor<?x4xf32, #kf.size<wanted>>
}
// expected-error @+1 {{C6: sizes of kf.program lacks 'wanted'}}
kf.program @p(%x: tensor<?x4xf32, #kf.size<wanted>>)
    -> tensor<?x4xf32, #kf.size<wanted>> attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @k(%x) : (tensor<?x4xf32, #kf.size<wanted>>)
      -> tensor<?x4xf32, #kf.size<wanted>>
  kf.yield %0 : tensor<?x4xf32, #kf.size<wanted>>
}
}

// -----

// expected-error @+1 {{size_range of 'wanted': needs 0 <= least <= most <= 2147483647, found 5 and 4}}
#range = #kf.size_range<wanted, least = 5, most = 4>

// -----

// expected-error @+1 {{grid: a dimension needs a positive divisor}}
#grid = #kf.grid<tokens = [0], counts = [0], size = wanted>
