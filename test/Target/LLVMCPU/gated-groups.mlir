// RUN: kf-opt %s --kf-set-target="target=cpu:x86-64-v3 workers=1" --kf-set-layouts --kf-select-schedules -o %t
// RUN: FileCheck %s --check-prefix=FEW < %t
// RUN: kf-opt %t --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=TURNS
// RUN: kf-opt %s --kf-set-target="target=cpu:icelake-server workers=1" --kf-set-layouts --kf-select-schedules -o %t
// RUN: FileCheck %s --check-prefix=MANY < %t
// RUN: kf-opt %t --pass-pipeline='builtin.module(kf.kernel(kf-tile-kernels),convert-kf-to-vector,canonicalize,cse)' \
// RUN:   | FileCheck %s --check-prefix=ONCE

// 32 registers hold the sums of both groups, of 7 rows. 16 hold those of 6 rows of
// one group: gate first, and then up.
// FEW:   kf.kernel @gated({{.*}} tile = [6, 16], lanes = 8, unroll = 8, panels = unpacked, groups = in_turn>
// TURNS: func.func @gated
// TURNS:   scf.for {{.*}} iter_args(
// TURNS-COUNT-96: vector.fma
// TURNS-NOT:      vector.fma
// TURNS:   scf.for {{.*}} iter_args(
// TURNS-COUNT-96: vector.fma
// TURNS-NOT:      vector.fma
// TURNS:   scf.yield
// MANY:  kf.kernel @gated({{.*}} tile = [7, 32], lanes = 16, unroll = 8, panels = unpacked>
// ONCE:  func.func @gated
// ONCE:    scf.for {{.*}} iter_args(
// ONCE-COUNT-224: vector.fma
// ONCE-NOT:       vector.fma
// ONCE:    scf.yield
kf.program @program(%x: tensor<?x256xf32>) -> tensor<?x512xf32> attributes {max_tokens = 512 : i64} {
  %w = kf.weight ["a", "b"] : tensor<2x512x256xbf16>
  %0 = kf.dispatch @gated(%x, %w) : (tensor<?x256xf32>, tensor<2x512x256xbf16>) -> tensor<?x512xf32>
  kf.yield %0 : tensor<?x512xf32>
}
kf.kernel @gated(%x: tensor<?x256xf32>, %w: tensor<2x512x256xbf16>) -> tensor<?x512xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x256xf32>, tensor<2x512x256xbf16>
  kf.yield %0 : tensor<?x512xf32>
}
