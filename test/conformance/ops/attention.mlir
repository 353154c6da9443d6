!cache = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32>
!wide = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 40, type = f32>
!wider = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 1030, type = f32>
!blocks = !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = !kf.quant<q8_0>>
!wide_blocks = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 544, type = !kf.quant<q8_0>>

func.func @grouped(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.17 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

func.func @window(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 128 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.17 : f32, window = 8 : i64} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

// Chunks that are no multiple of a tile of keys.
func.func @chunks(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 128 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.17 : f32, window = 7 : i64, chunked} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

// Scores of 2 at most.
func.func @softcap(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 128 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.7 : f32, softcap = 2.0 : f32, window = 8 : i64} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

func.func @softcap_blocks(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !blocks) -> tensor<?x4x64xf32> attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !blocks, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 1.7 : f32, softcap = 2.0 : f32} : tensor<?x4x64xf32>, !blocks, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x64xf32>
}

func.func @softcap_half(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 16 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 1.1 : f32, softcap = 2.0 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x64xf32>
}

func.func @softcap_partial(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x32xf32>) attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 1 : i64, scale = 1.7 : f32, softcap = 2.0 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %m, %t, %o : tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
}

// One more score of each head, of no key.
func.func @sinks(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %s: tensor<4xf32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt sinks(%s : tensor<4xf32>) {layer = 1 : i64, scale = 0.17 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

func.func @sinks_window(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %s: tensor<4xbf16>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 128 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt sinks(%s : tensor<4xbf16>) {layer = 0 : i64, scale = 1.7 : f32, window = 8 : i64, softcap = 2.0 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

func.func @sinks_half(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %s: tensor<6xf32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt sinks(%s : tensor<6xf32>) {layer = 1 : i64, scale = 0.12 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x64xf32>
}

func.func @sinks_combined(%m: tensor<?x4x3xf32>, %t: tensor<?x4x3xf32>, %v: tensor<?x4x3x32xf32>, %s: tensor<4xf32>) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 20 : i64} {
  %c = arith.constant dense<2.0> : tensor<1xf32>
  %cb = kf.broadcast %c : tensor<1xf32> to tensor<?x4x3xf32>
  %total = arith.addf %t, %cb : tensor<?x4x3xf32>
  %made = kf.copy %total : tensor<?x4x3xf32>
  %0 = kf.attention_combine %m, %made, %v sinks(%s : tensor<4xf32>) : tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
  return %0 : tensor<?x4x32xf32>
}

func.func @wide_heads(%q: tensor<?x4x40xf32>, %k: tensor<?x1x40xf32>, %v: tensor<?x1x40xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !wide) -> tensor<?x4x40xf32> attributes {kf.max_tokens = 20 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !wide, tensor<?x1x40xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.158 : f32} : tensor<?x4x40xf32>, !wide, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x40xf32>
}

// So wide that columns are in a loop.
func.func @wider_heads(%q: tensor<?x2x1030xf32>, %k: tensor<?x1x1030xf32>, %v: tensor<?x1x1030xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !wider) -> tensor<?x2x1030xf32> attributes {kf.max_tokens = 20 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !wider, tensor<?x1x1030xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.03 : f32} : tensor<?x2x1030xf32>, !wider, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x2x1030xf32>
}

func.func @rotated(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %g: tensor<32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 40 : i64} {
  %qn = kf.rms_norm %q, %g eps(1.0e-6) : tensor<?x4x32xf32>, tensor<32xf32>
  %kn = kf.rms_norm %k, %g eps(1.0e-6) : tensor<?x2x32xf32>, tensor<32xf32>
  %qr = kf.rope %qn, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>
  %kr = kf.rope %kn, %p {rotary_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x2x32xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.17 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

// Elements behind the turned ones are as they were.
func.func @rotated_part(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> tensor<?x4x32xf32> attributes {kf.max_tokens = 40 : i64} {
  %a = arith.constant dense<2.0> : tensor<12xf32>
  %qr = kf.rope %q, %p factors(%a) {magnitude = 1.3 : f64, rotary_dim = 24 : i64, theta = 1.0e4 : f64} : tensor<?x4x32xf32>, tensor<?xi32>, tensor<12xf32>
  %kr = kf.rope %k, %p factors(%a) {magnitude = 1.3 : f64, rotary_dim = 24 : i64, theta = 1.0e4 : f64} : tensor<?x2x32xf32>, tensor<?xi32>, tensor<12xf32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.17 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x32xf32>
}

func.func @blocks(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !blocks) -> tensor<?x4x64xf32> attributes {kf.max_tokens = 100 : i64} {
  %kr = kf.rope %k, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x2x64xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !blocks, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.17 : f32, window = 70 : i64} : tensor<?x4x64xf32>, !blocks, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x64xf32>
}

// Columns are in a loop, and some are left over.
func.func @wide_blocks(%q: tensor<?x2x544xf32>, %k: tensor<?x1x544xf32>, %v: tensor<?x1x544xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !wide_blocks) -> tensor<?x2x544xf32> attributes {kf.max_tokens = 20 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !wide_blocks, tensor<?x1x544xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.04 : f32} : tensor<?x2x544xf32>, !wide_blocks, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x2x544xf32>
}

// Parts of the keys: pages 0 and 1 of a row at position 99 are two parts of
// three, with one behind them that is empty.
func.func @partial(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) -> (tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x32xf32>) attributes {kf.max_tokens = 100 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(3) {layer = 1 : i64, scale = 0.17 : f32} : tensor<?x4x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %m, %t, %o : tensor<?x4x3xf32>, tensor<?x4x3xf32>, tensor<?x4x3x32xf32>
}

func.func @partial_window(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !blocks) -> tensor<?x4x64xf32> attributes {kf.max_tokens = 200 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !blocks, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %qr = kf.rope %q, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x4x64xf32>, tensor<?xi32>
  %m, %t, %o = kf.attention_partial %qr, %c, %p, %sp, %pt splits(2) {layer = 1 : i64, scale = 0.17 : f32, window = 70 : i64} : tensor<?x4x64xf32>, !blocks, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention_combine %m, %t, %o : tensor<?x4x2xf32>, tensor<?x4x2x64xf32>
  return %0 : tensor<?x4x64xf32>
}

// Chunks of more than a page.
func.func @chunks_half(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 200 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.17 : f32, window = 70 : i64, chunked} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x64xf32>
}

func.func @partial_chunks(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !blocks) -> tensor<?x4x64xf32> attributes {kf.max_tokens = 200 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !blocks, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) {layer = 1 : i64, scale = 0.17 : f32, window = 70 : i64, chunked} : tensor<?x4x64xf32>, !blocks, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention_combine %m, %t, %o : tensor<?x4x2xf32>, tensor<?x4x2x64xf32>
  return %0 : tensor<?x4x64xf32>
}

// Made of any numbers, more parts than a vector has lanes.
func.func @combine(%m: tensor<?x3x21xf32>, %t: tensor<?x3x21xf32>, %v: tensor<?x3x21x40xf32>) -> tensor<?x3x40xf32> attributes {kf.max_tokens = 9 : i64} {
  %w = kf.activation(gelu) %t : tensor<?x3x21xf32>
  %n = math.exp %w : tensor<?x3x21xf32>
  %0 = kf.attention_combine %m, %n, %v : tensor<?x3x21xf32>, tensor<?x3x21x40xf32>
  return %0 : tensor<?x3x40xf32>
}

// What matrix units multiply, in heads of all widths; few rows and many.
func.func @half_few(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 16 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x64xf32>
}

// Each of two ways of computing takes the statistics of its own rows.
func.func @half_normed(%q: tensor<?x4x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %g: tensor<64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x4x64xf32> attributes {kf.max_tokens = 16 : i64} {
  %qn = kf.rms_norm %q, %g eps(1.0e-6) : tensor<?x4x64xf32>, tensor<64xf32>
  %qr = kf.rope %qn, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x4x64xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x2x64xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x64xf32>
}

func.func @half_wide_few(%q: tensor<?x4x256xf32>, %k: tensor<?x2x256xf32>, %v: tensor<?x2x256xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>) -> tensor<?x4x256xf32> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x4x256xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 256 : i64, theta = 1.0e4 : f64} : tensor<?x2x256xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>, tensor<?x2x256xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x256xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x256xf32>
}

func.func @half_many(%q: tensor<?x8x128xf32>, %k: tensor<?x2x128xf32>, %v: tensor<?x2x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>) -> tensor<?x8x128xf32> attributes {kf.max_tokens = 150 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>, tensor<?x2x128xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x8x128xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x8x128xf32>
}

func.func @half_odd_width(%q: tensor<?x4x80xf32>, %k: tensor<?x2x80xf32>, %v: tensor<?x2x80xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 80, type = f16>) -> tensor<?x4x80xf32> attributes {kf.max_tokens = 70 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 80, type = f16>, tensor<?x2x80xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32, window = 40 : i64} : tensor<?x4x80xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 80, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x80xf32>
}

func.func @half_wide(%q: tensor<?x4x256xf32>, %k: tensor<?x2x256xf32>, %v: tensor<?x2x256xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>) -> tensor<?x4x256xf32> attributes {kf.max_tokens = 70 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>, tensor<?x2x256xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.07 : f32} : tensor<?x4x256xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 256, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x256xf32>
}

func.func @brain_few(%q: tensor<?x4x96xf32>, %k: tensor<?x4x96xf32>, %v: tensor<?x4x96xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 96, type = bf16>) -> tensor<?x4x96xf32> attributes {kf.max_tokens = 5 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 96, type = bf16>, tensor<?x4x96xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x96xf32>, !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 96, type = bf16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x96xf32>
}

func.func @brain_many(%q: tensor<?x9x64xf32>, %k: tensor<?x1x64xf32>, %v: tensor<?x1x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 64, type = bf16>) -> tensor<?x9x64xf32> attributes {kf.max_tokens = 90 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 64, type = bf16>, tensor<?x1x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x9x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 64, type = bf16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x9x64xf32>
}

func.func @brain_narrow(%q: tensor<?x4x24xf32>, %k: tensor<?x2x24xf32>, %v: tensor<?x2x24xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 24, type = bf16>) -> tensor<?x4x24xf32> attributes {kf.max_tokens = 40 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 24, type = bf16>, tensor<?x2x24xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x24xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 24, type = bf16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x24xf32>
}

func.func @brain_one_head(%q: tensor<?x12x128xf32>, %k: tensor<?x1x128xf32>, %v: tensor<?x1x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = bf16>) -> tensor<?x12x128xf32> attributes {kf.max_tokens = 5 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = bf16>, tensor<?x1x128xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x12x128xf32>, !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = bf16>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x12x128xf32>
}

func.func @codes_few(%q: tensor<?x4x128xf32>, %k: tensor<?x1x128xf32>, %v: tensor<?x1x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>) -> tensor<?x4x128xf32> attributes {kf.max_tokens = 5 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>, tensor<?x1x128xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x128xf32>, !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x4x128xf32>
}

func.func @codes_many(%q: tensor<?x6x96xf32>, %k: tensor<?x3x96xf32>, %v: tensor<?x3x96xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 3, head_dim = 96, type = !kf.quant<q8_0>>) -> tensor<?x6x96xf32> attributes {kf.max_tokens = 130 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 3, head_dim = 96, type = !kf.quant<q8_0>>, tensor<?x3x96xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32, window = 100 : i64} : tensor<?x6x96xf32>, !kf.kv_cache<layers = 2, kv_heads = 3, head_dim = 96, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x96xf32>
}

// Rounded as a product of rows takes it: in attention's kernel.
func.func @half_rounded(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf16> attributes {kf.max_tokens = 16 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x6x64xf32>, tensor<?xi32>
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x4xi32>
  %1 = arith.truncf %0 : tensor<?x6x64xf32> to tensor<?x6x64xf16>
  return %1 : tensor<?x6x64xf16>
}

func.func @brain_rounded(%q: tensor<1x4x40xf32>, %k: tensor<1x1x40xf32>, %v: tensor<1x1x40xf32>, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x4xi32>, %c: !wide) -> tensor<1x4x40xbf16> attributes {kf.max_tokens = 1 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 0 : i64} : !wide, tensor<1x1x40xf32>, tensor<1xi32>, tensor<1x4xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.158 : f32} : tensor<1x4x40xf32>, !wide, tensor<1xi32>, tensor<1x4xi32>
  %1 = arith.truncf %0 : tensor<1x4x40xf32> to tensor<1x4x40xbf16>
  return %1 : tensor<1x4x40xbf16>
}

func.func @combine_rounded(%m: tensor<?x3x21xf32>, %t: tensor<?x3x21xf32>, %v: tensor<?x3x21x40xf32>) -> tensor<?x3x40xf16> attributes {kf.max_tokens = 9 : i64} {
  %n = math.exp %t : tensor<?x3x21xf32>
  %0 = kf.attention_combine %m, %n, %v : tensor<?x3x21xf32>, tensor<?x3x21x40xf32>
  %1 = arith.truncf %0 : tensor<?x3x40xf32> to tensor<?x3x40xf16>
  return %1 : tensor<?x3x40xf16>
}

// Rows of two sequences in turn, each of which has keys of its own.
func.func @own_keys_half_70(%q: tensor<?x6x64xf32>, %k: tensor<?x2x64xf32>, %v: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>) -> tensor<?x6x64xf32> attributes {kf.max_tokens = 70 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?x2x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x6x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 64, type = f16>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x6x64xf32>
}

// The more workgroups there are, the fewer warps of each divide keys.
func.func @own_keys_half_256(%q: tensor<?x32x64xf32>, %k: tensor<?x8x64xf32>, %v: tensor<?x8x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 8, head_dim = 64, type = f16>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 256 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 8, head_dim = 64, type = f16>, tensor<?x8x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 8, head_dim = 64, type = f16>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x32x64xf32>
}

func.func @own_keys_half_rotated(%q: tensor<?x8x128xf32>, %k: tensor<?x2x128xf32>, %v: tensor<?x2x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>) -> tensor<?x8x128xf32> attributes {kf.max_tokens = 70 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 128 : i64, theta = 1.0e4 : f64} : tensor<?x8x128xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 128 : i64, theta = 1.0e4 : f64} : tensor<?x2x128xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>, tensor<?x2x128xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x8x128xf32>, !kf.kv_cache<layers = 2, kv_heads = 2, head_dim = 128, type = f16>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x8x128xf32>
}

// More heads than a warp has rows.
func.func @own_keys_brain_70(%q: tensor<?x20x96xf32>, %k: tensor<?x1x96xf32>, %v: tensor<?x1x96xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 96, type = bf16>) -> tensor<?x20x96xf32> attributes {kf.max_tokens = 70 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 96, type = bf16>, tensor<?x1x96xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x20x96xf32>, !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 96, type = bf16>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x20x96xf32>
}

func.func @own_keys_brain_256(%q: tensor<?x16x64xf32>, %k: tensor<?x16x64xf32>, %v: tensor<?x16x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 16, head_dim = 64, type = bf16>) -> tensor<?x16x64xf32> attributes {kf.max_tokens = 256 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 16, head_dim = 64, type = bf16>, tensor<?x16x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32, window = 40 : i64} : tensor<?x16x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 16, head_dim = 64, type = bf16>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x16x64xf32>
}

func.func @own_keys_codes_70(%q: tensor<?x4x128xf32>, %k: tensor<?x1x128xf32>, %v: tensor<?x1x128xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>) -> tensor<?x4x128xf32> attributes {kf.max_tokens = 70 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>, tensor<?x1x128xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x4x128xf32>, !kf.kv_cache<layers = 2, kv_heads = 1, head_dim = 128, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x4x128xf32>
}

func.func @own_keys_codes_256(%q: tensor<?x12x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x4x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>) -> tensor<?x12x64xf32> attributes {kf.max_tokens = 256 : i64} {
  kf.kv_append %c, %k, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32, window = 100 : i64} : tensor<?x12x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x12x64xf32>
}

func.func @own_keys_codes_rotated(%q: tensor<?x8x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x4x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x2xi32>, %c: !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>) -> tensor<?x8x64xf32> attributes {kf.max_tokens = 70 : i64} {
  %qr = kf.rope %q, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x8x64xf32>, tensor<?xi32>
  %kr = kf.rope %k, %p {rotary_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x4x64xf32>, tensor<?xi32>
  kf.kv_append %c, %kr, %v, %p, %sp, %pt {layer = 1 : i64} : !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?x4x64xf32>, tensor<?xi32>, tensor<2x2xi32>
  %0 = kf.attention %qr, %c, %p, %sp, %pt {layer = 1 : i64, scale = 0.11 : f32} : tensor<?x8x64xf32>, !kf.kv_cache<layers = 2, kv_heads = 4, head_dim = 64, type = !kf.quant<q8_0>>, tensor<?xi32>, tensor<2x2xi32>
  return %0 : tensor<?x8x64xf32>
}
