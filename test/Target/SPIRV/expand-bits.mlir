// RUN: kf-opt %s --kf-spirv-expand-bits | FileCheck %s

gpu.module @k {
  // CHECK-LABEL: gpu.func @arithmetic
  // CHECK-SAME:    (%[[M:.*]]: memref<?xi1>, %[[I:.*]]: index, %[[A:.*]]: i1, %[[B:.*]]: i1)
  gpu.func @arithmetic(%m: memref<?xi1>, %i: index, %a: i1, %b: i1) kernel {
    // Quotients and shifts of 0 and -1; amounts of shifts have no sign.
    // CHECK: %[[X:.*]] = arith.extsi %[[A]] : i1 to i32
    // CHECK: %[[Y:.*]] = arith.extui %[[B]] : i1 to i32
    // CHECK: %[[SHIFTED:.*]] = arith.shrsi %[[X]], %[[Y]] : i32
    // CHECK: %[[BIT:.*]] = arith.trunci %[[SHIFTED]] : i32 to i1
    %0 = arith.shrsi %a, %b : i1
    // CHECK: %[[U:.*]] = arith.extui %[[BIT]] : i1 to i32
    // CHECK: arith.muli %[[U]], %{{.*}} : i32
    %1 = arith.muli %0, %b : i1
    // CHECK: arith.extsi %{{.*}} : i1 to i32
    // CHECK: arith.extsi %{{.*}} : i1 to i32
    // CHECK: %[[LESS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
    %2 = arith.cmpi slt, %1, %a : i1
    // Logic stays.
    // CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[LESS]], %[[B]] : i1
    // CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[SAME]], %[[A]] : i1
    %3 = arith.cmpi eq, %2, %b : i1
    %4 = arith.andi %3, %a : i1
    // CHECK-NEXT: memref.store %[[BOTH]]
    memref.store %4, %m[%i] : memref<?xi1>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @conversions
  // CHECK-SAME:    (%[[M:.*]]: memref<?xf32>, %[[I:.*]]: index, %[[X:.*]]: f32)
  gpu.func @conversions(%m: memref<?xf32>, %i: index, %x: f32) kernel {
    // CHECK: %[[N:.*]] = arith.fptosi %[[X]] : f32 to i32
    // CHECK: %[[BIT:.*]] = arith.trunci %[[N]] : i32 to i1
    %0 = arith.fptosi %x : f32 to i1
    // CHECK: %[[S:.*]] = arith.extsi %[[BIT]] : i1 to i32
    // CHECK: arith.sitofp %[[S]] : i32 to f32
    %1 = arith.sitofp %0 : i1 to f32
    memref.store %1, %m[%i] : memref<?xf32>
    gpu.return
  }
}
