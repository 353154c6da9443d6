// RUN: kf-opt %s --kf-canonicalize | FileCheck %s

// A constant has a static shape: what has none stays an op, and so does what
// would be folded with it.
// CHECK-LABEL: func.func @unknown_rows
// CHECK-SAME:      (%[[X:.*]]: tensor<?x2xi32>, %[[R:.*]]: tensor<?x2xi32, #kf.size<rows>>)
func.func @unknown_rows(%x: tensor<?x2xi32>, %r: tensor<?x2xi32, #kf.size<rows>>)
    -> (tensor<?x2xi32>, tensor<?x2xi1>, tensor<?x2xi32, #kf.size<rows>>) {
  // CHECK: %[[ZERO:.*]] = arith.xori %[[X]], %[[X]] : tensor<?x2xi32>
  %0 = arith.xori %x, %x : tensor<?x2xi32>
  // CHECK: %[[SUM:.*]] = arith.addi %[[ZERO]], %[[X]]
  %1 = arith.addi %0, %x : tensor<?x2xi32>
  // CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[SUM]], %[[SUM]]
  %2 = arith.cmpi eq, %1, %1 : tensor<?x2xi32>
  // CHECK: %[[NAMED:.*]] = arith.xori %[[R]], %[[R]] : tensor<?x2xi32, #kf.size<rows>>
  %3 = arith.xori %r, %r : tensor<?x2xi32, #kf.size<rows>>
  // CHECK: return %[[SUM]], %[[SAME]], %[[NAMED]]
  return %1, %2, %3 : tensor<?x2xi32>, tensor<?x2xi1>, tensor<?x2xi32, #kf.size<rows>>
}

// CHECK-LABEL: func.func @known_rows
func.func @known_rows(%x: tensor<4x2xi32>) -> (tensor<4x2xi32>, tensor<4x2xi1>) {
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : tensor<4x2xi32>
  // CHECK-DAG: %[[TRUE:.*]] = arith.constant dense<true> : tensor<4x2xi1>
  %0 = arith.xori %x, %x : tensor<4x2xi32>
  %1 = arith.cmpi eq, %x, %x : tensor<4x2xi32>
  // CHECK: return %[[ZERO]], %[[TRUE]]
  return %0, %1 : tensor<4x2xi32>, tensor<4x2xi1>
}

// Values are folded, and patterns applied, whatever the shape.
// CHECK-LABEL: func.func @values
// CHECK-SAME:      (%[[X:.*]]: tensor<?x2xi1>, %[[P:.*]]: tensor<?xi32>, %[[H:.*]]: tensor<?x2x8xf32>)
func.func @values(%x: tensor<?x2xi1>, %p: tensor<?xi32>, %h: tensor<?x2x8xf32>)
    -> (tensor<?x2xi1>, tensor<?x2x8xf32>) {
  %0 = arith.select %x, %x, %x : tensor<?x2xi1>, tensor<?x2xi1>
  %1 = arith.andi %0, %x : tensor<?x2xi1>
  // CHECK-NEXT: %[[ROPE:.*]] = kf.rope %[[H]], %[[P]] {rotary_dim = 8 : i64, theta = 1.000000e+04 : f64}
  %2 = kf.rope %h, %p {rotary_dim = 8 : i64, theta = 1.0e4 : f64, scaling = #kf.rope_scaling<linear, factor = 1.0>} : tensor<?x2x8xf32>, tensor<?xi32>
  // CHECK-NEXT: return %[[X]], %[[ROPE]]
  return %1, %2 : tensor<?x2xi1>, tensor<?x2x8xf32>
}
