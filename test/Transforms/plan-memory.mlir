// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.program(kf-plan-memory))' | FileCheck %s
// RUN: kf-opt %s --pass-pipeline='builtin.module(kf.program(kf-plan-memory{alignment=64}))' | FileCheck %s --check-prefix=ALIGN

kf.kernel @a(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = kf.softmax %x : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}
kf.kernel @b(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = arith.addf %x, %y : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64xf32>
}
kf.kernel @c(%x: tensor<1x10xf32>) -> tensor<1x10xf32> {
  %0 = kf.softmax %x : tensor<1x10xf32>
  kf.yield %0 : tensor<1x10xf32>
}
kf.kernel @q(%x: tensor<?x64xf32>) -> tensor<?x64x!kf.quant<q8_0>> {
  %0 = kf.quantize %x <q8_0> : tensor<?x64xf32>
  kf.yield %0 : tensor<?x64x!kf.quant<q8_0>>
}

// A chain: each tensor of 8 * 64 * 4 = 2048 bytes lives until the next is made,
// so that two places do for all of them. The last is the program's own.
// CHECK-LABEL: kf.program @chain
// CHECK-SAME:    arena_bytes = 4096 : i64
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 0>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 2048>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 0>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: -1>}
kf.program @chain(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @a(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = kf.dispatch @a(%0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = kf.dispatch @a(%1) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %3 = kf.dispatch @a(%2) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  kf.yield %3 : tensor<?x64xf32>
}

// The first tensor lives until the last dispatch: nothing takes its place.
// CHECK-LABEL: kf.program @residual
// CHECK-SAME:    arena_bytes = 6144 : i64
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 0>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 2048>}
// CHECK-NEXT:    kf.dispatch @a({{.*}}) {offsets = array<i64: 4096>}
// CHECK-NEXT:    kf.dispatch @b({{.*}}) {offsets = array<i64: -1>}
kf.program @residual(%x: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @a(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %1 = kf.dispatch @a(%0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = kf.dispatch @a(%1) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %3 = kf.dispatch @b(%0, %2) : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  kf.yield %3 : tensor<?x64xf32>
}

// Largest first, and each aligned: 40 bytes take 256, or 64.
// CHECK-LABEL: kf.program @sizes
// CHECK-SAME:    arena_bytes = 2304 : i64
// CHECK:         kf.dispatch @c({{.*}}) {offsets = array<i64: 2048>}
// CHECK:         kf.dispatch @a({{.*}}) {offsets = array<i64: 0>}
// ALIGN-LABEL: kf.program @sizes
// ALIGN-SAME:    arena_bytes = 2112 : i64
kf.program @sizes(%x: tensor<?x64xf32>, %y: tensor<1x10xf32>)
    -> (tensor<?x64xf32>, tensor<1x10xf32>) attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @c(%y) : (tensor<1x10xf32>) -> tensor<1x10xf32>
  %1 = kf.dispatch @a(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = kf.dispatch @a(%1) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %3 = kf.dispatch @c(%0) : (tensor<1x10xf32>) -> tensor<1x10xf32>
  kf.yield %2, %3 : tensor<?x64xf32>, tensor<1x10xf32>
}

// Blocks of 34 bytes for 32 elements: 8 rows of 68 bytes.
// CHECK-LABEL: kf.program @quantized
// CHECK-SAME:    arena_bytes = 768 : i64
kf.program @quantized(%x: tensor<?x64xf32>) attributes {max_tokens = 8 : i64} {
  %0 = kf.dispatch @q(%x) : (tensor<?x64xf32>) -> tensor<?x64x!kf.quant<q8_0>>
  kf.yield
}

// CHECK-LABEL: kf.program @nothing
// CHECK-SAME:    arena_bytes = 0 : i64
kf.program @nothing() attributes {max_tokens = 8 : i64} {
  kf.yield
}
