// RUN: kf-opt %s -kf-form-kernels -kf-bound-tokens | FileCheck %s

// A table of 8 rows, of which the first n_tokens are read, from the third on.
// CHECK-LABEL: kf.program @table
// CHECK-SAME: max_tokens = 6 : i64
func.func @table(%x: tensor<?x4xf32>, %table: tensor<8x4xf32>)
    -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %rows = tensor.extract_slice %table[2, 0] [%n, 4] [1, 1]
      : tensor<8x4xf32> to tensor<?x4xf32>
  %0 = arith.addf %x, %rows : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// Every second row of the table.
// CHECK-LABEL: kf.program @strided
// CHECK-SAME: max_tokens = 4 : i64
func.func @strided(%x: tensor<?x4xf32>, %table: tensor<8x4xf32>)
    -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %rows = tensor.extract_slice %table[0, 0] [%n, 4] [2, 1]
      : tensor<8x4xf32> to tensor<?x4xf32>
  %0 = arith.addf %x, %rows : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// Rows 1 to 6 have to be there.
// CHECK-LABEL: kf.program @rows
// CHECK-SAME: max_tokens = 512 : i64
// CHECK-SAME: min_tokens = 7 : i64
func.func @rows(%x: tensor<?x4xf32>) -> tensor<6x4xf32> {
  %rows = tensor.extract_slice %x[1, 0] [6, 4] [1, 1]
      : tensor<?x4xf32> to tensor<6x4xf32>
  %0 = kf.activation(relu) %rows : tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// Row n_tokens of the table.
// CHECK-LABEL: kf.program @next
// CHECK-SAME: max_tokens = 63 : i64
func.func @next(%x: tensor<?x4xf32>, %table: tensor<64x4xf32>)
    -> tensor<1x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %row = tensor.extract_slice %table[%n, 0] [1, 4] [1, 1]
      : tensor<64x4xf32> to tensor<1x4xf32>
  %0 = kf.activation(relu) %row : tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// Columns of all rows, and heads of columns, ask for nothing.
// CHECK-LABEL: kf.program @columns
// CHECK-SAME: attributes {max_tokens = 512 : i64}
func.func @columns(%x: tensor<?x8xf32>) -> tensor<?x2x2xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %columns = tensor.extract_slice %x[0, 4] [%n, 4] [1, 1]
      : tensor<?x8xf32> to tensor<?x4xf32>
  %heads = tensor.expand_shape %columns [[0], [1, 2]] output_shape [%n, 2, 2]
      : tensor<?x4xf32> into tensor<?x2x2xf32>
  %0 = kf.activation(relu) %heads : tensor<?x2x2xf32>
  return %0 : tensor<?x2x2xf32>
}

// A written program keeps to what its kernels allow.
kf.kernel @first(%x: tensor<?x4xf32>) -> tensor<3x4xf32> {
  %0 = tensor.extract_slice %x[0, 0] [3, 4] [1, 1]
      : tensor<?x4xf32> to tensor<3x4xf32>
  %1 = kf.activation(relu) %0 : tensor<3x4xf32>
  kf.yield %1 : tensor<3x4xf32>
}
// CHECK-LABEL: kf.program @written
// CHECK-SAME: max_tokens = 9 : i64
// CHECK-SAME: min_tokens = 3 : i64
kf.program @written(%x: tensor<?x4xf32>) -> tensor<3x4xf32>
    attributes {max_tokens = 9 : i64} {
  %0 = kf.dispatch @first(%x) : (tensor<?x4xf32>) -> tensor<3x4xf32>
  kf.yield %0 : tensor<3x4xf32>
}

// A size with a name has bounds of its own, here those of a table.
// CHECK-LABEL: kf.program @wanted
// CHECK-SAME: max_tokens = 512 : i64
// CHECK-SAME: sizes = [#kf.size_range<wanted, most = 8>]
func.func @wanted(%x: tensor<?x4xf32>, %y: tensor<?x4xf32, #kf.size<wanted>>,
                  %table: tensor<8x4xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32, #kf.size<wanted>>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x4xf32, #kf.size<wanted>>
  %rows = tensor.extract_slice %table[0, 0] [%n, 4] [1, 1]
      : tensor<8x4xf32> to tensor<?x4xf32, #kf.size<wanted>>
  %0 = arith.addf %y, %rows : tensor<?x4xf32, #kf.size<wanted>>
  %1 = arith.addf %x, %x : tensor<?x4xf32>
  return %1, %0 : tensor<?x4xf32>, tensor<?x4xf32, #kf.size<wanted>>
}

// A table has a row at least, which is read where an id is outside.
// CHECK-LABEL: kf.program @table_rows
// CHECK-SAME: sizes = [#kf.size_range<rows, least = 1, most = 512>]
func.func @table_rows(%ids: tensor<?xi32>, %x: tensor<?x4xf32, #kf.size<rows>>)
    -> tensor<?x4xf32> {
  %0 = kf.embedding %ids, %x : tensor<?xi32>, tensor<?x4xf32, #kf.size<rows>>
  return %0 : tensor<?x4xf32>
}

// So has a page table: that of the last sequence is read for one that it lacks.
// CHECK-LABEL: kf.program @page_table
// CHECK-SAME: sizes = [#kf.size_range<sequences, least = 1, most = 512>]
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>
func.func @page_table(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %pt: tensor<?x4xi32, #kf.size<sequences>>, %c: !cache) -> tensor<?x4x8xf32> {
  %0 = kf.attention %q, %c, %p, %s, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<?x4xi32, #kf.size<sequences>>
  return %0 : tensor<?x4x8xf32>
}
