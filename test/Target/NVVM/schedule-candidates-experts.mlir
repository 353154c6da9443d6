// RUN: kf-opt %s --kf-print-schedule-candidates=most=1000 -o /dev/null | FileCheck %s

// Where rows of the policy's schedule are rounded, those of others are, too, and
// more of them go together than where they are split.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kernel @rounded
  // CHECK-NOT:     rows = split
  // CHECK-DAG:     #kf.stream<workgroup = [32, 1, 128], {{.*}} rows = rounded, {{.*}}> (default)
  // CHECK-DAG:     #kf.stream<workgroup = [16, 1, 128], {{.*}} rows = rounded,
  // CHECK-DAG:     #kf.stream<workgroup = [64, 1, {{[0-9]+}}], {{.*}} rows = rounded,
  // CHECK-LABEL: kernel @split
  // CHECK-NOT:     rows = rounded
  // CHECK-NOT:     workgroup = [32,
  // CHECK-DAG:     #kf.stream<workgroup = [16, 1, 128], {{.*}} rows = split, {{.*}}> (default)
  // CHECK-DAG:     #kf.stream<workgroup = [8, 1, 128], {{.*}} rows = split,
  kf.kernel @rounded(%x: tensor<2048x2048xf32>, %e: tensor<2048x8xi32>, %w: tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>) -> tensor<2048x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<2048x2048xf32>, tensor<2048x8xi32>, tensor<2x128x768x2048x!kf.quant<q4_k>, #kf.fragments>
    kf.yield %0 : tensor<2048x8x768xf32>
  }
  kf.kernel @split(%x: tensor<2048x2048xf32>, %e: tensor<2048x8xi32>, %w: tensor<2x128x768x2048xbf16, #kf.fragments>) -> tensor<2048x8x768xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w glu(silu) : tensor<2048x2048xf32>, tensor<2048x8xi32>, tensor<2x128x768x2048xbf16, #kf.fragments>
    kf.yield %0 : tensor<2048x8x768xf32>
  }
}
