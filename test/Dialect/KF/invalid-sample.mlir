// RUN: kf-opt %s -split-input-file -verify-diagnostics

// kf.sample.

func.func @f(%x: tensor<?x8xi32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of float elements, V static, found 'tensor<?x8xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xi32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of float elements, V static, found 'tensor<4x?xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<4x?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V], found 'tensor<8xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x2147483648xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C1: logits must have fewer than 2^31 columns, found 'tensor<?x2147483648xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x2147483648xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf16>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C2: temperature must be 'f32', one for each row of logits, found 'tensor<?xf16>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf16>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi64>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C2: top_k must be 'i32', one for each row of logits, found 'tensor<?xi64>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<8xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C2: top_p must be 'f32', one for each row of logits, found 'tensor<8xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<8xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?x1xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C2: min_p must be 'f32', one for each row of logits, found 'tensor<?x1xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?x1xf32>, tensor<?xi64>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi32>, %c: tensor<?xi32>) {
  // expected-error @+1 {{C2: seed must be 'i64', one for each row of logits, found 'tensor<?xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<4xi32>) {
  // expected-error @+1 {{C2: counter must be 'i32', one for each row of logits, found 'tensor<4xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<4xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C3: adjustments and penalties come together, none of them alone}}
  %0 = "kf.sample"(%x, %t, %k, %p, %m, %s, %c, %first) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi64>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C3: first must be 'i32', one for each row of logits, found 'tensor<?xi64>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi64>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<5xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C3: count must be 'i32', one for each row of logits, found 'tensor<5xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xbf16>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C3: repetition must be 'f32', one for each row of logits, found 'tensor<?xbf16>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xbf16>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<5xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C3: presence must be 'f32', one for each row of logits, found 'tensor<5xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<5xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?x1xf32>) {
  // expected-error @+1 {{C3: frequency must be 'f32', one for each row of logits, found 'tensor<?x1xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?x1xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5x1xi32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C4: ids must be a rank 1 tensor of i32, found 'tensor<5x1xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5x1xi32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xf32>, %seen: tensor<5xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C4: ids must be 'i32', one for each id, found 'tensor<5xf32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xf32>, tensor<5xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<4xi32>, %bias: tensor<5xf32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C4: seen must be 'i32', one for each id, found 'tensor<4xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<4xi32>, tensor<5xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>, %first: tensor<?xi32>, %count: tensor<?xi32>, %ids: tensor<5xi32>, %seen: tensor<5xi32>, %bias: tensor<5xi32>, %r: tensor<?xf32>, %pr: tensor<?xf32>, %fr: tensor<?xf32>) {
  // expected-error @+1 {{C4: bias must be 'f32', one for each id, found 'tensor<5xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%p) min_p(%m) seed(%s) counter(%c)
      adjustments(%first, %count, %ids, %seen, %bias) penalties(%r, %pr, %fr)
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<5xi32>, tensor<5xi32>, tensor<5xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>)
  return
}

// -----

// C5
func.func @f(%x: tensor<?x8xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %p: tensor<?xf32>, %m: tensor<?xf32>, %s: tensor<?xi64>, %c: tensor<?xi32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?xi32>' are incompatible with return type(s) of operation 'tensor<?xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.sample"(%x, %t, %k, %p, %m, %s, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      : (tensor<?x8xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>) -> tensor<?xi64>
  return
}

// -----

func.func @f(%x: tensor<?x40xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi64>, %mask: tensor<3x2xi32>) {
  // expected-error @+1 {{C6: masked must be 'i32', one for each row of logits, found 'tensor<?xi64>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%t) min_p(%t) seed(%s) counter(%k) mask(%masked, %mask)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi64>, tensor<3x2xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x40xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi32>, %mask: tensor<3x1xi32>) {
  // expected-error @+1 {{C6: mask must be rows of 2 i32, a bit for each column of logits, found 'tensor<3x1xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%t) min_p(%t) seed(%s) counter(%k) mask(%masked, %mask)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<3x1xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x40xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi32>, %mask: tensor<2xi32>) {
  // expected-error @+1 {{C6: mask must be rows of 2 i32, a bit for each column of logits, found 'tensor<2xi32>'}}
  %0 = kf.sample %x temperature(%t) top_k(%k) top_p(%t) min_p(%t) seed(%s) counter(%k) mask(%masked, %mask)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>, tensor<2xi32>)
  return
}

// -----

func.func @f(%x: tensor<?x40xf32>, %t: tensor<?xf32>, %k: tensor<?xi32>, %s: tensor<?xi64>, %masked: tensor<?xi32>) {
  // expected-error @+1 {{C6: masked and mask come together, none of them alone}}
  %0 = "kf.sample"(%x, %t, %k, %t, %t, %s, %k, %masked) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0>}>
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
  return
}
