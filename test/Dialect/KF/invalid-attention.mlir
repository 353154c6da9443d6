// RUN: kf-opt %s -verify-diagnostics -split-input-file

// rope, attention, kv_append and argmax.

func.func @f(%x: tensor<?x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C1: x must be [T, heads, D] of float elements, the last two dimensions static, found 'tensor<?x8xf32>'}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @rope_c6(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>, %f: tensor<8xf32>) {
  // expected-error @+1 {{'kf.rope' op C6: factors must be [4] of a float type, found 'tensor<8xf32>'}}
  %0 = kf.rope %x, %p factors(%f) {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>, tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xi32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C1: x must be [T, heads, D]}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C7: magnitude must be positive and finite as f32}}
  %0 = kf.rope %x, %p {magnitude = 0.0 : f64, rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C7: magnitude must be positive and finite as f32}}
  %0 = kf.rope %x, %p {magnitude = -1.0 : f64, rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C7: magnitude must be positive and finite as f32}}
  %0 = kf.rope %x, %p {magnitude = 1.0e39 : f64, rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<4x?x8xf32>, %p: tensor<4xi32>) {
  // expected-error @+1 {{C1: x must be [T, heads, D]}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<4x?x8xf32>, tensor<4xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi64>) {
  // expected-error @+1 {{C2: positions must be i32, one for each row of x, found 'tensor<?xi64>'}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi64>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<3xi32>) {
  // expected-error @+1 {{C2: positions must be i32, one for each row of x, found 'tensor<3xi32>'}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<3xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C3: rotary_dim must be even, positive and at most 8, found 7}}
  %0 = kf.rope %x, %p {rotary_dim = 7 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C3: rotary_dim must be even, positive and at most 8, found 10}}
  %0 = kf.rope %x, %p {rotary_dim = 10 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C3: rotary_dim must be even, positive and at most 8, found 0}}
  %0 = kf.rope %x, %p {rotary_dim = 0 : i64, theta = 1.0e4 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @rope_wide(%x: tensor<?x2x131072xf32>, %p: tensor<?xi32>) -> tensor<?x2x131072xf32> {
  // expected-error @+1 {{C3: rotary_dim must be even, positive and at most 65536, found 131072}}
  %0 = kf.rope %x, %p {rotary_dim = 131072 : i64, theta = 1.0e4 : f64} : tensor<?x2x131072xf32>, tensor<?xi32>
  return %0 : tensor<?x2x131072xf32>
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C4: theta must be positive and finite}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 0.0 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C4: theta must be positive and finite}}
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 0x7FF0000000000000 : f64} : tensor<?x4x8xf32>, tensor<?xi32>
  return
}

// -----

// rope C5
func.func @f(%x: tensor<?x4x8xf32>, %p: tensor<?xi32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x4x8xf32>' are incompatible with return type(s) of operation 'tensor<?x4x8xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.rope"(%x, %p) <{rotary_dim = 8 : i64, theta = 1.0e4 : f64}> : (tensor<?x4x8xf32>, tensor<?xi32>) -> tensor<?x4x8xf16>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C1: q must be [T, heads, D] of float elements, the last two dimensions static, found 'tensor<?x8xf32>'}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x16xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C2: head dimension of q (16) differs from the cache's (8)}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x16xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x3x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C3: heads of q (3) must be a multiple of the cache's kv_heads (2)}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x3x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xf32>, %sp: tensor<?xf32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C4: positions must be i32, one for each row of q, found 'tensor<?xf32>'}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xf32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C5: layer 2 is outside the cache's 2}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 2 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C5: layer -1 is outside the cache's 2}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = -1 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C6: chunked needs window}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32, chunked} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C6: window must be positive}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32, window = 0 : i64} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C6: softcap must be positive and finite}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32, softcap = 0.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C6: softcap must be positive and finite}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32, softcap = 0x7F800000 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

// attention C7
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x4x8xf32>' are incompatible with return type(s) of operation 'tensor<?x4x8xf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.attention"(%q, %c, %p, %sp, %pt) <{layer = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>, scale = 1.0 : f32}> : (tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> tensor<?x4x8xf16>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x0x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{needs tensors without a dimension of size 0, found 'tensor<?x0x8xf32>'}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x0x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x4x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C1: k and v must be [T, 2, 8] of float elements, found 'tensor<?x4x8xf32>'}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x4x8xf32>, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

// With kv_head, they have that one.
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache, %h: index) {
  // expected-error @+1 {{C1: k and v must be [T, 1, 8] of float elements, found 'tensor<?x2x8xf32>'}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt kv_head(%h) {layer = 0 : i64} : !cache, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C1: k and v must be [T, 2, 8] of float elements, found 'tensor<?x2x4xf32>'}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x4xf32>, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xi8>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C1: k and v must be [T, 2, 8]}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x8xi8>, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

// kv_append C1: of one type.
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{failed to verify that all of {k, v} have same type}}
  "kf.kv_append"(%c, %k, %v, %p, %sp, %pt) <{layer = 0 : i64}> : (!cache, tensor<?x2x8xf32>, tensor<?x2x8xf16>, tensor<?xi32>, tensor<?xi32>, tensor<1x4xi32>) -> ()
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %p: tensor<4xi32>, %sp: tensor<4xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C2: positions must be i32, one for each row of k, found 'tensor<4xi32>'}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x8xf32>, tensor<4xi32>, tensor<1x4xi32>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{C3: layer 5 is outside the cache's 2}}
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 5 : i64} : !cache, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of float elements, V static, found 'tensor<4x?xf32>'}}
  %0 = kf.argmax %x : tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xi32>) {
  // expected-error @+1 {{C1: logits must be [T, V] of float elements}}
  %0 = kf.argmax %x : tensor<4x8xi32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{C1: logits must be [T, V], found 'tensor<8xf32>'}}
  %0 = kf.argmax %x : tensor<8xf32>
  return
}

// -----

// argmax C2
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<4xi32>' are incompatible with return type(s) of operation 'tensor<4xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "kf.argmax"(%x) : (tensor<4x8xf32>) -> tensor<4xi64>
  return
}

// -----

// attention C8, kv_append C4: sequences are as positions are.
!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %s: tensor<4xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x8xf32> {
  // expected-error @+1 {{failed to verify that all of {positions, sequences} have same type}}
  %0 = "kf.attention"(%q, %c, %p, %s, %pt) <{layer = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>, scale = 1.0 : f32}> : (tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<4xi32>, tensor<1x4xi32>) -> tensor<?x4x8xf32>
  return %0 : tensor<?x4x8xf32>
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi64>, %pt: tensor<1x4xi32>, %c: !cache) {
  // expected-error @+1 {{failed to verify that all of {positions, sequences} have same type}}
  "kf.kv_append"(%c, %k, %k, %p, %s, %pt) <{layer = 0 : i64}> : (!cache, tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?xi32>, tensor<?xi64>, tensor<1x4xi32>) -> ()
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %pt: tensor<4xi32>, %c: !cache) -> tensor<?x4x8xf32> {
  // expected-error @+1 {{C9: page_table must be [S, P] of i32, P static, found 'tensor<4xi32>'}}
  %0 = kf.attention %q, %c, %p, %s, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<4xi32>
  return %0 : tensor<?x4x8xf32>
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %pt: tensor<1x?xi32>, %c: !cache) -> tensor<?x4x8xf32> {
  // expected-error @+1 {{C9: page_table must be [S, P] of i32, P static, found 'tensor<1x?xi32>'}}
  %0 = kf.attention %q, %c, %p, %s, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x?xi32>
  return %0 : tensor<?x4x8xf32>
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%k: tensor<?x2x8xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %pt: tensor<1x4xi64>, %c: !cache) {
  // expected-error @+1 {{C5: page_table must be [S, P] of i32, P static, found 'tensor<1x4xi64>'}}
  kf.kv_append %c, %k, %k, %p, %s, %pt {layer = 0 : i64} : !cache, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x4xi64>
  return
}

// -----

!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 8, type = f32>
func.func @f(%q: tensor<?x4x8xf32>, %c: !cache, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{C10: sinks must be [4] of a float type, found 'tensor<2xf32>'}}
  %0 = kf.attention %q, %c, %p, %sp, %pt sinks(%s : tensor<2xf32>) {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x4x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}

// -----

func.func @f(%m: tensor<?x4x3xf32>, %v: tensor<?x4x3x8xf32>, %s: tensor<4xi32>) {
  // expected-error @+1 {{C4: sinks must be [4] of a float type, found 'tensor<4xi32>'}}
  %0 = kf.attention_combine %m, %m, %v sinks(%s : tensor<4xi32>) : tensor<?x4x3xf32>, tensor<?x4x3x8xf32>
  return
}
