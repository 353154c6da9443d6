// RUN: kf-opt %s --kf-set-target="target=cpu:icelake-server workers=1" --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target="target=cpu:icelake-server workers=2" --kf-select-schedules | FileCheck %s --check-prefix=TWO
// RUN: kf-opt %s --kf-set-target=target=cpu:icelake-server --kf-select-schedules | FileCheck %s --check-prefix=UNKNOWN

// Each workgroup rounds the rows that it reads: there are four to a worker, or
// 32 where workers are unknown. A worker that is alone has nobody to share with.
// CHECK-LABEL:   kf.kernel @one_row(
// CHECK-SAME:      workgroup = [1, 5632], tile = [1, 32]
// TWO-LABEL:     kf.kernel @one_row(
// TWO-SAME:        workgroup = [1, 704], tile = [1, 32]
// UNKNOWN-LABEL: kf.kernel @one_row(
// UNKNOWN-SAME:    workgroup = [1, 192], tile = [1, 32]
kf.kernel @one_row(%x: tensor<1x2048xf32>, %w: tensor<5632x2048x!kf.quant<q4_0>>) -> tensor<1x5632xf32> {
  %0 = kf.matmul %x, %w : tensor<1x2048xf32>, tensor<5632x2048x!kf.quant<q4_0>>
  kf.yield %0 : tensor<1x5632xf32>
}

// Many rows read a panel of the weight together; several workers share rows and
// columns.
// CHECK-LABEL:   kf.kernel @rows(
// CHECK-SAME:      workgroup = [512, 5632], tile = [8, 32]
// TWO-LABEL:     kf.kernel @rows(
// TWO-SAME:        workgroup = [256, 1408], tile = [8, 32]
// UNKNOWN-LABEL: kf.kernel @rows(
// UNKNOWN-SAME:    workgroup = [256, 960], tile = [8, 32]
kf.kernel @rows(%x: tensor<512x2048xf32>, %w: tensor<5632x2048x!kf.quant<q4_0>>) -> tensor<512x5632xf32> {
  %0 = kf.matmul %x, %w : tensor<512x2048xf32>, tensor<5632x2048x!kf.quant<q4_0>>
  kf.yield %0 : tensor<512x5632xf32>
}

// Rounding more than one row for few columns would take longer than the product.
// TWO-LABEL:     kf.kernel @few_rows(
// TWO-SAME:        workgroup = [16, 512], tile = [8, 32]
// UNKNOWN-LABEL: kf.kernel @few_rows(
// UNKNOWN-SAME:    workgroup = [16, 256], tile = [8, 32]
kf.kernel @few_rows(%x: tensor<16x2048xf32>, %w: tensor<2048x2048x!kf.quant<q4_0>>) -> tensor<16x2048xf32> {
  %0 = kf.matmul %x, %w : tensor<16x2048xf32>, tensor<2048x2048x!kf.quant<q4_0>>
  kf.yield %0 : tensor<16x2048xf32>
}

// Fewer rows, where columns are few: each group makes its rows ready.
// CHECK-LABEL:   kf.kernel @few_columns(
// CHECK-SAME:      workgroup = [518, 768], tile = [14, 32], lanes = 16, unroll = 8, panels = unpacked>
// UNKNOWN-LABEL: kf.kernel @few_columns(
// UNKNOWN-SAME:    workgroup = [56, 192], tile = [14, 32]
kf.kernel @few_columns(%x: tensor<512x256xf32>, %w: tensor<768x256xbf16>) -> tensor<512x768xf32> {
  %0 = kf.matmul %x, %w : tensor<512x256xf32>, tensor<768x256xbf16>
  kf.yield %0 : tensor<512x768xf32>
}

// A workgroup with too little to do is not worth handing out.
// CHECK-LABEL:   kf.kernel @small(
// CHECK-SAME:      workgroup = [1, 128], tile = [1, 32]
// UNKNOWN-LABEL: kf.kernel @small(
// UNKNOWN-SAME:    workgroup = [1, 128], tile = [1, 32]
kf.kernel @small(%x: tensor<1x256xf32>, %w: tensor<128x256xf32>) -> tensor<1x128xf32> {
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<128x256xf32>
  kf.yield %0 : tensor<1x128xf32>
}

// A weight's gradient has rows for each worker, as many as tiles of 8 make.
// CHECK-LABEL:   kf.kernel @weight_gradient(
// CHECK-SAME:      workgroup = [504], lanes = 16
// TWO-LABEL:     kf.kernel @weight_gradient(
// TWO-SAME:        workgroup = [256], lanes = 16
// UNKNOWN-LABEL: kf.kernel @weight_gradient(
// UNKNOWN-SAME:    workgroup = [64], lanes = 16
kf.kernel @weight_gradient(%dy: tensor<?x2016xf32>, %x: tensor<?x512xf32>) -> tensor<2016x512xf32> {
  %0 = kf.matmul_wgrad %dy, %x : tensor<?x2016xf32>, tensor<?x512xf32>
  kf.yield %0 : tensor<2016x512xf32>
}

// CHECK-LABEL:   kf.kernel @table_gradient(
// CHECK-SAME:      workgroup = [64], lanes = 16
kf.kernel @table_gradient(%ids: tensor<?xi32>, %rows: tensor<?x512xf32>) -> tensor<32000x512xf32> {
  %0 = kf.scatter_add %ids, %rows : tensor<?xi32>, tensor<?x512xf32> to tensor<32000x512xf32>
  kf.yield %0 : tensor<32000x512xf32>
}
