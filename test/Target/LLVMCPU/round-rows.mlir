// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s
// RUN: sed 's/workers = 2/workers = 1/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=ALONE
// RUN: sed 's/int8_dot = true/int8_dot = false/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=ALONE

// ALONE-NOT: kf.quantize_rows

module attributes {kf.target = #kf.cpu_target<cpu = "native", int8_dot = true, workers = 2>} {

// Eight groups of columns, four for each worker, would round the row.
// CHECK-LABEL: func.func @wide_row(
// CHECK-SAME:    %[[X:.*]]: tensor<1x4096xf32>, %[[G:.*]]: tensor<4096xf32>
// CHECK:         %[[N:.*]] = kf.rms_norm %[[X]], %[[G]]
// CHECK:         %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows %[[N]] group(32) : tensor<1x4096xf32>
// CHECK:         kf.matmul %[[C]] scales(%[[S]] : tensor<1x128xf32>) sums(%[[T]] : tensor<1x128xi32>), %{{.*}} : tensor<1x4096xi8>, tensor<512x4096x!kf.quant<q4_0>>
func.func @wide_row(%x: tensor<1x4096xf32>, %g: tensor<4096xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x4096x!kf.quant<q4_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<1x4096xf32>, tensor<4096xf32>
  %1 = kf.matmul %0, %w : tensor<1x4096xf32>, tensor<512x4096x!kf.quant<q4_0>>
  return %1 : tensor<1x512xf32>
}

// Of rows with experts, those that all experts of a token read.
// CHECK-LABEL: func.func @experts(
// CHECK:         %[[C:.*]], %[[S:.*]], %[[T:.*]] = kf.quantize_rows %{{.*}} group(32) : tensor<1x4096xf32>
// CHECK:         %[[H:.*]] = kf.expert_matmul %[[C]] scales(%[[S]] : tensor<1x128xf32>) sums(%[[T]] : tensor<1x128xi32>) experts(%{{.*}}), %{{.*}} glu(silu)
// CHECK:         kf.expert_matmul %[[H]] experts(
func.func @experts(%x: tensor<1x4096xf32>, %e: tensor<1x2xi32>) -> tensor<1x2x4096xf32> {
  %u = kf.weight ["a", "b", "c", "d"] {stacked} : tensor<2x2x512x4096x!kf.quant<q4_0>>
  %d = kf.weight ["e", "f"] {stacked} : tensor<1x2x4096x512x!kf.quant<q4_0>>
  %0 = kf.expert_matmul %x experts(%e), %u glu(silu) : tensor<1x4096xf32>, tensor<1x2xi32>, tensor<2x2x512x4096x!kf.quant<q4_0>>
  %1 = kf.expert_matmul %0 experts(%e), %d : tensor<1x2x512xf32>, tensor<1x2xi32>, tensor<1x2x4096x512x!kf.quant<q4_0>>
  return %1 : tensor<1x2x4096xf32>
}

// A dispatch takes longer than rounding a short row.
// CHECK-LABEL: func.func @short_row(
// CHECK-NOT:     kf.quantize_rows
// CHECK:         return
func.func @short_row(%x: tensor<1x2048xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x2048x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x2048xf32>, tensor<512x2048x!kf.quant<q4_0>>
  return %0 : tensor<1x512xf32>
}

// Rows are counted by the size that has their name.
// CHECK-LABEL: func.func @few_of_many(
// CHECK-NOT:     kf.quantize_rows
// CHECK:         return
func.func @few_of_many(%x: tensor<?x2048xf32, #kf.size<wanted>>) -> tensor<?x2560xf32, #kf.size<wanted>>
    attributes {kf.max_tokens = 512 : i64, kf.size_ranges = [#kf.size_range<wanted, most = 1>]} {
  %w = kf.weight ["w"] : tensor<2560x2048x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x2048xf32, #kf.size<wanted>>, tensor<2560x2048x!kf.quant<q4_0>>
  return %0 : tensor<?x2560xf32, #kf.size<wanted>>
}

// Six-bit codes have a scale for 16 elements.
// CHECK-LABEL: func.func @many_rows(
// CHECK:         kf.quantize_rows %{{.*}} group(16) : tensor<?x2048xf32>
// CHECK:         kf.matmul %{{.*}} scales(%{{.*}} : tensor<?x64xf32>) sums(%{{.*}} : tensor<?x128xi32>)
func.func @many_rows(%x: tensor<?x2048xf32>) -> tensor<?x2560xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2560x2048x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<2560x2048x!kf.quant<q6_k>>
  return %0 : tensor<?x2560xf32>
}

// Others multiply in f32.
// CHECK-LABEL: func.func @dense(
// CHECK-NOT:     kf.quantize_rows
// CHECK:         return
func.func @dense(%x: tensor<?x2048xf32>) -> tensor<?x2560xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2560x2048xbf16>
  %0 = kf.matmul %x, %w : tensor<?x2048xf32>, tensor<2560x2048xbf16>
  return %0 : tensor<?x2560xf32>
}

}
