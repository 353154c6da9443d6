// Elementwise ops. Inputs are in [-1, 1), in functions called unit_* between 0.3
// and 0.8, and in those called above_one_* between 1.2 and 3.

func.func @addf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.addf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @subf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.subf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @mulf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @maximumf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.maximumf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @minimumf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.minimumf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @maxnumf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.maxnumf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @minnumf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.minnumf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_divf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.divf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_powf(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.powf %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_atan2(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.atan2 %x, %y : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @fma(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %z: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.fma %x, %y, %z : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @select(%c: tensor<3x5xi1>, %x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.select %c, %x, %y : tensor<3x5xi1>, tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @negf(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.negf %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @absf(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.absf %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @exp(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.exp %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @exp2(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.exp2 %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @expm1(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.expm1 %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @erf(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.erf %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @erfc(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.erfc %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @sin(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.sin %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @cos(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.cos %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @tan(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.tan %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_asin(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.asin %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_acos(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.acos %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @atan(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.atan %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @sinh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.sinh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @cosh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.cosh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @tanh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.tanh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @asinh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.asinh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @above_one_acosh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.acosh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_atanh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.atanh %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_sqrt(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.sqrt %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_rsqrt(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.rsqrt %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_cbrt(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.cbrt %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_log(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.log %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_log2(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.log2 %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_log10(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.log10 %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @unit_log1p(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.log1p %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @floor(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = math.floor %x : tensor<3x5xf32>
  %1 = arith.mulf %0, %x : tensor<3x5xf32>
  %p = arith.mulf %1, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @activation_silu(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = kf.activation(silu) %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @activation_gelu(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = kf.activation(gelu) %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @activation_gelu_tanh(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = kf.activation(gelu_tanh) %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @activation_relu(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = kf.activation(relu) %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @activation_identity(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = kf.activation(identity) %x : tensor<3x5xf32>
  %p = arith.mulf %0, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @rounded_casts(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %x : tensor<3x5xf32>
  %1 = arith.truncf %0 : tensor<3x5xf32> to tensor<3x5xbf16>
  %2 = arith.extf %1 : tensor<3x5xbf16> to tensor<3x5xf32>
  %p = arith.mulf %2, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @several_uses(%x: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %x : tensor<3x5xf32>
  %1 = arith.addf %0, %x : tensor<3x5xf32>
  %2 = arith.mulf %1, %0 : tensor<3x5xf32>
  %p = arith.mulf %2, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

// What the loss does not depend on has zeros.
func.func @unused(%x: tensor<3x5xf32> {kf.gradient}, %y: tensor<3x5xf32> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %p = arith.mulf %x, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

// Gradients of what is bf16 are not rounded.
func.func @rounded_arithmetic(%x: tensor<3x5xbf16> {kf.gradient}, %y: tensor<3x5xbf16> {kf.gradient}, %r: tensor<3x5xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %y : tensor<3x5xbf16>
  %1 = arith.subf %0, %x : tensor<3x5xbf16>
  %2 = arith.extf %1 : tensor<3x5xbf16> to tensor<3x5xf32>
  %p = arith.mulf %2, %r : tensor<3x5xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<3x5xf32>
  return %loss : tensor<f32>
}

func.func @dropout(%x: tensor<5x24xf32> {kf.gradient}, %draw: tensor<4xi32>, %r: tensor<5x24xf32>) -> tensor<f32> {
  %0 = kf.dropout %x, %draw {p = 0.25 : f32} : tensor<5x24xf32>, tensor<4xi32>
  %p = arith.mulf %0, %r : tensor<5x24xf32>
  %loss = kf.reduce(sum) %p dims = [0, 1] : tensor<5x24xf32>
  return %loss : tensor<f32>
}
