// RUN: kf-opt %s --kf-set-target=target=cuda --kf-set-layouts -split-input-file | FileCheck %s

// Weights of the checkpoint are packed at load, in the order of matrix units;
// those of blocks of every format, too.
// CHECK-LABEL: kf.kernel @bf16(
// CHECK-SAME:    tensor<96x70xbf16, #kf.fragments>)
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<?x70xf32>, tensor<96x70xbf16, #kf.fragments>
kf.kernel @bf16(%x: tensor<?x70xf32>, %w: tensor<96x70xbf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x70xf32>, tensor<96x70xbf16>
  kf.yield %0 : tensor<?x96xf32>
}
// CHECK-LABEL: kf.kernel @f16(
// CHECK-SAME:    tensor<2x48x96xf16, #kf.fragments>)
kf.kernel @f16(%x: tensor<?x96xf32>, %w: tensor<2x48x96xf16>) -> tensor<?x48xf32> {
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x96xf32>, tensor<2x48x96xf16>
  kf.yield %0 : tensor<?x48xf32>
}
// CHECK-LABEL: kf.kernel @f32(
// CHECK-SAME:    tensor<48x48xf32, #kf.fragments>)
kf.kernel @f32(%x: tensor<?x48xf32>, %w: tensor<48x48xf32>) -> tensor<?x48xf32> {
  %0 = kf.matmul %x, %w : tensor<?x48xf32>, tensor<48x48xf32>
  kf.yield %0 : tensor<?x48xf32>
}
// CHECK-LABEL: kf.kernel @q4_k(
// CHECK-SAME:    tensor<48x256x!kf.quant<q4_k>, #kf.fragments>)
kf.kernel @q4_k(%x: tensor<?x256xf32>, %w: tensor<48x256x!kf.quant<q4_k>>) -> tensor<?x48xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<48x256x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x48xf32>
}
// CHECK-LABEL: kf.kernel @q5_0(
// CHECK-SAME:    tensor<48x256x!kf.quant<q5_0>, #kf.fragments>)
kf.kernel @q5_0(%x: tensor<?x256xf32>, %w: tensor<48x256x!kf.quant<q5_0>>) -> tensor<?x48xf32> {
  %0 = kf.matmul %x, %w : tensor<?x256xf32>, tensor<48x256x!kf.quant<q5_0>>
  kf.yield %0 : tensor<?x48xf32>
}
// CHECK-LABEL: kf.program @at_load(
// CHECK-DAG:     kf.weight ["w"] : tensor<96x70xbf16, #kf.fragments>
// CHECK-DAG:     kf.weight ["gate", "up"] {stacked} : tensor<2x48x96xf16, #kf.fragments>
// CHECK-DAG:     kf.weight ["d"] : tensor<48x48xf32, #kf.fragments>
kf.program @at_load(%x: tensor<?x70xf32>) -> tensor<?x48xf32> attributes {max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<96x70xbf16>
  %v = kf.weight ["gate", "up"] {stacked} : tensor<2x48x96xf16>
  %d = kf.weight ["d"] : tensor<48x48xf32>
  %0 = kf.dispatch @bf16(%x, %w) : (tensor<?x70xf32>, tensor<96x70xbf16>) -> tensor<?x96xf32>
  %1 = kf.dispatch @f16(%0, %v) : (tensor<?x96xf32>, tensor<2x48x96xf16>) -> tensor<?x48xf32>
  %2 = kf.dispatch @f32(%1, %d) : (tensor<?x48xf32>, tensor<48x48xf32>) -> tensor<?x48xf32>
  kf.yield %2 : tensor<?x48xf32>
}

// -----

// No kernel packs so: what one dispatch computes or passes at run time stays as
// it is for all.
// CHECK-LABEL: kf.kernel @k(
// CHECK-SAME:    tensor<96x64xbf16>)
// CHECK-NOT:   kf.pack
// CHECK:       kf.weight ["w"] : tensor<96x64xbf16>{{$}}
kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  kf.yield %0 : tensor<?x96xf32>
}
kf.program @at_run_time(%x: tensor<?x64xf32>, %a: tensor<96x64xbf16>)
    -> (tensor<?x96xf32>, tensor<?x96xf32>) attributes {max_tokens = 8 : i64} {
  %w = kf.weight ["w"] : tensor<96x64xbf16>
  %0 = kf.dispatch @k(%x, %w) : (tensor<?x64xf32>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  %1 = kf.dispatch @k(%x, %a) : (tensor<?x64xf32>, tensor<96x64xbf16>) -> tensor<?x96xf32>
  kf.yield %0, %1 : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// Nor what a kernel reads through views.
// CHECK-LABEL: kf.kernel @view(
// CHECK:         kf.matmul %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<32x64xbf16>
kf.kernel @view(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x32xf32> {
  %v = tensor.extract_slice %w[32, 0] [32, 64] [1, 1] : tensor<96x64xbf16> to tensor<32x64xbf16>
  %0 = kf.matmul %x, %v : tensor<?x64xf32>, tensor<32x64xbf16>
  kf.yield %0 : tensor<?x32xf32>
}

// -----

// Weights of experts: one after the other in the order of matrix units.
// CHECK-LABEL: kf.kernel @experts(
// CHECK-SAME:    tensor<2x4x48x256x!kf.quant<q4_k>, #kf.fragments>)
// CHECK-LABEL: kf.program @experts_at_load(
// CHECK:         kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x48x256x!kf.quant<q4_k>, #kf.fragments>
kf.kernel @experts(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>, %w: tensor<2x4x48x256x!kf.quant<q4_k>>) -> tensor<?x2x48xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x48x256x!kf.quant<q4_k>>
  kf.yield %0 : tensor<?x2x48xf32>
}
kf.program @experts_at_load(%x: tensor<?x256xf32>, %e: tensor<?x2xi32>) -> tensor<?x2x48xf32> attributes {max_tokens = 8 : i64} {
  %w = kf.weight ["g0", "g1", "g2", "g3", "u0", "u1", "u2", "u3"] {stacked} : tensor<2x4x48x256x!kf.quant<q4_k>>
  %0 = kf.dispatch @experts(%x, %e, %w) : (tensor<?x256xf32>, tensor<?x2xi32>, tensor<2x4x48x256x!kf.quant<q4_k>>) -> tensor<?x2x48xf32>
  kf.yield %0 : tensor<?x2x48xf32>
}
