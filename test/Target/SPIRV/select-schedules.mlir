// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-select-schedules | FileCheck %s
// RUN: kf-opt %s --kf-set-target=target="#kf.vulkan_target<threads=32,memory=2048>" --kf-select-schedules \
// RUN:   | FileCheck %s --check-prefix=SMALL

// CHECK-LABEL: kf.kernel @matmul
// CHECK-SAME:    #kf.simt<workgroup = [32, 32], threads = [16, 16, 1], tile = [2, 2], reduction = 16>
// SMALL-LABEL: kf.kernel @matmul
// SMALL-SAME:    #kf.simt<workgroup = [32, 32], threads = [16, 2, 1], tile = [16, 2], reduction = 4>
kf.kernel @matmul(%x: tensor<?x64xf32>, %w: tensor<40x64xf32>) -> tensor<?x40xf32> {
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// Few rows: neighbouring threads share sums.
// CHECK-LABEL: kf.kernel @gemv
// CHECK-SAME:    #kf.simt<workgroup = [1, 8], threads = [32, 4, 1], tile = [1, 2], unroll = 8, sums = shared>
// SMALL-LABEL: kf.kernel @gemv
// SMALL-SAME:    #kf.simt<workgroup = [1, 2], threads = [32, 1, 1], tile = [1, 2], unroll = 8, sums = shared>
kf.kernel @gemv(%x: tensor<1x64xf32>, %w: tensor<40x64xf32>) -> tensor<1x40xf32> {
  %0 = kf.matmul %x, %w : tensor<1x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<1x40xf32>
}

// CHECK-LABEL: kf.kernel @batch
// CHECK-SAME:    #kf.simt<workgroup = [16, 4], threads = [32, 4, 1], tile = [16, 1], unroll = 2, sums = shared>
kf.kernel @batch(%x: tensor<16x64xf32>, %w: tensor<40x64xf32>) -> tensor<16x40xf32> {
  %0 = kf.matmul %x, %w : tensor<16x64xf32>, tensor<40x64xf32>
  kf.yield %0 : tensor<16x40xf32>
}

// More columns to a thread where the grid would become too large.
// CHECK-LABEL: kf.kernel @vocabulary
// CHECK-SAME:    #kf.simt<workgroup = [8, 16], threads = [32, 4, 1], tile = [8, 4], unroll = 2, sums = shared>
kf.kernel @vocabulary(%x: tensor<8x64xf32>, %w: tensor<400000x64xf32>) -> tensor<8x400000xf32> {
  %0 = kf.matmul %x, %w : tensor<8x64xf32>, tensor<400000x64xf32>
  kf.yield %0 : tensor<8x400000xf32>
}

// CHECK-LABEL: kf.kernel @row
// CHECK-SAME:    #kf.simt<workgroup = [1], threads = [64]>
kf.kernel @row(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// CHECK-LABEL: kf.kernel @heads
// CHECK-SAME:    #kf.simt<workgroup = [1, 1], threads = [64]>
kf.kernel @heads(%x: tensor<?x6x16xf32>, %g: tensor<16xf32>) -> tensor<?x6x16xf32> {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x6x16xf32>, tensor<16xf32>
  kf.yield %0 : tensor<?x6x16xf32>
}

// Whole rows where they are short, parts of one where it is long.
// CHECK-LABEL: kf.kernel @short
// CHECK-SAME:    #kf.simt<workgroup = [10, 0], threads = [128], unroll = 8>
kf.kernel @short(%x: tensor<?x100xf32>) -> tensor<?x100xf32> {
  %0 = kf.activation(relu) %x : tensor<?x100xf32>
  kf.yield %0 : tensor<?x100xf32>
}
// CHECK-LABEL: kf.kernel @long
// CHECK-SAME:    #kf.simt<workgroup = [1, 1024], threads = [128], unroll = 8>
kf.kernel @long(%x: tensor<?x5000xf32>) -> tensor<?x5000xf32> {
  %0 = kf.activation(relu) %x : tensor<?x5000xf32>
  kf.yield %0 : tensor<?x5000xf32>
}

// A grid has at most 32768 workgroups along a dimension.
// CHECK-LABEL: kf.kernel @many
// CHECK-SAME:    #kf.simt<workgroup = [4], threads = [64]>
kf.kernel @many(%x: tensor<100000x40xf32>) -> tensor<100000x40xf32> {
  %0 = kf.softmax %x : tensor<100000x40xf32>
  kf.yield %0 : tensor<100000x40xf32>
}

// A schedule that can run is kept.
// CHECK-LABEL: kf.kernel @given
// CHECK-SAME:    #kf.simt<workgroup = [7], threads = [3]>
kf.kernel @given(%x: tensor<?x40xf32>) -> tensor<?x40xf32>
    attributes {schedule = #kf.simt<workgroup = [7], threads = [3]>} {
  %0 = kf.softmax %x : tensor<?x40xf32>
  kf.yield %0 : tensor<?x40xf32>
}

// Rows of a table are looked up whole, however long.
// CHECK-LABEL: kf.kernel @table
// CHECK-SAME:    #kf.simt<workgroup = [1, 0], threads = [256], unroll = 8>
kf.kernel @table(%ids: tensor<?xi32>, %t: tensor<100x4096xf32>) -> tensor<?x4096xf32> {
  %0 = kf.embedding %ids, %t : tensor<?xi32>, tensor<100x4096xf32>
  kf.yield %0 : tensor<?x4096xf32>
}

// All threads share a sum of many, as on every GPU.
// CHECK-LABEL: kf.kernel @sums
// CHECK-SAME:    #kf.simt<workgroup = [1, 0], threads = [256], unroll = 8, sums = shared>
// SMALL-LABEL: kf.kernel @sums
// SMALL-SAME:    #kf.simt<workgroup = [1, 0], threads = [32], unroll = 8, sums = shared>
kf.kernel @sums(%x: tensor<300x4096xf32>) -> tensor<300x1xf32> {
  %0 = kf.reduce(sum) %x dims = [1] keep_dims : tensor<300x4096xf32>
  kf.yield %0 : tensor<300x1xf32>
}
