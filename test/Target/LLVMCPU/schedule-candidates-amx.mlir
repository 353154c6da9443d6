// RUN: kf-opt %s -split-input-file --kf-set-target="target=#kf.cpu_target<cpu=\"sapphirerapids\",int8_dot=true,amx=true,workers=2>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s --implicit-check-not="reduction = 1024"

// One or two tiles of rows, and all of K at a time or parts of it.
// CHECK-LABEL: kernel @prefill
// CHECK-DAG:     s #kf.vector<workgroup = [256, 768], tile = [32, 32], reduction = 512, lanes = 16, dot = bf16> (default)
// CHECK-DAG:     s #kf.vector<workgroup = [512, 768], tile = [32, 32], reduction = 512, lanes = 16, dot = bf16>
// CHECK-DAG:     s #kf.vector<workgroup = [16, 32], tile = [16, 32], reduction = 256, lanes = 16, dot = bf16>
// CHECK-DAG:     s #kf.vector<workgroup = [128, 384], tile = [32, 32], lanes = 16, dot = bf16>
kf.kernel @prefill(%x: tensor<512x1024xf32>, %w: tensor<768x1024xbf16>) -> tensor<512x768xf32> {
  %0 = kf.matmul %x, %w : tensor<512x1024xf32>, tensor<768x1024xbf16>
  kf.yield %0 : tensor<512x768xf32>
}

// -----

// What a product multiplies in stays as it is.
// CHECK-LABEL: kernel @blocks
// CHECK-NOT:     dot = i8
// CHECK:         dot = bf16> (default)
// CHECK-NOT:     dot = i8
kf.kernel @blocks(%x: tensor<128x768xf32>, %w: tensor<256x768x!kf.quant<q4_k>>) -> tensor<128x256xf32> {
  %0 = kf.matmul %x, %w : tensor<128x768xf32>, tensor<256x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<128x256xf32>
}

// -----

// Too few rows for tiles.
// CHECK-LABEL: kernel @few
// CHECK-NOT:     dot = bf16
kf.kernel @few(%x: tensor<100x768xf32>, %w: tensor<256x768x!kf.quant<q4_k>>) -> tensor<100x256xf32> {
  %0 = kf.matmul %x, %w : tensor<100x768xf32>, tensor<256x768x!kf.quant<q4_k>>
  kf.yield %0 : tensor<100x256xf32>
}

// -----

// Attention by tiles has other workgroups, and other blocks of keys that are
// multiples of 32 and divide the page; all of it stays with tiles.
// CHECK-LABEL:    kernel @attention, up to 512 rows: 18 candidates
// CHECK-COUNT-18: s #kf.vector<workgroup = [{{1|2|4|8|16|32|64|128|256}}, 4], tile = [16], reduction = {{32|64}}, lanes = 16, dot = bf16>
// CHECK-NOT:      s #kf.vector
kf.kernel @attention(%q: tensor<512x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, %p: tensor<512xi32>, %sp: tensor<512xi32>, %pt: tensor<1x64xi32>) -> tensor<512x32x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<512x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, tensor<512xi32>, tensor<1x64xi32>
  kf.yield %0 : tensor<512x32x64xf32>
}
