// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s
// RUN: sed 's/workers = 2/workers = 1/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=ALONE
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows),kf-form-kernels)' | FileCheck %s --check-prefix=KERNELS
// RUN: sed 's/amx = true/amx = false/' %s | kf-opt --pass-pipeline='builtin.module(kf-select-rows,func.func(kf-round-rows))' | FileCheck %s --check-prefix=VECTORS

// Rows of products of tiles are normalized and rounded by a kernel of their own.

module attributes {kf.target = #kf.cpu_target<cpu = "sapphirerapids", int8_dot = true, amx = true, workers = 2>} {

// CHECK-LABEL: func.func @blocks(
// CHECK:         %[[N:.*]] = kf.rms_norm
// CHECK:         %[[X:.*]] = arith.truncf %[[N]] : tensor<?x1024xf32> to tensor<?x1024xbf16>
// CHECK:         kf.matmul %[[X]], %{{.*}} wide : tensor<?x1024xbf16>, tensor<256x1024x!kf.quant<q4_0>>
// One group of columns rounds them once anyway.
// ALONE-LABEL: func.func @blocks(
// ALONE-NOT:     arith.truncf
// ALONE:         return
// KERNELS-LABEL: kf.kernel @rms_norm_trunc_0
// KERNELS:         arith.truncf
// VECTORS-LABEL: func.func @blocks(
// VECTORS-NOT:     wide
// VECTORS:         return
func.func @blocks(%x: tensor<?x1024xf32>, %g: tensor<1024xf32>) -> tensor<?x256xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<256x1024x!kf.quant<q4_0>>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x1024xf32>, tensor<1024xf32>
  %1 = kf.matmul %0, %w : tensor<?x1024xf32>, tensor<256x1024x!kf.quant<q4_0>>
  return %1 : tensor<?x256xf32>
}

// CHECK-LABEL: func.func @gated(
// CHECK:         arith.truncf
// CHECK:         kf.matmul %{{.*}}, %{{.*}} glu(silu) wide
// ALONE-LABEL: func.func @gated(
// ALONE:         arith.truncf
func.func @gated(%x: tensor<?x1024xf32>) -> tensor<?x512xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2x512x1024x!kf.quant<q4_k>>
  %0 = kf.matmul %x, %w glu(silu) : tensor<?x1024xf32>, tensor<2x512x1024x!kf.quant<q4_k>>
  return %0 : tensor<?x512xf32>
}

// Few rows are multiplied in bytes.
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     arith.truncf
// CHECK:         return
func.func @few(%x: tensor<?x1024xf32>) -> tensor<?x256xf32> attributes {kf.max_tokens = 100 : i64} {
  %w = kf.weight ["w"] : tensor<256x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<256x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x256xf32>
}

// CHECK-LABEL: func.func @bf16(
// CHECK:         %[[N:.*]] = kf.rms_norm
// CHECK:         %[[X:.*]] = arith.truncf %[[N]]
// CHECK:         %[[Y:.*]] = kf.matmul %[[X]], %{{.*}} wide : tensor<?x1024xbf16>, tensor<1024x1024xbf16>
// CHECK:         %[[Z:.*]] = arith.truncf %[[Y]]
// CHECK:         kf.matmul %[[Z]], %{{.*}} wide : tensor<?x1024xbf16>, tensor<64x1024xbf16>
// VECTORS-LABEL: func.func @bf16(
// VECTORS-NOT:     wide
// VECTORS:         return
func.func @bf16(%x: tensor<?x1024xf32>, %g: tensor<1024xf32>) -> tensor<?x64xf32> attributes {kf.max_tokens = 64 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024xbf16>
  %v = kf.weight ["v"] : tensor<64x1024xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x1024xf32>, tensor<1024xf32>
  %1 = kf.matmul %0, %w : tensor<?x1024xf32>, tensor<1024x1024xbf16>
  %2 = kf.matmul %1, %v : tensor<?x1024xf32>, tensor<64x1024xbf16>
  return %2 : tensor<?x64xf32>
}

// Rows of bf16 are what tiles take.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT:     arith.truncf
// CHECK-NOT:     wide
// CHECK:         return
func.func @rounded(%x: tensor<?x1024xbf16>) -> tensor<?x1024xbf16> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xbf16>, tensor<1024x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x1024xbf16>
}

// Panels that a person chose, of more columns than two tiles have, are
// multiplied in bytes.
// CHECK-LABEL: func.func @wide_panels(
// CHECK-NOT:     arith.truncf
// CHECK:         kf.quantize_rows
// CHECK:         return
func.func @wide_panels(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 64>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>, #kf.layout<panel = 64>>
  return %0 : tensor<?x2048xf32>
}

}
