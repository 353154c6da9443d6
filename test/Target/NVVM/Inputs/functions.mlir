// Each result is a kernel of its own.
func.func @unary(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = math.acos %x : tensor<4x8xf32>
  %1 = math.acosh %x : tensor<4x8xf32>
  %2 = math.asin %x : tensor<4x8xf32>
  %3 = math.asinh %x : tensor<4x8xf32>
  %4 = math.atan %x : tensor<4x8xf32>
  %5 = math.atanh %x : tensor<4x8xf32>
  %6 = math.cbrt %x : tensor<4x8xf32>
  %7 = math.cosh %x : tensor<4x8xf32>
  %8 = math.erfc %x : tensor<4x8xf32>
  %9 = math.exp2 %x : tensor<4x8xf32>
  %10 = math.expm1 %x : tensor<4x8xf32>
  %11 = math.log10 %x : tensor<4x8xf32>
  %12 = math.log1p %x : tensor<4x8xf32>
  %13 = math.log2 %x : tensor<4x8xf32>
  %14 = math.round %x : tensor<4x8xf32>
  %15 = math.sinh %x : tensor<4x8xf32>
  %16 = math.tan %x : tensor<4x8xf32>
  %17 = math.trunc %x : tensor<4x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

func.func @binary(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = math.atan2 %x, %y : tensor<4x8xf32>
  %1 = arith.remf %x, %y : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

func.func @bits(%x: tensor<4x8xf32>, %y: tensor<4x8xf16>, %z: tensor<4x8xi16>) -> (tensor<4x8xi32>, tensor<4x8xi16>, tensor<4x8xbf16>) {
  %0 = arith.bitcast %x : tensor<4x8xf32> to tensor<4x8xi32>
  %1 = arith.bitcast %y : tensor<4x8xf16> to tensor<4x8xi16>
  %2 = arith.bitcast %z : tensor<4x8xi16> to tensor<4x8xbf16>
  return %0, %1, %2 : tensor<4x8xi32>, tensor<4x8xi16>, tensor<4x8xbf16>
}

// Products whose results are no floats, on matrix units.
func.func @product_of_integers(%x: tensor<64x256xf32>, %w: tensor<96x256xbf16>) -> tensor<64x96xi8> {
  %0 = kf.matmul %x, %w : tensor<64x256xf32>, tensor<96x256xbf16>
  %1 = arith.fptosi %0 : tensor<64x96xf32> to tensor<64x96xi8>
  return %1 : tensor<64x96xi8>
}

func.func @product_of_flags(%x: tensor<64x256xf32>, %w: tensor<96x256xbf16>, %y: tensor<64x96xf32>) -> tensor<64x96xi1> {
  %0 = kf.matmul %x, %w : tensor<64x256xf32>, tensor<96x256xbf16>
  %1 = arith.cmpf olt, %0, %y : tensor<64x96xf32>
  return %1 : tensor<64x96xi1>
}
