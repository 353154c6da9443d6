// RUN: kf-opt %s --kf-set-target="target=#kf.cpu_target<cpu=\"znver5\",int8_dot=true,bf16_dot=true,workers=2>" --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s

// What a product multiplies in stays as it is.
// CHECK-LABEL: kernel @prefill
// CHECK-NOT:     unroll = {{[0-9]+}}>
// CHECK:         dot = bf16_pairs, panels = unpacked> (default)
// CHECK-NOT:     unroll = {{[0-9]+}}>
kf.kernel @prefill(%x: tensor<512x1024xf32>, %w: tensor<768x1024xbf16>) -> tensor<512x768xf32> {
  %0 = kf.matmul %x, %w : tensor<512x1024xf32>, tensor<768x1024xbf16>
  kf.yield %0 : tensor<512x768xf32>
}
