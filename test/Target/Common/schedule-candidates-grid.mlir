// RUN: kf-opt %s --kf-print-schedule-candidates=most=1000 -o /dev/null | FileCheck %s
// RUN: kf-opt %s --kf-print-schedule-candidates=most=1000 -o /dev/null | FileCheck %s --check-prefix=MANY

// A grid has at most 65535 workgroups along the columns: those without a cluster
// have half as many as those with two parts, others as many as threads take.
// CHECK-LABEL: kernel @wide
// CHECK-DAG:     workgroup = [16, 48], {{.*}} parts = 2> (default)
// CHECK-DAG:     workgroup = [16, 32], {{.*}} reduction = 4096>
// MANY-LABEL:  kernel @wide
// MANY-NOT:      workgroup = [{{[0-9]+}}, {{[0-9]|1[0-6]}}],
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 65535, memory = 232448>} {
kf.kernel @wide(%x: tensor<16x8192xf16>, %w: tensor<1048576x8192x!kf.quant<q4_k>, #kf.fragments>) -> tensor<16x1048576xf32> {
  %0 = kf.matmul %x, %w wide : tensor<16x8192xf16>, tensor<1048576x8192x!kf.quant<q4_k>, #kf.fragments>
  kf.yield %0 : tensor<16x1048576xf32>
}
}
