// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector)' \
// RUN:   -split-input-file -verify-diagnostics
// RUN: not kf-opt %s --convert-kf-to-vector -split-input-file 2>&1 | FileCheck %s

// CHECK: error: convert-kf-to-vector: kernel is not tiled; run kf-tile-kernels first

kf.kernel @quantize(%x: tensor<4x64xf32>) -> tensor<4x64x!kf.quant<q8_0>>
    attributes {schedule = #kf.vector<lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for 'kf.quantize' yet; use --device=reference}}
  %0 = kf.quantize %x <q8_0> : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64x!kf.quant<q8_0>>
}

// -----

kf.kernel @dequantize(%x: tensor<4x64x!kf.quant<q8_0>>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for 'kf.dequantize' yet; use --device=reference}}
  %0 = kf.dequantize %x : tensor<4x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @blocks_not_packed(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  // expected-error @+1 {{convert-kf-to-vector: weight is not packed; run kf-set-layouts first}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = i8 is for matmuls with block-quantized weights}}
kf.kernel @dense_i8(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: rows of blocks are read in at most 16 lanes}}
kf.kernel @wide_blocks(%ids: tensor<?xi32>, %table: tensor<50x64x!kf.quant<q4_0>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 32>} {
  %0 = kf.embedding %ids, %table : tensor<?xi32>, tensor<50x64x!kf.quant<q4_0>>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

kf.kernel @part_of_a_block(%ids: tensor<?xi32>, %table: tensor<50x96x!kf.quant<q4_0>>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for a slice of 'tensor<50x96x!kf.quant<q4_0>>' whose columns do not begin with a block of 32; slice what is read from it instead}}
  %0 = tensor.extract_slice %table[0, 8] [50, 64] [1, 1] : tensor<50x96x!kf.quant<q4_0>> to tensor<50x64x!kf.quant<q4_0>>
  %1 = kf.embedding %ids, %0 : tensor<?xi32>, tensor<50x64x!kf.quant<q4_0>>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

kf.kernel @sample(%x: tensor<?x40xf32>, %t: tensor<?x1xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.softmax %t : tensor<?x1xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<?x1xf32> into tensor<?xf32>
  // expected-error @+1 {{no CPU kernel for 'tensor.extract_slice' that reads 'tensor<?xf32>' from 'tensor.collapse_shape'; compute that in a kernel of its own}}
  %2 = kf.sample %x temperature(%1) top_k(%i) top_p(%1) min_p(%1) seed(%s) counter(%i)
      : (tensor<?x40xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %2 : tensor<?xi32>
}

// -----

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

kf.kernel @not_packed(%x: tensor<?x64xf32>, %w: tensor<96x64xf32>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  // expected-error @+1 {{convert-kf-to-vector: weight is not packed; run kf-set-layouts first}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @packed_for_gpus(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.fragments>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' on 'tensor<32x64xf32, #kf.fragments>' yet; use --device=reference}}
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.fragments>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @packed_here(%x: tensor<4x64xf32>, %w: tensor<96x64xf32>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  %0 = kf.pack %w : tensor<96x64xf32> to tensor<96x64xf32, #kf.layout<panel = 32>>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' beside 'kf.pack'; form a kernel of each}}
  %1 = kf.matmul %x, %0 : tensor<4x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: a matmul needs tile = [rows, columns]}}
kf.kernel @no_tile(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: tile columns (32) must be the panel of the weight's layout (16)}}
kf.kernel @other_panel(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 16>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 16>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: lanes (8) must be those that interleave the weight's layout (16)}}
kf.kernel @other_lanes(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: workgroup columns (48) must be a multiple of tile columns (32)}}
kf.kernel @part_of_a_panel(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 48], tile = [4, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: tile and accumulators need 131072 vector registers; 32 are there, and 256 are accepted}}
kf.kernel @registers(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [65536, 32], tile = [65536, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: row_tiles = even makes tiles of all heights, with 66048 products of vectors a step; at most 24576 are accepted}}
kf.kernel @even_products(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [128, 32], tile = [128, 32], lanes = 16, unroll = 4, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Of tiles that share a panel, there is code for workgroups of few rows and of more.
// expected-error @+1 {{convert-kf-to-vector: row_tiles = even makes tiles of all heights, panels = shared twice, with 36864 products of vectors a step; at most 24576 are accepted}}
kf.kernel @shared_products(%x: tensor<?x64xf32>, %w: tensor<2x128x64x!kf.quant<q4_0>, #kf.layout<panel = 128>>) -> tensor<?x128xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 128], tile = [8, 128], lanes = 16, dot = i8, panels = shared, row_tiles = even>} {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x64xf32>, tensor<2x128x64x!kf.quant<q4_0>, #kf.layout<panel = 128>>
  kf.yield %0 : tensor<?x128xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: panels = unpacked is not for weights of f32, which are read as they are}}
kf.kernel @unpacked_floats(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [4, 32], lanes = 16, panels = unpacked>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: panels = shared needs more rows of a workgroup than of a tile, found 4 and 4}}
kf.kernel @shared_by_one(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: panels = shared needs more rows of a workgroup than of a tile, found 4 and 4}}
kf.kernel @shared_by_all(%x: tensor<4x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 32], tile = [4, 32], lanes = 16, dot = i8, panels = shared, row_tiles = even>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<4x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: panels = shared needs more rows of a workgroup than of a tile, found 4 and 4}}
kf.kernel @shared_by_experts(%x: tensor<2x64xf32>, %e: tensor<2x2xi32>, %w: tensor<1x4x32x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>)
    -> tensor<2x2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 0, 32], tile = [4, 32, 16], lanes = 16, dot = i8, panels = shared, row_tiles = even>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<2x64xf32>, tensor<2x2xi32>, tensor<1x4x32x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<2x2x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: groups = in_turn is for matmuls with glu}}
kf.kernel @one_group(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, groups = in_turn>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: panels, row_tiles and groups are for matmuls}}
kf.kernel @rows_in_turn(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16, groups = in_turn>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: tile and unroll make 16384 products of vectors a step; at most 4096 are accepted}}
kf.kernel @products(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [128, 32], tile = [128, 32], lanes = 16, unroll = 64>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: a workgroup of this kernel needs more than 1073741824 bytes of scratch memory; make its rows shorter or its workgroup tile smaller}}
kf.kernel @scratch(%x: tensor<?x16777216xf32>, %w: tensor<96x16777216xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [17, 32], tile = [1, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x16777216xf32>, tensor<96x16777216xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// Scratch holds the rows of a workgroup: their number must be known.
// expected-error @+1 {{convert-kf-to-vector: workgroup rows must be given, as their number is dynamic}}
kf.kernel @all_rows(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 32], tile = [4, 32], lanes = 16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>
// expected-error @+1 {{convert-kf-to-vector: lanes (16) must be the cache's key_block (1), which kf-set-layouts makes those of the target}}
kf.kernel @key_block(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: attention needs tile = [query rows] or [query rows, those of one token]}}
kf.kernel @no_tile(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: attention needs a reduction that divides the cache's page (64) and is a multiple of lanes, found 48}}
kf.kernel @reduction(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 48, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: workgroup rows must be given, as their number is dynamic}}
kf.kernel @all_tokens(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 2], tile = [2], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
kf.kernel @not_the_result(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.activation' that reads 'tensor<?x2x16xf32>' from 'kf.attention'; compute that in a kernel of its own}}
  %1 = kf.activation(relu) %0 : tensor<?x2x16xf32>
  kf.yield %1 : tensor<?x2x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// rows in 8 bits, parts of attention
//===----------------------------------------------------------------------===//

kf.kernel @computed_scales(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = kf.activation(relu) %s : tensor<?x2xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' of codes, scales and sums that are not the same whole rows of arguments}}
  %1 = kf.matmul %x scales(%0 : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: rows in 8 bits need lanes = 4, 8 or 16}}
kf.kernel @wide_rows(%x: tensor<?x64xf32>) -> (tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 32>} {
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<?x64xf32>
  kf.yield %c, %s, %t : tensor<?x64xi8>, tensor<?x2xf32>, tensor<?x2xi32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: workgroup splits (0) must be 1}}
kf.kernel @splits(%q: tensor<1x2x16xf32>, %c: !layer, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x4xi32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2x16xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2], tile = [2], reduction = 64, lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<1x2x2xf32>
  %f = tensor.empty() : tensor<1x2x2x16xf32>
  %0:3 = scf.forall (%i) = (0) to (1) step (1) shared_outs(%a = %e, %b = %e, %d = %f) -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2x16xf32>) {
    %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) {layer = 0 : i64, scale = 0.25 : f32} : tensor<1x2x16xf32>, !layer, tensor<1xi32>, tensor<1x4xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %m into %a[%i, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<1x2x2xf32> into tensor<1x2x2xf32>
      tensor.parallel_insert_slice %t into %b[%i, 0, 0] [1, 2, 2] [1, 1, 1] : tensor<1x2x2xf32> into tensor<1x2x2xf32>
      tensor.parallel_insert_slice %o into %d[%i, 0, 0, 0] [1, 2, 2, 16] [1, 1, 1, 1] : tensor<1x2x2x16xf32> into tensor<1x2x2x16xf32>
    }
  }
  kf.yield %0#0, %0#1, %0#2 : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2x16xf32>
}

// -----

kf.kernel @scales_of_other_columns(%x: tensor<4x64xi8>, %s: tensor<4x4xf32>, %t: tensor<4x2xi32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = tensor.extract_slice %s[0, 1] [4, 2] [1, 1] : tensor<4x4xf32> to tensor<4x2xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' of codes, scales and sums that are not the same whole rows of arguments; slice what kf.quantize_rows reads instead}}
  %1 = kf.matmul %x scales(%0 : tensor<4x2xf32>) sums(%t : tensor<4x2xi32>), %w : tensor<4x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<4x96xf32>
}

// -----

kf.kernel @scales_of_other_rows(%x: tensor<4x64xi8>, %s: tensor<8x2xf32>, %t: tensor<4x2xi32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<4x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = i8>} {
  %0 = tensor.extract_slice %s[4, 0] [4, 2] [1, 1] : tensor<8x2xf32> to tensor<4x2xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' of codes, scales and sums that are not the same whole rows of arguments}}
  %1 = kf.matmul %x scales(%0 : tensor<4x2xf32>) sums(%t : tensor<4x2xi32>), %w : tensor<4x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<4x96xf32>
}

// -----

kf.kernel @computed_float_scales(%x: tensor<?x64xi8>, %s: tensor<?x2xf32>, %t: tensor<?x2xi32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16>} {
  %0 = kf.softmax %s : tensor<?x2xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.matmul' that reads 'tensor<?x2xf32>' from 'kf.softmax'}}
  %1 = kf.matmul %x scales(%0 : tensor<?x2xf32>) sums(%t : tensor<?x2xi32>), %w : tensor<?x64xi8>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %1 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = i8 needs lanes = 4, 8 or 16}}
kf.kernel @int8_lanes(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 2, dot = i8>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @computed_parts(%m: tensor<?x4x8xf32>, %v: tensor<?x4x8x16xf32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  %0 = kf.softmax %m : tensor<?x4x8xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.attention_combine' that reads 'tensor<?x4x8xf32>' from 'kf.softmax'}}
  %1 = kf.attention_combine %m, %0, %v : tensor<?x4x8xf32>, tensor<?x4x8x16xf32>
  kf.yield %1 : tensor<?x4x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// cache
//===----------------------------------------------------------------------===//

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>, key_block = 64>
// expected-error @+1 {{convert-kf-to-vector: lanes (64) must divide the blocks of the cache (32 elements)}}
kf.kernel @append_lanes(%c: !layer, %k: tensor<?x1x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 64>} {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x1x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = !kf.quant<q8_0>, key_block = 64>
// expected-error @+1 {{convert-kf-to-vector: lanes (64) must divide the blocks of the cache (32 elements)}}
kf.kernel @attention_lanes(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 2], tile = [2], reduction = 64, lanes = 64>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: a workgroup of 1073741824 tokens and 2 heads is too large; tile fewer tokens}}
kf.kernel @many_tokens(%q: tensor<?x2x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x16xf32>
    attributes {schedule = #kf.vector<workgroup = [1073741824, 2], tile = [2], reduction = 64, lanes = 16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x16xf32>
}

// -----

//===----------------------------------------------------------------------===//
// reductions and products of batches
//===----------------------------------------------------------------------===//

kf.kernel @reduced_rows(%x: tensor<?x4x16xf32>) -> tensor<?x4xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 16>} {
  %0 = kf.softmax %x : tensor<?x4x16xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.reduce' that reads 'tensor<?x4x16xf32>' from 'kf.softmax'; compute that in a kernel of its own}}
  %1 = kf.reduce(sum) %0 dims = [2] : tensor<?x4x16xf32>
  kf.yield %1 : tensor<?x4xf32>
}

// -----

kf.kernel @computed_weight(%x: tensor<?x4x16xf32>, %w: tensor<?x8x16xf32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1], lanes = 16>} {
  %0 = kf.softmax %w : tensor<?x8x16xf32>
  // expected-error @+1 {{no CPU kernel for 'kf.batch_matmul' that reads 'tensor<?x8x16xf32>' from 'kf.softmax'}}
  %1 = kf.batch_matmul %x, %0 : tensor<?x4x16xf32>, tensor<?x8x16xf32>
  kf.yield %1 : tensor<?x4x8xf32>
}

// -----

//===----------------------------------------------------------------------===//
// results of tiled kernels
//===----------------------------------------------------------------------===//

kf.kernel @codes_alone(%x: tensor<4x64xf32>) -> tensor<4x64xi8>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xi8>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xi8>) {
    // expected-error @+1 {{no CPU kernel for 'kf.quantize_rows' that does not make the kernel's results, in their order; form kernels of other ops}}
    %c, %s, %t = kf.quantize_rows %x group(32) : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xi8> into tensor<4x64xi8>
    }
  }
  kf.yield %0 : tensor<4x64xi8>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f32, key_block = 16>
kf.kernel @maxima_twice(%q: tensor<1x2x16xf32>, %c: !layer, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x4xi32>) -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>, tensor<1x2x1x16xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2], tile = [2], reduction = 64, lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<1x2x1xf32>
  %f = tensor.empty() : tensor<1x2x1x16xf32>
  %0:3 = scf.forall (%i) = (0) to (1) step (1) shared_outs(%a = %e, %b = %e, %d = %f) -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>, tensor<1x2x1x16xf32>) {
    // expected-error @+1 {{no CPU kernel for 'kf.attention_partial' that does not make the kernel's results, in their order}}
    %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(1) {layer = 0 : i64, scale = 0.25 : f32} : tensor<1x2x16xf32>, !layer, tensor<1xi32>, tensor<1x4xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %m into %a[%i, 0, 0] [1, 2, 1] [1, 1, 1] : tensor<1x2x1xf32> into tensor<1x2x1xf32>
      tensor.parallel_insert_slice %m into %b[%i, 0, 0] [1, 2, 1] [1, 1, 1] : tensor<1x2x1xf32> into tensor<1x2x1xf32>
      tensor.parallel_insert_slice %o into %d[%i, 0, 0, 0] [1, 2, 1, 16] [1, 1, 1, 1] : tensor<1x2x1x16xf32> into tensor<1x2x1x16xf32>
    }
  }
  kf.yield %0#0, %0#1, %0#2 : tensor<1x2x1xf32>, tensor<1x2x1xf32>, tensor<1x2x1x16xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: needs a #kf.vector schedule; run kf-select-schedules for a CPU first}}
kf.kernel @no_schedule(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @two_results(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0:2 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e, %b = %e) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
    // expected-error @+1 {{no CPU kernel for 'kf.softmax' that does not make the kernel's results, in their order}}
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
      tensor.parallel_insert_slice %c into %b[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0#0, %0#1 : tensor<4x64xf32>, tensor<4x64xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for weights of blocks, and of bf16 whose layout interleaves 16}}
kf.kernel @tiles_of_f32(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [32, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for weights of blocks, and of bf16 whose layout interleaves 16; panels have 16 or 32 rows}}
kf.kernel @tiles_of_48_columns(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 48>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 48], tile = [32, 48], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 48>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 needs lanes = 16}}
kf.kernel @tiles_of_8_lanes(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [32, 32], lanes = 8, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: unroll must be 1 with dot = bf16, whose steps are tiles}}
kf.kernel @tiles_unrolled(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [32, 32], lanes = 16, unroll = 4, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: prefetch is not for dot = bf16}}
kf.kernel @tiles_prefetched(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [32, 32], lanes = 16, prefetch = once, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: prefetch = once is for panels that one register tile reads, of one row in 8 bits, found tiles of 4 rows, and 2 in a workgroup}}
kf.kernel @once_by_two_tiles(%x: tensor<?x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 96], tile = [4, 32], lanes = 16, prefetch = once>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: prefetch = once is for panels that one register tile reads, of one row in 8 bits, found tiles of 2 rows, and 1 in a workgroup}}
kf.kernel @once_by_two_rows_of_bytes(%x: tensor<2x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<2x96xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 96], tile = [2, 32], lanes = 16, dot = i8, prefetch = once>} {
  %0 = kf.matmul %x, %w : tensor<2x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<2x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: hardware_rows is for register tiles that ask for the panel behind, of several rows or several in a workgroup, found tiles of 1 rows, and 1 in a workgroup}}
kf.kernel @hardware_row(%x: tensor<1x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<1x96xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 96], tile = [1, 32], lanes = 16, dot = i8, hardware_rows = 1>} {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<1x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: hardware_rows = 2 is for a register tile of at most so many rows that is the only one of its workgroup; none can be, found tiles of 3 rows, and 1 in a workgroup}}
kf.kernel @hardware_known_rows(%x: tensor<3x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<3x96xf32>
    attributes {schedule = #kf.vector<workgroup = [3, 96], tile = [3, 32], lanes = 16, dot = i8, hardware_rows = 2>} {
  %0 = kf.matmul %x, %w : tensor<3x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<3x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 needs a tile of 16 or 32 rows and columns}}
kf.kernel @tiles_of_8_rows(%x: tensor<?x64xf32>, %w: tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [8, 32], lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64x!kf.quant<q4_0>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: reduction (64) must be a multiple of 256}}
kf.kernel @tiles_of_part_of_a_block(%x: tensor<?x512xf32>, %w: tensor<96x512x!kf.quant<q4_k>, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [32, 32], tile = [32, 32], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.matmul %x, %w : tensor<?x512xf32>, tensor<96x512x!kf.quant<q4_k>, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16_pairs is for weights of bf16 with an even K, whose layout interleaves 16 or nothing}}
kf.kernel @pairs_of_f16(%x: tensor<4x64xf32>, %w: tensor<32x64xf16, #kf.layout<panel = 32>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64xf16, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16_pairs is for weights of bf16 with an even K, whose layout interleaves 16 or nothing}}
kf.kernel @pairs_of_other_lanes(%x: tensor<4x64xf32>, %w: tensor<32x64xbf16, #kf.layout<panel = 32, interleave = 8>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64xbf16, #kf.layout<panel = 32, interleave = 8>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16_pairs is for weights of bf16 with an even K}}
kf.kernel @odd_pairs(%x: tensor<4x63xf32>, %w: tensor<32x63xbf16, #kf.layout<panel = 32, interleave = 16>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 32], lanes = 16, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x63xf32>, tensor<32x63xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16_pairs needs lanes = 16}}
kf.kernel @short_pairs(%x: tensor<4x64xf32>, %w: tensor<32x64xbf16, #kf.layout<panel = 16, interleave = 8>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 32], tile = [4, 16], lanes = 8, dot = bf16_pairs>} {
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64xbf16, #kf.layout<panel = 16, interleave = 8>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for matmuls}}
kf.kernel @tiles_of_rows(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16, dot = bf16>} {
  %0 = kf.softmax %x : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}

// -----

kf.kernel @float8_elements(%x: tensor<4x64xf8E4M3FN>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for 'arith.extf' on f8E4M3FN, which only the weights of kf.matmul are; have others in bf16, which holds the same numbers}}
  %0 = arith.extf %x : tensor<4x64xf8E4M3FN> to tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// A grid that is not the loop's.
// expected-error @below {{convert-kf-to-vector: the grid of a tiled kernel has the loop's dimensions}}
kf.kernel @two_groups(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [2]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    %c = kf.softmax %x : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @outliers(%x: tensor<?x64xf16>, %o: tensor<?x64xf32>, %w: tensor<96x64xf16, #kf.layout<panel = 32>>) -> tensor<?x96xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 96], tile = [8, 32], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for outliers of rows; give it the rows in f32}}
  %0 = kf.matmul %x outliers(%o : tensor<?x64xf32>), %w wide : tensor<?x64xf16>, tensor<96x64xf16, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x96xf32>
}

// -----

kf.kernel @round_half(%x: tensor<?x64xf32>) -> (tensor<?x64xf16>, tensor<?x64xf32>)
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>} {
  // expected-error @+1 {{no CPU kernel for 'kf.round_half' yet; products read rows<f32>, rows<bf16> or, where weights have blocks, rows<i8> here; --device=reference has rows<f16>}}
  %h, %o = kf.round_half %x : tensor<?x64xf32>
  kf.yield %h, %o : tensor<?x64xf16>, tensor<?x64xf32>
}

// -----

// Without a tile of tokens the rotation stays outside of the loop over them.
!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = f32>
kf.kernel @rotation_around_the_tile(%x: tensor<3x2x32xf32>, %c: !layer, %p: tensor<3xi32>, %s: tensor<3xi32>, %t: tensor<1x4xi32>)
    attributes {schedule = #kf.vector<workgroup = [0], lanes = 16>} {
  %0 = kf.rope %x, %p {rotary_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<3x2x32xf32>, tensor<3xi32>
  // expected-error @+1 {{no CPU kernel for 'kf.kv_append' that reads 'tensor<3x2x32xf32>' from 'kf.rope'; compute that in a kernel of its own}}
  kf.kv_append %c, %0, %x, %p, %s, %t {layer = 0 : i64} : !layer, tensor<3x2x32xf32>, tensor<3xi32>, tensor<1x4xi32>
  kf.yield
}

// -----

// What the tile is written to.
kf.kernel @reads_its_result(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    // expected-error @+1 {{no CPU kernel for 'arith.addf' that reads 'tensor<4x64xf32>', which the kernel writes; read its arguments}}
    %1 = arith.addf %x, %a : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @tile_of_a_constant_elsewhere(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [4], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = scf.forall (%i) = (0) to (4) step (4) shared_outs(%a = %e) -> (tensor<4x64xf32>) {
    // expected-error @+1 {{no CPU kernel for a constant whose elements are elsewhere; write dense<...>}}
    %1 = arith.constant dense_resource<none> : tensor<4x64xf32>
    %2 = arith.addf %x, %1 : tensor<4x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %a[%i, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<4x64xf32>
    }
  }
  kf.yield %0 : tensor<4x64xf32>
}

// -----

kf.kernel @transposed_product(%x: tensor<4x64xf32>, %w: tensor<96x64xf32, #kf.layout<panel = 32>>) -> tensor<96x4xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 96], tile = [4, 32], lanes = 16>, grid = #kf.grid<tokens = [0], counts = [1]>} {
  %e = tensor.empty() : tensor<96x4xf32>
  %0 = scf.forall (%i) = (0) to (96) step (96) shared_outs(%a = %e) -> (tensor<96x4xf32>) {
    %1 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<96x64xf32, #kf.layout<panel = 32>>
    // expected-error @+1 {{no CPU kernel for 'kf.transpose' that reads 'tensor<4x96xf32>' from 'kf.matmul'; compute that in a kernel of its own}}
    %2 = kf.transpose %1 permutation = [1, 0] : tensor<4x96xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %a[%i, 0] [96, 4] [1, 1] : tensor<96x4xf32> into tensor<96x4xf32>
    }
  }
  kf.yield %0 : tensor<96x4xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: a product of experts needs tile = [rows, columns, rows of an expert], the last a multiple of the first}}
kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x32x64xf32, #kf.layout<panel = 32>>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [4, 0, 32], tile = [4, 32, 6], lanes = 16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x32x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x2x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: workgroup rows must be given, as their number is dynamic}}
kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x32x64xf32, #kf.layout<panel = 32>>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [0, 0, 32], tile = [4, 32, 8], lanes = 16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x32x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x2x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is not for products of experts}}
kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x32x64xbf16, #kf.layout<panel = 32, interleave = 16>>) -> tensor<?x2x32xf32>
    attributes {schedule = #kf.vector<workgroup = [16, 0, 32], tile = [16, 32, 16], lanes = 16, dot = bf16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x32x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  kf.yield %0 : tensor<?x2x32xf32>
}

// -----

// expected-error @+1 {{convert-kf-to-vector: a workgroup of 8 tokens with 4611686018427387904 experts each is too large; tile fewer tokens}}
kf.kernel @k(%x: tensor<?x64xf32>, %e: tensor<?x4611686018427387904xi32>, %w: tensor<1x4x32x64xf32, #kf.layout<panel = 32>>) -> tensor<?x4611686018427387904x32xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 0, 32], tile = [2, 32, 6], lanes = 16>} {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x4611686018427387904xi32>, tensor<1x4x32x64xf32, #kf.layout<panel = 32>>
  kf.yield %0 : tensor<?x4611686018427387904x32xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f32, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for caches of 16 bits and of blocks, and for heads of a multiple of 32 elements, at most 1024; this one has 64}}
kf.kernel @attention_tiles_of_f32(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [16], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 48, type = f16, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for caches of 16 bits and of blocks, and for heads of a multiple of 32 elements, at most 1024; this one has 48}}
kf.kernel @attention_tiles_of_48(%q: tensor<?x2x48xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x48xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [16], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x48xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x48xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 1056, type = f16, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is for caches of 16 bits and of blocks, and for heads of a multiple of 32 elements, at most 1024; this one has 1056}}
kf.kernel @attention_tiles_of_1056(%q: tensor<?x2x1056xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x1056xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [16], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x1056xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x1056xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, key_block = 8>
// expected-error @+1 {{convert-kf-to-vector: dot = bf16 needs lanes = 16}}
kf.kernel @attention_tiles_of_8_lanes(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [16], reduction = 64, lanes = 8, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: attention with dot = bf16 needs a tile of 16 rows}}
kf.kernel @attention_tiles_of_8_rows(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [8], reduction = 64, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: reduction (16) must be a multiple of 32, at most 1024}}
kf.kernel @attention_tiles_of_16_keys(%q: tensor<?x2x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x2x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 2], tile = [16], reduction = 16, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x2x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x2x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, page = 8192, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: reduction (8192) must be a multiple of 32, at most 1024}}
kf.kernel @attention_tiles_of_8192_keys(%q: tensor<?x8x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x4xi32>) -> tensor<?x8x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 8], tile = [16], reduction = 8192, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x8x64xf32>, !layer, tensor<?xi32>, tensor<2x4xi32>
  kf.yield %0 : tensor<?x8x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, page = 8192, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: tile and reduction need 512 vector registers; 32 are there, and 256 are accepted}}
kf.kernel @alone_rows_of_1024_keys(%q: tensor<?x8x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<2x4xi32>) -> tensor<?x8x64xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 8], tile = [16, 8], reduction = 1024, lanes = 16, dot = bf16>} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32} : tensor<?x8x64xf32>, !layer, tensor<?xi32>, tensor<2x4xi32>
  kf.yield %0 : tensor<?x8x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16, key_block = 16>
// expected-error @+1 {{convert-kf-to-vector: dot = bf16 is not for parts of attention, which have few rows}}
kf.kernel @partial_tiles(%q: tensor<1x2x64xf32>, %c: !layer, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x4xi32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2x64xf32>)
    attributes {schedule = #kf.vector<workgroup = [1, 2, 1], tile = [16], reduction = 64, lanes = 16, dot = bf16>} {
  %m, %t, %o = kf.attention_partial %q, %c, %p, %sp, %pt splits(2) {layer = 0 : i64, scale = 0.25 : f32} : tensor<1x2x64xf32>, !layer, tensor<1xi32>, tensor<1x4xi32>
  kf.yield %m, %t, %o : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2x64xf32>
}
