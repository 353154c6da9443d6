// RUN: kf-opt %s -split-input-file --kf-select-schedules -verify-diagnostics

module attributes {kf.target = #kf.cuda_target<chip = "sm_86", memory = 66559>} {
  // expected-error @below {{schedule cannot run on this device: it needs 66560 bytes of workgroup memory, the device has 66559}}
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<128x64xf32>) -> tensor<?x128xf32>
      attributes {schedule = #kf.simt<workgroup = [128, 128], threads = [32, 8], tile = [16, 4]>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<128x64xf32>
    kf.yield %0 : tensor<?x128xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_90a">} {
  // A block has up to 1024 threads.
  kf.kernel @most(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32>
      attributes {schedule = #kf.simt<workgroup = [32, 64], threads = [32, 32], tile = [1, 2], reduction = 16>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
  // expected-error @below {{schedule cannot run on this device: threads are 2048 a workgroup, the device allows 1024}}
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32>
      attributes {schedule = #kf.simt<workgroup = [32, 64], threads = [64, 32], tile = [1, 1], reduction = 16>} {
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
}

// -----

module attributes {kf.target = #kf.cuda_target<chip = "sm_80">} {
  kf.kernel @k(%x: tensor<?x64xf32>, %w: tensor<32x64xf32, #kf.layout<panel = 32>>) -> tensor<?x32xf32> {
    // expected-error @below {{no CUDA kernel for 'kf.matmul' on 'tensor<32x64xf32, #kf.layout<panel = 32>>' yet; use --device=cpu or --device=reference}}
    %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<32x64xf32, #kf.layout<panel = 32>>
    kf.yield %0 : tensor<?x32xf32>
  }
}
