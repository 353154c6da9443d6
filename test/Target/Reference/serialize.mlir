// What the reference device interprets: every kind of attribute, view and
// constant of a kernel has a form in the executable.

// RUN: kf-run exec %s --device reference --function constants --input 3xf32=1,2,3 \
// RUN:   --expected 3xf32=12,22,32
func.func @constants(%x: tensor<3xf32>) -> tensor<3xf32> {
  %list = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %one = arith.constant dense<10.0> : tensor<3xf32>
  %0 = arith.mulf %list, %one : tensor<3xf32>
  %1 = arith.addf %0, %x : tensor<3xf32>
  %two = arith.constant dense<[1.0, 0.0, -1.0]> : tensor<3xf32>
  %2 = arith.addf %1, %two : tensor<3xf32>
  return %2 : tensor<3xf32>
}

// RUN: kf-run exec %s --device reference --function ids --input 4x2xf32=1,2,3,4,5,6,7,8 \
// RUN:   '--expected=2x2xf32=[7 8][1 2]'
func.func @ids(%t: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %ids = arith.constant dense<[3, 0]> : tensor<2xi32>
  %0 = kf.embedding %ids, %t : tensor<2xi32>, tensor<4x2xf32>
  return %0 : tensor<2x2xf32>
}

// The second half of each row, as two heads of one element.
// RUN: kf-run exec %s --device reference --function views --input 2x4xf32=1,2,-3,4,5,6,7,-8 \
// RUN:   '--expected=2x2x1xf32=0,4,7,0'
func.func @views(%x: tensor<?x4xf32>) -> tensor<?x2x1xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %0 = tensor.extract_slice %x[0, 2] [%n, 2] [1, 1] : tensor<?x4xf32> to tensor<?x2xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [%n, 2, 1] : tensor<?x2xf32> into tensor<?x2x1xf32>
  %2 = kf.activation(relu) %1 : tensor<?x2x1xf32>
  return %2 : tensor<?x2x1xf32>
}

// Position 0 does not rotate, whatever the scaling.
// RUN: kf-run exec %s --device reference --function scaling --input 1x1x4xf32=1,2,3,4 \
// RUN:   --input 1xi32=0 --expected 1x1x4xf32=1,2,3,4
func.func @scaling(%x: tensor<1x1x4xf32>, %p: tensor<1xi32>) -> tensor<1x1x4xf32> {
  %0 = kf.rope %x, %p {rotary_dim = 4 : i64, theta = 1.0e4 : f64,
      style = #kf.rope_style<interleaved>,
      scaling = #kf.rope_scaling<llama3, factor = 8.0, low_freq_factor = 1.0,
                                 high_freq_factor = 4.0, original_context = 64>}
      : tensor<1x1x4xf32>, tensor<1xi32>
  return %0 : tensor<1x1x4xf32>
}

// RUN: kf-run exec %s --device reference --function blocks --input 1x32xf32=2 \
// RUN:   --expected 1x32xf32=2 --atol 0.01
func.func @blocks(%x: tensor<1x32xf32>) -> tensor<1x32xf32> {
  %0 = kf.quantize %x <q8_0> : tensor<1x32xf32>
  %1 = kf.dequantize %0 : tensor<1x32x!kf.quant<q8_0>>
  return %1 : tensor<1x32xf32>
}
