// Integers count up from row to row: top_k 0 is all, then 1, 2 ...; seeds,
// counters and adjustments likewise. Floats are in [-1, 1), and settings are
// made of them: half of the temperatures are 0.

func.func @sample(%x: tensor<?x307xf32>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %c: tensor<?xi32>) -> tensor<?xi32> {
  %t = kf.activation(relu) %r : tensor<?xf32>
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %m = arith.mulf %t, %t : tensor<?xf32>
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x307xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return %0 : tensor<?xi32>
}

// Settings out of their ranges in half of the rows.
func.func @sample_any(%x: tensor<?x40xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) -> tensor<?xi32> {
  %0 = kf.sample %x temperature(%p) top_k(%k) top_p(%p) min_p(%p) seed(%s) counter(%c)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return %0 : tensor<?xi32>
}

func.func @sample_bf16(%x: tensor<?x150xbf16>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %c: tensor<?xi32>) -> tensor<?xi32> {
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %m = arith.mulf %p, %p : tensor<?xf32>
  %0 = kf.sample %x temperature(%p) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x150xbf16>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return %0 : tensor<?xi32>
}

// A part of the vocabulary, of logits that another kernel makes.
func.func @sample_slice(%y: tensor<?x500xf32>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %y, %c0 : tensor<?x500xf32>
  %l = arith.negf %y : tensor<?x500xf32>
  %x = tensor.extract_slice %l[0, 100] [%rows, 301] [1, 1] : tensor<?x500xf32> to tensor<?x301xf32>
  %t = kf.activation(relu) %r : tensor<?xf32>
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %m = arith.mulf %t, %t : tensor<?xf32>
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%k)
      : (tensor<?x301xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return %0 : tensor<?xi32>
}

// Row r has r adjustments, of the tokens from r on.
func.func @sample_adjusted(%x: tensor<?x307xf32>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %ids: tensor<400xi32>, %bias: tensor<400xf32>, %f: tensor<?xf32>) -> tensor<?xi32>
    attributes {kf.max_tokens = 120 : i64} {
  %t = kf.activation(relu) %r : tensor<?xf32>
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %m = arith.mulf %t, %t : tensor<?xf32>
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%k)
      adjustments(%k, %k, %ids, %ids, %bias) penalties(%p, %r, %f)
      : (tensor<?x307xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<400xi32>, tensor<400xi32>, tensor<400xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0 : tensor<?xi32>
}

func.func @sample_adjusted_f16(%x: tensor<3x33xf16>, %r: tensor<3xf32>, %k: tensor<3xi32>, %s: tensor<3xi64>, %ids: tensor<9xi32>, %bias: tensor<9xf32>) -> tensor<3xi32> {
  %n = arith.negf %r : tensor<3xf32>
  %p = arith.maximumf %r, %n : tensor<3xf32>
  %0 = kf.sample %x temperature(%p) top_k(%k) top_p(%p) min_p(%p) seed(%s) counter(%k)
      adjustments(%k, %k, %ids, %ids, %bias) penalties(%p, %r, %r)
      : (tensor<3x33xf16>, tensor<3xf32>, tensor<3xi32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>, tensor<3xi32>,
         tensor<3xi32>, tensor<3xi32>, tensor<9xi32>, tensor<9xi32>, tensor<9xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0 : tensor<3xi32>
}

// Rows from the fourth on have no mask; the bits of the others are those of a
// product, after adjustments.
func.func @sample_masked(%x: tensor<?x307xf32>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %ids: tensor<400xi32>, %bias: tensor<400xf32>, %f: tensor<?xf32>, %w: tensor<4x10xi32>) -> tensor<?xi32>
    attributes {kf.max_tokens = 9 : i64} {
  %factor = arith.constant dense<-1640531535> : tensor<4x10xi32>
  %mask = arith.muli %w, %factor : tensor<4x10xi32>
  %t = kf.activation(relu) %r : tensor<?xf32>
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %m = arith.mulf %t, %t : tensor<?xf32>
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%k)
      adjustments(%k, %k, %ids, %ids, %bias) penalties(%p, %r, %f) mask(%k, %mask)
      : (tensor<?x307xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<?xi32>, tensor<400xi32>, tensor<400xi32>, tensor<400xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>,
         tensor<?xi32>, tensor<4x10xi32>)
  return %0 : tensor<?xi32>
}

func.func @sample_masked_f16(%x: tensor<?x33xf16>, %r: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %w: tensor<9x2xi32>) -> tensor<?xi32>
    attributes {kf.max_tokens = 9 : i64} {
  %factor = arith.constant dense<-1640531535> : tensor<9x2xi32>
  %mask = arith.muli %w, %factor : tensor<9x2xi32>
  %n = arith.negf %r : tensor<?xf32>
  %p = arith.maximumf %r, %n : tensor<?xf32>
  %0 = kf.sample %x temperature(%p) top_k(%k) top_p(%p) min_p(%p) seed(%s) counter(%k) mask(%k, %mask)
      : (tensor<?x33xf16>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>,
         tensor<?xi32>, tensor<9x2xi32>)
  return %0 : tensor<?xi32>
}
