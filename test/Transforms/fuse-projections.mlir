// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-fuse-projections))' | FileCheck %s

// Products of one x are slices of one product.
// CHECK-LABEL: @qkv(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>)
// CHECK:         %[[W:.*]] = kf.weight ["q", "k", "v"] : tensor<128x64xbf16>
// CHECK-NEXT:    %[[Y:.*]] = kf.matmul %[[X]], %[[W]] : tensor<?x64xf32>, tensor<128x64xbf16>
// CHECK:         %[[N:.*]] = tensor.dim %[[Y]]
// CHECK-NEXT:    %[[Q:.*]] = tensor.extract_slice %[[Y]][0, 0] [%[[N]], 64] [1, 1]
// CHECK-NEXT:    %[[K:.*]] = tensor.extract_slice %[[Y]][0, 64] [%[[N]], 32] [1, 1]
// CHECK-NEXT:    %[[V:.*]] = tensor.extract_slice %[[Y]][0, 96] [%[[N]], 32] [1, 1]
// CHECK-NOT:     kf.matmul
// CHECK:         return %[[Q]], %[[K]], %[[V]]
func.func @qkv(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  %wv = kf.weight ["v"] : tensor<32x64xbf16>
  %v = kf.matmul %x, %wv : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k, %v : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// Biases are concatenated too; static rows need no tensor.dim.
// CHECK-LABEL: @biases
// CHECK:         %[[B:.*]] = kf.weight ["bq", "bk"] : tensor<96xf32>
// CHECK:         %[[W:.*]] = kf.weight ["q", "k"] {transposed} : tensor<96x64xf32>
// CHECK:         kf.matmul %{{.*}}, %[[W]] bias(%[[B]]) : tensor<4x64xf32>, tensor<96x64xf32>, tensor<96xf32>
// CHECK:         tensor.extract_slice %{{.*}}[0, 0] [4, 64] [1, 1]
// CHECK:         tensor.extract_slice %{{.*}}[0, 64] [4, 32] [1, 1]
func.func @biases(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>) {
  %wq = kf.weight ["q"] {transposed} : tensor<64x64xf32>
  %bq = kf.weight ["bq"] : tensor<64xf32>
  %wk = kf.weight ["k"] {transposed} : tensor<32x64xf32>
  %bk = kf.weight ["bk"] : tensor<32xf32>
  %q = kf.matmul %x, %wq bias(%bq) : tensor<4x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %k = kf.matmul %x, %wk bias(%bk) : tensor<4x64xf32>, tensor<32x64xf32>, tensor<32xf32>
  return %q, %k : tensor<4x64xf32>, tensor<4x32xf32>
}

// A gate and its up become one gated product, whichever side of the product
// the activation is on.
// CHECK-LABEL: @gated(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>)
// CHECK:         %[[W:.*]] = kf.weight ["gate", "up"] {stacked} : tensor<2x96x64xbf16>
// CHECK-NEXT:    %[[Y:.*]] = kf.matmul %[[X]], %[[W]] glu(silu) : tensor<?x64xf32>, tensor<2x96x64xbf16>
// CHECK-NOT:     kf.activation
// CHECK:         return %[[Y]]
func.func @gated(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %wg = kf.weight ["gate"] : tensor<96x64xbf16>
  %wu = kf.weight ["up"] : tensor<96x64xbf16>
  %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<96x64xbf16>
  %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<96x64xbf16>
  %a = kf.activation(silu) %g : tensor<?x96xf32>
  %0 = arith.mulf %a, %u : tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// CHECK-LABEL: @gated_on_the_right
// CHECK:         %[[B:.*]] = kf.weight ["bg", "bu"] {stacked} : tensor<2x96xf32>
// CHECK:         %[[W:.*]] = kf.weight ["gate", "up"] {stacked} : tensor<2x96x64xbf16>
// CHECK:         kf.matmul %{{.*}}, %[[W]] bias(%[[B]]) glu(gelu)
func.func @gated_on_the_right(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %wg = kf.weight ["gate"] : tensor<96x64xbf16>
  %wu = kf.weight ["up"] : tensor<96x64xbf16>
  %bg = kf.weight ["bg"] : tensor<96xf32>
  %bu = kf.weight ["bu"] : tensor<96xf32>
  %g = kf.matmul %x, %wg bias(%bg) : tensor<?x64xf32>, tensor<96x64xbf16>, tensor<96xf32>
  %u = kf.matmul %x, %wu bias(%bu) : tensor<?x64xf32>, tensor<96x64xbf16>, tensor<96xf32>
  %a = kf.activation(gelu) %g : tensor<?x96xf32>
  %0 = arith.mulf %u, %a : tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

//===----------------------------------------------------------------------===//
// What is left alone
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @other_rows
// CHECK-COUNT-2: kf.matmul
func.func @other_rows(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>)
    -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %y, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// Data of an argument is not known at load.
// CHECK-LABEL: @weights_are_arguments
// CHECK-COUNT-2: kf.matmul
func.func @weights_are_arguments(%x: tensor<?x64xf32>, %wq: tensor<64x64xbf16>,
                                 %wk: tensor<32x64xbf16>)
    -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: @other_types
// CHECK-COUNT-2: kf.matmul
func.func @other_types(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xf32>
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xf32>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: @stored_differently
// CHECK-COUNT-2: kf.matmul
func.func @stored_differently(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] {transposed} : tensor<32x64xbf16>
  %q = kf.matmul %x, %wq : tensor<?x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// CHECK-LABEL: @one_bias
// CHECK-COUNT-2: kf.matmul
func.func @one_bias(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %bq = kf.weight ["bq"] : tensor<64xf32>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %q = kf.matmul %x, %wq bias(%bq) : tensor<?x64xf32>, tensor<64x64xbf16>, tensor<64xf32>
  %k = kf.matmul %x, %wk : tensor<?x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<?x64xf32>, tensor<?x32xf32>
}

// Somebody else reads the gate: no gated product, but still one product.
// CHECK-LABEL: @gate_is_read_twice
// CHECK:         kf.matmul %{{.*}} : tensor<?x64xf32>, tensor<192x64xbf16>
// CHECK:         kf.activation(silu)
// CHECK:         arith.mulf
func.func @gate_is_read_twice(%x: tensor<?x64xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  %wg = kf.weight ["gate"] : tensor<96x64xbf16>
  %wu = kf.weight ["up"] : tensor<96x64xbf16>
  %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<96x64xbf16>
  %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<96x64xbf16>
  %a = kf.activation(silu) %g : tensor<?x96xf32>
  %0 = arith.mulf %a, %u : tensor<?x96xf32>
  return %0, %g : tensor<?x96xf32>, tensor<?x96xf32>
}

// A weight of two tensors is no slice of a stack.
// CHECK-LABEL: @gate_of_two_tensors
// CHECK-NOT:     stacked
// CHECK:         kf.weight ["gate0", "gate1", "up"] : tensor<192x64xbf16>
// CHECK:         kf.activation(silu)
func.func @gate_of_two_tensors(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %wg = kf.weight ["gate0", "gate1"] : tensor<96x64xbf16>
  %wu = kf.weight ["up"] : tensor<96x64xbf16>
  %g = kf.matmul %x, %wg : tensor<?x64xf32>, tensor<96x64xbf16>
  %u = kf.matmul %x, %wu : tensor<?x64xf32>, tensor<96x64xbf16>
  %a = kf.activation(silu) %g : tensor<?x96xf32>
  %0 = arith.mulf %a, %u : tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}

// Neither block dominates the other.
// CHECK-LABEL: @other_blocks
// CHECK:         kf.matmul %{{.*}} : tensor<?x64xf32>, tensor<64x64xbf16>
// CHECK:         kf.matmul %{{.*}} : tensor<?x64xf32>, tensor<64x64xbf16>
func.func @other_blocks(%x: tensor<?x64xf32>, %c: i1) -> tensor<?x64xf32> {
  %wa = kf.weight ["a"] : tensor<64x64xbf16>
  %wb = kf.weight ["b"] : tensor<64x64xbf16>
  cf.cond_br %c, ^a, ^b
^a:
  %0 = kf.matmul %x, %wa : tensor<?x64xf32>, tensor<64x64xbf16>
  return %0 : tensor<?x64xf32>
^b:
  %1 = kf.matmul %x, %wb : tensor<?x64xf32>, tensor<64x64xbf16>
  return %1 : tensor<?x64xf32>
}

// Weights of different types are not joined; those of one type are, wherever
// they stand.
// CHECK-LABEL: @mixed_types
// CHECK-DAG:     kf.weight ["q", "k"] : tensor<96x256x!kf.quant<q4_k>>
// CHECK-DAG:     kf.weight ["v"] : tensor<32x256x!kf.quant<q6_k>>
// CHECK-COUNT-2: kf.matmul
// CHECK-NOT:     kf.matmul
func.func @mixed_types(%x: tensor<?x256xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x256x!kf.quant<q4_k>>
  %wv = kf.weight ["v"] : tensor<32x256x!kf.quant<q6_k>>
  %wk = kf.weight ["k"] : tensor<32x256x!kf.quant<q4_k>>
  %q = kf.matmul %x, %wq : tensor<?x256xf32>, tensor<64x256x!kf.quant<q4_k>>
  %v = kf.matmul %x, %wv : tensor<?x256xf32>, tensor<32x256x!kf.quant<q6_k>>
  %k = kf.matmul %x, %wk : tensor<?x256xf32>, tensor<32x256x!kf.quant<q4_k>>
  return %q, %v, %k : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// Rows in 8 bits have scales, which the joined product would lose; batches
// become rows before.
// CHECK-LABEL: @codes
// CHECK-COUNT-2: kf.matmul %{{.*}} scales
// CHECK:         arith.mulf
func.func @codes(%x: tensor<?x256xf32>) -> tensor<?x64xf32> {
  %wg = kf.weight ["gate"] : tensor<64x256x!kf.quant<q4_0>>
  %wu = kf.weight ["up"] : tensor<64x256x!kf.quant<q4_0>>
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x256xf32>
  %g = kf.matmul %c scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %wg
      : tensor<?x256xi8>, tensor<64x256x!kf.quant<q4_0>>
  %u = kf.matmul %c scales(%s : tensor<?x8xf32>) sums(%t : tensor<?x8xi32>), %wu
      : tensor<?x256xi8>, tensor<64x256x!kf.quant<q4_0>>
  %a = kf.activation(silu) %g : tensor<?x64xf32>
  %0 = arith.mulf %a, %u : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: @batches
// CHECK-COUNT-2: kf.matmul
func.func @batches(%x: tensor<2x3x64xf32>) -> (tensor<2x3x32xf32>, tensor<2x3x64xf32>) {
  %wa = kf.weight ["a"] : tensor<32x64xbf16>
  %wb = kf.weight ["b"] : tensor<64x64xbf16>
  %0 = kf.matmul %x, %wa : tensor<2x3x64xf32>, tensor<32x64xbf16>
  %1 = kf.matmul %x, %wb : tensor<2x3x64xf32>, tensor<64x64xbf16>
  return %0, %1 : tensor<2x3x32xf32>, tensor<2x3x64xf32>
}

// So are the scales of weights in 8 bits, stacked for gate and up.
// CHECK-LABEL: @scales
// CHECK:         %[[S:.*]] = kf.weight ["sq", "sk"] : tensor<96xf32>
// CHECK:         %[[W:.*]] = kf.weight ["q", "k"] : tensor<96x64xf8E4M3FN>
// CHECK:         kf.matmul %{{.*}}, %[[W]] weight_scales(%[[S]] : tensor<96xf32>) : tensor<4x64xf32>, tensor<96x64xf8E4M3FN>
// CHECK:         tensor.extract_slice %{{.*}}[0, 64] [4, 32] [1, 1]
func.func @scales(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xf8E4M3FN>
  %sq = kf.weight ["sq"] : tensor<64xf32>
  %wk = kf.weight ["k"] : tensor<32x64xf8E4M3FN>
  %sk = kf.weight ["sk"] : tensor<32xf32>
  %q = kf.matmul %x, %wq weight_scales(%sq : tensor<64xf32>) : tensor<4x64xf32>, tensor<64x64xf8E4M3FN>
  %k = kf.matmul %x, %wk weight_scales(%sk : tensor<32xf32>) : tensor<4x64xf32>, tensor<32x64xf8E4M3FN>
  return %q, %k : tensor<4x64xf32>, tensor<4x32xf32>
}

// CHECK-LABEL: @gated_scales
// CHECK:         %[[S:.*]] = kf.weight ["sg", "su"] {stacked} : tensor<2x96xf32>
// CHECK:         %[[W:.*]] = kf.weight ["gate", "up"] {stacked} : tensor<2x96x64xf8E4M3FN>
// CHECK:         kf.matmul %{{.*}}, %[[W]] weight_scales(%[[S]] : tensor<2x96xf32>) glu(silu)
func.func @gated_scales(%x: tensor<4x64xf32>) -> tensor<4x96xf32> {
  %wg = kf.weight ["gate"] : tensor<96x64xf8E4M3FN>
  %sg = kf.weight ["sg"] : tensor<96xf32>
  %wu = kf.weight ["up"] : tensor<96x64xf8E4M3FN>
  %su = kf.weight ["su"] : tensor<96xf32>
  %gate = kf.matmul %x, %wg weight_scales(%sg : tensor<96xf32>) : tensor<4x64xf32>, tensor<96x64xf8E4M3FN>
  %up = kf.matmul %x, %wu weight_scales(%su : tensor<96xf32>) : tensor<4x64xf32>, tensor<96x64xf8E4M3FN>
  %act = kf.activation(silu) %gate : tensor<4x96xf32>
  %0 = arith.mulf %act, %up : tensor<4x96xf32>
  return %0 : tensor<4x96xf32>
}

// One without scales stays apart.
// CHECK-LABEL: @some_scales
// CHECK-COUNT-2: kf.matmul
func.func @some_scales(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xf8E4M3FN>
  %sq = kf.weight ["sq"] : tensor<64xf32>
  %wk = kf.weight ["k"] : tensor<32x64xf8E4M3FN>
  %q = kf.matmul %x, %wq weight_scales(%sq : tensor<64xf32>) : tensor<4x64xf32>, tensor<64x64xf8E4M3FN>
  %k = kf.matmul %x, %wk : tensor<4x64xf32>, tensor<32x64xf8E4M3FN>
  return %q, %k : tensor<4x64xf32>, tensor<4x32xf32>
}

// So do biases then: nothing is joined of them.
// CHECK-LABEL: @biases_and_some_scales
// CHECK-NOT:     kf.weight ["bq", "bk"]
// CHECK-COUNT-2: kf.matmul
func.func @biases_and_some_scales(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xf8E4M3FN>
  %sq = kf.weight ["sq"] : tensor<64xf32>
  %bq = kf.weight ["bq"] : tensor<64xf32>
  %wk = kf.weight ["k"] : tensor<32x64xf8E4M3FN>
  %bk = kf.weight ["bk"] : tensor<32xf32>
  %q = kf.matmul %x, %wq weight_scales(%sq : tensor<64xf32>) bias(%bq) : tensor<4x64xf32>, tensor<64x64xf8E4M3FN>, tensor<64xf32>
  %k = kf.matmul %x, %wk bias(%bk) : tensor<4x64xf32>, tensor<32x64xf8E4M3FN>, tensor<32xf32>
  return %q, %k : tensor<4x64xf32>, tensor<4x32xf32>
}

// A product for which somebody has chosen how it reads rows stays as it is.
// CHECK-LABEL: @chosen_rows
// CHECK:         kf.matmul %{{.*}}, %{{.*}} rows<bf16> : tensor<4x64xf32>, tensor<64x64xbf16>
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<4x64xf32>, tensor<32x64xbf16>
func.func @chosen_rows(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>) {
  %wq = kf.weight ["q"] : tensor<64x64xbf16>
  %wk = kf.weight ["k"] : tensor<32x64xbf16>
  %q = kf.matmul %x, %wq rows<bf16> : tensor<4x64xf32>, tensor<64x64xbf16>
  %k = kf.matmul %x, %wk : tensor<4x64xf32>, tensor<32x64xbf16>
  return %q, %k : tensor<4x64xf32>, tensor<4x32xf32>
}
