// RUN: kf-opt %s --kf-select-schedules | FileCheck %s

// A workgroup's part of the heads divides them.
module attributes {kf.target = #kf.cuda_target<chip = "sm_90a", multiprocessors = 132, memory = 232448>} {
  // CHECK-LABEL: kf.kernel @twenty
  // CHECK-SAME:    #kf.simt<workgroup = [1, 5, 0, 0]
  kf.kernel @twenty(%x: tensor<?x20x512xf32>, %e: tensor<?x20xi32>, %w: tensor<1x20x128x512xbf16>) -> tensor<?x20x128xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x20x512xf32>, tensor<?x20xi32>, tensor<1x20x128x512xbf16>
    kf.yield %0 : tensor<?x20x128xf32>
  }
  // CHECK-LABEL: kf.kernel @many
  // CHECK-SAME:    #kf.simt<workgroup = [1, 43, 0, 0]
  kf.kernel @many(%x: tensor<?x129x8xf32>, %e: tensor<?x129xi32>, %w: tensor<1x129x12x8xbf16>) -> tensor<?x129x12xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x129x8xf32>, tensor<?x129xi32>, tensor<1x129x12x8xbf16>
    kf.yield %0 : tensor<?x129x12xf32>
  }
  // Wide ones have workgroups of their own.
  // CHECK-LABEL: kf.kernel @wide
  // CHECK-SAME:    #kf.simt<workgroup = [1, 1, 1024, 0]
  kf.kernel @wide(%x: tensor<?x12x64xf32>, %e: tensor<?x12xi32>, %w: tensor<1x12x1536x64xbf16>) -> tensor<?x12x1536xf32> {
    %0 = kf.expert_matmul %x experts(%e), %w : tensor<?x12x64xf32>, tensor<?x12xi32>, tensor<1x12x1536x64xbf16>
    kf.yield %0 : tensor<?x12x1536xf32>
  }
}
