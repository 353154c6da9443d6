// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-expand-tensors))' | FileCheck %s

// Batches with one weight are rows of one product.
// CHECK-LABEL: func.func @shared
// CHECK:       %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2]] : tensor<2x5x8xf32> into tensor<10x8xf32>
// CHECK:       %[[Y:.*]] = kf.matmul %[[X]], %{{.*}} : tensor<10x8xf32>, tensor<7x8xf32>
// CHECK:       tensor.expand_shape %[[Y]] {{\[}}[0, 1], [2]] output_shape [2, 5, 7]
func.func @shared(%x: tensor<2x5x8xf32>, %w: tensor<7x8xf32>) -> tensor<2x5x7xf32> {
  %0 = kf.matmul %x, %w : tensor<2x5x8xf32>, tensor<7x8xf32>
  return %0 : tensor<2x5x7xf32>
}

// CHECK-LABEL: func.func @of_batches
// CHECK:       %[[W:.*]] = kf.broadcast %{{.*}} : tensor<1x7x8xf32> to tensor<2x7x8xf32>
// CHECK:       kf.batch_matmul %{{.*}}, %[[W]] : tensor<2x5x8xf32>, tensor<2x7x8xf32>
func.func @of_batches(%x: tensor<2x5x8xf32>, %w: tensor<1x7x8xf32>) -> tensor<2x5x7xf32> {
  %0 = kf.matmul %x, %w : tensor<2x5x8xf32>, tensor<1x7x8xf32>
  return %0 : tensor<2x5x7xf32>
}

// A `?` joins no other dimension.
// CHECK-LABEL: func.func @dynamic
// CHECK:       %[[D:.*]] = kf.dequantize %{{.*}} : tensor<7x32x!kf.quant<q8_0>>
// CHECK:       %[[W:.*]] = kf.broadcast %[[D]] : tensor<7x32xf32> to tensor<?x7x32xf32>
// CHECK:       %[[P:.*]] = kf.batch_matmul %{{.*}}, %[[W]]
// CHECK:       %[[B:.*]] = kf.broadcast %{{.*}} : tensor<7xf32> to tensor<?x5x7xf32>
// CHECK:       arith.addf %[[P]], %[[B]]
func.func @dynamic(%x: tensor<?x5x32xf32>, %w: tensor<7x32x!kf.quant<q8_0>>, %b: tensor<7xf32>) -> tensor<?x5x7xf32> {
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x5x32xf32>, tensor<7x32x!kf.quant<q8_0>>, tensor<7xf32>
  return %0 : tensor<?x5x7xf32>
}

// CHECK-LABEL: func.func @matrices
// CHECK-NEXT:  kf.matmul
// CHECK-NEXT:  return
func.func @matrices(%x: tensor<?x8xf32>, %w: tensor<2x7x8xf32>) -> tensor<?x7xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x8xf32>, tensor<2x7x8xf32>
  return %0 : tensor<?x7xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant dense<5.000000e-01> : tensor<4x5x7xf32>
// CHECK:       %[[K:.*]] = kf.broadcast %{{.*}} : tensor<2x1x7x8xf32> to tensor<2x2x7x8xf32>
// CHECK:       %[[ALL:.*]] = tensor.collapse_shape %[[K]] {{\[}}[0, 1], [2], [3]]
// CHECK:       %[[S:.*]] = kf.batch_matmul %{{.*}}, %[[ALL]] : tensor<4x5x8xf32>, tensor<4x7x8xf32>
// CHECK:       %[[SCALED:.*]] = arith.mulf %[[S]], %[[SCALE]]
// CHECK:       %[[SEEN:.*]] = arith.cmpi sle
// CHECK:       arith.select %[[SEEN]], %[[SCALED]]
// CHECK:       %[[R:.*]] = kf.softmax
// CHECK:       %[[P:.*]] = arith.select %{{.*}}, %{{.*}}, %[[R]]
// CHECK:       %[[V:.*]] = kf.transpose %{{.*}} permutation = [0, 2, 1]
// CHECK:       kf.batch_matmul %[[P]], %[[V]] : tensor<4x5x7xf32>, tensor<4x16x7xf32>
func.func @attention(%q: tensor<4x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x16xf32>) -> tensor<4x5x16xf32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal, scale = 0.5 : f32}
      : tensor<4x5x8xf32>, tensor<2x7x8xf32>, tensor<2x7x16xf32>
  return %0 : tensor<4x5x16xf32>
}

// A query may attend to no key: its row is zeros.
// CHECK-LABEL: func.func @mask
// CHECK:       %[[FINITE:.*]] = arith.maximumf
// CHECK:       %[[NONE:.*]] = arith.cmpf oeq
// CHECK:       %[[P:.*]] = kf.softmax %[[FINITE]]
// CHECK:       arith.select %[[NONE]], %{{.*}}, %[[P]]
func.func @mask(%q: tensor<4x5x8xf32>, %m: tensor<5x5xi1>) -> tensor<4x5x8xf32> {
  %0 = kf.scaled_dot_product_attention %q, %q, %q mask(%m)
      : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<5x5xi1>
  return %0 : tensor<4x5x8xf32>
}

// Gradients compute the weights again: what they read of the forward pass is
// queries, keys and values.
// CHECK-LABEL: func.func @queries
// CHECK-SAME:      %[[Q:.*]]: tensor<4x5x8xf32>, %[[K:.*]]: tensor<2x7x8xf32>, %[[V:.*]]: tensor<2x7x16xf32>, %[[DY:.*]]: tensor<4x5x16xf32>)
// CHECK:         kf.batch_matmul %[[Q]], %{{.*}} {kf.recomputed}
// CHECK:         %[[P:.*]] = kf.softmax %{{.*}} {kf.recomputed}
// CHECK:         %[[WEIGHTS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[P]] {kf.recomputed}
// CHECK:         %[[DP:.*]] = kf.batch_matmul %[[DY]], %{{.*}} : tensor<4x5x16xf32>, tensor<4x7x16xf32>
// CHECK:         %[[PDP:.*]] = arith.mulf %[[DP]], %[[WEIGHTS]]
// CHECK:         kf.reduce(sum) %[[PDP]] dims = [2] keep_dims
// CHECK-NOT:     math.log
// CHECK:         return
func.func @queries(%q: tensor<4x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x16xf32>, %dy: tensor<4x5x16xf32>) -> tensor<4x5x8xf32> {
  %0:3 = kf.attention_qgrad %q, %k, %v, %dy {causal} : tensor<4x5x8xf32>, tensor<2x7x8xf32>, tensor<2x7x16xf32>, tensor<4x5x16xf32>
  return %0#0 : tensor<4x5x8xf32>
}

// CHECK-LABEL: func.func @rows_of_queries
// CHECK:         math.log
// CHECK:         return
func.func @rows_of_queries(%q: tensor<4x5x8xf32>, %dy: tensor<4x5x8xf32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) {
  %0:3 = kf.attention_qgrad %q, %q, %q, %dy : tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>, tensor<4x5x8xf32>
  return %0#1, %0#2 : tensor<4x5xf32>, tensor<4x5xf32>
}

// Heads that read the same keys are added up.
// CHECK-LABEL: func.func @keys
// CHECK:         kf.reduce(sum) %{{.*}} dims = [1] : tensor<2x2x7x8xf32>
// CHECK:         kf.reduce(sum) %{{.*}} dims = [1] : tensor<2x2x7x16xf32>
// CHECK:         return
func.func @keys(%q: tensor<4x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x16xf32>, %dy: tensor<4x5x16xf32>, %n: tensor<4x5xf32>) -> (tensor<2x7x8xf32>, tensor<2x7x16xf32>) {
  %0:2 = kf.attention_kvgrad %q, %k, %v, %dy, %n, %n : tensor<4x5x8xf32>, tensor<2x7x8xf32>, tensor<2x7x16xf32>, tensor<4x5x16xf32>, tensor<4x5xf32>
  return %0#0, %0#1 : tensor<2x7x8xf32>, tensor<2x7x16xf32>
}

// CHECK-LABEL: func.func @rotary
// CHECK:       %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [%{{.*}}, 3, 4] [1, 1, 1]
// CHECK:       %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 0, 4] [%{{.*}}, 3, 4] [1, 1, 1]
// CHECK:       kf.broadcast %{{.*}} : tensor<?x1x4xf32> to tensor<?x3x4xf32>
// CHECK:       %[[REST:.*]] = tensor.extract_slice %{{.*}}[0, 0, 8] [%{{.*}}, 3, 2] [1, 1, 1]
// CHECK:       tensor.concat dim(2) %{{.*}}, %{{.*}}, %[[REST]]
func.func @rotary(%x: tensor<?x3x10xf32>, %c: tensor<?x1x4xf32>) -> tensor<?x3x10xf32> {
  %0 = kf.rotary_embedding %x, %c, %c : tensor<?x3x10xf32>, tensor<?x1x4xf32>
  return %0 : tensor<?x3x10xf32>
}

// Many tensors are joined by several kernels: 16 at a time, and what is left.
// CHECK-LABEL: func.func @many
// CHECK:       %[[FIRST:.*]] = tensor.concat dim(1) %arg0, %arg1, {{.*}} -> tensor<?x40xf32>
// CHECK:       %[[COPY:.*]] = kf.copy %[[FIRST]] : tensor<?x40xf32>
// CHECK:       %[[REST:.*]] = tensor.concat dim(1) %arg0, %arg1 : (tensor<?x2xf32>, tensor<?x3xf32>) -> tensor<?x5xf32>
// CHECK:       %[[OTHER:.*]] = kf.copy %[[REST]] : tensor<?x5xf32>
// CHECK:       %[[ALL:.*]] = tensor.concat dim(1) %[[COPY]], %[[OTHER]] : (tensor<?x40xf32>, tensor<?x5xf32>) -> tensor<?x45xf32>
// CHECK:       return %[[ALL]]
func.func @many(%x: tensor<?x2xf32>, %y: tensor<?x3xf32>) -> tensor<?x45xf32> {
  %0 = tensor.concat dim(1) %x, %y, %x, %y, %x, %y, %x, %y, %x, %y, %x, %y, %x, %y, %x, %y, %x, %y : (tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>) -> tensor<?x45xf32>
  return %0 : tensor<?x45xf32>
}

// CHECK-LABEL: func.func @cross_entropy(
// CHECK-SAME:      %[[X:.*]]: tensor<?x100xf32>, %[[LABELS:.*]]: tensor<?xi32>)
// CHECK:         %[[IS:.*]] = arith.cmpi eq
// CHECK:         %[[COUNTS:.*]] = arith.cmpi ult, %[[LABELS]]
// CHECK:         %[[MOST:.*]] = kf.reduce(max) %[[X]] dims = [1] keep_dims
// CHECK:         %[[POWERS:.*]] = math.exp
// CHECK:         %[[SUM:.*]] = kf.reduce(sum) %[[POWERS]] dims = [1]
// CHECK:         %[[LOG:.*]] = math.log %[[SUM]] : tensor<?xf32>
// CHECK:         %[[AT:.*]] = arith.select %[[IS]], %[[X]]
// CHECK:         %[[LABEL:.*]] = kf.reduce(sum) %[[AT]] dims = [1]
// CHECK:         %[[REST:.*]] = arith.subf %{{.*}}, %[[LABEL]]
// CHECK:         %[[LOSS:.*]] = arith.addf %[[LOG]], %[[REST]]
// CHECK:         %[[R:.*]] = arith.select %[[COUNTS]], %[[LOSS]]
// CHECK:         return %[[R]]
func.func @cross_entropy(%x: tensor<?x100xf32>, %labels: tensor<?xi32>) -> tensor<?xf32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x100xf32>, tensor<?xi32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @dgrad(
// CHECK-SAME:      %[[DY:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<32x64xbf16>)
// CHECK-NEXT:    %[[T:.*]] = kf.transpose %[[W]] permutation = [1, 0]
// CHECK-NEXT:    %[[DX:.*]] = kf.matmul %[[DY]], %[[T]] : tensor<?x32xf32>, tensor<64x32xbf16>
// CHECK-NEXT:    return %[[DX]]
func.func @dgrad(%dy: tensor<?x32xf32>, %w: tensor<32x64xbf16>) -> tensor<?x64xf32> {
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x32xf32>, tensor<32x64xbf16>
  return %0 : tensor<?x64xf32>
}

// Blocks are widened row by row.
// CHECK-LABEL: func.func @dgrad_of_blocks(
// CHECK-SAME:      %[[DY:.*]]: tensor<?x32xf32>, %[[W:.*]]: tensor<32x64x!kf.quant<q4_0>>)
// CHECK-NEXT:    %[[IDS:.*]] = kf.iota dim = 0 : tensor<32xi32>
// CHECK-NEXT:    %[[WIDE:.*]] = kf.embedding %[[IDS]], %[[W]]
// CHECK-NEXT:    %[[T:.*]] = kf.transpose %[[WIDE]] permutation = [1, 0] : tensor<32x64xf32>
// CHECK-NEXT:    kf.matmul %[[DY]], %[[T]]
func.func @dgrad_of_blocks(%dy: tensor<?x32xf32>, %w: tensor<32x64x!kf.quant<q4_0>>) -> tensor<?x64xf32> {
  %0 = kf.matmul_dgrad %dy, %w : tensor<?x32xf32>, tensor<32x64x!kf.quant<q4_0>>
  return %0 : tensor<?x64xf32>
}

// What the columns and rows are counted by, and the words of the draw.
// CHECK-LABEL: func.func @dropout(
// CHECK-SAME:      %[[X:.*]]: tensor<3x8xbf16>, %[[DRAW:.*]]: tensor<4xi32>)
// CHECK-DAG:     %[[BOUND:.*]] = arith.constant dense<1073741824> : tensor<3x8xi32>
// CHECK-DAG:     %[[SCALE:.*]] = arith.constant dense<1.33333337> : tensor<3x8xf32>
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<3x8xf32>
// CHECK-DAG:     %[[WIDE:.*]] = arith.extf %[[X]]
// CHECK-DAG:     %[[COLUMN:.*]] = kf.iota dim = 1 : tensor<1x8xi32>
// CHECK-DAG:     %[[COLUMNS:.*]] = kf.broadcast %[[COLUMN]] : tensor<1x8xi32> to tensor<3x8xi32>
// CHECK-DAG:     %[[ROW:.*]] = kf.iota dim = 0 : tensor<3x1xi32>
// CHECK-DAG:     %[[ROWS:.*]] = kf.broadcast %[[ROW]] : tensor<3x1xi32> to tensor<3x8xi32>
// CHECK-DAG:     %[[A:.*]] = tensor.extract_slice %[[DRAW]][0] [1] [1]
// CHECK-DAG:     %[[A8:.*]] = kf.broadcast %[[A]]
// CHECK-DAG:     %[[LOW:.*]] = tensor.extract_slice %[[DRAW]][2] [1] [1]
// CHECK-DAG:     %[[LOW8:.*]] = kf.broadcast %[[LOW]]
// CHECK:         %[[BITS:.*]] = kf.philox %[[COLUMNS]], %[[ROWS]], %[[A8]], %{{.*}} key %[[LOW8]], %{{.*}} : tensor<3x8xi32>
// CHECK:         %[[KEPT:.*]] = arith.cmpi uge, %[[BITS]], %[[BOUND]]
// CHECK:         %[[LEFT:.*]] = arith.select %[[KEPT]], %[[WIDE]], %[[ZERO]]
// CHECK:         %[[R:.*]] = arith.mulf %[[LEFT]], %[[SCALE]]
// CHECK:         arith.truncf %[[R]]
func.func @dropout(%x: tensor<3x8xbf16>, %draw: tensor<4xi32>) -> tensor<3x8xbf16> {
  %0 = kf.dropout %x, %draw {p = 0.25 : f32} : tensor<3x8xbf16>, tensor<4xi32>
  return %0 : tensor<3x8xbf16>
}

// What is computed again stays apart from what was there before.
// CHECK-LABEL: func.func @dropout_again(
// CHECK:         kf.philox
// CHECK-NOT:     kf.recomputed
// CHECK:         kf.philox {{.*}} {kf.recomputed}
func.func @dropout_again(%x: tensor<3x8xf32>, %draw: tensor<4xi32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %0 = kf.dropout %x, %draw {p = 0.25 : f32} : tensor<3x8xf32>, tensor<4xi32>
  %1 = kf.dropout %x, %draw {kf.recomputed, p = 0.25 : f32} : tensor<3x8xf32>, tensor<4xi32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}
