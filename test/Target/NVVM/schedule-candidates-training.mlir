// RUN: kf-opt %s --kf-print-schedule-candidates=most=1000 -o /dev/null | FileCheck %s

// A tuner tries matrix units where the policy does: the few rows of an adapter's
// gradient, too, by tiles as narrow, and in parts.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kernel @gradient
  // CHECK-DAG:     #kf.mma<workgroup = [8, 128], {{.*}}unit = mma_sync, parts = 8>
  // CHECK-DAG:     #kf.mma<workgroup = [16, 64], {{.*}}unit = mma_sync>
  // CHECK-DAG:     #kf.mma<{{.*}}> (default)
  kf.kernel @gradient(%dy: tensor<8192x8xf32>, %x: tensor<8192x4096xf32>) -> tensor<8x4096xf32> {
    %0 = kf.transpose %dy permutation = [1, 0] : tensor<8192x8xf32>
    %1 = kf.transpose %x permutation = [1, 0] : tensor<8192x4096xf32>
    %2 = kf.matmul %0, %1 : tensor<8x8192xf32>, tensor<4096x8192xf32>
    kf.yield %2 : tensor<8x4096xf32>
  }
  // Few rows that lie as they are multiplied are for threads alone.
  // CHECK-LABEL: kernel @few
  // CHECK-NOT:     #kf.mma
  kf.kernel @few(%x: tensor<8x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<8x4096xf32> {
    %0 = kf.matmul %x, %w : tensor<8x4096xf32>, tensor<4096x4096xf32>
    kf.yield %0 : tensor<8x4096xf32>
  }
}
