// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate)' | FileCheck %s --check-prefixes=CHECK,AGAIN
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate{policy=store})' | FileCheck %s --check-prefixes=CHECK,STORE
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate, kf-set-target{target=cpu}, kf-fuse, kf-program)' | FileCheck %s --check-prefix=KERNELS

// Norms are computed again, of what is there in any case. The sum of the first
// layer is kept: instead of it, the product would have to be.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xf32>, %{{.*}}: tensor<64x64xf32>, %{{.*}}: tensor<64x64xf32>, %[[N:.*]]: tensor<64xf32>)
// CHECK:         %[[H1:.*]] = kf.rms_norm %[[X]], %[[N]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[X]]
// CHECK:         %[[H2:.*]] = kf.rms_norm %[[SUM]], %[[N]]
// CHECK:         kf.reduce(sum)
// AGAIN:         %[[A2:.*]] = kf.rms_norm %[[SUM]], %[[N]] {{.*}} {kf.recomputed}
// AGAIN:         kf.matmul_wgrad %{{.*}}, %[[A2]]
// AGAIN:         arith.mulf %[[SUM]], %[[SUM]]
// AGAIN:         %[[A1:.*]] = kf.rms_norm %[[X]], %[[N]] {{.*}} {kf.recomputed}
// AGAIN:         kf.matmul_wgrad %{{.*}}, %[[A1]]
// STORE-NOT:     kf.recomputed
// STORE:         kf.matmul_wgrad %{{.*}}, %[[H2]]
// STORE-NOT:     kf.recomputed
// STORE:         kf.matmul_wgrad %{{.*}}, %[[H1]]
// CHECK:         return

// The norm that is computed again is a kernel of its own, and the one before is
// a part of the product's.
// KERNELS-NOT:   kf.recomputed
// KERNELS-LABEL: kf.program @layers
// KERNELS:         kf.dispatch @rms_norm_matmul_add_0
// KERNELS:         kf.dispatch @rms_norm_0
// KERNELS:         kf.dispatch @matmul_wgrad_0
func.func @layers(%x: tensor<?x64xf32>, %w1: tensor<64x64xf32> {kf.gradient}, %w2: tensor<64x64xf32> {kf.gradient},
                  %n: tensor<64xf32>) -> tensor<f32> {
  %h1 = kf.rms_norm %x, %n eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %y1 = kf.matmul %h1, %w1 : tensor<?x64xf32>, tensor<64x64xf32>
  %x1 = arith.addf %x, %y1 : tensor<?x64xf32>
  %h2 = kf.rms_norm %x1, %n eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %y2 = kf.matmul %h2, %w2 : tensor<?x64xf32>, tensor<64x64xf32>
  %x2 = arith.addf %x1, %y2 : tensor<?x64xf32>
  %loss = kf.reduce(sum) %x2 dims = [0, 1] : tensor<?x64xf32>
  return %loss : tensor<f32>
}

// Attention's gradients are ops that compute its weights again, from queries and
// keys, or its parts' gradients, which read them.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME:      %[[Q:.*]]: tensor<2x6x8xf32>, %[[K:.*]]: tensor<2x6x8xf32>, %[[V:.*]]: tensor<2x6x8xf32>)
// AGAIN-NEXT:    kf.scaled_dot_product_attention
// AGAIN-NEXT:    kf.reduce(sum)
// AGAIN:         %[[OF_Q:.*]], %[[LSE:.*]], %[[DELTA:.*]] = kf.attention_qgrad %[[Q]], %[[K]], %[[V]], %[[DY:.*]] {causal}
// AGAIN:         %[[OF_K:.*]], %[[OF_V:.*]] = kf.attention_kvgrad %[[Q]], %[[K]], %[[V]], %[[DY]], %[[LSE]], %[[DELTA]] {causal}
// AGAIN:         return %{{.*}}, %[[OF_Q]], %[[OF_K]], %[[OF_V]]
// STORE-NOT:     kf.scaled_dot_product_attention
// STORE:         kf.batch_matmul %[[Q]], %[[K]] :
// STORE:         kf.softmax
// STORE:         kf.reduce(sum)
// STORE-NOT:     kf.softmax
// STORE:         return
func.func @attention(%q: tensor<2x6x8xf32> {kf.gradient}, %k: tensor<2x6x8xf32> {kf.gradient}, %v: tensor<2x6x8xf32> {kf.gradient}) -> tensor<f32> {
  %0 = kf.scaled_dot_product_attention %q, %k, %v {causal} : tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>
  %1 = kf.reduce(sum) %0 dims = [0, 1, 2] : tensor<2x6x8xf32>
  return %1 : tensor<f32>
}

// Rounded sums are kept, too: that derivatives ask for a cast that they do not
// read is no reader.
// CHECK-LABEL: func.func @rounded(
// CHECK-SAME:      %[[X:.*]]: tensor<?x64xbf16>
// CHECK:         %[[SUM:.*]] = arith.addf %[[X]], %{{.*}} : tensor<?x64xbf16>
// AGAIN-NOT:     kf.recomputed
// CHECK:         kf.matmul_wgrad %{{.*}}, %[[SUM]]
// AGAIN-NOT:     kf.recomputed
// CHECK:         return
func.func @rounded(%x: tensor<?x64xbf16>, %w1: tensor<64x64xbf16> {kf.gradient}, %w2: tensor<64x64xbf16> {kf.gradient}) -> tensor<f32> {
  %y1 = kf.matmul %x, %w1 : tensor<?x64xbf16>, tensor<64x64xbf16>
  %x1 = arith.addf %x, %y1 : tensor<?x64xbf16>
  %y2 = kf.matmul %x1, %w2 : tensor<?x64xbf16>, tensor<64x64xbf16>
  %wide = arith.extf %y2 : tensor<?x64xbf16> to tensor<?x64xf32>
  %loss = kf.reduce(sum) %wide dims = [0, 1] : tensor<?x64xf32>
  return %loss : tensor<f32>
}
