!cache = !kf.state_cache<layers = 2, heads = 4, elements = 136, slot_pages = 2>
!wide = !kf.state_cache<layers = 1, heads = 3, elements = 608, slot_pages = 4>
!parts = !kf.state_cache<layers = 1, heads = 4, elements = 1064, slot_pages = 2>
!tall = !kf.state_cache<layers = 1, heads = 1, elements = 9916, slot_pages = 4>
!narrow = !kf.state_cache<layers = 1, heads = 2, elements = 54, slot_pages = 1>

func.func @delta(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<?x4x8xf32> attributes {kf.max_tokens = 100 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 1 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<1xi32>
  return %0 : tensor<?x4x8xf32>
}

func.func @delta_one(%q: tensor<1x2x8xf32>, %k: tensor<1x2x8xf32>, %v: tensor<1x4x8xf32>, %a: tensor<1x4xf32>, %b: tensor<1x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<1xi32>, %sp: tensor<1xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<1x4x8xf32> {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<1x2x8xf32>, tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<1xi32>, tensor<1xi32>
  return %0 : tensor<1x4x8xf32>
}

// Rows of two sequences, in turn.
func.func @delta_sequences(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<64x1x4xbf16>, %d: tensor<4xf32>, %i: tensor<4xbf16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<2xi32>, %c: !cache) -> tensor<?x4x8xf32> attributes {kf.max_tokens = 100 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 1 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xbf16>, tensor<4xf32>, tensor<4xbf16>, !cache, tensor<?xi32>, tensor<2xi32>
  return %0 : tensor<?x4x8xf32>
}

// What one has left in the cache, another goes on from.
func.func @delta_goes_on(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<?xi32>, %later: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<2xi32>, %c: !cache) -> (tensor<?x4x8xf32>, tensor<?x4x8xf32>) attributes {kf.max_tokens = 64 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 1 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<2xi32>
  %1 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %later, %sp, %s {layer = 1 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<2xi32>
  return %0, %1 : tensor<?x4x8xf32>, tensor<?x4x8xf32>
}

// Heads that no vector fits, and rows of 16 bits.
func.func @delta_wide(%q: tensor<?x3x20xf16>, %k: tensor<?x3x20xf16>, %v: tensor<?x3x24xf16>, %a: tensor<?x3xf16>, %b: tensor<?x3xf16>, %w: tensor<192x1x3xf32>, %d: tensor<3xf32>, %i: tensor<3xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<1xi32>, %c: !wide) -> tensor<?x3x24xf16> attributes {kf.max_tokens = 40 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x3x20xf16>, tensor<?x3x24xf16>, tensor<?x3xf16>, tensor<192x1x3xf32>, tensor<3xf32>, tensor<3xf32>, !wide, tensor<?xi32>, tensor<1xi32>
  return %0 : tensor<?x3x24xf16>
}

// One key head for all, and parts of one product's columns.
func.func @delta_views(%x: tensor<?x24xf32>, %ab: tensor<?x4xf32>, %w: tensor<24x1x2xf32>, %d: tensor<2xf32>, %i: tensor<2xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<1xi32>, %c: !narrow) -> tensor<?x2x6xf32> attributes {kf.max_tokens = 40 : i64} {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x24xf32>
  %qs = tensor.extract_slice %x[0, 0] [%n, 6] [1, 1] : tensor<?x24xf32> to tensor<?x6xf32>
  %ks = tensor.extract_slice %x[0, 6] [%n, 6] [1, 1] : tensor<?x24xf32> to tensor<?x6xf32>
  %vs = tensor.extract_slice %x[0, 12] [%n, 12] [1, 1] : tensor<?x24xf32> to tensor<?x12xf32>
  %q = tensor.expand_shape %qs [[0], [1, 2]] output_shape [%n, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %k = tensor.expand_shape %ks [[0], [1, 2]] output_shape [%n, 1, 6] : tensor<?x6xf32> into tensor<?x1x6xf32>
  %v = tensor.expand_shape %vs [[0], [1, 2]] output_shape [%n, 2, 6] : tensor<?x12xf32> into tensor<?x2x6xf32>
  %a = tensor.extract_slice %ab[0, 0] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %b = tensor.extract_slice %ab[0, 2] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x1x6xf32>, tensor<?x2x6xf32>, tensor<?x2xf32>, tensor<24x1x2xf32>, tensor<2xf32>, tensor<2xf32>, !narrow, tensor<?xi32>, tensor<1xi32>
  return %0 : tensor<?x2x6xf32>
}

// Columns that GPUs have several threads for, rows of two sequences in turn.
func.func @delta_parts(%q: tensor<?x2x40xf32>, %k: tensor<?x2x40xf32>, %v: tensor<?x4x24xf32>, %a: tensor<?x4xf32>, %b: tensor<?x4xf32>, %w: tensor<256x1x2xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<?xi32>, %later: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<2xi32>, %c: !parts) -> (tensor<?x4x24xf32>, tensor<?x4x24xf32>) attributes {kf.max_tokens = 40 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x2x40xf32>, tensor<?x4x24xf32>, tensor<?x4xf32>, tensor<256x1x2xf32>, tensor<4xf32>, tensor<4xf32>, !parts, tensor<?xi32>, tensor<2xi32>
  %1 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %later, %sp, %s {layer = 0 : i64} : tensor<?x2x40xf32>, tensor<?x4x24xf32>, tensor<?x4xf32>, tensor<256x1x2xf32>, tensor<4xf32>, tensor<4xf32>, !parts, tensor<?xi32>, tensor<2xi32>
  return %0, %1 : tensor<?x4x24xf32>, tensor<?x4x24xf32>
}

// A head with more columns than a workgroup has threads.
func.func @delta_tall(%q: tensor<?x1x8xf32>, %k: tensor<?x1x8xf32>, %v: tensor<?x1x1100xf32>, %a: tensor<?x1xf32>, %b: tensor<?x1xf32>, %w: tensor<1116x1x2xf32>, %d: tensor<1xf32>, %i: tensor<1xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %s: tensor<1xi32>, %c: !tall) -> tensor<?x1x1100xf32> attributes {kf.max_tokens = 40 : i64} {
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<?x1x8xf32>, tensor<?x1x1100xf32>, tensor<?x1xf32>, tensor<1116x1x2xf32>, tensor<1xf32>, tensor<1xf32>, !tall, tensor<?xi32>, tensor<1xi32>
  return %0 : tensor<?x1x1100xf32>
}

// Gates whose exponentials overflow, and those that are infinite.
func.func @delta_large_gates(%q: tensor<6x2x8xf32>, %k: tensor<6x2x8xf32>, %v: tensor<6x4x8xf32>, %a: tensor<6x4xf32>, %b: tensor<6x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<6xi32>, %sp: tensor<6xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<6x4x8xf32> {
  %large = arith.constant dense<200.0> : tensor<6x4xf32>
  %as = arith.mulf %a, %large : tensor<6x4xf32>
  %bs = arith.mulf %b, %large : tensor<6x4xf32>
  %0 = kf.gated_delta %q, %k, %v, %as, %bs, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<6x2x8xf32>, tensor<6x4x8xf32>, tensor<6x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<6xi32>, tensor<1xi32>
  return %0 : tensor<6x4x8xf32>
}

func.func @delta_infinite_gates(%q: tensor<6x2x8xf32>, %k: tensor<6x2x8xf32>, %v: tensor<6x4x8xf32>, %a: tensor<6x4xf32>, %b: tensor<6x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<6xi32>, %sp: tensor<6xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<6x4x8xf32> {
  %huge = arith.constant dense<3.0e38> : tensor<6x4xf32>
  %as = arith.mulf %a, %huge : tensor<6x4xf32>
  %ai = arith.mulf %as, %huge : tensor<6x4xf32>
  %bs = arith.mulf %b, %huge : tensor<6x4xf32>
  %bi = arith.mulf %bs, %huge : tensor<6x4xf32>
  %0 = kf.gated_delta %q, %k, %v, %ai, %bi, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<6x2x8xf32>, tensor<6x4x8xf32>, tensor<6x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<6xi32>, tensor<1xi32>
  return %0 : tensor<6x4x8xf32>
}

// Nothing to divide by.
func.func @delta_zero_keys(%q: tensor<6x2x8xf32>, %k: tensor<6x2x8xf32>, %v: tensor<6x4x8xf32>, %a: tensor<6x4xf32>, %b: tensor<6x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<6xi32>, %sp: tensor<6xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<6x4x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x2x8xf32>
  %ks = arith.mulf %k, %zero : tensor<6x2x8xf32>
  %0 = kf.gated_delta %q, %ks, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<6x2x8xf32>, tensor<6x4x8xf32>, tensor<6x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<6xi32>, tensor<1xi32>
  return %0 : tensor<6x4x8xf32>
}

func.func @delta_zero_queries(%q: tensor<6x2x8xf32>, %k: tensor<6x2x8xf32>, %v: tensor<6x4x8xf32>, %a: tensor<6x4xf32>, %b: tensor<6x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %i: tensor<4xf32>, %p: tensor<6xi32>, %sp: tensor<6xi32>, %s: tensor<1xi32>, %c: !cache) -> tensor<6x4x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<6x2x8xf32>
  %qs = arith.mulf %q, %zero : tensor<6x2x8xf32>
  %0 = kf.gated_delta %qs, %k, %v, %a, %b, %w, %d, %i, %c, %p, %sp, %s {layer = 0 : i64} : tensor<6x2x8xf32>, tensor<6x4x8xf32>, tensor<6x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<6xi32>, tensor<1xi32>
  return %0 : tensor<6x4x8xf32>
}
