// RUN: kf-opt %s --kf-set-target=target=cpu:aarch64-linux-gnu/cortex-a76 --kf-set-layouts --kf-print-schedule-candidates -o /dev/null \
// RUN:   | FileCheck %s

// Short vectors, and as many registers as the long ones of x86 have.
// CHECK-LABEL: kernel @prefill
// CHECK-DAG:     s #kf.vector<{{.*}}tile = [14, 8], lanes = 4
// CHECK-DAG:     s #kf.vector<{{.*}}tile = [12, 8], lanes = 4
kf.kernel @prefill(%x: tensor<96x256xf32>, %w: tensor<768x256xf32>) -> tensor<96x768xf32> {
  %0 = kf.matmul %x, %w : tensor<96x256xf32>, tensor<768x256xf32>
  kf.yield %0 : tensor<96x768xf32>
}
