// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v3 --kf-select-schedules -split-input-file -verify-diagnostics
// RUN: not kf-opt %s --kf-set-target=target="#kf.cpu_target<cpu=\"native\",lanes=12>" 2>&1 | FileCheck %s

// RUN: not kf-opt %s --kf-set-target="target=#kf.cpu_target<cpu=\"native\",workers=-1>" 2>&1 | FileCheck %s --check-prefix=WORKERS
// RUN: not kf-opt %s --kf-set-target="target=#kf.cpu_target<cpu=\"native\",lanes=8,amx=true>" 2>&1 | FileCheck %s --check-prefix=AMX
// RUN: not kf-opt %s --kf-set-target="target=#kf.cpu_target<cpu=\"native\",lanes=8,bf16_dot=true>" 2>&1 | FileCheck %s --check-prefix=PAIRS

// RUN: not kf-opt %S/Inputs/signed-bytes.mlir --kf-set-target=target=cpu:icelake-server --kf-select-schedules 2>&1 | FileCheck %s --check-prefix=SIGNED
// RUN: not kf-opt %S/Inputs/signed-bytes.mlir --kf-set-target=target=cpu:knl --kf-select-schedules 2>&1 | FileCheck %s --check-prefix=NO-BYTES

// SIGNED: error: schedule cannot run on this CPU: dot = s8 is for CPUs that want a sign on codes of 8 bits; dot = i8 is this one's
// NO-BYTES: error: schedule cannot run on this CPU: dot = s8 needs int8_dot of the target
// AMX: cpu_target: amx needs lanes = 16, found 8
// PAIRS: cpu_target: bf16_dot needs lanes = 16, found 8
// CHECK: cpu_target: lanes must be 4, 8 or 16, found 12
// WORKERS: cpu_target: workers must be in [0, 65536], found -1

// expected-error @+1 {{schedule cannot run on this CPU: lanes = 16 exceeds the register's 8}}
kf.kernel @wide(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 16>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: it is no #kf.vector}}
kf.kernel @threads(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.simt<workgroup = [1], threads = [64]>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: a matmul needs tile = [rows, columns]}}
kf.kernel @no_tile(%x: tensor<4x64xf32>, %w: tensor<32x64xf32>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32]>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64xf32>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: tile columns must be a multiple of lanes}}
kf.kernel @columns(%x: tensor<4x64xf32>, %w: tensor<32x64xf32>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 24], tile = [4, 12], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64xf32>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: tile and accumulators need 512 vector registers; 32 are there, and 256 are accepted}}
kf.kernel @registers(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 64], tile = [64, 64], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<64x64xf32>
  kf.yield %0 : tensor<64x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: tile and unroll make 8192 products of vectors a step; at most 4096 are accepted}}
kf.kernel @products(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 64], tile = [16, 64], lanes = 8, unroll = 64>} {
  %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<64x64xf32>
  kf.yield %0 : tensor<64x64xf32>
}

// -----

// Blocks of 32 elements are unrolled.
// expected-error @+1 {{schedule cannot run on this CPU: tile and unroll make 8192 products of vectors a step; at most 4096 are accepted}}
kf.kernel @block_products(%x: tensor<64x64xf32>, %w: tensor<64x64x!kf.quant<q8_0>>) -> tensor<64x64xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 64], tile = [32, 64], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<64x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<64x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: tile and reduction need 264 vector registers; 32 are there, and 256 are accepted}}
kf.kernel @query_registers(%q: tensor<?x4x32xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = f32, key_block = 8>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 4], tile = [33], reduction = 64, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x32xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 32, type = f32, key_block = 8>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: dot = i8 multiplies codes of 8 bits without a sign, which pmaddubsw does not; dot = s8 does with one}}
kf.kernel @int8(%x: tensor<4x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 16], tile = [4, 16], lanes = 8, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: unroll must be 1 for block-quantized weights, whose blocks are unrolled whole}}
kf.kernel @unrolled_blocks(%x: tensor<4x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 16], tile = [4, 16], lanes = 8, unroll = 2>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: a matmul's reduction is not tiled; reduction must be 0}}
kf.kernel @reduction(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 16], tile = [4, 16], reduction = 32, lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup columns (24) must be a multiple of tile columns (16)}}
kf.kernel @group_columns(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 24], tile = [4, 16], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup rows must be given, as their number is dynamic}}
kf.kernel @dynamic_rows(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 32], tile = [4, 16], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: prefetch is for matmuls}}
kf.kernel @prefetched_softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 8, prefetch = once>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: unroll is for matmuls}}
kf.kernel @unrolled_softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 8, unroll = 2>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: reduction is for matmuls and attention}}
kf.kernel @blocks_of_softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], reduction = 16, lanes = 8>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: batch_matmul needs tile = [rows], 1 to 16}}
kf.kernel @batch_columns(%x: tensor<2x4x16xf32>, %w: tensor<2x32x16xf32>) -> tensor<2x4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 4], tile = [4, 64], lanes = 8>} {
  %0 = kf.batch_matmul %x, %w : tensor<2x4x16xf32>, tensor<2x32x16xf32>
  kf.yield %0 : tensor<2x4x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: tile is for matmuls, batch_matmul and attention}}
kf.kernel @tiled_softmax(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], tile = [1], lanes = 8>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: attention needs tile = [query rows] or [query rows, those of one token]}}
kf.kernel @query_rows(%q: tensor<?x4x16xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], reduction = 64, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: attention needs a reduction that divides the cache's page (64) and is a multiple of lanes, found 48}}
kf.kernel @keys(%q: tensor<?x4x16xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [4], reduction = 48, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup heads (1) must be the 2 that share a KV head}}
kf.kernel @heads(%q: tensor<?x4x16xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 8>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 1], tile = [4], reduction = 64, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 8>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup rows (24) must be a multiple of the layout's panel (16)}}
kf.kernel @pack(%w: tensor<96x64xf32>) -> tensor<96x64xf32, #kf.layout<panel = 16>>
    attributes {schedule = #kf.vector<workgroup = [24]>} {
  %0 = kf.pack %w : tensor<96x64xf32> to tensor<96x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<96x64xf32, #kf.layout<panel = 16>>
}

// -----

// A panel that is no multiple of the vector's lanes has no register tile.
// expected-error @+1 {{schedule cannot run on this CPU: tile columns must be a multiple of lanes}}
kf.kernel @packed(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 12>>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 12>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

!packed = tensor<64x64xf32, #kf.layout<panel = 16>>
// expected-error @+1 {{schedule cannot run on this CPU: tile columns (32) must be the panel of the weight's layout (16)}}
kf.kernel @panel(%x: tensor<4x64xf32>, %w: !packed) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 64], tile = [4, 32], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, !packed
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: lanes (8) must be the cache's key_block (16), which kf-set-layouts makes those of the target}}
kf.kernel @key_block(%q: tensor<?x4x16xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [2], reduction = 64, lanes = 8>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: lanes (8) must be those that interleave the weight's layout (16)}}
kf.kernel @interleave(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [1, 32], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup splits (2) must be 1}}
kf.kernel @splits(%q: tensor<?x4x16xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 8>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> (tensor<?x4x4xf32>, tensor<?x4x4xf32>, tensor<?x4x4x16xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2, 2], tile = [2], reduction = 64, lanes = 8>} {
  %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(4) {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 8>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %m, %t, %o : tensor<?x4x4xf32>, tensor<?x4x4xf32>, tensor<?x4x4x16xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: dot = s8 is for codes of 8 bits; dot = i8 takes others}}
kf.kernel @signed_nibbles(%x: tensor<4x64xf32>, %w: tensor<32x64x!kf.quant<q4_0>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [2, 16], lanes = 8, dot = s8>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64x!kf.quant<q4_0>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: dot = bf16 needs amx of the target}}
kf.kernel @tiles(%x: tensor<64x64xf32>, %w: tensor<32x64xbf16>) -> tensor<64x32xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 32], tile = [32, 32], lanes = 8, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<32x64xbf16>
  kf.yield %0 : tensor<64x32xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: dot = bf16_pairs needs bf16_dot of the target}}
kf.kernel @pairs(%x: tensor<64x64xf32>, %w: tensor<32x64xbf16>) -> tensor<64x32xf32>
    attributes {schedule = #kf.vector<workgroup = [64, 32], tile = [4, 32], lanes = 8, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<64x64xf32>, tensor<32x64xbf16>
  kf.yield %0 : tensor<64x32xf32>
}

// -----

//===----------------------------------------------------------------------===//
// kernels without code, whatever their schedule
//===----------------------------------------------------------------------===//

kf.kernel @i4(%x: tensor<?x64xi8>) -> tensor<?x64xi8> {
  // expected-error @+1 {{no CPU kernel for 'arith.trunci' on 'tensor<?x64xi4>'; elements are f16, bf16, f32 and f64, and integers of 1, 8, 16, 32 and 64 bits}}
  %0 = arith.trunci %x : tensor<?x64xi8> to tensor<?x64xi4>
  %1 = arith.extsi %0 : tensor<?x64xi4> to tensor<?x64xi8>
  kf.yield %1 : tensor<?x64xi8>
}

// -----

kf.kernel @indices(%x: tensor<?x64xindex>) -> tensor<?x64xindex> {
  // expected-error @+1 {{no CPU kernel for 'arith.addi' on 'tensor<?x64xindex>'; elements are}}
  %0 = arith.addi %x, %x : tensor<?x64xindex>
  kf.yield %0 : tensor<?x64xindex>
}

// -----

kf.kernel @other_float8(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{no CPU kernel for 'arith.truncf' on 'tensor<?x64xf8E5M2>'; elements are}}
  %0 = arith.truncf %x : tensor<?x64xf32> to tensor<?x64xf8E5M2>
  %1 = arith.extf %0 : tensor<?x64xf8E5M2> to tensor<?x64xf32>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

// The op that a person wrote, not one of a tile. A schedule changes nothing.
kf.kernel @float8(%x: tensor<?x64xf8E4M3FN>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 8>} {
  // expected-error @+1 {{no CPU kernel for 'arith.extf' on f8E4M3FN, which only the weights of kf.matmul are; have others in bf16}}
  %0 = arith.extf %x : tensor<?x64xf8E4M3FN> to tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

kf.kernel @dequantize(%x: tensor<4x64x!kf.quant<q8_0>>) -> tensor<4x64xf32> {
  // expected-error @+1 {{no CPU kernel for 'kf.dequantize' yet; use --device=reference}}
  %0 = kf.dequantize %x : tensor<4x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @outliers(%x: tensor<?x64xf16>, %o: tensor<?x64xf32>, %w: tensor<96x64xf16>) -> tensor<?x96xf32> {
  // expected-error @+1 {{no CPU kernel for outliers of rows; give it the rows in f32}}
  %0 = kf.matmul %x outliers(%o : tensor<?x64xf32>), %w wide : tensor<?x64xf16>, tensor<96x64xf16>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @round_half(%x: tensor<?x64xf32>) -> (tensor<?x64xf16>, tensor<?x64xf32>) {
  // expected-error @+1 {{no CPU kernel for 'kf.round_half' yet; products read rows<f32>, rows<bf16> or, where weights have blocks, rows<i8> here; --device=reference has rows<f16>}}
  %h, %o = kf.round_half %x : tensor<?x64xf32>
  kf.yield %h, %o : tensor<?x64xf16>, tensor<?x64xf32>
}

// -----

// expected-error @+1 {{no CPU kernel with 0 results}}
kf.kernel @nothing(%x: tensor<4xf32>) {
  kf.yield
}

// -----

kf.kernel @part_of_a_block(%ids: tensor<?xi32>, %table: tensor<50x96x!kf.quant<q4_0>>) -> tensor<?x64xf32> {
  // expected-error @+1 {{no CPU kernel for a slice of 'tensor<50x96x!kf.quant<q4_0>>' whose columns do not begin with a block of 32; slice what is read from it instead}}
  %0 = tensor.extract_slice %table[0, 8] [50, 64] [1, 1] : tensor<50x96x!kf.quant<q4_0>> to tensor<50x64x!kf.quant<q4_0>>
  %1 = kf.embedding %ids, %0 : tensor<?xi32>, tensor<50x64x!kf.quant<q4_0>>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32, key_block = 8>
kf.kernel @append_with_attention(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %c: !layer, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<3x8xi32>) -> tensor<?x4x32xf32> {
  // expected-error @+1 {{no CPU kernel for attention to '!kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32, key_block = 8>' with an append; append in a kernel of its own}}
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !layer, tensor<?x2x32xf32>, tensor<?xi32>, tensor<3x8xi32>
  %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x4x32xf32>, !layer, tensor<?xi32>, tensor<3x8xi32>
  kf.yield %0 : tensor<?x4x32xf32>
}

// -----

//===----------------------------------------------------------------------===//
// what ops of a kernel read of one another
//===----------------------------------------------------------------------===//

kf.kernel @norm_of_product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = kf.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32>
  %1 = kf.activation(relu) %0 : tensor<4x8xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.softmax' that reads 'tensor<4x8xf32>' from 'kf.activation'; compute that in a kernel of its own}}
  %2 = kf.softmax %1 : tensor<4x8xf32>
  kf.yield %2 : tensor<4x8xf32>
}

// -----

kf.kernel @product_of_product(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = kf.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' beside 'kf.matmul'; form a kernel of each}}
  %1 = kf.matmul %0, %w : tensor<4x8xf32>, tensor<8x8xf32>
  kf.yield %1 : tensor<4x8xf32>
}

// -----

kf.kernel @product_and_row(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = kf.softmax %y : tensor<4x8xf32>
  %1 = kf.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32>
  // expected-error @+1 {{no CPU kernel for 'arith.addf' that reads 'tensor<4x8xf32>' from 'kf.softmax'}}
  %2 = arith.addf %1, %0 : tensor<4x8xf32>
  kf.yield %2 : tensor<4x8xf32>
}

// -----

kf.kernel @product_beside_the_result(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' that does not make the kernel's results, in their order; form kernels of other ops}}
  %0 = kf.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32>
  %1 = kf.softmax %x : tensor<4x8xf32>
  kf.yield %1 : tensor<4x8xf32>
}

// -----

kf.kernel @packed_here(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4x96xf32> {
  %0 = kf.pack %w : tensor<96x64xf32> to tensor<96x64xf32, #kf.layout<panel = 32>>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' beside 'kf.pack'; form a kernel of each}}
  %1 = kf.matmul %x, %0 : tensor<4x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<4x96xf32>
}

// -----

kf.kernel @packed_for_gpus(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.fragments>) -> tensor<?x96xf32> {
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' on 'tensor<96x64xf32, #kf.fragments>' yet; use --device=reference}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @scales_of_other_rows(%x: tensor<4x64xi8>, %s: tensor<8x2xf32>, %t: tensor<4x2xi32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<4x96xf32> {
  %0 = tensor.extract_slice %s[4, 0] [4, 2] [1, 1] : tensor<8x2xf32> to tensor<4x2xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' of codes, scales and sums that are not the same whole rows of arguments; slice what kf.quantize_rows reads instead}}
  %1 = kf.matmul %x scales(%0 : tensor<4x2xf32>) sums(%t : tensor<4x2xi32>), %w : tensor<4x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<4x96xf32>
}

// -----

// A weight that is a row: it is read while the statistics are of another row.
kf.kernel @computed_norm(%x: tensor<4x64xf32>, %y: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = kf.softmax %y : tensor<4x64xf32>
  // expected-error @+1 {{no CPU kernel for 'tensor.extract_slice' that reads 'tensor<4x64xf32>' from 'kf.softmax'}}
  %1 = tensor.extract_slice %0[0, 0] [1, 64] [1, 1] : tensor<4x64xf32> to tensor<64xf32>
  %2 = kf.rms_norm %x, %1 eps(1.0e-5) : tensor<4x64xf32>, tensor<64xf32>
  kf.yield %2 : tensor<4x64xf32>
}

// -----

kf.kernel @computed_scale(%x: tensor<64xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
  %0 = kf.softmax %w : tensor<64xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.layer_norm' that reads 'tensor<64xf32>' from 'kf.softmax'}}
  %1 = kf.layer_norm %x, %0 eps(1.0e-5) : tensor<64xf32>, tensor<64xf32>
  kf.yield %1 : tensor<64xf32>
}

// -----

kf.kernel @reduced_rows(%x: tensor<?x4x16xf32>) -> tensor<?x4xf32> {
  %0 = kf.softmax %x : tensor<?x4x16xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.reduce' that reads 'tensor<?x4x16xf32>' from 'kf.softmax'; compute that in a kernel of its own}}
  %1 = kf.reduce(sum) %0 dims = [2] : tensor<?x4x16xf32>
  kf.yield %1 : tensor<?x4xf32>
}

// -----

kf.kernel @computed_weight(%x: tensor<?x4x16xf32>, %w: tensor<?x8x16xf32>) -> tensor<?x4x8xf32> {
  %0 = kf.softmax %w : tensor<?x8x16xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.batch_matmul' that reads 'tensor<?x8x16xf32>' from 'kf.softmax'}}
  %1 = kf.batch_matmul %x, %0 : tensor<?x4x16xf32>, tensor<?x8x16xf32>
  kf.yield %1 : tensor<?x4x8xf32>
}

// -----

kf.kernel @computed_parts(%m: tensor<?x4x8xf32>, %v: tensor<?x4x8x16xf32>) -> tensor<?x4x16xf32> {
  %0 = kf.softmax %m : tensor<?x4x8xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.attention_combine' that reads 'tensor<?x4x8xf32>' from 'kf.softmax'}}
  %1 = kf.attention_combine %m, %0, %v : tensor<?x4x8xf32>, tensor<?x4x8x16xf32>
  kf.yield %1 : tensor<?x4x16xf32>
}

// -----

!narrow = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 8>
kf.kernel @attention_is_not_the_result(%q: tensor<?x2x16xf32>, %c: !narrow, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x16xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x16xf32>, !narrow, tensor<?xi32>, tensor<1x4xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.activation' that reads 'tensor<?x2x16xf32>' from 'kf.attention'; compute that in a kernel of its own}}
  %1 = kf.activation(relu) %0 : tensor<?x2x16xf32>
  kf.yield %1 : tensor<?x2x16xf32>
}

// -----

kf.kernel @computed_settings(%x: tensor<?x40xf32>, %t: tensor<?x4xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
  %0 = kf.reduce(max) %t dims = [1] : tensor<?x4xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.sample' that reads 'tensor<?xf32>' from 'kf.reduce'}}
  %1 = kf.sample %x temperature(%0) top_k(%i) top_p(%0) min_p(%0) seed(%s) counter(%i)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %1 : tensor<?xi32>
}

// -----

kf.kernel @constant_elsewhere(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{no CPU kernel for a constant whose elements are elsewhere; write dense<...>}}
  %c = arith.constant dense_resource<none> : tensor<2xf32>
  %0 = arith.addf %x, %c : tensor<2xf32>
  kf.yield %0 : tensor<2xf32>
}

// -----

kf.kernel @constant_ids(%t: tensor<8x4xf32>) -> tensor<1x4xf32> {
  %c = arith.constant dense<3> : tensor<1xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.embedding' that reads 'tensor<1xi32>' from 'arith.constant'; compute that in a kernel of its own}}
  %0 = kf.embedding %c, %t : tensor<1xi32>, tensor<8x4xf32>
  kf.yield %0 : tensor<1x4xf32>
}

// -----

kf.kernel @computed_ids(%i: tensor<1x2xi32>, %t: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.collapse_shape %i [[0, 1]] : tensor<1x2xi32> into tensor<2xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.embedding' that reads 'tensor<2xi32>' from 'tensor.collapse_shape'}}
  %1 = kf.embedding %0, %t : tensor<2xi32>, tensor<8x4xf32>
  kf.yield %1 : tensor<2x4xf32>
}

// -----

kf.kernel @strided_ids(%i: tensor<4xi32>, %t: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.extract_slice %i[0] [2] [2] : tensor<4xi32> to tensor<2xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.embedding' that reads 'tensor<2xi32>' from 'tensor.extract_slice'}}
  %1 = kf.embedding %0, %t : tensor<2xi32>, tensor<8x4xf32>
  kf.yield %1 : tensor<2x4xf32>
}

// -----

// Rows that follow one another are the argument's.
kf.kernel @some_ids(%i: tensor<4xi32>, %t: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %0 = tensor.extract_slice %i[1] [2] [1] : tensor<4xi32> to tensor<2xi32>
  %1 = kf.embedding %0, %t : tensor<2xi32>, tensor<8x4xf32>
  kf.yield %1 : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{schedule cannot run on this CPU: workgroup places (2) must divide the experts of a row (3)}}
kf.kernel @expert_places(%x: tensor<?x64xf32>, %e: tensor<?x3xi32>, %w: tensor<1x4x32x64xf32>) -> tensor<?x3x32xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2, 32], tile = [2, 16, 6], lanes = 8>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x3xi32>, tensor<1x4x32x64xf32>
  kf.yield %0 : tensor<?x3x32xf32>
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
// expected-error @+1 {{schedule cannot run on this CPU: gated_delta needs workgroup = [1, 1], a sequence and a head}}
kf.kernel @delta(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 2], lanes = 8>} {
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}
