// Losses: an op of its own for cross entropy, and what the mean square and the
// binary cross entropy of logits are made of.

func.func @cross_entropy_of_rows(%x: tensor<?x7xf32> {kf.gradient}, %labels: tensor<?xi32>, %r: tensor<?xf32>) -> tensor<f32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x7xf32>, tensor<?xi32>
  %p = arith.mulf %0, %r : tensor<?xf32>
  %loss = kf.reduce(sum) %p dims = [0] : tensor<?xf32>
  return %loss : tensor<f32>
}

// The mean of the rows whose label is a column.
func.func @cross_entropy(%x: tensor<?x7xf32> {kf.gradient}, %labels: tensor<?xi32>) -> tensor<f32> {
  %0 = kf.cross_entropy %x, %labels : tensor<?x7xf32>, tensor<?xi32>
  %sum = kf.reduce(sum) %0 dims = [0] : tensor<?xf32>
  %seven = arith.constant dense<7> : tensor<1xi32>
  %columns = kf.broadcast %seven : tensor<1xi32> to tensor<?xi32>
  %counts = arith.cmpi ult, %labels, %columns : tensor<?xi32>
  %one = arith.uitofp %counts : tensor<?xi1> to tensor<?xf32>
  %count = kf.reduce(sum) %one dims = [0] : tensor<?xf32>
  %least = arith.constant dense<1.0> : tensor<f32>
  %divisor = arith.maximumf %count, %least : tensor<f32>
  %loss = arith.divf %sum, %divisor : tensor<f32>
  return %loss : tensor<f32>
}

func.func @mean_square(%x: tensor<?x7xf32> {kf.gradient}, %y: tensor<?x7xf32> {kf.gradient}) -> tensor<f32> {
  %0 = arith.subf %x, %y : tensor<?x7xf32>
  %1 = arith.mulf %0, %0 : tensor<?x7xf32>
  %loss = kf.reduce(mean) %1 dims = [0, 1] : tensor<?x7xf32>
  return %loss : tensor<f32>
}

// max(x, 0) - x y + log(1 + exp(-|x|)), which does not overflow.
func.func @binary_cross_entropy(%x: tensor<?x7xf32> {kf.gradient}, %y: tensor<?x7xf32>) -> tensor<f32> {
  %number = arith.constant dense<0.0> : tensor<1xf32>
  %zero = kf.broadcast %number : tensor<1xf32> to tensor<?x7xf32>
  %most = arith.maximumf %x, %zero : tensor<?x7xf32>
  %xy = arith.mulf %x, %y : tensor<?x7xf32>
  %abs = math.absf %x : tensor<?x7xf32>
  %neg = arith.negf %abs : tensor<?x7xf32>
  %exp = math.exp %neg : tensor<?x7xf32>
  %log = math.log1p %exp : tensor<?x7xf32>
  %0 = arith.subf %most, %xy : tensor<?x7xf32>
  %1 = arith.addf %0, %log : tensor<?x7xf32>
  %loss = kf.reduce(mean) %1 dims = [0, 1] : tensor<?x7xf32>
  return %loss : tensor<f32>
}

// Of rows that have a size of their own.
func.func @cross_entropy_of_wanted(%x: tensor<?x7xf32, #kf.size<wanted>> {kf.gradient}, %w: tensor<7x7xf32> {kf.gradient}, %labels: tensor<?xi32, #kf.size<wanted>>) -> tensor<f32> {
  %0 = kf.matmul %x, %w : tensor<?x7xf32, #kf.size<wanted>>, tensor<7x7xf32>
  %1 = kf.cross_entropy %0, %labels : tensor<?x7xf32, #kf.size<wanted>>, tensor<?xi32, #kf.size<wanted>>
  %loss = kf.reduce(mean) %1 dims = [0] : tensor<?xf32, #kf.size<wanted>>
  return %loss : tensor<f32>
}
