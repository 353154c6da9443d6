// A kernel alone is of one rank: what a collective makes is an argument.

// RUN: kf-run emit-mlir %s --compile-to=program --device reference --kernel add_0 \
// RUN:   | FileCheck %s
// CHECK:      module attributes {
// CHECK-NOT:  kf.ranks
// CHECK:      kf.program @add_0_alone(%arg0: tensor<?x8xf32>, %arg1: tensor<?x8xf32>)
// CHECK-NEXT:   kf.dispatch @add_0(%arg0, %arg1)
// CHECK-NEXT:   kf.yield
module attributes {kf.ranks = 2 : i64} {
  func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %0 = kf.all_reduce %x : tensor<?x8xf32>
    %1 = arith.addf %0, %x : tensor<?x8xf32>
    return %1 : tensor<?x8xf32>
  }
}
