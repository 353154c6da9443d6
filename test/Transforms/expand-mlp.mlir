// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-expand-mlp))' | FileCheck %s

// CHECK-LABEL: @plain(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[U:.*]]: tensor<96x64xbf16>, %[[D:.*]]: tensor<64x96xbf16>)
// CHECK-NEXT:    %[[UP:.*]] = kf.matmul %[[X]], %[[U]] : tensor<?x64xf32>, tensor<96x64xbf16>
// CHECK-NEXT:    %[[ACT:.*]] = kf.activation(gelu_tanh) %[[UP]]
// CHECK-NEXT:    %[[R:.*]] = kf.matmul %[[ACT]], %[[D]] : tensor<?x96xf32>, tensor<64x96xbf16>
// CHECK-NEXT:    return %[[R]]
func.func @plain(%x: tensor<?x64xf32>, %u: tensor<96x64xbf16>, %d: tensor<64x96xbf16>)
    -> tensor<?x64xf32> {
  %0 = kf.mlp %x up(%u) down(%d) activation(gelu_tanh)
      : (tensor<?x64xf32>, tensor<96x64xbf16>, tensor<64x96xbf16>)
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: @gated(
// CHECK-SAME:    %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<96x64xf32>, %[[U:.*]]: tensor<96x64xf32>, %[[D:.*]]: tensor<64x96xf32>
// CHECK-SAME:    %[[GB:.*]]: tensor<96xf32>, %[[UB:.*]]: tensor<96xf32>, %[[DB:.*]]: tensor<64xf32>)
// CHECK-NEXT:    %[[GATE:.*]] = kf.matmul %[[X]], %[[G]] bias(%[[GB]])
// CHECK-NEXT:    %[[ACT:.*]] = kf.activation(silu) %[[GATE]]
// CHECK-NEXT:    %[[UP:.*]] = kf.matmul %[[X]], %[[U]] bias(%[[UB]])
// CHECK-NEXT:    %[[INNER:.*]] = arith.mulf %[[ACT]], %[[UP]]
// CHECK-NEXT:    %[[R:.*]] = kf.matmul %[[INNER]], %[[D]] bias(%[[DB]])
// CHECK-NEXT:    return %[[R]]
func.func @gated(%x: tensor<?x64xf32>, %g: tensor<96x64xf32>, %u: tensor<96x64xf32>,
                 %d: tensor<64x96xf32>, %gb: tensor<96xf32>, %ub: tensor<96xf32>,
                 %db: tensor<64xf32>) -> tensor<?x64xf32> {
  %0 = kf.mlp %x gate(%g) up(%u) down(%d) gate_bias(%gb) up_bias(%ub) down_bias(%db)
      activation(silu)
      : (tensor<?x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>, tensor<64x96xf32>,
         tensor<96xf32>, tensor<96xf32>, tensor<64xf32>)
  return %0 : tensor<?x64xf32>
}

// Nothing else changes.
// CHECK-LABEL: @other
// CHECK-NEXT:    kf.softmax
// CHECK-NEXT:    return
func.func @other(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = kf.softmax %x : tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
