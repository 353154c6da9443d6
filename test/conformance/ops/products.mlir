// kf.matmul of operands that are computed, viewed, constant or have batches.
func.func @weight_slice(%x: tensor<?x40xf32>, %a: tensor<60x50xf32>) -> tensor<?x45xf32> {
  %w = tensor.extract_slice %a[3, 5] [45, 40] [1, 1] : tensor<60x50xf32> to tensor<45x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<45x40xf32>
  return %0 : tensor<?x45xf32>
}

func.func @weight_strided_slice(%x: tensor<?x40xf32>, %a: tensor<3x60x80xf32>) -> tensor<?x30xf32> {
  %w = tensor.extract_slice %a[1, 0, 0] [1, 30, 40] [1, 2, 2] : tensor<3x60x80xf32> to tensor<30x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<30x40xf32>
  return %0 : tensor<?x30xf32>
}

func.func @weight_reshape(%x: tensor<?x40xf32>, %a: tensor<5x9x40xf32>) -> tensor<?x45xf32> {
  %w = tensor.collapse_shape %a [[0, 1], [2]] : tensor<5x9x40xf32> into tensor<45x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<45x40xf32>
  return %0 : tensor<?x45xf32>
}

func.func @weight_transpose(%x: tensor<?x40xf32>, %a: tensor<40x33xf32>) -> tensor<?x33xf32> {
  %w = kf.transpose %a permutation = [1, 0] : tensor<40x33xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<33x40xf32>
  return %0 : tensor<?x33xf32>
}

func.func @weight_constant(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]]> : tensor<2x3xf32>
  %0 = kf.matmul %x, %w : tensor<?x3xf32>, tensor<2x3xf32>
  return %0 : tensor<?x2xf32>
}

func.func @weight_splat(%x: tensor<?x40xf32>) -> tensor<?x33xf32> {
  %w = arith.constant dense<0.5> : tensor<33x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<33x40xf32>
  return %0 : tensor<?x33xf32>
}

func.func @weight_computed(%x: tensor<?x40xf32>, %a: tensor<33x40xf32>, %b: tensor<33x40xf32>) -> tensor<?x33xf32> {
  %w = arith.addf %a, %b : tensor<33x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<33x40xf32>
  return %0 : tensor<?x33xf32>
}

func.func @weight_of_product(%x: tensor<5x40xf32>, %a: tensor<12x40xf32>) -> tensor<5x5xf32> {
  %w = kf.matmul %a, %x : tensor<12x40xf32>, tensor<5x40xf32>
  %y = kf.transpose %w permutation = [1, 0] : tensor<12x5xf32>
  %0 = kf.matmul %y, %y : tensor<5x12xf32>, tensor<5x12xf32>
  return %0 : tensor<5x5xf32>
}

func.func @weight_bf16_transpose(%x: tensor<?x40xf32>, %a: tensor<40x70xbf16>) -> tensor<?x70xf32> {
  %w = kf.transpose %a permutation = [1, 0] : tensor<40x70xbf16>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<70x40xbf16>
  return %0 : tensor<?x70xf32>
}

func.func @weight_named_slice(%x: tensor<?x40xf32>) -> tensor<?x35xf32> {
  %a = kf.weight ["a.weight"] : tensor<80x40xf32>
  %w = tensor.extract_slice %a[10, 0] [35, 40] [1, 1] : tensor<80x40xf32> to tensor<35x40xf32>
  %0 = kf.matmul %x, %w : tensor<?x40xf32>, tensor<35x40xf32>
  return %0 : tensor<?x35xf32>
}

func.func @rows_transpose(%a: tensor<40x9xf32>, %w: tensor<33x40xf32>) -> tensor<9x33xf32> {
  %x = kf.transpose %a permutation = [1, 0] : tensor<40x9xf32>
  %0 = kf.matmul %x, %w : tensor<9x40xf32>, tensor<33x40xf32>
  return %0 : tensor<9x33xf32>
}

func.func @rows_constant(%w: tensor<33x40xf32>) -> tensor<3x33xf32> {
  %x = arith.constant dense<0.25> : tensor<3x40xf32>
  %0 = kf.matmul %x, %w : tensor<3x40xf32>, tensor<33x40xf32>
  return %0 : tensor<3x33xf32>
}

func.func @rank3(%x: tensor<2x5x40xf32>, %w: tensor<2x33x40xf32>) -> tensor<2x5x33xf32> {
  %0 = kf.matmul %x, %w : tensor<2x5x40xf32>, tensor<2x33x40xf32>
  return %0 : tensor<2x5x33xf32>
}

func.func @rank4_f16(%x: tensor<2x3x5x24xf16>, %w: tensor<2x3x7x24xf16>) -> tensor<2x3x5x7xf16> {
  %0 = kf.matmul %x, %w : tensor<2x3x5x24xf16>, tensor<2x3x7x24xf16>
  return %0 : tensor<2x3x5x7xf16>
}

func.func @rank4_broadcast(%x: tensor<2x3x5x24xf32>, %w: tensor<1x3x7x24xf32>) -> tensor<2x3x5x7xf32> {
  %0 = kf.matmul %x, %w : tensor<2x3x5x24xf32>, tensor<1x3x7x24xf32>
  return %0 : tensor<2x3x5x7xf32>
}

func.func @rank3_shared(%x: tensor<2x5x40xf32>, %w: tensor<33x40xf32>) -> tensor<2x5x33xf32> {
  %0 = kf.matmul %x, %w : tensor<2x5x40xf32>, tensor<33x40xf32>
  return %0 : tensor<2x5x33xf32>
}

func.func @rank3_dynamic(%x: tensor<?x5x40xf32>, %w: tensor<?x33x40xf32>) -> tensor<?x5x33xf32> {
  %0 = kf.matmul %x, %w : tensor<?x5x40xf32>, tensor<?x33x40xf32>
  return %0 : tensor<?x5x33xf32>
}

func.func @rank3_dynamic_shared(%x: tensor<?x5x40xf32>, %w: tensor<33x40xf32>) -> tensor<?x5x33xf32> {
  %0 = kf.matmul %x, %w : tensor<?x5x40xf32>, tensor<33x40xf32>
  return %0 : tensor<?x5x33xf32>
}

func.func @rank3_transpose(%x: tensor<2x5x40xf32>, %a: tensor<2x40x33xf32>) -> tensor<2x5x33xf32> {
  %w = kf.transpose %a permutation = [0, 2, 1] : tensor<2x40x33xf32>
  %0 = kf.matmul %x, %w : tensor<2x5x40xf32>, tensor<2x33x40xf32>
  return %0 : tensor<2x5x33xf32>
}

func.func @rank3_glu(%x: tensor<2x5x40xf32>, %w: tensor<2x33x40xf32>, %b: tensor<2x33xf32>) -> tensor<2x5x33xf32> {
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<2x5x40xf32>, tensor<2x33x40xf32>, tensor<2x33xf32>
  return %0 : tensor<2x5x33xf32>
}

func.func @rank3_epilogue(%x: tensor<3x5x40xf32>, %w: tensor<3x33x40xf32>, %r: tensor<3x5x33xf32>) -> tensor<3x5x33xf32> {
  %0 = kf.matmul %x, %w : tensor<3x5x40xf32>, tensor<3x33x40xf32>
  %1 = arith.addf %0, %r : tensor<3x5x33xf32>
  return %1 : tensor<3x5x33xf32>
}

// Of a batch, columns that lie side by side: four vectors of them at a time.
func.func @batch_columns(%x: tensor<?x5x24xf32>, %w: tensor<?x24x128xf32>) -> tensor<?x5x128xf32> attributes {kf.max_tokens = 9 : i64} {
  %0 = kf.transpose %w permutation = [0, 2, 1] : tensor<?x24x128xf32>
  %1 = kf.batch_matmul %x, %0 : tensor<?x5x24xf32>, tensor<?x128x24xf32>
  return %1 : tensor<?x5x128xf32>
}

// 64 of them so, and then the rest.
func.func @batch_columns_rest(%x: tensor<?x5x24xf32>, %w: tensor<?x24x84xf32>) -> tensor<?x5x84xf32> attributes {kf.max_tokens = 9 : i64} {
  %0 = kf.transpose %w permutation = [0, 2, 1] : tensor<?x24x84xf32>
  %1 = kf.batch_matmul %x, %0 : tensor<?x5x24xf32>, tensor<?x84x24xf32>
  return %1 : tensor<?x5x84xf32>
}
