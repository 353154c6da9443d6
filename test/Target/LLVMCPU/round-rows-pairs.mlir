// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows),kf-form-kernels)' | FileCheck %s --check-prefix=KERNELS
// RUN: sed 's/workers = 2/workers = 1/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=NONE
// RUN: sed 's/bf16_dot = true/bf16_dot = false/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=NONE

// Rows of products of pairs are normalized and rounded once for all workers; one
// worker does so anyway.
// NONE-NOT: arith.truncf

module attributes {kf.target = #kf.cpu_target<cpu = "znver5", int8_dot = true, bf16_dot = true, workers = 2>} {

// CHECK-LABEL: func.func @normalized(
// CHECK:         %[[N:.*]] = kf.rms_norm
// CHECK:         %[[X:.*]] = arith.truncf %[[N]] : tensor<?x1024xf32> to tensor<?x1024xbf16>
// CHECK:         %[[Y:.*]] = kf.matmul %[[X]], %{{.*}} glu(silu) wide : tensor<?x1024xbf16>, tensor<2x512x1024xbf16>
// CHECK:         %[[Z:.*]] = arith.truncf %[[Y]] : tensor<?x512xf32> to tensor<?x512xbf16>
// CHECK:         kf.matmul %[[Z]], %{{.*}} wide : tensor<?x512xbf16>, tensor<64x512xbf16>
// The gated product rounds its own result.
// KERNELS-LABEL: kf.kernel @rms_norm_trunc_0
// KERNELS:         arith.truncf
// KERNELS:       kf.kernel @{{.*}} -> tensor<?x512xbf16>
// KERNELS:         arith.truncf
func.func @normalized(%x: tensor<?x1024xf32>, %g: tensor<1024xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 64 : i64} {
  %w = kf.weight ["w"] : tensor<2x512x1024xbf16>
  %v = kf.weight ["v"] : tensor<64x512xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x1024xf32>, tensor<1024xf32>
  %1 = kf.matmul %0, %w glu(silu) : tensor<?x1024xf32>, tensor<2x512x1024xbf16>
  %2 = kf.matmul %1, %v : tensor<?x512xf32>, tensor<64x512xbf16>
  return %2 : tensor<?x64xf32>
}

// Few rows, other weights, an odd K, a single panel of columns, and rows that are
// bf16 already stay.
// CHECK-LABEL: func.func @others(
// CHECK-NOT:     arith.truncf
// CHECK-NOT:     wide
// CHECK:         return
func.func @others(%few: tensor<7x1024xf32>, %x: tensor<64x1024xf32>, %odd: tensor<64x1023xf32>, %rounded: tensor<64x1024xbf16>)
    -> (tensor<7x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x64xbf16>) {
  %w = kf.weight ["w"] : tensor<64x1024xbf16>
  %h = kf.weight ["h"] : tensor<64x1024xf16>
  %o = kf.weight ["o"] : tensor<64x1023xbf16>
  %p = kf.weight ["p"] : tensor<32x1024xbf16>
  %u = kf.weight ["u"] : tensor<2x32x1024xbf16>
  %0 = kf.matmul %few, %w : tensor<7x1024xf32>, tensor<64x1024xbf16>
  %1 = kf.matmul %x, %h : tensor<64x1024xf32>, tensor<64x1024xf16>
  %2 = kf.matmul %odd, %o : tensor<64x1023xf32>, tensor<64x1023xbf16>
  %3 = kf.matmul %rounded, %w : tensor<64x1024xbf16>, tensor<64x1024xbf16>
  %4 = kf.matmul %x, %p : tensor<64x1024xf32>, tensor<32x1024xbf16>
  %5 = kf.matmul %x, %u glu(silu) : tensor<64x1024xf32>, tensor<2x32x1024xbf16>
  return %0, %1, %2, %4, %5, %3 : tensor<7x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x64xbf16>
}

}
