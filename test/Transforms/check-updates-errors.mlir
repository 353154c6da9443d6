// RUN: kf-opt %s -kf-form-kernels -kf-check-updates -split-input-file -verify-diagnostics

// expected-error@+1 {{kf-check-updates: result 0 has kf.updates 2 : i64, which is no number of one of the 1 arguments as an i64}}
func.func @number(%x: tensor<4xf32>) -> (tensor<4xf32> {kf.updates = 2 : i64}) {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{kf-check-updates: result 0 has kf.updates 0, an argument of 'tensor<4xf32>', and is of 'tensor<4xbf16>'; both lie in the same memory}}
func.func @type(%x: tensor<4xf32>) -> (tensor<4xbf16> {kf.updates = 0 : i64}) {
  %0 = arith.truncf %x : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

// expected-error@+1 {{kf-check-updates: result 1 has kf.updates 0, as another result has}}
func.func @twice(%x: tensor<4xf32>)
    -> (tensor<4xf32> {kf.updates = 0 : i64}, tensor<4xf32> {kf.updates = 0 : i64}) {
  %0 = arith.addf %x, %x : tensor<4xf32>
  %1 = arith.mulf %x, %x : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @read_later(%x: tensor<4xf32>)
    -> (tensor<4xf32> {kf.updates = 0 : i64}, tensor<4xf32>) {
  %0 = arith.addf %x, %x : tensor<4xf32>
  // expected-error@+1 {{kf-check-updates: reads argument 0, which a dispatch before it updates in place; let it read what that makes}}
  %1 = kf.softmax %x : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @whole_rows(%x: tensor<4x8xf32>)
    -> (tensor<4x8xf32> {kf.updates = 0 : i64}) {
  // expected-error@+1 {{kf-check-updates: reads what the kernel updates in place, element by element; only elementwise ops may}}
  %0 = kf.softmax %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @elsewhere(%x: tensor<4x4xf32>)
    -> (tensor<4x4xf32> {kf.updates = 0 : i64}) {
  // expected-error@+1 {{kf-check-updates: reads what the kernel updates in place}}
  %0 = kf.transpose %x permutation = [1, 0] : tensor<4x4xf32>
  %1 = arith.addf %x, %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

kf.kernel @neg_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.negf %x : tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}

kf.program @unknown(%x: tensor<4xf32>) -> (tensor<4xf32> {kf.updates = 0 : i64})
    attributes {max_tokens = 1 : i64} {
  // expected-error@+1 {{kf-check-updates: makes what updates its operand 0 in place, and its kernel does not say so: kf.updates of its result is missing}}
  %0 = kf.dispatch @neg_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  kf.yield %0 : tensor<4xf32>
}
