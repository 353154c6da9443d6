// RUN: kf-opt %s --kf-form-kernels -split-input-file | FileCheck %s

// A collective is no kernel: what makes its operand and what reads its result
// are kernels of their own, beside it.
// CHECK-LABEL: kf.program @block
// CHECK-SAME:    (%[[X:[^:]*]]:
// CHECK-NEXT:    %[[W:.*]] = kf.weight ["w"]
// CHECK-NEXT:    %[[A:.*]] = kf.dispatch @matmul_0(%[[X]], %[[W]])
// CHECK-NEXT:    %[[S:.*]] = kf.all_reduce %[[A]] : tensor<?x8xf32>
// CHECK-NEXT:    %[[R:.*]] = kf.dispatch @add_0(%[[X]], %[[S]])
// CHECK-NEXT:    %[[G:.*]] = kf.all_gather %[[R]] : tensor<?x8xf32> to tensor<?x15xf32>
// CHECK-NEXT:    kf.yield %[[G]]
// CHECK:       kf.kernel @matmul_0(
// CHECK:       kf.kernel @add_0(
// CHECK-NOT:   kf.kernel
module attributes {kf.ranks = 2 : i64} {
  func.func @block(%x: tensor<?x8xf32>) -> tensor<?x15xf32> {
    %w = kf.weight ["w"] : tensor<8x8xf32>
    %0 = kf.matmul %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
    %1 = kf.all_reduce %0 : tensor<?x8xf32>
    %2 = arith.addf %x, %1 : tensor<?x8xf32>
    %3 = kf.all_gather %2 : tensor<?x8xf32> to tensor<?x15xf32>
    return %3 : tensor<?x15xf32>
  }
}

// -----

// What it takes lies in memory: a view is copied, and so is a weight, while an
// argument is taken where it lies. A view of its result joins the kernel that
// reads it.
// CHECK-LABEL: kf.program @views
// CHECK-SAME:    (%[[X:[^:]*]]: tensor<?x2x4xf32>, %[[Y:[^:]*]]:
// CHECK-NEXT:    %[[W:.*]] = kf.weight
// CHECK-NEXT:    %[[C:.*]] = kf.dispatch @copy_0(%[[X]])
// CHECK-NEXT:    %[[A:.*]] = kf.all_reduce %[[C]] : tensor<?x8xf32>
// CHECK-NEXT:    kf.dispatch @exp_0(%[[A]])
// CHECK-NEXT:    %[[V:.*]] = kf.dispatch @copy_1(%[[W]])
// CHECK-NEXT:    kf.all_reduce %[[V]] : tensor<4x4xf32>
// CHECK-NEXT:    kf.all_reduce %[[Y]] : tensor<?x4xf32>
// CHECK:       kf.kernel @exp_0(
// CHECK:         tensor.expand_shape
// CHECK-NEXT:    math.exp
module attributes {kf.ranks = 2 : i64} {
  func.func @views(%x: tensor<?x2x4xf32>, %y: tensor<?x4xf32>)
      -> (tensor<?x2x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>) {
    %w = kf.weight ["w"] : tensor<4x4xf32>
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x2x4xf32>
    %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x2x4xf32> into tensor<?x8xf32>
    %1 = kf.all_reduce %0 : tensor<?x8xf32>
    %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [%n, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
    %3 = math.exp %2 : tensor<?x2x4xf32>
    %4 = kf.all_reduce %w : tensor<4x4xf32>
    %5 = kf.all_reduce %y : tensor<?x4xf32>
    return %3, %4, %5 : tensor<?x2x4xf32>, tensor<4x4xf32>, tensor<?x4xf32>
  }
}

// -----

// What is received is in memory, and what is sent, too; neither goes away where
// nobody reads it, nor out of its place.
// CHECK-LABEL: kf.program @stage
// CHECK-NEXT:    kf.receive : tensor<?x8xf32>
// CHECK-NEXT:    %[[X:.*]] = kf.receive : tensor<?x8xf32>
// CHECK-NEXT:    %[[E:.*]] = kf.dispatch @exp_0(%[[X]])
// CHECK-NEXT:    kf.send %[[E]] : tensor<?x8xf32>
// CHECK-NEXT:    kf.yield
// CHECK:       kf.kernel @exp_0(
// CHECK-NOT:   kf.kernel
module attributes {kf.ranks = 2 : i64} {
  func.func @stage(%ids: tensor<?xi32>) {
    %0 = kf.receive : tensor<?x8xf32>
    %1 = kf.receive : tensor<?x8xf32>
    %2 = math.exp %1 : tensor<?x8xf32>
    kf.send %2 : tensor<?x8xf32>
    return
  }
}

// -----

// A view is copied.
// CHECK-LABEL: kf.program @view
// CHECK-NEXT:    %[[C:.*]] = kf.dispatch @copy_0(%{{.*}})
// CHECK-NEXT:    kf.send %[[C]] : tensor<?x8xf32>
module attributes {kf.ranks = 2 : i64} {
  func.func @view(%x: tensor<?x2x4xf32>) {
    %0 = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x2x4xf32> into tensor<?x8xf32>
    kf.send %0 : tensor<?x8xf32>
    return
  }
}
