// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-select-schedules | FileCheck %s
// RUN: sed "s/key_block = 16/key_block = 8/" %s | kf-opt --kf-set-target=target=cpu:x86-64-v3 --kf-select-schedules | FileCheck %s --check-prefix=AVX2

!layer = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32, key_block = 16>

// A schedule that is there stays.
// CHECK-LABEL: kf.kernel @given(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [3, 64], tile = [3, 32], lanes = 8, unroll = 2>
kf.kernel @given(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) -> tensor<?x768xf32>
    attributes {schedule = #kf.vector<workgroup = [3, 64], tile = [3, 32], lanes = 8, unroll = 2>} {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}

// Many rows: the register tile fills the registers, and four of them share what a
// panel is unpacked to.
// CHECK-LABEL: kf.kernel @prefill(
// CHECK-SAME:    workgroup = [56, 192], tile = [14, 32], lanes = 16, unroll = 8, panels = unpacked>
// AVX2-LABEL:  kf.kernel @prefill(
// AVX2-SAME:     tile = [6, 16], lanes = 8, unroll = 8, panels = unpacked>
kf.kernel @prefill(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}

// One row: several sums for each output instead.
// CHECK-LABEL: kf.kernel @decode(
// CHECK-SAME:    tile = [1, 32], lanes = 16, unroll = 4, accumulators = 4>
kf.kernel @decode(%x: tensor<1x256xf32>, %w: tensor<768x256xbf16>) -> tensor<1x768xf32> {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<1x768xf32>
}

// The rows of a dynamic x are those of the programs that dispatch the kernel, or
// fewer, which are divided evenly.
// CHECK-LABEL: kf.kernel @three_rows(
// CHECK-SAME:    tile = [3, 32], lanes = 16, unroll = 4, row_tiles = even>
kf.kernel @three_rows(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<?x768xf32>
}
kf.program @three_tokens(%x: tensor<?x256xf32>) -> tensor<?x768xf32>
    attributes {max_tokens = 3 : i64} {
  %w = kf.weight ["w"] : tensor<768x256xbf16>
  %0 = kf.dispatch @three_rows(%x, %w) : (tensor<?x256xf32>, tensor<768x256xbf16>) -> tensor<?x768xf32>
  kf.yield %0 : tensor<?x768xf32>
}

// A gated product has two sums for each output, which 16 registers hold one after
// the other.
// CHECK-LABEL: kf.kernel @gated(
// CHECK-SAME:    tile = [7, 32], lanes = 16, unroll = 8, panels = unpacked>
// AVX2-LABEL:  kf.kernel @gated(
// AVX2-SAME:     tile = [6, 16], lanes = 8, unroll = 8, panels = unpacked, groups = in_turn>
kf.kernel @gated(%x: tensor<?x256xf32>, %w: tensor<2x704x256xbf16>) -> tensor<?x704xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x256xf32>, tensor<2x704x256xbf16>
  kf.yield %0 : tensor<?x704xf32>
}

// A short odd reduction is not unrolled, and f32 not unpacked.
// CHECK-LABEL: kf.kernel @odd(
// CHECK-SAME:    tile = [14, 32], lanes = 16>
kf.kernel @odd(%x: tensor<?x37xf32>, %w: tensor<45x37xf32>) -> tensor<?x45xf32> {
  %0 = kf.matmul %x, %w : tensor<?x37xf32>, tensor<45x37xf32>
  kf.yield %0 : tensor<?x45xf32>
}

// Heads that share a KV head share a workgroup; keys come in blocks of 64.
// CHECK-LABEL: kf.kernel @attention(
// CHECK-SAME:    workgroup = [16, 2], tile = [6], reduction = 64, lanes = 16>
kf.kernel @attention(%q: tensor<?x4x64xf32>, %c: !layer, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) -> tensor<?x4x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<?x4x64xf32>, !layer, tensor<?xi32>, tensor<1x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// Of several sequences, tokens may be alone: tiles of the heads of one.
// CHECK-LABEL: kf.kernel @attention_of_several(
// CHECK-SAME:    workgroup = [1, 8], tile = [6, 4], reduction = 64, lanes = 16>
kf.kernel @attention_of_several(%q: tensor<16x16x64xf32>, %c: !layer, %p: tensor<16xi32>, %sp: tensor<16xi32>, %pt: tensor<4x4xi32>) -> tensor<16x16x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<16x16x64xf32>, !layer, tensor<16xi32>, tensor<4x4xi32>
  kf.yield %0 : tensor<16x16x64xf32>
}

// A tile of keys lies in one page.
!small = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f32, key_block = 16, page = 48>
// CHECK-LABEL: kf.kernel @small_pages(
// CHECK-SAME:    workgroup = [16, 2], tile = [24, 2], reduction = 16, lanes = 16>
kf.kernel @small_pages(%q: tensor<?x4x64xf32>, %c: !small, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<4x4xi32>) -> tensor<?x4x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32}
      : tensor<?x4x64xf32>, !small, tensor<?xi32>, tensor<4x4xi32>
  kf.yield %0 : tensor<?x4x64xf32>
}

// Rows of some thousand elements to a workgroup.
// CHECK-LABEL: kf.kernel @rows(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [32], lanes = 16>
kf.kernel @rows(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = kf.softmax %x : tensor<?x256xf32>
  kf.yield %0 : tensor<?x256xf32>
}

// CHECK-LABEL: kf.kernel @long_rows(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [1], lanes = 16>
kf.kernel @long_rows(%x: tensor<?x32000xf32>) -> tensor<?xi32> {
  %0 = kf.argmax %x : tensor<?x32000xf32>
  kf.yield %0 : tensor<?xi32>
}

// Fewer rows where each is read again and again.
// CHECK-LABEL: kf.kernel @sample(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [8], lanes = 16>
kf.kernel @sample(%x: tensor<?x256xf32>, %f: tensor<?xf32>, %i: tensor<?xi32>, %s: tensor<?xi64>) -> tensor<?xi32> {
  %0 = kf.sample %x temperature(%f) top_k(%i) top_p(%f) min_p(%f) seed(%s) counter(%i)
      : (tensor<?x256xf32>, tensor<?xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi64>, tensor<?xi32>)
  kf.yield %0 : tensor<?xi32>
}

// CHECK-LABEL: kf.kernel @append(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [64], lanes = 16>
kf.kernel @append(%c: !layer, %k: tensor<?x2x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>) {
  kf.kv_append %c, %k, %k, %p, %sp, %pt {layer = 0 : i64} : !layer, tensor<?x2x64xf32>, tensor<?xi32>, tensor<1x4xi32>
  kf.yield
}

// One row is normalized whole; elementwise ops split it.
// CHECK-LABEL: kf.kernel @one_row(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [0], lanes = 16>
kf.kernel @one_row(%x: tensor<10000xf32>) -> tensor<10000xf32> {
  %0 = kf.softmax %x : tensor<10000xf32>
  kf.yield %0 : tensor<10000xf32>
}

// CHECK-LABEL: kf.kernel @one_vector(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [4096], lanes = 16>
kf.kernel @one_vector(%x: tensor<10000xf32>) -> tensor<10000xf32> {
  %0 = kf.activation(silu) %x : tensor<10000xf32>
  kf.yield %0 : tensor<10000xf32>
}

// A kernel without loops to tile is one workgroup.
// CHECK-LABEL: kf.kernel @number(
// CHECK-SAME:    schedule = #kf.vector<lanes = 16>
kf.kernel @number(%x: tensor<f32>) -> tensor<f32> {
  %0 = arith.negf %x : tensor<f32>
  kf.yield %0 : tensor<f32>
}

// A packed weight has its panels, and a panel is packed by one workgroup.
// CHECK-LABEL: kf.kernel @packed(
// CHECK-SAME:    tile = [9, 48], lanes = 16, unroll = 8, panels = unpacked>
// AVX2-LABEL:  kf.kernel @packed(
// AVX2-SAME:     tile = [2, 48], lanes = 8, unroll = 8, panels = unpacked>
kf.kernel @packed(%x: tensor<?x256xf32>, %w: tensor<768x256xbf16, #kf.layout<panel = 48>>) -> tensor<?x768xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<768x256xbf16, #kf.layout<panel = 48>>
  kf.yield %0 : tensor<?x768xf32>
}

// CHECK-LABEL: kf.kernel @pack(
// CHECK-SAME:    schedule = #kf.vector<workgroup = [0, 48]>
kf.kernel @pack(%w: tensor<2x70x24xbf16>) -> tensor<2x70x24xbf16, #kf.layout<panel = 48>> {
  %0 = kf.pack %w : tensor<2x70x24xbf16> to tensor<2x70x24xbf16, #kf.layout<panel = 48>>
  kf.yield %0 : tensor<2x70x24xbf16, #kf.layout<panel = 48>>
}
