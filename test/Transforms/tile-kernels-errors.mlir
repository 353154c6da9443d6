// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels))' \
// RUN:   -split-input-file -verify-diagnostics

// expected-error @+1 {{kf-tile-kernels: needs a schedule; run kf-select-schedules first}}
kf.kernel @unscheduled(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = kf.softmax %x : tensor<64xf32>
  kf.yield %0 : tensor<64xf32>
}

// -----

// expected-error @+1 {{kf-tile-kernels: no op of this kernel can be tiled}}
kf.kernel @no_root(%x: tensor<64xf32>) -> tensor<64xf32> attributes {schedule = #kf.vector<>} {
  kf.yield %x : tensor<64xf32>
}

// -----

// Ops of other dialects only promise to tile.
kf.kernel @other_op(%x: tensor<64xf32>) -> tensor<64xf32> attributes {schedule = #kf.vector<>} {
  // expected-error @+1 {{'tensor.pad' op kf-tile-kernels: has no place in a kernel}}
  %0 = tensor.pad %x low[0] high[0] {
  ^bb0(%i: index):
    %c = arith.constant 0.0 : f32
    tensor.yield %c : f32
  } : tensor<64xf32> to tensor<64xf32>
  kf.yield %0 : tensor<64xf32>
}

// -----

kf.kernel @weight(%x: tensor<4x8xf32>) -> tensor<4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1]>} {
  // expected-error @+1 {{'kf.weight' op kf-tile-kernels: has no place in a kernel}}
  %w = kf.weight ["w"] : tensor<8xf32>
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<4x8xf32>, tensor<8xf32>
  kf.yield %0 : tensor<4x8xf32>
}

// -----

// expected-error @+1 {{kf-tile-kernels: schedule tiles 3 loops, but kf.softmax has 2}}
kf.kernel @too_many(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 0, 0]>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{kf-tile-kernels: schedule tiles loop 1 of kf.softmax, which is not parallel}}
kf.kernel @reduction(%x: tensor<4x64xf32>) -> tensor<4x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 16]>} {
  %0 = kf.softmax %x : tensor<4x64xf32>
  kf.yield %0 : tensor<4x64xf32>
}

// -----

// expected-error @+1 {{kf-tile-kernels: a grid has at most 3 dimensions}}
kf.kernel @four_dimensions(%x: tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1, 1, 1]>} {
  %0 = kf.activation(relu) %x : tensor<4x4x4x4xf32>
  kf.yield %0 : tensor<4x4x4x4xf32>
}

// -----

// The softmax of a part of a row would not be a part of the softmax.
kf.kernel @part_of_a_row(%x: tensor<8x64xf32>) -> tensor<8x64xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 16]>} {
  // expected-error @+1 {{kf-tile-kernels: needs dimension 1 of its result whole, and the schedule's workgroup tile of the kernel splits it; make that entry of workgroup 0}}
  %0 = kf.softmax %x : tensor<8x64xf32>
  %1 = kf.activation(relu) %0 : tensor<8x64xf32>
  kf.yield %1 : tensor<8x64xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f32>
kf.kernel @all_heads(%q: tensor<?x4x16xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x16xf32>
    attributes {schedule = #kf.vector<workgroup = [8, 4]>} {
  // expected-error @+1 {{must be tiled by the 2 heads that share a KV head}}
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.25 : f32}
      : tensor<?x4x16xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x16xf32>
}

// -----

kf.kernel @rows_from_nowhere(%x: tensor<4x64xf32>) -> tensor<?x64xf32>
    attributes {schedule = #kf.vector<workgroup = [0]>} {
  %0 = tensor.cast %x : tensor<4x64xf32> to tensor<?x64xf32>
  // expected-error @+1 {{kf-tile-kernels: makes a tensor with rows that no argument of the kernel has}}
  %1 = kf.softmax %0 : tensor<?x64xf32>
  kf.yield %1 : tensor<?x64xf32>
}

// -----

kf.kernel @batches(%x: tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
    attributes {schedule = #kf.vector<workgroup = [0]>} {
  // expected-error @+1 {{kf-tile-kernels: a kernel multiplies matrices; run kf-expand-tensors first}}
  %0 = kf.matmul %x, %x : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  kf.yield %0 : tensor<2x3x3xf32>
}

// -----

// The tile of the result would leave the append out.
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 4, type = f32, key_block = 16>
kf.kernel @append_and_more(%c: !layer, %x: tensor<2x1x4xf32>, %p: tensor<2xi32>, %sp: tensor<2xi32>, %pt: tensor<1x4xi32>) -> tensor<2x1x4xf32>
    attributes {schedule = #kf.vector<workgroup = [1]>} {
  // expected-error @+1 {{'kf.kv_append' op kf-tile-kernels: must be in a kernel of its own, without results; or, where the target computes both in one, before the attention to its layer by the same positions, sequences and table}}
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<2x1x4xf32>, tensor<2xi32>, tensor<1x4xi32>
  %0 = arith.addf %x, %x : tensor<2x1x4xf32>
  kf.yield %0 : tensor<2x1x4xf32>
}

// -----

// No target, so nobody has code for both.
!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16>
kf.kernel @append_and_attend(%c: !layer, %x: tensor<2x1x16xf32>, %p: tensor<2xi32>, %sp: tensor<2xi32>, %pt: tensor<1x4xi32>) -> tensor<2x1x16xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [32]>} {
  // expected-error @+1 {{'kf.kv_append' op kf-tile-kernels: must be in a kernel of its own}}
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<2x1x16xf32>, tensor<2xi32>, tensor<1x4xi32>
  %0 = kf.attention %x, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<2x1x16xf32>, !layer, tensor<2xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<2x1x16xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @other_positions(%c: !layer, %x: tensor<2x1x16xf32>, %p: tensor<2xi32>, %q: tensor<2xi32>, %sp: tensor<2xi32>, %pt: tensor<1x4xi32>) -> tensor<2x1x16xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [32]>} {
  // expected-error @+1 {{'kf.kv_append' op kf-tile-kernels: must be in a kernel of its own}}
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<2x1x16xf32>, tensor<2xi32>, tensor<1x4xi32>
  %0 = kf.attention %x, %c, %q, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<2x1x16xf32>, !layer, tensor<2xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<2x1x16xf32>
}
}

// -----

// expected-error @+1 {{kf-tile-kernels: must yield the results of one op, all of them in their order; form kernels of the others}}
kf.kernel @some_results(%x: tensor<4x64xf32>) -> (tensor<4x64xi8>, tensor<4x2xf32>)
    attributes {schedule = #kf.vector<workgroup = [1]>} {
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<4x64xf32>
  kf.yield %c, %s : tensor<4x64xi8>, tensor<4x2xf32>
}

// -----

kf.kernel @in_between(%x: tensor<4x64xf32>, %w: tensor<32x64x!kf.quant<q8_0>>) -> tensor<4x32xf32>
    attributes {schedule = #kf.vector<workgroup = [1]>} {
  // expected-error @+1 {{'kf.quantize_rows' op kf-tile-kernels: makes several results and must be the last op of its kernel}}
  %c, %s, %t = kf.quantize_rows %x group(32) : tensor<4x64xf32>
  %0 = kf.matmul %c scales(%s : tensor<4x2xf32>) sums(%t : tensor<4x2xi32>), %w : tensor<4x64xi8>, tensor<32x64x!kf.quant<q8_0>>
  kf.yield %0 : tensor<4x32xf32>
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 16, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @two_appends(%c: !layer, %x: tensor<2x1x16xf32>, %p: tensor<2xi32>, %sp: tensor<2xi32>, %pt: tensor<1x4xi32>) -> tensor<2x1x16xf32>
    attributes {schedule = #kf.flash<workgroup = [1, 1], keys = 16, threads = [32]>} {
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<2x1x16xf32>, tensor<2xi32>, tensor<1x4xi32>
  // expected-error @+1 {{'kf.kv_append' op kf-tile-kernels: a kernel has one append}}
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<2x1x16xf32>, tensor<2xi32>, tensor<1x4xi32>
  %0 = kf.attention %x, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32} : tensor<2x1x16xf32>, !layer, tensor<2xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<2x1x16xf32>
}
}

// -----

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16>
module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
kf.kernel @head_alone(%c: !layer, %x: tensor<2x1x16xf32>, %p: tensor<2xi32>, %sp: tensor<2xi32>, %pt: tensor<1x4xi32>)
    attributes {schedule = #kf.simt<workgroup = [1, 1, 16], threads = [16]>} {
  %h = arith.constant 0 : index
  // expected-error @+1 {{'kf.kv_append' op kf-tile-kernels: kv_head is for kernels that are tiled; append all heads}}
  kf.kv_append %c, %x, %x, %p, %sp, %pt kv_head(%h) {layer = 0 : i64} : !layer, tensor<2x1x16xf32>, tensor<2xi32>, tensor<1x4xi32>
  kf.yield
}
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
kf.kernel @heads(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 2]>} {
  // expected-error @+1 {{'kf.gated_delta' op must be tiled by single sequences and heads}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  kf.yield %0 : tensor<?x4x8xf32>
}

// -----

!cache = !kf.state_cache<layers = 1, heads = 4, elements = 136, slot_pages = 2>
kf.kernel @consumer(%c: !cache, %q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %w: tensor<64x1x4xf32>, %d: tensor<4xf32>, %p: tensor<?xi32>, %s: tensor<3xi32>) -> tensor<?x4x8xf32>
    attributes {schedule = #kf.vector<workgroup = [1, 1]>} {
  // expected-error @+1 {{'kf.gated_delta' op kf-tile-kernels: what reads its result must be in a kernel of its own}}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %d, %d, %c, %p, %p, %s {layer = 0 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xf32>, tensor<4xf32>, tensor<4xf32>, !cache, tensor<?xi32>, tensor<3xi32>
  %1 = arith.addf %0, %v : tensor<?x4x8xf32>
  kf.yield %1 : tensor<?x4x8xf32>
}
