// RUN: kf-opt %s --kf-set-target=target=cuda:sm_80 --kf-select-rows | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_80 --kf-select-rows=max-tokens=4 | FileCheck %s --check-prefix=FEW
// RUN: kf-opt %s --kf-set-target=target=reference --kf-select-rows | FileCheck %s --check-prefix=FEW
// RUN: kf-opt %s --kf-set-target=target=cuda:sm_80 --kf-select-rows --remark-policy=all \
// RUN:   --remarks-filter=kf-select-rows 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not kf-opt %s --kf-select-rows 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: the module does not say what it is compiled for

// Each product says what its kernel reads, and nothing else changes.
// CHECK-LABEL: func.func @chosen(
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} rows<bf16> : tensor<?x64xf32>, tensor<96x64xbf16>
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} rows<f16> : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} rows<f32> : tensor<?x64xf32>, tensor<96x64xf32>
// FEW-LABEL: func.func @chosen(
// FEW-COUNT-3:  rows<f32>
// REMARK: Rows | Category:kf-select-rows | Function=chosen | Remark=chosen, Rows=512, Type=bf16
func.func @chosen(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>, %q: tensor<96x64x!kf.quant<q8_0>>, %v: tensor<96x64xf32>)
    -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>) {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<96x64xbf16>
  %1 = kf.matmul %x, %q : tensor<?x64xf32>, tensor<96x64x!kf.quant<q8_0>>
  %2 = kf.matmul %x, %v : tensor<?x64xf32>, tensor<96x64xf32>
  return %0, %1, %2 : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
}

// What somebody wrote stays.
// CHECK-LABEL: func.func @given(
// CHECK-NEXT:    kf.matmul %{{.*}}, %{{.*}} rows<f32> : tensor<?x64xf32>, tensor<96x64xbf16>
// FEW-LABEL: func.func @given(
// REMARK: Function=given | Remark=given, Rows=512, Type=f32
func.func @given(%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>) -> tensor<?x96xf32> {
  %0 = kf.matmul %x, %w rows<f32> : tensor<?x64xf32>, tensor<96x64xbf16>
  return %0 : tensor<?x96xf32>
}

// Rows that are not f32, and batches, which are no rows yet, have nothing to
// choose.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     rows<
// CHECK:         return
// FEW-LABEL: func.func @others(
// FEW-NOT:     rows<
// FEW:         return
func.func @others(%x: tensor<?x64xbf16>, %b: tensor<2x3x64xf32>, %w: tensor<96x64xbf16>) -> (tensor<?x96xbf16>, tensor<2x3x96xf32>) {
  %0 = kf.matmul %x, %w : tensor<?x64xbf16>, tensor<96x64xbf16>
  %1 = kf.matmul %b, %w : tensor<2x3x64xf32>, tensor<96x64xbf16>
  return %0, %1 : tensor<?x96xbf16>, tensor<2x3x96xf32>
}

// CHECK-LABEL: func.func @experts(
// CHECK-NEXT:    kf.expert_matmul %{{.*}} experts(%{{.*}}), %{{.*}} rows<f32> :
func.func @experts(%x: tensor<?x64xf32>, %e: tensor<?x2xi32>, %w: tensor<1x4x96x64xbf16>) -> tensor<?x2x96xf32> {
  %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x64xf32>, tensor<?x2xi32>, tensor<1x4x96x64xbf16>
  return %0 : tensor<?x2x96xf32>
}
