// RUN: kf-opt %s --split-input-file --verify-diagnostics

func.func @f(%q: tensor<?x16xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C1: q, k and v must be [T, heads, D] of float elements, the last two dimensions static, found 'tensor<?x16xf32>' and 'tensor<?x4x8xf32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x16xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xi8>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C1: q, k and v must be [T, heads, D] of float elements}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xi8>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x3x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C1: heads of v (3) must be a multiple of those of q and k (2)}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x3x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x3xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C2: a and b must be [T, 4] of a float type, found 'tensor<?x3xf32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x3xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C3: convolution must be [64, 1, taps] of a float type, with 2 to 16 taps, found 'tensor<64x4xf32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<60x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C3: convolution must be [64, 1, taps]}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<60x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x1xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C3: convolution must be [64, 1, taps]}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x1xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<2xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C4: decay and bias must be [4] of a float type, found 'tensor<2xf32>' and 'tensor<4xf32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<2xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 64, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C5: the cache must have 4 heads of 136 elements, found '!kf.state_cache<layers = 3, heads = 4, elements = 64, slot_pages = 32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 64, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C6: layer 3 is outside the cache's 3}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 3 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi64>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C7: positions must be i32, one for each row of q, v and a, found 'tensor<?xi64>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi64>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<2x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C7: positions must be i32, one for each row of q, v and a}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<2x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?x1xi32>, %t: index) {
  // expected-error @+1 {{C8: states must be [S] of i32, found 'tensor<?x1xi32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?x1xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: index) {
  // expected-error @+1 {{C9: tile must name a sequence and a head, found 1 entries}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %i, %c, %p, %p, %s tile(%t) {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x2x8xf32>, %v: tensor<?x32xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>, %s: tensor<1xi32>) {
  // expected-error @+1 {{C1: v must be [T, V, dv] of float elements, found 'tensor<?x32xf32>'}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x32xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<1xi32>
  return
}

// -----

// expected-error @+1 {{state_cache: every size must be in [1, 2147483647], found 0}}
func.func @f(%c: !kf.state_cache<layers = 3, heads = 0, elements = 136, slot_pages = 32>)

// -----

func.func @f(%c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>) {
  // expected-error @+1 {{C1: layer 3 is outside the cache's 3}}
  %0 = kf.cache_layer %c[3] : !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32> to !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>
  return
}

// -----

func.func @f(%c: !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>) {
  // expected-error @+1 {{C2: the result must be '!kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>', found '!kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 8, type = f32>'}}
  %0 = kf.cache_layer %c[1] : !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32> to !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 8, type = f32>
  return
}

// -----

func.func @f(%q: tensor<?x1x4294967296xf32>, %a: tensor<?x1xf32>, %w: tensor<12884901888x1x2xf32>, %d: tensor<1xf32>, %c: !kf.state_cache<layers = 1, heads = 1, elements = 136, slot_pages = 32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C5: the cache must have 1 heads of dk * dv + (taps - 1) * (2 * dk + dv) elements, found}}
  %0 = kf.gated_delta %q, %q, %q, %a, %a, %w, %d, %d, %c, %p, %p, %p {layer = 0 : i64} : tensor<?x1x4294967296xf32>, tensor<?x1x4294967296xf32>, tensor<?x1xf32>, tensor<12884901888x1x2xf32>, tensor<1xf32>, tensor<1xf32>, !kf.state_cache<layers = 1, heads = 1, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @f(%q: tensor<?x4x2305843009213693952xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<32x1x2xf32>, %d: tensor<4xf32>, %c: !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>, %p: tensor<?xi32>) {
  // expected-error @+1 {{C3: convolution must be [2 * K * dk + V * dv, 1, taps] of a float type}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %p {layer = 0 : i64} : tensor<?x4x2305843009213693952xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<32x1x2xf32>, tensor<4xf32>, tensor<4xf32>, !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32>
  return
}
