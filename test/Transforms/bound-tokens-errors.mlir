// RUN: kf-opt %s -kf-form-kernels -kf-bound-tokens -split-input-file -verify-diagnostics

func.func @past_the_end(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // expected-error@+1 {{kf-bound-tokens: reaches past the end of its source, whatever the sizes of a step are}}
  %0 = tensor.extract_slice %x[1, 0] [%n, 4] [1, 1]
      : tensor<?x4xf32> to tensor<?x4xf32>
  %1 = kf.activation(relu) %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

func.func @at_the_end(%x: tensor<?x4xf32>) -> tensor<1x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // expected-error@+1 {{kf-bound-tokens: reaches past the end of its source}}
  %0 = tensor.extract_slice %x[%n, 0] [1, 4] [1, 1]
      : tensor<?x4xf32> to tensor<1x4xf32>
  %1 = kf.activation(relu) %0 : tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// -----

func.func @split(%x: tensor<?xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-error@+1 {{kf-bound-tokens: every `?` is n_tokens or has a name, so that a dynamic dimension can only be reshaped together with dimensions of 1}}
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [%n, 4]
      : tensor<?xf32> into tensor<?x4xf32>
  %1 = kf.activation(relu) %0 : tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

func.func @joined(%x: tensor<?x4xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{kf-bound-tokens: every `?` is n_tokens}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %1 = kf.activation(relu) %0 : tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

kf.kernel @few(%x: tensor<?x4xf32>, %t: tensor<2x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %0 = tensor.extract_slice %t[0, 0] [%n, 4] [1, 1]
      : tensor<2x4xf32> to tensor<?x4xf32>
  %1 = kf.activation(relu) %0 : tensor<?x4xf32>
  kf.yield %1 : tensor<?x4xf32>
}
kf.program @many(%x: tensor<?x4xf32>, %t: tensor<2x4xf32>) -> tensor<?x4xf32>
    attributes {max_tokens = 9 : i64, min_tokens = 3 : i64} {
  // expected-error@+1 {{kf-bound-tokens: its views allow 1 to 2 tokens, the program before it 3 to 9}}
  %0 = kf.dispatch @few(%x, %t)
      : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
  kf.yield %0 : tensor<?x4xf32>
}

// -----

// Nothing is computed of n_tokens: here, a division by zero.
kf.kernel @arithmetic(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // expected-error@+1 {{'arith.divui' op kf-bound-tokens: makes 'index'; a kernel has tensors whose dimensions are static but for the first, index constants, and the tensor.dim of tensors}}
  %d = arith.divui %n, %c0 : index
  %0 = tensor.extract_slice %x[%d, 0] [%n, 4] [1, 1]
      : tensor<?x4xf32> to tensor<?x4xf32>
  %1 = kf.activation(relu) %0 : tensor<?x4xf32>
  kf.yield %1 : tensor<?x4xf32>
}

// -----

// As many wanted rows as there are tokens at most: nothing says so.
func.func @unrelated(%x: tensor<?x4xf32>, %y: tensor<?x4xf32, #kf.size<wanted>>)
    -> tensor<?x4xf32, #kf.size<wanted>> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x4xf32, #kf.size<wanted>>
  // expected-error@+1 {{kf-bound-tokens: compares sizes of different names, and nothing says which is larger}}
  %0 = tensor.extract_slice %x[0, 0] [%n, 4] [1, 1]
      : tensor<?x4xf32> to tensor<?x4xf32, #kf.size<wanted>>
  %1 = arith.addf %0, %y : tensor<?x4xf32, #kf.size<wanted>>
  return %1 : tensor<?x4xf32, #kf.size<wanted>>
}

// -----

func.func @renamed(%x: tensor<?x8xf32>, %y: tensor<?x2x4xf32, #kf.size<wanted>>)
    -> tensor<?x2x4xf32, #kf.size<wanted>> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x2x4xf32, #kf.size<wanted>>
  // expected-error@+1 {{kf-bound-tokens: gives the rows of 'tensor<?x8xf32>' another name in 'tensor<?x2x4xf32, #kf.size<wanted>>'}}
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 4]
      : tensor<?x8xf32> into tensor<?x2x4xf32, #kf.size<wanted>>
  %1 = arith.addf %0, %y : tensor<?x2x4xf32, #kf.size<wanted>>
  return %1 : tensor<?x2x4xf32, #kf.size<wanted>>
}

// -----

module attributes {kf.sizes = ["ghost"]} {
kf.kernel @cast(%ids: tensor<?xi32>, %x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error@+1 {{kf-bound-tokens: gives the rows of 'tensor<?x4xf32>' another number or name in 'tensor<?x4xf32, #kf.size<ghost>>'}}
  %0 = tensor.cast %x : tensor<?x4xf32> to tensor<?x4xf32, #kf.size<ghost>>
  %1 = kf.embedding %ids, %0 : tensor<?xi32>, tensor<?x4xf32, #kf.size<ghost>>
  kf.yield %1 : tensor<?x4xf32>
}
}
