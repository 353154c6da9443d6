// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.program(kf-plan-memory))' -split-input-file | FileCheck %s

// What a collective reads and makes is live as with a dispatch: %0 (1024 bytes)
// until the second sum has read it, %1 (1024) beside it and until %2 (2048) is
// there.
// CHECK-LABEL: kf.program @p
// CHECK-SAME:    arena_bytes = 4096 : i64
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 2048>}
// CHECK-NEXT:    kf.all_reduce {{.*}} {offsets = array<i64: 3072>}
// CHECK-NEXT:    kf.all_gather {{.*}} {offsets = array<i64: 0>}
// CHECK-NEXT:    kf.all_reduce {{.*}} {offsets = array<i64: -1>}
// CHECK-NEXT:    kf.dispatch @b({{.*}}) {offsets = array<i64: -1>}
module attributes {kf.ranks = 2 : i64} {
  kf.kernel @a(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %0 = kf.softmax %x : tensor<?x32xf32>
    kf.yield %0 : tensor<?x32xf32>
  }
  kf.kernel @b(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %0 = kf.softmax %x : tensor<?x64xf32>
    kf.yield %0 : tensor<?x64xf32>
  }
  kf.program @p(%x: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x64xf32>)
      attributes {max_tokens = 8 : i64} {
    %0 = kf.dispatch @a(%x) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %1 = kf.all_reduce %0 : tensor<?x32xf32>
    %2 = kf.all_gather %1 : tensor<?x32xf32> to tensor<?x64xf32>
    %3 = kf.all_reduce %0 : tensor<?x32xf32>
    %4 = kf.dispatch @b(%2) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    kf.yield %3, %4 : tensor<?x32xf32>, tensor<?x64xf32>
  }
}

// -----

// A row that was received is live until it was read; one that is sent, until it
// is: both have 1024 bytes.
// CHECK-LABEL: kf.program @stage
// CHECK-SAME:    arena_bytes = 2048 : i64
// CHECK-NEXT:    kf.receive {offsets = array<i64: 0>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 1024>}
// CHECK-NEXT:    kf.send %{{.*}} {offsets = array<i64>}
module attributes {kf.ranks = 2 : i64} {
  kf.kernel @a(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %0 = kf.softmax %x : tensor<?x32xf32>
    kf.yield %0 : tensor<?x32xf32>
  }
  kf.program @stage() attributes {max_tokens = 8 : i64} {
    %0 = kf.receive : tensor<?x32xf32>
    %1 = kf.dispatch @a(%0) : (tensor<?x32xf32>) -> tensor<?x32xf32>
    kf.send %1 : tensor<?x32xf32>
    kf.yield
  }
}
