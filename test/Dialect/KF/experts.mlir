// RUN: kf-opt %s | kf-opt | FileCheck %s
// RUN: kf-opt %s --mlir-print-op-generic | kf-opt | FileCheck %s

// CHECK-LABEL: @route
func.func @route(%logits: tensor<?x8xf32, #kf.size<rows>>, %half: tensor<4x8xf16>, %scales: tensor<8xbf16>) {
  // CHECK: kf.route %{{.*}} top(2) : tensor<?x8xf32, #kf.size<rows>>
  %0:2 = kf.route %logits top(2) : tensor<?x8xf32, #kf.size<rows>>
  // CHECK: kf.route %{{.*}} top(8) normalized : tensor<4x8xf16>
  %1:2 = kf.route %half top(8) normalized : tensor<4x8xf16>
  // CHECK: kf.route %{{.*}} top(3) scales(%{{.*}} : tensor<8xbf16>) : tensor<4x8xf16>
  %2:2 = kf.route %half top(3) scales(%scales : tensor<8xbf16>) : tensor<4x8xf16>
  // CHECK: kf.route %{{.*}} top(1) sigmoid : tensor<4x8xf16>
  %3:2 = kf.route %half top(1) sigmoid : tensor<4x8xf16>
  // CHECK: kf.route %{{.*}} top(3) sigmoid normalized bias(%{{.*}} : tensor<8xbf16>) groups(4, 2) scales(%{{.*}} : tensor<8xbf16>) : tensor<4x8xf16>
  %4:2 = kf.route %half top(3) sigmoid normalized bias(%scales : tensor<8xbf16>) groups(4, 2) scales(%scales : tensor<8xbf16>) : tensor<4x8xf16>
  return
}

// CHECK-LABEL: @products
func.func @products(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>,
    %up: tensor<2x4x96x64xbf16>, %bias: tensor<2x4x96xf32>,
    %down: tensor<1x4x64x96x!kf.quant<q4_0>>, %codes: tensor<?x64xi8>,
    %scales: tensor<?x2xf32>, %sums: tensor<?x2xi32>,
    %q: tensor<1x4x32x64x!kf.quant<q4_0>>) {
  // CHECK: %[[H:.*]] = kf.expert_matmul %{{.*}} experts(%{{.*}}), %{{.*}} bias(%{{.*}}) glu(silu) : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xbf16>, tensor<2x4x96xf32>
  %0 = kf.expert_matmul %x experts(%e), %up bias(%bias) glu(silu)
      : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xbf16>, tensor<2x4x96xf32>
  // CHECK: kf.expert_matmul %{{.*}} experts(%{{.*}}), %{{.*}} glu(silu) clamped<limit = 7.0, alpha = 1.702> : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xbf16>
  %3 = kf.expert_matmul %x experts(%e), %up
      glu(silu) clamped<limit = 7.0, alpha = 1.702>
      : tensor<?x64xf32>, tensor<?x2xi32>, tensor<2x4x96x64xbf16>
  // CHECK: kf.expert_matmul %[[H]] experts(%{{.*}}), %{{.*}} : tensor<?x2x96xf32>, tensor<?x2xi32>, tensor<1x4x64x96x!kf.quant<q4_0>>
  %1 = kf.expert_matmul %0 experts(%e), %down
      : tensor<?x2x96xf32>, tensor<?x2xi32>, tensor<1x4x64x96x!kf.quant<q4_0>>
  // CHECK: kf.expert_matmul %{{.*}} scales(%{{.*}} : tensor<?x2xf32>) sums(%{{.*}} : tensor<?x2xi32>) experts(%{{.*}}), %{{.*}} : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x32x64x!kf.quant<q4_0>>
  %2 = kf.expert_matmul %codes scales(%scales : tensor<?x2xf32>)
      sums(%sums : tensor<?x2xi32>) experts(%e), %q
      : tensor<?x64xi8>, tensor<?x2xi32>, tensor<1x4x32x64x!kf.quant<q4_0>>
  return
}

// Gate matrices of all experts, and then their up matrices.
// CHECK-LABEL: @weights
func.func @weights() {
  // CHECK: kf.weight ["g0", "g1", "u0", "u1"] {stacked} : tensor<2x2x96x64xbf16>
  %0 = kf.weight ["g0", "g1", "u0", "u1"] {stacked} : tensor<2x2x96x64xbf16>
  // CHECK: kf.weight ["g0", "g1", "u0", "u1"] {stacked, transposed} : tensor<2x2x96x64xbf16>
  %1 = kf.weight ["g0", "g1", "u0", "u1"] {stacked, transposed} : tensor<2x2x96x64xbf16>
  // CHECK: kf.pack {{.*}} to tensor<2x2x96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  %2 = kf.pack %0 : tensor<2x2x96x64xbf16> to tensor<2x2x96x64xbf16, #kf.layout<panel = 32, interleave = 16>>
  return
}
