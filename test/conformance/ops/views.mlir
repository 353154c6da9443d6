// Elements in other places.
func.func @transpose(%a: tensor<19x37xf32>) -> tensor<37x19xf32> {
  %0 = kf.transpose %a permutation = [1, 0] : tensor<19x37xf32>
  return %0 : tensor<37x19xf32>
}

func.func @transpose_rows(%a: tensor<?x5x18xi32>) -> tensor<?x18x5xi32> {
  %0 = kf.transpose %a permutation = [0, 2, 1] : tensor<?x5x18xi32>
  return %0 : tensor<?x18x5xi32>
}

func.func @transpose_rank4(%a: tensor<2x3x4x20xf16>) -> tensor<4x2x3x20xf16> {
  %0 = kf.transpose %a permutation = [2, 0, 1, 3] : tensor<2x3x4x20xf16>
  return %0 : tensor<4x2x3x20xf16>
}

func.func @transpose_in_chain(%a: tensor<19x37xf32>, %b: tensor<37x19xf32>) -> tensor<19x37xf32> {
  %0 = kf.transpose %a permutation = [1, 0] : tensor<19x37xf32>
  %1 = arith.addf %0, %b : tensor<37x19xf32>
  %2 = kf.transpose %1 permutation = [1, 0] : tensor<37x19xf32>
  %3 = math.exp %2 : tensor<19x37xf32>
  return %3 : tensor<19x37xf32>
}

func.func @broadcast_column(%a: tensor<3x1x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = kf.broadcast %a : tensor<3x1x5xf32> to tensor<2x3x4x5xf32>
  return %0 : tensor<2x3x4x5xf32>
}

func.func @broadcast_row(%a: tensor<?x37xf32>, %b: tensor<?x1xf32>) -> tensor<?x37xf32> {
  %0 = kf.broadcast %b : tensor<?x1xf32> to tensor<?x37xf32>
  %1 = arith.subf %a, %0 : tensor<?x37xf32>
  return %1 : tensor<?x37xf32>
}

func.func @concat_rows(%a: tensor<2x37xf32>, %b: tensor<3x37xf32>, %c: tensor<1x37xf32>) -> tensor<6x37xf32> {
  %0 = tensor.concat dim(0) %a, %b, %c : (tensor<2x37xf32>, tensor<3x37xf32>, tensor<1x37xf32>) -> tensor<6x37xf32>
  return %0 : tensor<6x37xf32>
}

func.func @concat_columns(%a: tensor<?x5xf32>, %b: tensor<?x30xf32>) -> tensor<?x35xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<?x5xf32>, tensor<?x30xf32>) -> tensor<?x35xf32>
  return %0 : tensor<?x35xf32>
}

func.func @concat_i8(%a: tensor<2x3x17xi8>, %b: tensor<2x2x17xi8>) -> tensor<2x5x17xi8> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<2x3x17xi8>, tensor<2x2x17xi8>) -> tensor<2x5x17xi8>
  return %0 : tensor<2x5x17xi8>
}

// More tensors than one kernel joins.
func.func @concat_many(%a0: tensor<?x1xf32>, %a1: tensor<?x2xf32>, %a2: tensor<?x3xf32>, %a3: tensor<?x1xf32>, %a4: tensor<?x2xf32>, %a5: tensor<?x3xf32>, %a6: tensor<?x1xf32>, %a7: tensor<?x2xf32>, %a8: tensor<?x3xf32>, %a9: tensor<?x1xf32>, %a10: tensor<?x2xf32>, %a11: tensor<?x3xf32>, %a12: tensor<?x1xf32>, %a13: tensor<?x2xf32>, %a14: tensor<?x3xf32>, %a15: tensor<?x1xf32>, %a16: tensor<?x2xf32>, %a17: tensor<?x3xf32>, %a18: tensor<?x1xf32>, %a19: tensor<?x2xf32>) -> tensor<?x585xf32> {
  %0 = tensor.concat dim(1) %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a12, %a19, %a6, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a13, %a0, %a7, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a14, %a1, %a8, %a15, %a2, %a9, %a16, %a3, %a10, %a17, %a4, %a11, %a18, %a5, %a12, %a19, %a6, %a13, %a0, %a7 : (tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x3xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>, tensor<?x1xf32>, tensor<?x2xf32>) -> tensor<?x585xf32>
  return %0 : tensor<?x585xf32>
}

func.func @strided_slice(%a: tensor<9x40xf32>) -> tensor<3x12xf32> {
  %0 = tensor.extract_slice %a[1, 3] [3, 12] [2, 3] : tensor<9x40xf32> to tensor<3x12xf32>
  return %0 : tensor<3x12xf32>
}

func.func @rank_reducing_slice(%a: tensor<4x5x40xf32>) -> (tensor<5x39xf32>, tensor<4x5xf32>) {
  %0 = tensor.extract_slice %a[2, 0, 1] [1, 5, 39] [1, 1, 1] : tensor<4x5x40xf32> to tensor<5x39xf32>
  %1 = tensor.extract_slice %a[0, 0, 7] [4, 5, 1] [1, 1, 1] : tensor<4x5x40xf32> to tensor<4x5xf32>
  return %0, %1 : tensor<5x39xf32>, tensor<4x5xf32>
}

func.func @reshape_odd(%a: tensor<6x7x10xf32>) -> tensor<12x35xf32> {
  %0 = tensor.collapse_shape %a [[0, 1, 2]] : tensor<6x7x10xf32> into tensor<420xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [12, 35] : tensor<420xf32> into tensor<12x35xf32>
  return %1 : tensor<12x35xf32>
}

func.func @iota(%a: tensor<3x4x20xi64>) -> tensor<3x4x20xi64> {
  %0 = kf.iota dim = 2 : tensor<3x4x20xi64>
  %1 = kf.iota dim = 0 : tensor<3x4x20xi64>
  %2 = arith.addi %0, %1 : tensor<3x4x20xi64>
  %3 = arith.muli %2, %a : tensor<3x4x20xi64>
  return %3 : tensor<3x4x20xi64>
}

func.func @copy_i1(%a: tensor<?x33xi1>) -> tensor<?x33xi1> {
  %0 = kf.copy %a : tensor<?x33xi1>
  return %0 : tensor<?x33xi1>
}

func.func @ids_of_a_view(%ids: tensor<3x4xi32>, %t: tensor<12x40xf32>) -> tensor<12x40xf32> {
  %0 = tensor.collapse_shape %ids [[0, 1]] : tensor<3x4xi32> into tensor<12xi32>
  %1 = kf.embedding %0, %t : tensor<12xi32>, tensor<12x40xf32>
  return %1 : tensor<12x40xf32>
}

// The one element of many dimensions.
func.func @to_rank_0(%a: tensor<1x1xf32>) -> tensor<f32> {
  %0 = tensor.collapse_shape %a [] : tensor<1x1xf32> into tensor<f32>
  %1 = arith.negf %0 : tensor<f32>
  return %1 : tensor<f32>
}
