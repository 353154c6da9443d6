// RUN: kf-opt %s --kf-select-schedules | FileCheck %s

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // Products of batches, of f32, are multiplied by matrix units.
  // CHECK-LABEL: kf.kernel @scores
  // CHECK-SAME:    #kf.mma<workgroup = [1, {{[0-9]+}}, {{[0-9]+}}], {{.*}}unit = {{[a-z_]+}}>
  kf.kernel @scores(%q: tensor<128x2048x128xf32>, %k: tensor<128x2048x128xf32>) -> tensor<128x2048x2048xf32> {
    %0 = kf.batch_matmul %q, %k : tensor<128x2048x128xf32>, tensor<128x2048x128xf32>
    kf.yield %0 : tensor<128x2048x2048xf32>
  }
  // Not what a reduction reads: it asks for one element at a time.
  // CHECK-LABEL: kf.kernel @reduced
  // CHECK-SAME:    #kf.simt
  kf.kernel @reduced(%q: tensor<8x64x32xf32>, %k: tensor<8x64x32xf32>) -> tensor<8x64xf32> {
    %0 = kf.batch_matmul %q, %k : tensor<8x64x32xf32>, tensor<8x64x32xf32>
    %1 = kf.reduce(sum) %0 dims = [2] : tensor<8x64x64xf32>
    kf.yield %1 : tensor<8x64xf32>
  }
  // The gradient of an adapter's matrix has few rows and a long K, which is
  // divided.
  // CHECK-LABEL: kf.kernel @gradient
  // CHECK-SAME:    #kf.mma<{{.*}}parts = {{[248]}}>
  kf.kernel @gradient(%dy: tensor<8192x16xf32>, %x: tensor<8192x4096xf32>) -> tensor<16x4096xf32> {
    %0 = kf.transpose %dy permutation = [1, 0] : tensor<8192x16xf32>
    %1 = kf.transpose %x permutation = [1, 0] : tensor<8192x4096xf32>
    %2 = kf.matmul %0, %1 : tensor<16x8192xf32>, tensor<4096x8192xf32>
    kf.yield %2 : tensor<16x4096xf32>
  }
  // Products of steps are by threads, to f32.
  // CHECK-LABEL: kf.kernel @step
  // CHECK-SAME:    #kf.simt
  kf.kernel @step(%x: tensor<?x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<?x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<?x4096xf32>, tensor<4096x4096xf32>
    kf.yield %0 : tensor<?x4096xf32>
  }
  // The threads of a workgroup have a row's sum together.
  // CHECK-LABEL: kf.kernel @squares
  // CHECK-SAME:    #kf.simt<workgroup = [1, 0], threads = [512], unroll = 8, sums = shared>
  kf.kernel @squares(%x: tensor<8192x4096xf32>) -> tensor<8192x1xf32> {
    %0 = arith.mulf %x, %x : tensor<8192x4096xf32>
    %1 = kf.reduce(mean) %0 dims = [1] keep_dims : tensor<8192x4096xf32>
    %2 = math.rsqrt %1 : tensor<8192x1xf32>
    kf.yield %2 : tensor<8192x1xf32>
  }
  // Sums of a few, and those across rows, are a thread's.
  // CHECK-LABEL: kf.kernel @heads
  // CHECK-NOT:     shared
  kf.kernel @heads(%x: tensor<4x8x4x2048x128xf32>) -> tensor<4x8x2048x128xf32> {
    %0 = kf.reduce(sum) %x dims = [2] : tensor<4x8x4x2048x128xf32>
    kf.yield %0 : tensor<4x8x2048x128xf32>
  }
}
