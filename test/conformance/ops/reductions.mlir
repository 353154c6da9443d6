// kf.reduce of any dimensions and types.
func.func @sum_last(%a: tensor<4x5x37xf32>) -> tensor<4x5xf32> {
  %0 = kf.reduce(sum) %a dims = [2] : tensor<4x5x37xf32>
  return %0 : tensor<4x5xf32>
}

func.func @sum_first(%a: tensor<4x5x37xf32>) -> tensor<5x37xf32> {
  %0 = kf.reduce(sum) %a dims = [0] : tensor<4x5x37xf32>
  return %0 : tensor<5x37xf32>
}

func.func @sum_middle(%a: tensor<4x5x37xf32>) -> tensor<4x37xf32> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<4x5x37xf32>
  return %0 : tensor<4x37xf32>
}

func.func @sum_all(%a: tensor<4x5x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(sum) %a dims = [0, 1, 2] : tensor<4x5x37xf32>
  return %0 : tensor<f32>
}

func.func @sum_ends(%a: tensor<4x5x37xf32>) -> tensor<5xf32> {
  %0 = kf.reduce(sum) %a dims = [0, 2] : tensor<4x5x37xf32>
  return %0 : tensor<5xf32>
}

func.func @prod_last(%a: tensor<4x5x37xf32>) -> tensor<4x5xf32> {
  %0 = kf.reduce(prod) %a dims = [2] : tensor<4x5x37xf32>
  return %0 : tensor<4x5xf32>
}

func.func @prod_first(%a: tensor<4x5x37xf32>) -> tensor<5x37xf32> {
  %0 = kf.reduce(prod) %a dims = [0] : tensor<4x5x37xf32>
  return %0 : tensor<5x37xf32>
}

func.func @prod_all(%a: tensor<4x5x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(prod) %a dims = [0, 1, 2] : tensor<4x5x37xf32>
  return %0 : tensor<f32>
}

func.func @max_last(%a: tensor<4x5x37xf32>) -> tensor<4x5xf32> {
  %0 = kf.reduce(max) %a dims = [2] : tensor<4x5x37xf32>
  return %0 : tensor<4x5xf32>
}

func.func @max_first(%a: tensor<4x5x37xf32>) -> tensor<5x37xf32> {
  %0 = kf.reduce(max) %a dims = [0] : tensor<4x5x37xf32>
  return %0 : tensor<5x37xf32>
}

func.func @max_middle(%a: tensor<4x5x37xf32>) -> tensor<4x37xf32> {
  %0 = kf.reduce(max) %a dims = [1] : tensor<4x5x37xf32>
  return %0 : tensor<4x37xf32>
}

func.func @max_all(%a: tensor<4x5x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(max) %a dims = [0, 1, 2] : tensor<4x5x37xf32>
  return %0 : tensor<f32>
}

func.func @max_ends(%a: tensor<4x5x37xf32>) -> tensor<5xf32> {
  %0 = kf.reduce(max) %a dims = [0, 2] : tensor<4x5x37xf32>
  return %0 : tensor<5xf32>
}

func.func @min_last(%a: tensor<4x5x37xf32>) -> tensor<4x5xf32> {
  %0 = kf.reduce(min) %a dims = [2] : tensor<4x5x37xf32>
  return %0 : tensor<4x5xf32>
}

func.func @min_first(%a: tensor<4x5x37xf32>) -> tensor<5x37xf32> {
  %0 = kf.reduce(min) %a dims = [0] : tensor<4x5x37xf32>
  return %0 : tensor<5x37xf32>
}

func.func @min_all(%a: tensor<4x5x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(min) %a dims = [0, 1, 2] : tensor<4x5x37xf32>
  return %0 : tensor<f32>
}

func.func @mean_last(%a: tensor<4x5x37xf32>) -> tensor<4x5xf32> {
  %0 = kf.reduce(mean) %a dims = [2] : tensor<4x5x37xf32>
  return %0 : tensor<4x5xf32>
}

func.func @mean_first(%a: tensor<4x5x37xf32>) -> tensor<5x37xf32> {
  %0 = kf.reduce(mean) %a dims = [0] : tensor<4x5x37xf32>
  return %0 : tensor<5x37xf32>
}

func.func @mean_middle(%a: tensor<4x5x37xf32>) -> tensor<4x37xf32> {
  %0 = kf.reduce(mean) %a dims = [1] : tensor<4x5x37xf32>
  return %0 : tensor<4x37xf32>
}

func.func @mean_all(%a: tensor<4x5x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(mean) %a dims = [0, 1, 2] : tensor<4x5x37xf32>
  return %0 : tensor<f32>
}

func.func @mean_ends(%a: tensor<4x5x37xf32>) -> tensor<5xf32> {
  %0 = kf.reduce(mean) %a dims = [0, 2] : tensor<4x5x37xf32>
  return %0 : tensor<5xf32>
}

func.func @sum_rows(%a: tensor<?x100xf32>) -> tensor<?xf32> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<?x100xf32>
  return %0 : tensor<?xf32>
}

func.func @mean_keeps(%a: tensor<3x4x40xf32>) -> tensor<3x1x1xf32> {
  %0 = kf.reduce(mean) %a dims = [1, 2] keep_dims : tensor<3x4x40xf32>
  return %0 : tensor<3x1x1xf32>
}

func.func @variance(%a: tensor<7x50xf32>) -> tensor<7xf32> {
  %m = kf.reduce(mean) %a dims = [1] keep_dims : tensor<7x50xf32>
  %b = kf.broadcast %m : tensor<7x1xf32> to tensor<7x50xf32>
  %d = arith.subf %a, %b : tensor<7x50xf32>
  %s = arith.mulf %d, %d : tensor<7x50xf32>
  %v = kf.reduce(mean) %s dims = [1] : tensor<7x50xf32>
  %r = math.sqrt %v : tensor<7xf32>
  return %r : tensor<7xf32>
}

func.func @sum_of_chain_first(%a: tensor<20x50xf32>) -> tensor<50xf32> {
  %s = arith.mulf %a, %a : tensor<20x50xf32>
  %v = kf.reduce(sum) %s dims = [0] : tensor<20x50xf32>
  %r = math.sqrt %v : tensor<50xf32>
  return %r : tensor<50xf32>
}

func.func @sum_i32(%a: tensor<6x21xi32>) -> tensor<6xi32> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xi32>
  return %0 : tensor<6xi32>
}

func.func @max_i32(%a: tensor<6x21xi32>) -> tensor<6xi32> {
  %0 = kf.reduce(max) %a dims = [1] : tensor<6x21xi32>
  return %0 : tensor<6xi32>
}

func.func @min_i32(%a: tensor<6x21xi32>) -> tensor<6xi32> {
  %0 = kf.reduce(min) %a dims = [1] : tensor<6x21xi32>
  return %0 : tensor<6xi32>
}

func.func @prod_i32(%a: tensor<6x21xi32>) -> tensor<6xi32> {
  %0 = kf.reduce(prod) %a dims = [1] : tensor<6x21xi32>
  return %0 : tensor<6xi32>
}

func.func @sum_i8(%a: tensor<6x21xi8>) -> tensor<6xi8> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xi8>
  return %0 : tensor<6xi8>
}

func.func @max_i8(%a: tensor<6x21xi8>) -> tensor<6xi8> {
  %0 = kf.reduce(max) %a dims = [1] : tensor<6x21xi8>
  return %0 : tensor<6xi8>
}

func.func @min_i8(%a: tensor<6x21xi8>) -> tensor<6xi8> {
  %0 = kf.reduce(min) %a dims = [1] : tensor<6x21xi8>
  return %0 : tensor<6xi8>
}

func.func @prod_i8(%a: tensor<6x21xi8>) -> tensor<6xi8> {
  %0 = kf.reduce(prod) %a dims = [1] : tensor<6x21xi8>
  return %0 : tensor<6xi8>
}

func.func @sum_i64(%a: tensor<6x21xi64>) -> tensor<6xi64> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xi64>
  return %0 : tensor<6xi64>
}

func.func @max_i64(%a: tensor<6x21xi64>) -> tensor<6xi64> {
  %0 = kf.reduce(max) %a dims = [1] : tensor<6x21xi64>
  return %0 : tensor<6xi64>
}

func.func @min_i64(%a: tensor<6x21xi64>) -> tensor<6xi64> {
  %0 = kf.reduce(min) %a dims = [1] : tensor<6x21xi64>
  return %0 : tensor<6xi64>
}

func.func @prod_i64(%a: tensor<6x21xi64>) -> tensor<6xi64> {
  %0 = kf.reduce(prod) %a dims = [1] : tensor<6x21xi64>
  return %0 : tensor<6xi64>
}

func.func @max_i1(%a: tensor<6x21xi1>) -> tensor<21xi1> {
  %0 = kf.reduce(max) %a dims = [0] : tensor<6x21xi1>
  return %0 : tensor<21xi1>
}

func.func @min_i1(%a: tensor<6x21xi1>) -> tensor<21xi1> {
  %0 = kf.reduce(min) %a dims = [0] : tensor<6x21xi1>
  return %0 : tensor<21xi1>
}

func.func @sum_f16(%a: tensor<6x21xf16>) -> tensor<6xf16> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xf16>
  return %0 : tensor<6xf16>
}

func.func @sum_bf16(%a: tensor<6x21xbf16>) -> tensor<6xbf16> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xbf16>
  return %0 : tensor<6xbf16>
}

func.func @sum_f64(%a: tensor<6x21xf64>) -> tensor<6xf64> {
  %0 = kf.reduce(sum) %a dims = [1] : tensor<6x21xf64>
  return %0 : tensor<6xf64>
}

// Over a size of the step.
func.func @sum_of_rows(%a: tensor<?x37xf32>) -> tensor<37xf32> {
  %0 = kf.reduce(sum) %a dims = [0] : tensor<?x37xf32>
  return %0 : tensor<37xf32>
}

func.func @mean_of_rows(%a: tensor<?x3x5xbf16>) -> tensor<3x5xbf16> {
  %0 = kf.reduce(mean) %a dims = [0] : tensor<?x3x5xbf16>
  return %0 : tensor<3x5xbf16>
}

func.func @mean_of_all_rows(%a: tensor<?x37xf32>) -> tensor<f32> {
  %0 = kf.reduce(mean) %a dims = [0, 1] : tensor<?x37xf32>
  return %0 : tensor<f32>
}

func.func @max_of_row_numbers(%a: tensor<?xi32>) -> tensor<1xi32> {
  %0 = kf.reduce(max) %a dims = [0] keep_dims : tensor<?xi32>
  return %0 : tensor<1xi32>
}

func.func @sum_of_products_of_rows(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<37xf32> {
  %p = arith.mulf %a, %b : tensor<?x37xf32>
  %0 = kf.reduce(sum) %p dims = [0] : tensor<?x37xf32>
  return %0 : tensor<37xf32>
}

// Sums of 128 and more, which threads of a GPU share.
func.func @sum_of_two_of_many(%a: tensor<3x8x40xf32>) -> tensor<3xf32> {
  %0 = kf.reduce(sum) %a dims = [1, 2] : tensor<3x8x40xf32>
  return %0 : tensor<3xf32>
}

func.func @sum_of_many_kept(%a: tensor<?x300xf32>) -> tensor<?x1xf32> {
  %0 = kf.reduce(sum) %a dims = [1] keep_dims : tensor<?x300xf32>
  return %0 : tensor<?x1xf32>
}

func.func @mean_of_128_kept(%a: tensor<5x128xf32>, %b: tensor<5x1xf32>) -> tensor<5x1xf32> {
  %0 = kf.reduce(mean) %a dims = [1] keep_dims : tensor<5x128xf32>
  %1 = arith.addf %0, %b : tensor<5x1xf32>
  return %1 : tensor<5x1xf32>
}

func.func @max_of_many(%a: tensor<2x3x200xbf16>) -> tensor<2x3x1xbf16> {
  %0 = kf.reduce(max) %a dims = [2] keep_dims : tensor<2x3x200xbf16>
  return %0 : tensor<2x3x1xbf16>
}

func.func @sum_of_all_kept(%a: tensor<1x1000xf32>) -> tensor<1x1xf32> {
  %0 = kf.reduce(sum) %a dims = [0, 1] keep_dims : tensor<1x1000xf32>
  return %0 : tensor<1x1xf32>
}
