// RUN: kf-opt %s --canonicalize | FileCheck %s

//===----------------------------------------------------------------------===//
// activation
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @identity(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xf32>
// CHECK-NEXT:    return %[[X]]
func.func @identity(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kf.activation(identity) %x : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: @relu_of_relu
// CHECK-NEXT:    %[[R:.*]] = kf.activation(relu)
// CHECK-NEXT:    return %[[R]]
func.func @relu_of_relu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kf.activation(relu) %x : tensor<?x8xf32>
  %1 = kf.activation(relu) %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// Only relu is idempotent.
// CHECK-LABEL: @silu_of_silu
// CHECK-COUNT-2: kf.activation(silu)
// CHECK:         return
func.func @silu_of_silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kf.activation(silu) %x : tensor<?x8xf32>
  %1 = kf.activation(silu) %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// CHECK-LABEL: @relu_of_gelu
// CHECK:         kf.activation(gelu)
// CHECK:         kf.activation(relu)
func.func @relu_of_gelu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = kf.activation(gelu) %x : tensor<?x8xf32>
  %1 = kf.activation(relu) %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @zero_bias
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} : tensor<?x8xf32>, tensor<4x8xf32>
// CHECK-NEXT:    return
func.func @zero_bias(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %b = arith.constant dense<0.0> : tensor<4xf32>
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: @zero_bias_glu
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} glu(silu) : tensor<?x8xf32>, tensor<2x4x8xf32>
// CHECK-NEXT:    return
func.func @zero_bias_glu(%x: tensor<?x8xf32>, %w: tensor<2x4x8xf32>) -> tensor<?x4xf32> {
  %b = arith.constant dense<0.0> : tensor<2x4xf32>
  %0 = kf.matmul %x, %w bias(%b) glu(silu) : tensor<?x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: @other_bias
// CHECK:         kf.matmul %{{.*}}, %{{.*}} bias(
func.func @other_bias(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %b = arith.constant dense<[0.0, 0.0, 1.0, 0.0]> : tensor<4xf32>
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>
  return %0 : tensor<?x4xf32>
}

// A bias that is not known here stays.
// CHECK-LABEL: @weight_bias
// CHECK:         kf.matmul %{{.*}}, %{{.*}} bias(
func.func @weight_bias(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
  %b = kf.weight ["zeros"] : tensor<4xf32>
  %0 = kf.matmul %x, %w bias(%b) : tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>
  return %0 : tensor<?x4xf32>
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @unit_scaling
// CHECK-NEXT:    kf.rope %{{.*}}, %{{.*}} {rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}
func.func @unit_scaling(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64,
                       scaling = #kf.rope_scaling<linear, factor = 1.0>}
      : tensor<?x2x8xf32>, tensor<?xi32>
  return %0 : tensor<?x2x8xf32>
}

// CHECK-LABEL: @other_scaling
// CHECK:         #kf.rope_scaling<linear, factor = 2.0>
// CHECK:         #kf.rope_scaling<llama3, factor = 1.0,
func.func @other_scaling(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>) -> tensor<?x2x8xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64,
                       scaling = #kf.rope_scaling<linear, factor = 2.0>}
      : tensor<?x2x8xf32>, tensor<?xi32>
  %1 = kf.rope %0, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64,
      scaling = #kf.rope_scaling<llama3, factor = 1.0, low_freq_factor = 1.0,
                                 high_freq_factor = 4.0, original_context = 64>}
      : tensor<?x2x8xf32>, tensor<?xi32>
  return %1 : tensor<?x2x8xf32>
}

//===----------------------------------------------------------------------===//
// pack
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @pack_of_weight
// CHECK-NEXT:    kf.weight ["a", "b"] {stacked, transposed} : tensor<2x64x8xf32, #kf.layout<panel = 32>>
// CHECK-NEXT:    return
func.func @pack_of_weight() -> tensor<2x64x8xf32, #kf.layout<panel = 32>> {
  %0 = kf.weight ["a", "b"] {stacked, transposed} : tensor<2x64x8xf32>
  %1 = kf.pack %0 : tensor<2x64x8xf32> to tensor<2x64x8xf32, #kf.layout<panel = 32>>
  return %1 : tensor<2x64x8xf32, #kf.layout<panel = 32>>
}

// CHECK-LABEL: @pack_of_argument
// CHECK-NEXT:    kf.pack
func.func @pack_of_argument(%w: tensor<64x8xf32>) -> tensor<64x8xf32, #kf.layout<panel = 32>> {
  %0 = kf.pack %w : tensor<64x8xf32> to tensor<64x8xf32, #kf.layout<panel = 32>>
  return %0 : tensor<64x8xf32, #kf.layout<panel = 32>>
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 8, type = f32>

// Ops on tensors go when nobody reads them; appends to the cache stay.
// CHECK-LABEL: @effects
// CHECK-NEXT:    kf.kv_append
// CHECK-NEXT:    return
func.func @effects(%x: tensor<?x2x8xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %c: !cache) {
  %0 = kf.softmax %x : tensor<?x2x8xf32>
  %w = kf.weight ["w"] : tensor<8xf32>
  kf.kv_append %c, %x, %x, %p, %sp, %pt {layer = 0 : i64} : !cache, tensor<?x2x8xf32>, tensor<?xi32>, tensor<1x4xi32>
  %1 = kf.attention %x, %c, %p, %sp, %pt {layer = 0 : i64, scale = 1.0 : f32}
      : tensor<?x2x8xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return
}
