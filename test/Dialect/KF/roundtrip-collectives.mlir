// RUN: kf-opt %s | FileCheck %s
// RUN: kf-opt %s | kf-opt | FileCheck %s
// RUN: kf-opt %s --mlir-print-op-generic | kf-opt | FileCheck %s
// RUN: kf-opt %s --emit-bytecode | kf-opt | FileCheck %s

// CHECK: module attributes {kf.ranks = 3 : i64}
module attributes {kf.ranks = 3 : i64} {
  // CHECK-LABEL: func.func @f
  func.func @f(%x: tensor<?x8xf32>, %b: tensor<?x2x4xbf16>, %h: tensor<16xf16>,
               %w: tensor<?x8xf32, #kf.size<wanted>>) {
    // CHECK: kf.all_reduce %{{.*}} : tensor<?x8xf32>
    %0 = kf.all_reduce %x : tensor<?x8xf32>
    // CHECK: kf.all_reduce %{{.*}} : tensor<?x2x4xbf16>
    %1 = kf.all_reduce %b : tensor<?x2x4xbf16>
    // CHECK: kf.all_reduce %{{.*}} : tensor<16xf16>
    %2 = kf.all_reduce %h : tensor<16xf16>
    // CHECK: kf.all_gather %{{.*}} : tensor<?x8xf32> to tensor<?x24xf32>
    %3 = kf.all_gather %x : tensor<?x8xf32> to tensor<?x24xf32>
    // CHECK: kf.all_gather %{{.*}} : tensor<?x8xf32, #kf.size<wanted>> to tensor<?x17xf32, #kf.size<wanted>>
    %4 = kf.all_gather %w : tensor<?x8xf32, #kf.size<wanted>> to tensor<?x17xf32, #kf.size<wanted>>
    // CHECK: kf.send %{{.*}} : tensor<?x8xf32>
    kf.send %x : tensor<?x8xf32>
    // CHECK: kf.receive : tensor<?x8xbf16, #kf.size<wanted>>
    %5 = kf.receive : tensor<?x8xbf16, #kf.size<wanted>>
    return
  }

  // CHECK-LABEL: kf.program @p
  kf.program @p(%x: tensor<?x8xf32>) -> tensor<?x20xf32>
      attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
    // CHECK: kf.all_reduce %{{.*}} {offsets = array<i64: 0>} : tensor<?x8xf32>
    %0 = kf.all_reduce %x {offsets = array<i64: 0>} : tensor<?x8xf32>
    // CHECK: kf.all_gather %{{.*}} {offsets = array<i64: -1>} : tensor<?x8xf32> to tensor<?x20xf32>
    %1 = kf.all_gather %0 {offsets = array<i64: -1>} : tensor<?x8xf32> to tensor<?x20xf32>
    kf.yield %1 : tensor<?x20xf32>
  }

  // CHECK-LABEL: kf.program @stage
  kf.program @stage() attributes {max_tokens = 4 : i64, arena_bytes = 256 : i64} {
    // CHECK: %[[X:.*]] = kf.receive {offsets = array<i64: 0>} : tensor<?x8xf32>
    %0 = kf.receive {offsets = array<i64: 0>} : tensor<?x8xf32>
    // CHECK: kf.send %[[X]] {offsets = array<i64>} : tensor<?x8xf32>
    kf.send %0 {offsets = array<i64>} : tensor<?x8xf32>
    kf.yield
  }
}
