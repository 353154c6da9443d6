// RUN: not kf-run exec %s --device reference --function attribute --input 1xf32=1 2>&1 | FileCheck %s
// RUN: not kf-run exec %s --device reference --function float8 --input 1xf32=1 2>&1 | FileCheck %s --check-prefix=FLOAT8
// RUN: not kf-run exec %s --device reference --function i4 --input 1xi8=1 2>&1 | FileCheck %s --check-prefix=I4

// CHECK: errors.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'kf.activation' op reference target: attribute 'note' has no JSON form
func.func @attribute(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = kf.activation(relu) %x {note = [1, 2]} : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// FLOAT8: errors.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: no reference kernel for 'arith.truncf' on f8E4M3FN, which only the weights of kf.matmul are; have others in bf16
func.func @float8(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = arith.truncf %x : tensor<1xf32> to tensor<1xf8E4M3FN>
  %1 = arith.extf %0 : tensor<1xf8E4M3FN> to tensor<1xf32>
  return %1 : tensor<1xf32>
}

// I4: errors.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: no reference kernel for 'arith.trunci' on 'tensor<1xi4>'; elements are f16, bf16, f32 and f64, and integers of 1, 8, 16, 32 and 64 bits
func.func @i4(%x: tensor<1xi8>) -> tensor<1xi8> {
  %0 = arith.trunci %x : tensor<1xi8> to tensor<1xi4>
  %1 = arith.extsi %0 : tensor<1xi4> to tensor<1xi8>
  return %1 : tensor<1xi8>
}
