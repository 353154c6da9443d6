// RUN: not kf-run exec %s --device reference --function attribute --input 1xf32=1 2>&1 | FileCheck %s

// CHECK: errors.mlir:[[#@LINE+2]]:{{[0-9]+}}: error: 'kf.activation' op reference target: attribute 'note' has no JSON form
func.func @attribute(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = kf.activation(relu) %x {note = [1, 2]} : tensor<1xf32>
  return %0 : tensor<1xf32>
}
