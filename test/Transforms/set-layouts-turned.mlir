// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=cuda:sm_90a}, kf-fuse, kf-program, kf-set-layouts)' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-set-target{target=vulkan:h200}, kf-fuse, kf-program, kf-set-layouts)' | FileCheck %s --check-prefix=COOP

// Gradients of rows read weights from their other side, as they are stored.
// Products with the same weights do so, too, rather than have a packed copy of
// them, and stay apart; a weight that no gradient reads is packed.
// CHECK-LABEL: kf.program @both
// CHECK-NOT:     ["gate", "up"]
// CHECK-DAG:     kf.weight ["gate"] : tensor<256x128xbf16>{{$}}
// CHECK-DAG:     kf.weight ["up"] : tensor<256x128xbf16>{{$}}
// CHECK-DAG:     kf.weight ["head"] : tensor<256x256xbf16, #kf.fragments>
// CHECK-NOT:     ["gate", "up"]
// CHECK:         kf.yield
// Cooperative matrices take packed weights alone.
// COOP-LABEL: kf.program @both
// COOP-DAG:     kf.weight ["gate", "up"] {stacked} : tensor<2x256x128xbf16, #kf.fragments>
// COOP-DAG:     kf.weight ["head"] : tensor<256x256xbf16, #kf.fragments>
// COOP:         kf.yield
func.func @both(%x: tensor<512x128xf32>, %dy: tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<512x128xf32>, tensor<512x128xf32>) {
  %gate = kf.weight ["gate"] : tensor<256x128xbf16>
  %up = kf.weight ["up"] : tensor<256x128xbf16>
  %head = kf.weight ["head"] : tensor<256x256xbf16>
  %0 = kf.matmul %x, %gate : tensor<512x128xf32>, tensor<256x128xbf16>
  %1 = kf.activation(silu) %0 : tensor<512x256xf32>
  %2 = kf.matmul %x, %up : tensor<512x128xf32>, tensor<256x128xbf16>
  %3 = arith.mulf %1, %2 : tensor<512x256xf32>
  %4 = kf.matmul %3, %head : tensor<512x256xf32>, tensor<256x256xbf16>
  %5 = kf.matmul_dgrad %dy, %gate : tensor<512x256xf32>, tensor<256x128xbf16>
  %6 = kf.matmul_dgrad %dy, %up : tensor<512x256xf32>, tensor<256x128xbf16>
  return %4, %5, %6 : tensor<512x256xf32>, tensor<512x128xf32>, tensor<512x128xf32>
}

// Products with packed weights of f32 are by threads, and exact. Those with
// stored ones would be by matrix units.
// CHECK-LABEL: kf.program @wide
// CHECK-DAG:     kf.weight ["wide_gate", "wide_up"] : tensor<512x128xf32, #kf.fragments>
// CHECK-DAG:     kf.weight ["wide_gate"] : tensor<256x128xf32>{{$}}
// CHECK-DAG:     kf.weight ["wide_up"] : tensor<256x128xf32>{{$}}
// CHECK:         kf.yield
func.func @wide(%x: tensor<512x128xf32>, %dy: tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x128xf32>, tensor<512x128xf32>) {
  %gate = kf.weight ["wide_gate"] : tensor<256x128xf32>
  %up = kf.weight ["wide_up"] : tensor<256x128xf32>
  %0 = kf.matmul %x, %gate : tensor<512x128xf32>, tensor<256x128xf32>
  %1 = kf.matmul %x, %up : tensor<512x128xf32>, tensor<256x128xf32>
  %2 = kf.matmul_dgrad %dy, %gate : tensor<512x256xf32>, tensor<256x128xf32>
  %3 = kf.matmul_dgrad %dy, %up : tensor<512x256xf32>, tensor<256x128xf32>
  return %0, %1, %2, %3 : tensor<512x256xf32>, tensor<512x256xf32>, tensor<512x128xf32>, tensor<512x128xf32>
}
