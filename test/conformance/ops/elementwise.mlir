func.func @residual(%a: tensor<?x70xf32>, %b: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %0 = arith.addf %a, %b : tensor<?x70xf32>
  return %0 : tensor<?x70xf32>
}

func.func @chain(%a: tensor<?x33xf32>, %b: tensor<?x33xf32>) -> tensor<?x33xf32> {
  %0 = arith.mulf %a, %b : tensor<?x33xf32>
  %1 = arith.subf %0, %a : tensor<?x33xf32>
  %2 = arith.maximumf %1, %b : tensor<?x33xf32>
  return %2 : tensor<?x33xf32>
}

func.func @divide_static(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %c = arith.constant dense<3.5> : tensor<3x5xf32>
  %0 = arith.divf %a, %c : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

func.func @vector(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.negf %a : tensor<?xf32>
  return %0 : tensor<?xf32>
}

func.func @rank3(%a: tensor<?x3x20xf32>, %b: tensor<?x3x20xf32>) -> tensor<?x3x20xf32> {
  %0 = arith.addf %a, %b : tensor<?x3x20xf32>
  return %0 : tensor<?x3x20xf32>
}

func.func @silu(%a: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %0 = kf.activation(silu) %a : tensor<?x70xf32>
  return %0 : tensor<?x70xf32>
}

func.func @gelu(%a: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %0 = kf.activation(gelu) %a : tensor<?x70xf32>
  return %0 : tensor<?x70xf32>
}

func.func @gelu_tanh(%a: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %0 = kf.activation(gelu_tanh) %a : tensor<?x70xf32>
  return %0 : tensor<?x70xf32>
}

func.func @relu(%a: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %0 = kf.activation(relu) %a : tensor<?x7xf32>
  return %0 : tensor<?x7xf32>
}

func.func @half(%a: tensor<?x40xf16>, %b: tensor<?x40xf16>) -> tensor<?x40xf16> {
  %0 = arith.addf %a, %b : tensor<?x40xf16>
  return %0 : tensor<?x40xf16>
}

func.func @copies(%a: tensor<?x12xf32>) -> (tensor<?x12xf32>, tensor<?x3x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x12xf32>
  %0 = tensor.expand_shape %a [[0], [1, 2]] output_shape [%n, 3, 4]
      : tensor<?x12xf32> into tensor<?x3x4xf32>
  return %a, %0 : tensor<?x12xf32>, tensor<?x3x4xf32>
}

func.func @maximum(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.maximumf %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @minimum(%a: tensor<?x37xf32>, %b: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = arith.minimumf %a, %b : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @exp(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.exp %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @sqrt(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.sqrt %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @rsqrt(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.rsqrt %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}

func.func @tanh(%a: tensor<?x37xf32>) -> tensor<?x37xf32> {
  %0 = math.tanh %a : tensor<?x37xf32>
  return %0 : tensor<?x37xf32>
}
