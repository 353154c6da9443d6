// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate)' --split-input-file --verify-diagnostics

func.func @no_derivative(%x: tensor<?x32xf32> {kf.gradient}, %w: tensor<8x32xf32>) -> tensor<f32> {
  // expected-error @+1 {{'kf.round_half' op kf-differentiate: has no derivative, and an argument with kf.gradient reaches the loss through it; compute its operands elsewhere}}
  %half, %outliers = kf.round_half %x : tensor<?x32xf32>
  %0 = arith.extf %half : tensor<?x32xf16> to tensor<?x32xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// -----

func.func @rounded_to_blocks(%x: tensor<4x32xf32> {kf.gradient}) -> tensor<f32> {
  %0 = kf.quantize %x <q8_0> : tensor<4x32xf32>
  // expected-error @+1 {{'kf.dequantize' op kf-differentiate: has no derivative}}
  %1 = kf.dequantize %0 : tensor<4x32x!kf.quant<q8_0>>
  %2 = kf.reduce(sum) %1 dims = [0, 1] : tensor<4x32xf32>
  return %2 : tensor<f32>
}

// -----

func.func @product(%x: tensor<?x32xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'kf.reduce' op kf-differentiate: has no derivative for products of elements}}
  %0 = kf.reduce(prod) %x dims = [0, 1] : tensor<?x32xf32>
  return %0 : tensor<f32>
}

// -----

func.func @float8(%x: tensor<?x32xf32> {kf.gradient}) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<8x32xf8E4M3FN>
  // expected-error @+1 {{'kf.matmul' op kf-differentiate: has no derivative for rows of a product with a weight of 'f8E4M3FN'; have it in bf16}}
  %0 = kf.matmul %x, %w : tensor<?x32xf32>, tensor<8x32xf8E4M3FN>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x8xf32>
  return %1 : tensor<f32>
}

// -----

func.func @table_of_rows(%ids: tensor<?xi32, #kf.size<wanted>>, %x: tensor<?x32xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'kf.embedding' op kf-differentiate: has no derivative for a table of 'tensor<?x32xf32>'}}
  %0 = kf.embedding %ids, %x : tensor<?xi32, #kf.size<wanted>>, tensor<?x32xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32, #kf.size<wanted>>
  return %1 : tensor<f32>
}

// -----

func.func @some_rows(%x: tensor<?x32xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'tensor.extract_slice' op kf-differentiate: has no derivative for some rows of a `?`, or slices at places that are not constant}}
  %0 = tensor.extract_slice %x[0, 0] [1, 32] [1, 1] : tensor<?x32xf32> to tensor<1x32xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<1x32xf32>
  return %1 : tensor<f32>
}

// -----

func.func @tables(%x: tensor<3x4x8xf32>, %cos: tensor<3x1x4xf32> {kf.gradient}, %sin: tensor<3x1x4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'kf.rotary_embedding' op kf-differentiate: has no derivative for its tables of cosines and sines}}
  %0 = kf.rotary_embedding %x, %cos, %sin : tensor<3x4x8xf32>, tensor<3x1x4xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1, 2] : tensor<3x4x8xf32>
  return %1 : tensor<f32>
}

// -----

func.func @factors(%x: tensor<3x4x8xf32>, %p: tensor<3xi32>, %f: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'kf.rope' op kf-differentiate: has no derivative for its factors}}
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<3x4x8xf32>, tensor<3xi32>, tensor<4xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1, 2] : tensor<3x4x8xf32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{kf-differentiate: argument 1 has kf.gradient, and is no tensor of f16, bf16, f32 or f64 but 'tensor<?xi32>'}}
func.func @integers(%x: tensor<?x4xf32>, %ids: tensor<?xi32> {kf.gradient}) -> tensor<f32> {
  %0 = kf.reduce(sum) %x dims = [0, 1] : tensor<?x4xf32>
  return %0 : tensor<f32>
}

// -----

// expected-error @+1 {{kf-differentiate: the first result of a function with gradients is its loss, one number as tensor<f32>; reduce it to that by kf.reduce}}
func.func @no_loss(%x: tensor<?x4xf32> {kf.gradient}) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}

// -----

// Numbers are no end of the way.
func.func @one_number(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%c0] : tensor<4xf32>
  // expected-error @+1 {{'tensor.from_elements' op kf-differentiate: has no derivative, and an argument with kf.gradient reaches the loss through it}}
  %1 = tensor.from_elements %0 : tensor<f32>
  return %1 : tensor<f32>
}

// -----

func.func @without_rank(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  %0 = tensor.cast %x : tensor<4xf32> to tensor<*xf32>
  // expected-error @+1 {{'tensor.cast' op kf-differentiate: has no derivative, and an argument with kf.gradient reaches the loss through it}}
  %1 = tensor.cast %0 : tensor<*xf32> to tensor<4xf32>
  %2 = kf.reduce(sum) %1 dims = [0] : tensor<4xf32>
  return %2 : tensor<f32>
}

// -----

func.func @read_by_a_branch(%x: tensor<f32> {kf.gradient}, %y: tensor<f32>, %c: i1) -> tensor<f32> {
  // expected-error @+1 {{'scf.if' op kf-differentiate: has a region, whose ops are not differentiated; write it as ops on tensors}}
  %0 = scf.if %c -> tensor<f32> {
    scf.yield %x : tensor<f32>
  } else {
    scf.yield %y : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @read_for_each_element(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'tensor.generate' op kf-differentiate: has a region}}
  %0 = tensor.generate {
  ^bb0(%i: index):
    %1 = tensor.extract %x[%i] : tensor<4xf32>
    tensor.yield %1 : f32
  } : tensor<4xf32>
  %2 = kf.reduce(sum) %0 dims = [0] : tensor<4xf32>
  return %2 : tensor<f32>
}

// -----

// expected-error @+1 {{kf-differentiate: a function with gradients ends in func.return, found 'ub.unreachable'}}
func.func @without_return(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  ub.unreachable
}

// -----

// expected-error @+1 {{kf-differentiate: a function with gradients has one block, found control flow}}
func.func @branches(%x: tensor<f32> {kf.gradient}) -> tensor<f32> {
  cf.br ^end
^end:
  return %x : tensor<f32>
}

// -----

// Each side of a gate is a product, and blocks have no slices.
func.func @gate_of_blocks(%x: tensor<?x64xf32> {kf.gradient}) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<2x32x64x!kf.quant<q4_0>>
  // expected-error @+1 {{'kf.matmul' op kf-differentiate: has no derivative for a gate in one weight of '!kf.quant<q4_0>'; have both sides as names of a stacked kf.weight}}
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x32x64x!kf.quant<q4_0>>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// -----

func.func @rounded_rows(%x: tensor<?x64xbf16> {kf.gradient}, %w: tensor<32x64xbf16>) -> tensor<f32> {
  // expected-error @+1 {{'kf.matmul' op kf-differentiate: has no derivative for rows that are rounded, and gates of batches}}
  %0 = kf.matmul %x, %w wide : tensor<?x64xbf16>, tensor<32x64xbf16>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// -----

func.func @weight_of_blocks(%x: tensor<?x32xf32>, %w: tensor<8x32xf32> {kf.gradient}) -> tensor<f32> {
  %0 = kf.quantize %w <q8_0> : tensor<8x32xf32>
  // expected-error @+1 {{'kf.matmul' op kf-differentiate: has no derivative for a weight of '!kf.quant<q8_0>'}}
  %1 = kf.matmul %x, %0 : tensor<?x32xf32>, tensor<8x32x!kf.quant<q8_0>>
  %2 = kf.reduce(sum) %1 dims = [0, 1] : tensor<?x8xf32>
  return %2 : tensor<f32>
}

// -----

func.func @one_condition(%c: i1, %x: tensor<4xf32> {kf.gradient}, %y: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'arith.select' op kf-differentiate: has a derivative for tensors alone}}
  %0 = arith.select %c, %x, %y : tensor<4xf32>
  %1 = kf.reduce(sum) %0 dims = [0] : tensor<4xf32>
  return %1 : tensor<f32>
}

// -----

func.func @joined_rows(%x: tensor<?x4xf32> {kf.gradient}, %y: tensor<2x4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'tensor.concat' op kf-differentiate: has no derivative for tensors joined along a `?`}}
  %0 = tensor.concat dim(0) %x, %y : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x4xf32>
  return %1 : tensor<f32>
}

// -----

func.func @one_element_again(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  // expected-error @+1 {{'tensor.extract_slice' op kf-differentiate: has no derivative for a stride below 1, found 0}}
  %0 = tensor.extract_slice %x[1] [3] [0] : tensor<4xf32> to tensor<3xf32>
  %1 = kf.reduce(sum) %0 dims = [0] : tensor<3xf32>
  return %1 : tensor<f32>
}

// -----

// expected-error @+1 {{kf-differentiate: a function with gradients gets more results, and is called by others; differentiate a copy of it}}
func.func @called(%x: tensor<4xf32> {kf.gradient}) -> tensor<f32> {
  %0 = kf.reduce(sum) %x dims = [0] : tensor<4xf32>
  return %0 : tensor<f32>
}

func.func @caller(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = func.call @called(%x) : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
