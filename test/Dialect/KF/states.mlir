// RUN: kf-opt %s | kf-opt | FileCheck %s
// RUN: kf-opt %s --mlir-print-op-generic | kf-opt | FileCheck %s

!cache = !kf.state_cache<layers = 3, heads = 4, elements = 136, slot_pages = 32>

// CHECK-LABEL: @delta
func.func @delta(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>,
    %v: tensor<?x4x8xf32>, %a: tensor<?x4xf32>, %b: tensor<?x4xf32>,
    %w: tensor<64x1x4xbf16>, %decay: tensor<4xf32>, %bias: tensor<4xbf16>,
    %cache: !cache, %p: tensor<?xi32>, %sp: tensor<?xi32>,
    %s: tensor<?xi32, #kf.size<sequences>>) -> tensor<?x4x8xf32> {
  // CHECK: kf.gated_delta %{{.*}} {layer = 2 : i64} : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>, tensor<64x1x4xbf16>, tensor<4xf32>, tensor<4xbf16>, <layers = 3, heads = 4, elements = 136, slot_pages = 32>, tensor<?xi32>, tensor<?xi32, #kf.size<sequences>>
  %0 = kf.gated_delta %q, %k, %v, %a, %b, %w, %decay, %bias, %cache, %p, %sp, %s
      {layer = 2 : i64}
      : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>,
        tensor<64x1x4xbf16>, tensor<4xf32>, tensor<4xbf16>, !cache,
        tensor<?xi32>, tensor<?xi32, #kf.size<sequences>>
  return %0 : tensor<?x4x8xf32>
}

// CHECK-LABEL: @tile
func.func @tile(%q: tensor<?x2x8xf32>, %v: tensor<?x4x8xf32>,
    %a: tensor<?x4xf32>, %w: tensor<64x1x4xbf16>, %decay: tensor<4xf32>,
    %cache: !cache, %p: tensor<?xi32>, %s: tensor<2xi32>, %sequence: index,
    %head: index) -> tensor<?x1x8xf32> {
  // CHECK: kf.gated_delta {{.*}} tile(%{{.*}}, %{{.*}}) {layer = 0 : i64}
  %0 = kf.gated_delta %q, %q, %v, %a, %a, %w, %decay, %decay, %cache, %p, %p, %s
      tile(%sequence, %head) {layer = 0 : i64}
      : tensor<?x2x8xf32>, tensor<?x4x8xf32>, tensor<?x4xf32>,
        tensor<64x1x4xbf16>, tensor<4xf32>, tensor<4xf32>, !cache,
        tensor<?xi32>, tensor<2xi32>
  return %0 : tensor<?x1x8xf32>
}
