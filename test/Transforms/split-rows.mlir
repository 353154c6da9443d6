// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-split-rows{most-bytes=524288}))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-differentiate, func.func(kf-split-rows{most-bytes=524288}))' | FileCheck %s --check-prefix=BOTH
// RUN: kf-opt %s --pass-pipeline='builtin.module(func.func(kf-split-rows{most-bytes=524288}, cse))' | FileCheck %s --check-prefix=CSE

// 524288 bytes are 131 rows of 1000 numbers, and a power of two is 128 of them.
// The last part has what is left. Losses are joined, and those that read them
// stay behind.
// CHECK-LABEL: func.func @losses(
// CHECK-SAME:      %[[X:.*]]: tensor<300x64xf32>, %[[LABELS:.*]]: tensor<300xi32>)
// CHECK:         %[[HEAD:.*]] = kf.weight ["head"]
// CHECK-NEXT:    %[[X0:.*]] = tensor.extract_slice %[[X]][0, 0] [128, 64] [1, 1]
// CHECK-NEXT:    %[[COPY0:.*]] = kf.copy %[[X0]]
// CHECK-NEXT:    %[[LOGITS0:.*]] = kf.matmul %[[COPY0]], %[[HEAD]] : tensor<128x64xf32>
// CHECK-NEXT:    %[[L0:.*]] = tensor.extract_slice %[[LABELS]][0] [128] [1]
// CHECK-NEXT:    %[[LABELS0:.*]] = kf.copy %[[L0]]
// CHECK-NEXT:    %[[LOSSES0:.*]] = kf.cross_entropy %[[LOGITS0]], %[[LABELS0]] : tensor<128x1000xf32>
// CHECK-NEXT:    tensor.extract_slice %[[X]][128, 0] [128, 64] [1, 1]
// CHECK:         %[[LOSSES1:.*]] = kf.cross_entropy %{{.*}} : tensor<128x1000xf32>
// CHECK-NEXT:    tensor.extract_slice %[[X]][256, 0] [44, 64] [1, 1]
// CHECK:         %[[LOSSES2:.*]] = kf.cross_entropy %{{.*}} : tensor<44x1000xf32>
// CHECK-NEXT:    %[[JOINED:.*]] = tensor.concat dim(0) %[[LOSSES0]], %[[LOSSES1]], %[[LOSSES2]]
// CHECK-NEXT:    %[[ALL:.*]] = kf.copy %[[JOINED]] : tensor<300xf32>
// CHECK-NEXT:    %[[SUM:.*]] = kf.reduce(sum) %[[ALL]] dims = [0]
// CHECK-NEXT:    return %[[SUM]]
func.func @losses(%x: tensor<300x64xf32>, %labels: tensor<300xi32>) -> tensor<f32> {
  %head = kf.weight ["head"] : tensor<1000x64xf32>
  %logits = kf.matmul %x, %head : tensor<300x64xf32>, tensor<1000x64xf32>
  %losses = kf.cross_entropy %logits, %labels : tensor<300x1000xf32>, tensor<300xi32>
  %sum = kf.reduce(sum) %losses dims = [0] : tensor<300xf32>
  return %sum : tensor<f32>
}

// Gradients of logits are parts, too, each behind its logits, and the first sum,
// which the loss is, is behind all of them.
// BOTH-LABEL: func.func @losses(
// BOTH-LABEL: func.func @gradients(
// BOTH-NOT:     tensor<300x1000xf32>
// BOTH-COUNT-2: kf.matmul_dgrad %{{.*}} : tensor<128x1000xf32>
// BOTH:         %[[LOGITS:.*]] = kf.matmul %{{.*}} : tensor<44x64xf32>
// BOTH:         kf.cross_entropy %[[LOGITS]], %{{.*}} : tensor<44x1000xf32>
// BOTH:         kf.softmax %[[LOGITS]]
// BOTH:         kf.matmul_dgrad %{{.*}} : tensor<44x1000xf32>
// BOTH:         tensor.concat dim(0) {{.*}} -> tensor<300xf32>
// BOTH:         tensor.concat dim(0) {{.*}} -> tensor<300x64xf32>
// BOTH:         kf.reduce(sum)
// BOTH-NOT:     tensor<300x1000xf32>
// BOTH:         return
func.func @gradients(%x: tensor<300x64xf32> {kf.gradient}, %labels: tensor<300xi32>) -> tensor<f32> {
  %head = kf.weight ["head"] : tensor<1000x64xf32>
  %logits = kf.matmul %x, %head : tensor<300x64xf32>, tensor<1000x64xf32>
  %losses = kf.cross_entropy %logits, %labels : tensor<300x1000xf32>, tensor<300xi32>
  %sum = kf.reduce(sum) %losses dims = [0] : tensor<300xf32>
  return %sum : tensor<f32>
}

// The gradient of a weight sums over all rows.
// BOTH-LABEL: func.func @weights(
// BOTH:         kf.matmul_wgrad %{{.*}} : tensor<300x1000xf32>
func.func @weights(%x: tensor<300x64xf32>, %labels: tensor<300xi32>, %head: tensor<1000x64xf32> {kf.gradient}) -> tensor<f32> {
  %logits = kf.matmul %x, %head : tensor<300x64xf32>, tensor<1000x64xf32>
  %losses = kf.cross_entropy %logits, %labels : tensor<300x1000xf32>, tensor<300xi32>
  %sum = kf.reduce(sum) %losses dims = [0] : tensor<300xf32>
  return %sum : tensor<f32>
}

// A product's weight that is made of what the product gives, all rows of it.
// CHECK-LABEL: func.func @wholes(
// CHECK:         kf.matmul %{{.*}} : tensor<300x64xf32>
// CHECK:         kf.matmul %{{.*}} : tensor<300x1000xf32>
func.func @wholes(%x: tensor<300x64xf32>, %w: tensor<1000x64xf32>) -> tensor<300x300xf32> {
  %y = kf.matmul %x, %w : tensor<300x64xf32>, tensor<1000x64xf32>
  %z = kf.matmul %y, %y : tensor<300x1000xf32>, tensor<300x1000xf32>
  return %z : tensor<300x300xf32>
}

// The longest row's largest number is what all rows are divided by.
// CHECK-LABEL: func.func @cycle(
// CHECK:         kf.matmul %{{.*}} : tensor<300x64xf32>
// CHECK:         kf.reduce(max) %{{.*}} : tensor<300x1000xf32>
func.func @cycle(%x: tensor<300x64xf32>, %w: tensor<1000x64xf32>) -> tensor<300xf32> {
  %y = kf.matmul %x, %w : tensor<300x64xf32>, tensor<1000x64xf32>
  %rows = kf.reduce(max) %y dims = [1] : tensor<300x1000xf32>
  %one = kf.reduce(max) %rows dims = [0] keep_dims : tensor<300xf32>
  %two = tensor.expand_shape %one [[0, 1]] output_shape [1, 1] : tensor<1xf32> into tensor<1x1xf32>
  %most = kf.broadcast %two : tensor<1x1xf32> to tensor<300x1000xf32>
  %z = arith.divf %y, %most : tensor<300x1000xf32>
  %sum = kf.reduce(sum) %z dims = [1] : tensor<300x1000xf32>
  return %sum : tensor<300xf32>
}

// So few rows are computed at once, and a `?` of them always.
// CHECK-LABEL: func.func @few(
// CHECK:         kf.matmul %{{.*}} : tensor<128x64xf32>, tensor<2000x64xf32>
// CHECK:         kf.matmul %{{.*}} : tensor<?x64xf32>, tensor<2000x64xf32>
func.func @few(%x: tensor<128x64xf32>, %y: tensor<?x64xf32>, %w: tensor<2000x64xf32>) -> (tensor<128xf32>, tensor<?xf32>) {
  %a = kf.matmul %x, %w : tensor<128x64xf32>, tensor<2000x64xf32>
  %b = kf.reduce(sum) %a dims = [1] : tensor<128x2000xf32>
  %c = kf.matmul %y, %w : tensor<?x64xf32>, tensor<2000x64xf32>
  %d = kf.reduce(sum) %c dims = [1] : tensor<?x2000xf32>
  return %b, %d : tensor<128xf32>, tensor<?xf32>
}

// What a product's bias is made of is a sum over rows of what another one gives,
// and so is what is added to its columns: all rows of it are there behind the
// last part alone.
// CHECK-LABEL: func.func @bias(
// CHECK:         kf.matmul %{{.*}} : tensor<300x64xf32>
// CHECK:         kf.matmul %{{.*}} bias(%{{.*}}) : tensor<300x1000xf32>
func.func @bias(%x: tensor<300x64xf32>, %w: tensor<1000x64xf32>, %v: tensor<300x1000xf32>) -> tensor<300x300xf32> {
  %y = kf.matmul %x, %w : tensor<300x64xf32>, tensor<1000x64xf32>
  %r = kf.reduce(sum) %y dims = [1] : tensor<300x1000xf32>
  %z = kf.matmul %y, %v bias(%r) : tensor<300x1000xf32>, tensor<300x1000xf32>, tensor<300xf32>
  return %z : tensor<300x300xf32>
}

// CHECK-LABEL: func.func @columns(
// CHECK:         kf.matmul %{{.*}} : tensor<800x64xf32>
// CHECK:         arith.addf %{{.*}} : tensor<800x800xf32>
func.func @columns(%x: tensor<800x64xf32>, %w: tensor<800x64xf32>) -> tensor<800xf32> {
  %y = kf.matmul %x, %w : tensor<800x64xf32>, tensor<800x64xf32>
  %r = kf.reduce(sum) %y dims = [1] : tensor<800x800xf32>
  %all = kf.broadcast %r : tensor<800xf32> to tensor<800x800xf32>
  %z = arith.addf %y, %all : tensor<800x800xf32>
  %rows = kf.reduce(sum) %z dims = [1] : tensor<800x800xf32>
  return %rows : tensor<800xf32>
}

// What drops out depends on the number of a row among all of them.
// CHECK-LABEL: func.func @drops(
// CHECK:         kf.matmul %{{.*}} : tensor<300x64xf32>
// CHECK:         kf.dropout %{{.*}} : tensor<300x1000xf32>
func.func @drops(%x: tensor<300x64xf32>, %w: tensor<1000x64xf32>, %draw: tensor<4xi32>) -> tensor<300xf32> {
  %y = kf.matmul %x, %w : tensor<300x64xf32>, tensor<1000x64xf32>
  %d = kf.dropout %y, %draw {p = 2.500000e-01 : f32} : tensor<300x1000xf32>, tensor<4xi32>
  %r = kf.reduce(sum) %d dims = [1] : tensor<300x1000xf32>
  return %r : tensor<300xf32>
}

// Parts of what both the forward pass and what is computed again read are copies
// of each, or those of the first one would be kept for the second.
// CSE-LABEL: func.func @again(
// CSE-COUNT-3: kf.copy %{{.*}} : tensor<{{128|44}}x64xf32>
// CSE:         kf.reduce(sum) %{{.*}} : tensor<300xf32>
// CSE:         kf.copy %{{.*}} {kf.recomputed = 1 : i64} : tensor<128x64xf32>
// CSE:         kf.copy %{{.*}} {kf.recomputed = 1 : i64} : tensor<128x64xf32>
// CSE:         kf.copy %{{.*}} {kf.recomputed = 1 : i64} : tensor<44x64xf32>
// CSE:         return
func.func @again(%x: tensor<300x64xf32>, %w: tensor<1000x64xf32>) -> (tensor<f32>, tensor<300xf32>) {
  %y = kf.matmul %x, %w : tensor<300x64xf32>, tensor<1000x64xf32>
  %z = kf.reduce(sum) %y dims = [1] : tensor<300x1000xf32>
  %loss = kf.reduce(sum) %z dims = [0] : tensor<300xf32>
  %y1 = kf.matmul %x, %w {kf.recomputed = 1 : i64} : tensor<300x64xf32>, tensor<1000x64xf32>
  %z1 = kf.reduce(max) %y1 dims = [1] {kf.recomputed = 1 : i64} : tensor<300x1000xf32>
  return %loss, %z1 : tensor<f32>, tensor<300xf32>
}
