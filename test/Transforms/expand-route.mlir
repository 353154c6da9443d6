// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-expand-route))' | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cpu:x86-64-v4 --kf-fuse --kf-program | FileCheck %s --check-prefix=KERNELS
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_90a --kf-fuse --kf-program | FileCheck %s --check-prefix=WHOLE
// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-fuse --kf-program | FileCheck %s --check-prefix=WHOLE

// A column's rank is the number of those before it: larger ones, and equal ones
// in front of it.
// CHECK-LABEL: @normalized(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xf32>)
// CHECK:         kf.broadcast %{{.*}} : tensor<?x1x8xf32> to tensor<?x8x8xf32>
// CHECK:         kf.broadcast %{{.*}} : tensor<?x8x1xf32> to tensor<?x8x8xf32>
// CHECK:         %[[EARLIER:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<?x8x8xi32>
// CHECK:         %[[LARGER:.*]] = arith.cmpf ogt, %{{.*}}, %{{.*}} : tensor<?x8x8xf32>
// CHECK:         %[[EQUAL:.*]] = arith.cmpf oeq, %{{.*}}, %{{.*}} : tensor<?x8x8xf32>
// CHECK:         %[[TIE:.*]] = arith.andi %[[EQUAL]], %[[EARLIER]]
// CHECK:         %[[BEFORE:.*]] = arith.ori %[[LARGER]], %[[TIE]]
// CHECK:         %[[ONES:.*]] = arith.extui %[[BEFORE]] : tensor<?x8x8xi1> to tensor<?x8x8xi32>
// CHECK:         kf.reduce(sum) %[[ONES]] dims = [2]
// CHECK:         %[[NUMBERS:.*]] = kf.reduce(sum) %{{.*}} dims = [2] : tensor<?x2x8xi32>
// CHECK:         %[[LOGITS:.*]] = kf.reduce(sum) %{{.*}} dims = [2] : tensor<?x2x8xf32>
// CHECK:         %[[WEIGHTS:.*]] = kf.softmax %[[LOGITS]] : tensor<?x2xf32>
// CHECK:         return %[[NUMBERS]], %[[WEIGHTS]]
// KERNELS-LABEL: kf.program @normalized
// KERNELS-COUNT-5: kf.dispatch
// KERNELS-NEXT:  kf.yield
// WHOLE-LABEL:   kf.program @normalized
// WHOLE-NEXT:    %[[ROUTED:.*]]:2 = kf.dispatch @route_0
// WHOLE-NEXT:    kf.yield %[[ROUTED]]#0, %[[ROUTED]]#1
func.func @normalized(%x: tensor<?x8xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) normalized : tensor<?x8xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}

// What is chosen is multiplied by the scale of its expert.
// CHECK-LABEL: @scaled(
// CHECK-SAME:    tensor<?x8xf32>, %[[SCALES:[^:]*]]: tensor<8xbf16>)
// CHECK:         %[[SOFTMAX:.*]] = kf.softmax %{{.*}} : tensor<?x2xf32>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[SCALES]] : tensor<8xbf16> to tensor<8xf32>
// CHECK:         kf.broadcast %[[WIDE]] : tensor<8xf32> to tensor<?x2x8xf32>
// CHECK:         %[[OWN:.*]] = kf.reduce(sum) %{{.*}} dims = [2] : tensor<?x2x8xf32>
// CHECK:         %[[WEIGHTS:.*]] = arith.mulf %[[SOFTMAX]], %[[OWN]] : tensor<?x2xf32>
// CHECK:         return %{{.*}}, %[[WEIGHTS]]
func.func @scaled(%x: tensor<?x8xf32>, %s: tensor<8xbf16>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) normalized scales(%s : tensor<8xbf16>) : tensor<?x8xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}

// CHECK-LABEL: @plain(
// CHECK:         %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<4x8xbf16> to tensor<4x8xf32>
// CHECK:         %[[ALL:.*]] = kf.softmax %[[WIDE]] : tensor<4x8xf32>
// CHECK:         tensor.expand_shape %[[ALL]]
// CHECK:         %[[WEIGHTS:.*]] = kf.reduce(sum) %{{.*}} dims = [2] : tensor<4x2x8xf32>
// CHECK:         return %{{.*}}, %[[WEIGHTS]]
func.func @plain(%x: tensor<4x8xbf16>) -> (tensor<4x2xi32>, tensor<4x2xf32>) {
  %e, %w = kf.route %x top(2) : tensor<4x8xbf16>
  return %e, %w : tensor<4x2xi32>, tensor<4x2xf32>
}

// Sigmoids are of what is chosen alone, which their sum divides.
// CHECK-LABEL: @sigmoid(
// CHECK-SAME:    %[[X:.*]]: tensor<?x8xf32>)
// CHECK:         tensor.expand_shape %[[X]]
// CHECK:         %[[LOGITS:.*]] = kf.reduce(sum) %{{.*}} dims = [2] : tensor<?x2x8xf32>
// CHECK:         %[[NEGATIVE:.*]] = arith.negf %[[LOGITS]] : tensor<?x2xf32>
// CHECK:         math.exp %[[NEGATIVE]]
// CHECK:         %[[WEIGHTS:.*]] = arith.divf
// CHECK:         kf.reduce(sum) %[[WEIGHTS]] dims = [1] keep_dims
// CHECK:         arith.divf %[[WEIGHTS]]
func.func @sigmoid(%x: tensor<?x8xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) sigmoid normalized : tensor<?x8xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}

// Groups whose best pair is not among the best count as -inf.
// CHECK-LABEL: @groups(
// CHECK-SAME:    tensor<?x8xf32>, %[[BIAS:[^:]*]]: tensor<8xf32>)
// CHECK:         %[[SIGMOID:.*]] = arith.divf
// CHECK:         %[[OFFSET:.*]] = kf.broadcast %[[BIAS]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[SIGMOID]], %[[OFFSET]] : tensor<?x8xf32>
// CHECK:         %[[PAIRS:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<?x4x2x2xf32>
// CHECK:         %[[NUMBERS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[PAIRS]]
// CHECK:         %[[OTHERS:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NUMBERS]]
// CHECK:         kf.reduce(max) %[[OTHERS]] dims = [2, 3]
// CHECK:         %[[KEPT:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<?x4x2xi32>
// CHECK:         arith.select %[[KEPT]], %{{.*}}, %{{.*}} : tensor<?x4x2xi1>, tensor<?x4x2xf32>
// CHECK:         tensor.collapse_shape %{{.*}} : tensor<?x4x2xf32> into tensor<?x8xf32>
// WHOLE-LABEL:   kf.program @groups
// WHOLE-NOT:     @route
// WHOLE-COUNT-5: kf.dispatch @{{.*}}
// WHOLE:         kf.yield
func.func @groups(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) sigmoid bias(%b : tensor<8xf32>) groups(4, 2) : tensor<?x8xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}

// A workgroup of a GPU compares so many experts, and no more.
// WHOLE-LABEL:   kf.program @most
// WHOLE-NEXT:    kf.dispatch @route_{{[0-9]+}}
// WHOLE-NEXT:    kf.yield
func.func @most(%x: tensor<?x512xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) normalized : tensor<?x512xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}

// WHOLE-LABEL:   kf.program @more
// WHOLE-NOT:     @route
// WHOLE-COUNT-5: kf.dispatch
// WHOLE-NEXT:    kf.yield
func.func @more(%x: tensor<?x513xf32>) -> (tensor<?x2xi32>, tensor<?x2xf32>) {
  %e, %w = kf.route %x top(2) normalized : tensor<?x513xf32>
  return %e, %w : tensor<?x2xi32>, tensor<?x2xf32>
}
