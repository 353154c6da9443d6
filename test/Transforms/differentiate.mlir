// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate)' | FileCheck %s

// The results of a function, and then a gradient for each argument that has
// kf.gradient, in their order, of f32.
// CHECK-LABEL: func.func @matmul(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<32x64xbf16>, %[[B:.*]]: tensor<32xf32>, %[[R:.*]]: tensor<?x32xf32>)
// CHECK-SAME:      -> (tensor<f32>, tensor<?x64xf32>, tensor<32x64xf32>, tensor<32xf32>)
// CHECK:         %[[LOSS:.*]] = kf.reduce(sum)
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT:    %[[DP:.*]] = kf.broadcast %[[ONE]] : tensor<f32> to tensor<?x32xf32>
// CHECK-NEXT:    %[[DY:.*]] = arith.mulf %[[DP]], %[[R]] : tensor<?x32xf32>
// CHECK-NEXT:    %[[DB:.*]] = kf.reduce(sum) %[[DY]] dims = [0] : tensor<?x32xf32>
// CHECK-NEXT:    %[[DX:.*]] = kf.matmul_dgrad %[[DY]], %[[W]] : tensor<?x32xf32>, tensor<32x64xbf16>
// CHECK-NEXT:    %[[DW:.*]] = kf.matmul_wgrad %[[DY]], %[[X]] : tensor<?x32xf32>, tensor<?x64xf32>
// CHECK-NEXT:    return %[[LOSS]], %[[DX]], %[[DW]], %[[DB]] :
func.func @matmul(%x: tensor<?x64xf32> {kf.gradient}, %w: tensor<32x64xbf16> {kf.gradient},
                  %b: tensor<32xf32> {kf.gradient}, %r: tensor<?x32xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x64xf32>, tensor<32x64xbf16>, tensor<32xf32>
  %1 = arith.mulf %0, %r : tensor<?x32xf32>
  %2 = kf.reduce(sum) %1 dims = [0, 1] : tensor<?x32xf32>
  return %2 : tensor<f32>
}

// Nothing is computed for what is frozen.
// CHECK-LABEL: func.func @frozen(
// CHECK:         %[[W:.*]] = kf.weight
// CHECK:         %[[DX:.*]] = kf.matmul_dgrad %{{.*}}, %[[W]] : tensor<?x32xf32>, tensor<32x64x!kf.quant<q4_0>>
// CHECK-NOT:     kf.matmul_wgrad
// CHECK:         return %{{.*}}, %[[DX]] : tensor<f32>, tensor<?x64xf32>
func.func @frozen(%x: tensor<?x64xf32> {kf.gradient}) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<32x64x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64x!kf.quant<q4_0>>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// Nor for what comes before the first argument with a gradient.
// CHECK-LABEL: func.func @last(
// CHECK:         kf.matmul_wgrad
// CHECK-NOT:     kf.matmul_dgrad
// CHECK:         return
func.func @last(%x: tensor<?x64xf32>, %n: tensor<64xf32>, %w: tensor<32x64xf32> {kf.gradient}) -> tensor<f32> {
  %h = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %0 = kf.matmul %h, %w : tensor<?x64xf32>, tensor<32x64xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// Uses are added up; what is returned besides stays; the loss does not depend
// on %y.
// CHECK-LABEL: func.func @several_uses(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf32>
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK:         %[[DY:.*]] = kf.broadcast
// CHECK:         %[[FIRST:.*]] = arith.mulf %[[DY]], %[[X]]
// CHECK:         %[[SECOND:.*]] = arith.mulf %[[DY]], %[[X]]
// CHECK:         %[[DX:.*]] = arith.addf %[[FIRST]], %[[SECOND]]
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK:         return %{{.*}}, %[[SQUARE]], %[[DX]], %[[ZERO]] :
func.func @several_uses(%x: tensor<4xf32> {kf.gradient}, %y: tensor<4xbf16> {kf.gradient}) -> (tensor<f32>, tensor<4xf32>) {
  %0 = arith.mulf %x, %x : tensor<4xf32>
  %1 = kf.reduce(sum) %0 dims = [0] : tensor<4xf32>
  return %1, %0 : tensor<f32>, tensor<4xf32>
}

// Integers end what depends on an argument.
// CHECK-LABEL: func.func @through_integers(
// CHECK:         kf.argmax
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<1xf32>
// CHECK:         %[[DX:.*]] = kf.broadcast %[[ZERO]] : tensor<1xf32> to tensor<?x8xf32>
// CHECK:         return %{{.*}}, %[[DX]]
func.func @through_integers(%x: tensor<?x8xf32> {kf.gradient}, %t: tensor<8x4xf32>) -> tensor<f32> {
  %0 = kf.argmax %x : tensor<?x8xf32>
  %1 = kf.embedding %0, %t : tensor<?xi32>, tensor<8x4xf32>
  %2 = kf.reduce(sum) %1 dims = [0, 1] : tensor<?x4xf32>
  return %2 : tensor<f32>
}

// CHECK-LABEL: func.func @embedding(
// CHECK:         %[[DT:.*]] = kf.scatter_add %{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?x16xf32> to tensor<7x16xf32>
// CHECK:         return %{{.*}}, %[[DT]]
func.func @embedding(%ids: tensor<?xi32>, %t: tensor<7x16xbf16> {kf.gradient}) -> tensor<f32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<7x16xbf16>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x16xf32>
  return %1 : tensor<f32>
}

// A rotation by the opposite angles.
// CHECK-LABEL: func.func @rope(
// CHECK-SAME:      %{{.*}}: tensor<?x4x64xf32>, %[[P:.*]]: tensor<?xi32>)
// CHECK:         %[[BACK:.*]] = arith.subi %{{.*}}, %[[P]] : tensor<?xi32>
// CHECK:         %[[DX:.*]] = kf.rope %{{.*}}, %[[BACK]] {magnitude = 1.500000e+00 : f64, rotary_dim = 64 : i64, theta = 1.000000e+04 : f64}
// CHECK:         return %{{.*}}, %[[DX]]
func.func @rope(%x: tensor<?x4x64xf32> {kf.gradient}, %p: tensor<?xi32>) -> tensor<f32> {
  %0 = kf.rope %x, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64, magnitude = 1.5 : f64} : tensor<?x4x64xf32>, tensor<?xi32>
  %1 = kf.reduce(sum) %0 dims = [0, 1, 2] : tensor<?x4x64xf32>
  return %1 : tensor<f32>
}

// The softmax less 1 at the label; nothing, NaNs included, where the label does
// not count. The places of labels are found again.
// CHECK-LABEL: func.func @cross_entropy(
// CHECK-SAME:      %[[X:.*]]: tensor<?x100xf32>
// CHECK:         %[[IS:.*]] = arith.cmpi eq, {{.*}} {kf.recomputed}
// CHECK:         %[[COUNTS:.*]] = arith.cmpi ult, {{.*}} {kf.recomputed}
// CHECK:         %[[P:.*]] = kf.softmax %[[X]] : tensor<?x100xf32>
// CHECK:         %[[LESS:.*]] = arith.addf %[[P]]
// CHECK:         %[[SLOPE:.*]] = arith.select %[[IS]], %[[LESS]], %[[P]]
// CHECK:         %[[ALL:.*]] = arith.mulf %[[SLOPE]]
// CHECK:         %[[ROWS:.*]] = tensor.expand_shape %[[COUNTS]]
// CHECK:         %[[EACH:.*]] = kf.broadcast %[[ROWS]]
// CHECK:         %[[DX:.*]] = arith.select %[[EACH]], %[[ALL]], %{{.*}}
// CHECK:         return %{{.*}}, %[[DX]]
func.func @cross_entropy(%x: tensor<?x100xf32> {kf.gradient}, %labels: tensor<?xi32>) -> tensor<f32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x100xf32>, tensor<?xi32>
  %1 = kf.reduce(mean) %0 dims = [0] : tensor<?xf32>
  return %1 : tensor<f32>
}

// Zeros around what a slice shows, and a slice of what a concatenation does.
// CHECK-LABEL: func.func @views(
// CHECK:         %[[DC:.*]] = kf.transpose %{{.*}} permutation = [1, 0] : tensor<7x3xf32>
// CHECK:         %[[DX:.*]] = tensor.extract_slice %[[DC]][0, 0] [3, 4] [1, 1]
// CHECK:         %[[DS:.*]] = tensor.extract_slice %[[DC]][0, 4] [3, 3] [1, 1]
// CHECK:         %[[DY:.*]] = tensor.concat dim(1) %{{.*}}, %[[DS]], %{{.*}} : (tensor<3x1xf32>, tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x6xf32>
// CHECK:         return %{{.*}}, %[[DX]], %[[DY]]
func.func @views(%x: tensor<3x4xf32> {kf.gradient}, %y: tensor<3x6xf32> {kf.gradient}) -> tensor<f32> {
  %s = tensor.extract_slice %y[0, 1] [3, 3] [1, 1] : tensor<3x6xf32> to tensor<3x3xf32>
  %c = tensor.concat dim(1) %x, %s : (tensor<3x4xf32>, tensor<3x3xf32>) -> tensor<3x7xf32>
  %t = kf.transpose %c permutation = [1, 0] : tensor<3x7xf32>
  %0 = kf.reduce(sum) %t dims = [0, 1] : tensor<7x3xf32>
  return %0 : tensor<f32>
}

// The parts of a block are differentiated.
// CHECK-LABEL: func.func @mlp(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<96x64xf32>, %[[U:.*]]: tensor<96x64xf32>, %[[D:.*]]: tensor<64x96xf32>)
// CHECK-NEXT:    %[[GATE:.*]] = kf.matmul %[[X]], %[[G]]
// CHECK-NEXT:    %[[ACT:.*]] = kf.activation(silu) %[[GATE]]
// CHECK-NEXT:    %[[UP:.*]] = kf.matmul %[[X]], %[[U]]
// CHECK:         %[[DH:.*]] = kf.matmul_dgrad %{{.*}}, %[[D]]
// CHECK:         %[[DA:.*]] = arith.mulf %[[DH]], %[[UP]]
// CHECK:         math.exp
// CHECK:         %[[DG:.*]] = kf.matmul_wgrad %{{.*}}, %[[X]]
// CHECK-NEXT:    return %{{.*}}, %[[DG]]
func.func @mlp(%x: tensor<?x64xf32>, %g: tensor<96x64xf32> {kf.gradient}, %u: tensor<96x64xf32>, %d: tensor<64x96xf32>) -> tensor<f32> {
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) activation(silu) : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>)
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x64xf32>
  return %1 : tensor<f32>
}

// Functions without such arguments stay as they are.
// CHECK-LABEL: func.func @other(
// CHECK-NEXT:    kf.softmax
// CHECK-NEXT:    return
func.func @other(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = kf.softmax %x : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// Gradients of f64 are f64, and casts change them.
// CHECK-LABEL: func.func @f64(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf64>, %[[Y:.*]]: tensor<4xf32>) -> (tensor<f64>, tensor<4xf64>, tensor<4xf32>)
// CHECK:         %[[DY:.*]] = kf.broadcast %{{.*}} : tensor<f64> to tensor<4xf64>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[Y]] {kf.recomputed}
// CHECK:         %[[DX:.*]] = arith.mulf %[[DY]], %[[WIDE]] : tensor<4xf64>
// CHECK:         %[[DW:.*]] = arith.mulf %[[DY]], %[[X]] : tensor<4xf64>
// CHECK:         %[[NARROW:.*]] = arith.truncf %[[DW]] : tensor<4xf64> to tensor<4xf32>
// CHECK:         return %{{.*}}, %[[DX]], %[[NARROW]]
func.func @f64(%x: tensor<4xf64> {kf.gradient}, %y: tensor<4xf32> {kf.gradient}) -> tensor<f64> {
  %0 = arith.extf %y : tensor<4xf32> to tensor<4xf64>
  %1 = arith.mulf %x, %0 : tensor<4xf64>
  %2 = kf.reduce(sum) %1 dims = [0] : tensor<4xf64>
  return %2 : tensor<f64>
}

// Logits are widened again.
// CHECK-LABEL: func.func @cross_entropy_of_bf16(
// CHECK-SAME:      %[[X:.*]]: tensor<?x100xbf16>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[X]] {kf.recomputed}
// CHECK:         kf.softmax %[[WIDE]]
func.func @cross_entropy_of_bf16(%x: tensor<?x100xbf16> {kf.gradient}, %labels: tensor<?xi32>) -> tensor<f32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x100xbf16>, tensor<?xi32>
  %1 = kf.reduce(mean) %0 dims = [0] : tensor<?xf32>
  return %1 : tensor<f32>
}

// Blocks have no slices, but their weights have names.
// CHECK-LABEL: func.func @gate_of_blocks(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>)
// CHECK-NOT:     tensor.extract_slice
// CHECK:         %[[G:.*]] = kf.weight ["gate"] : tensor<32x64x!kf.quant<q4_0>>
// CHECK-NEXT:    %[[GATE:.*]] = kf.matmul %[[X]], %[[G]]
// CHECK-NEXT:    %[[ACT:.*]] = kf.activation(silu) %[[GATE]]
// CHECK-NEXT:    %[[U:.*]] = kf.weight ["up"] : tensor<32x64x!kf.quant<q4_0>>
// CHECK-NEXT:    %[[UP:.*]] = kf.matmul %[[X]], %[[U]]
// CHECK:         kf.matmul_dgrad %{{.*}}, %[[U]]
// CHECK:         kf.matmul_dgrad %{{.*}}, %[[G]]
// CHECK:         return
func.func @gate_of_blocks(%x: tensor<?x64xf32> {kf.gradient}) -> tensor<f32> {
  %w = kf.weight ["gate", "up"] {stacked} : tensor<2x32x64x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x32x64x!kf.quant<q4_0>>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// No product has the size of the weight for each batch.
// CHECK-LABEL: func.func @batches_of_rows(
// CHECK-SAME:      %[[X:.*]]: tensor<?x2x64xf32>
// CHECK-NOT:     kf.batch_matmul
// CHECK:         %[[S0:.*]] = tensor.extract_slice %[[X]][0, 0, 0]
// CHECK:         %[[X0:.*]] = tensor.collapse_shape %[[S0]]
// CHECK:         %[[W0:.*]] = kf.matmul_wgrad %{{.*}}, %[[X0]] : tensor<?x32xf32>, tensor<?x64xf32>
// CHECK:         %[[S1:.*]] = tensor.extract_slice %[[X]][0, 1, 0]
// CHECK:         %[[X1:.*]] = tensor.collapse_shape %[[S1]]
// CHECK:         %[[W1:.*]] = kf.matmul_wgrad %{{.*}}, %[[X1]] : tensor<?x32xf32>, tensor<?x64xf32>
// CHECK:         %[[DW:.*]] = arith.addf %[[W0]], %[[W1]]
// CHECK:         return %{{.*}}, %[[DW]]
func.func @batches_of_rows(%x: tensor<?x2x64xf32>, %w: tensor<32x64xf32> {kf.gradient}, %r: tensor<?x2x32xf32>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<?x2x64xf32>, tensor<32x64xf32>
  %1 = arith.mulf %0, %r : tensor<?x2x32xf32>
  %2 = kf.reduce(sum) %1 dims = [0, 1, 2] : tensor<?x2x32xf32>
  return %2 : tensor<f32>
}

// A bias of a product whose weight is of f8.
// CHECK-LABEL: func.func @bias_beside_float8(
// CHECK:         %[[DB:.*]] = kf.reduce(sum) %{{.*}} dims = [0] : tensor<?x32xf32>
// CHECK-NEXT:    return %{{.*}}, %[[DB]]
func.func @bias_beside_float8(%x: tensor<?x64xf32>, %b: tensor<32xf32> {kf.gradient}) -> tensor<f32> {
  %w = kf.weight ["w"] : tensor<32x64xf8E4M3FN>
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x64xf32>, tensor<32x64xf8E4M3FN>, tensor<32xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1] : tensor<?x32xf32>
  return %1 : tensor<f32>
}

// To the power of 0, 0 has no slope, and no NaN.
// CHECK-LABEL: func.func @power(
// CHECK-SAME:      %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK:         %[[LESS:.*]] = arith.addf %[[Y]]
// CHECK:         %[[POWER:.*]] = math.powf %[[X]], %[[LESS]]
// CHECK:         %[[SLOPE:.*]] = arith.mulf %[[Y]], %[[POWER]]
// CHECK:         %[[NONE:.*]] = arith.cmpf oeq, %[[Y]], %[[ZERO:.*]] : tensor<4xf32>
// CHECK:         %[[RIGHT:.*]] = arith.select %[[NONE]], %[[ZERO]], %[[SLOPE]]
// CHECK:         %[[DX:.*]] = arith.mulf %{{.*}}, %[[RIGHT]]
// CHECK:         return %{{.*}}, %[[DX]]
func.func @power(%x: tensor<4xf32> {kf.gradient}, %y: tensor<4xf32>) -> tensor<f32> {
  %0 = math.powf %x, %y : tensor<4xf32>
  %1 = kf.reduce(sum) %0 dims = [0] : tensor<4xf32>
  return %1 : tensor<f32>
}

// The same elements are left out; where the rows are read again, they are made
// again, and are not kept.
// CHECK-LABEL: func.func @dropout(
// CHECK-SAME:      %[[X:.*]]: tensor<3x8xf32>, %[[W:.*]]: tensor<4x8xf32>, %[[DRAW:.*]]: tensor<4xi32>)
// CHECK:         kf.dropout %[[X]], %[[DRAW]] {p = 2.500000e-01 : f32} : tensor<3x8xf32>, tensor<4xi32>
// CHECK:         %[[D:.*]] = kf.matmul_dgrad
// CHECK:         %[[AGAIN:.*]] = kf.dropout %[[X]], %[[DRAW]] {kf.recomputed, p = 2.500000e-01 : f32}
// CHECK:         %[[DW:.*]] = kf.matmul_wgrad %{{.*}}, %[[AGAIN]]
// CHECK:         %[[DX:.*]] = kf.dropout %[[D]], %[[DRAW]] {kf.recomputed, p = 2.500000e-01 : f32}
// CHECK:         return %{{.*}}, %[[DX]], %[[DW]]
func.func @dropout(%x: tensor<3x8xf32> {kf.gradient}, %w: tensor<4x8xf32> {kf.gradient}, %draw: tensor<4xi32>) -> tensor<f32> {
  %0 = kf.dropout %x, %draw {p = 0.25 : f32} : tensor<3x8xf32>, tensor<4xi32>
  %1 = kf.matmul %0, %w : tensor<3x8xf32>, tensor<4x8xf32>
  %2 = arith.mulf %1, %1 : tensor<3x4xf32>
  %3 = kf.reduce(sum) %2 dims = [0, 1] : tensor<3x4xf32>
  return %3 : tensor<f32>
}
