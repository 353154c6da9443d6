// Views, reductions and sums of tensors.

func.func @transpose(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<4x2x3xf32>) -> tensor<f32> {
  %0 = kf.transpose %x permutation = [2, 0, 1] : tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<4x2x3xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<4x2x3xf32>
  return %loss : tensor<f32>
}

func.func @broadcast(%x: tensor<3x1xf32> {kf.gradient}, %r: tensor<2x3x4xf32>) -> tensor<f32> {
  %0 = kf.broadcast %x : tensor<3x1xf32> to tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<2x3x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<2x3x4xf32>
  return %loss : tensor<f32>
}

func.func @broadcast_to_rows(%x: tensor<6xf32> {kf.gradient}, %r: tensor<?x6xf32>) -> tensor<f32> {
  %0 = kf.broadcast %x : tensor<6xf32> to tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x6xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x6xf32>
  return %loss : tensor<f32>
}

func.func @copy(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x6xf32>) -> tensor<f32> {
  %0 = kf.copy %x : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x6xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x6xf32>
  return %loss : tensor<f32>
}

func.func @collapse_shape(%x: tensor<?x2x3xf32> {kf.gradient}, %r: tensor<?x6xf32>) -> tensor<f32> {
  %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x2x3xf32> into tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x6xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x6xf32>
  return %loss : tensor<f32>
}

func.func @expand_shape(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x2x3xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
  %p = arith.mulf %0, %r : tensor<?x2x3xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1, 2] : tensor<?x2x3xf32>
  return %loss : tensor<f32>
}

func.func @concat(%x: tensor<?x2xf32> {kf.gradient}, %y: tensor<?x3xf32>, %z: tensor<?x1xf32> {kf.gradient}, %r: tensor<?x6xf32>) -> tensor<f32> {
  %0 = tensor.concat dim(1) %x, %y, %z : (tensor<?x2xf32>, tensor<?x3xf32>, tensor<?x1xf32>) -> tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x6xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x6xf32>
  return %loss : tensor<f32>
}

func.func @slice_columns(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x3xf32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %0 = tensor.extract_slice %x[0, 2] [%n, 3] [1, 1] : tensor<?x6xf32> to tensor<?x3xf32>
  %p = arith.mulf %0, %r : tensor<?x3xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x3xf32>
  return %loss : tensor<f32>
}

func.func @slice_with_strides(%x: tensor<5x7xf32> {kf.gradient}, %r: tensor<2x3xf32>) -> tensor<f32> {
  %0 = tensor.extract_slice %x[1, 1] [2, 3] [3, 2] : tensor<5x7xf32> to tensor<2x3xf32>
  %p = arith.mulf %0, %r : tensor<2x3xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<2x3xf32>
  return %loss : tensor<f32>
}

func.func @slice_of_less_rank(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<3xf32>) -> tensor<f32> {
  %0 = tensor.extract_slice %x[1, 0, 2] [1, 3, 1] [1, 1, 1] : tensor<2x3x4xf32> to tensor<3xf32>
  %p = arith.mulf %0, %r : tensor<3xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<3xf32>
  return %loss : tensor<f32>
}

func.func @reduce_sum(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<2x4xf32>) -> tensor<f32> {
  %0 = kf.reduce(sum) %x dims = [1] : tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<2x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<2x4xf32>
  return %loss : tensor<f32>
}

func.func @reduce_sum_of_rows(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<6xf32>) -> tensor<f32> {
  %0 = kf.reduce(sum) %x dims = [0] : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<6xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<6xf32>
  return %loss : tensor<f32>
}

func.func @reduce_sum_keeping_dims(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x1xf32>) -> tensor<f32> {
  %0 = kf.reduce(sum) %x dims = [1] keep_dims : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x1xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x1xf32>
  return %loss : tensor<f32>
}

func.func @reduce_mean(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<2x4xf32>) -> tensor<f32> {
  %0 = kf.reduce(mean) %x dims = [1] : tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<2x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<2x4xf32>
  return %loss : tensor<f32>
}

func.func @reduce_mean_of_rows(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<6xf32>) -> tensor<f32> {
  %0 = kf.reduce(mean) %x dims = [0] : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<6xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<6xf32>
  return %loss : tensor<f32>
}

func.func @reduce_mean_keeping_dims(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x1xf32>) -> tensor<f32> {
  %0 = kf.reduce(mean) %x dims = [1] keep_dims : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x1xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x1xf32>
  return %loss : tensor<f32>
}

func.func @reduce_max(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<2x4xf32>) -> tensor<f32> {
  %0 = kf.reduce(max) %x dims = [1] : tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<2x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<2x4xf32>
  return %loss : tensor<f32>
}

func.func @reduce_max_of_rows(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<6xf32>) -> tensor<f32> {
  %0 = kf.reduce(max) %x dims = [0] : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<6xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<6xf32>
  return %loss : tensor<f32>
}

func.func @reduce_max_keeping_dims(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x1xf32>) -> tensor<f32> {
  %0 = kf.reduce(max) %x dims = [1] keep_dims : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x1xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x1xf32>
  return %loss : tensor<f32>
}

func.func @reduce_min(%x: tensor<2x3x4xf32> {kf.gradient}, %r: tensor<2x4xf32>) -> tensor<f32> {
  %0 = kf.reduce(min) %x dims = [1] : tensor<2x3x4xf32>
  %p = arith.mulf %0, %r : tensor<2x4xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<2x4xf32>
  return %loss : tensor<f32>
}

func.func @reduce_min_of_rows(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<6xf32>) -> tensor<f32> {
  %0 = kf.reduce(min) %x dims = [0] : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<6xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<6xf32>
  return %loss : tensor<f32>
}

func.func @reduce_min_keeping_dims(%x: tensor<?x6xf32> {kf.gradient}, %r: tensor<?x1xf32>) -> tensor<f32> {
  %0 = kf.reduce(min) %x dims = [1] keep_dims : tensor<?x6xf32>
  %p = arith.mulf %0, %r : tensor<?x1xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<?x1xf32>
  return %loss : tensor<f32>
}

func.func @mean_of_all(%x: tensor<?x6xf32> {kf.gradient}, %y: tensor<?x6xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %y : tensor<?x6xf32>
  %loss = kf.reduce(mean) %0 dims = [0, 1] : tensor<?x6xf32>
  return %loss : tensor<f32>
}

func.func @max_of_equal_ones(%x: tensor<4xf32> {kf.gradient}, %r: tensor<4xf32>) -> tensor<f32> {
  %0 = kf.broadcast %x : tensor<4xf32> to tensor<3x4xf32>
  %1 = kf.reduce(max) %0 dims = [0] : tensor<3x4xf32>
  %p = arith.mulf %1, %r : tensor<4xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<4xf32>
  return %loss : tensor<f32>
}
