// How lines of weights are prefetched follows from the CPU, whatever machine
// this runs on, and schedules of products carry it.
//
// RUN: kf-run emit-mlir %s --function one_row --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=ONCE
// RUN: kf-run emit-mlir %s --function one_row --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=HARDWARE
// RUN: kf-run emit-mlir %s --function one_row --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=TWICE
// RUN: kf-run emit-mlir %s --function rows --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=ONCE-ROWS
// RUN: kf-run emit-mlir %s --function rows --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=HARDWARE-ROWS
// RUN: kf-run emit-mlir %s --function high_bits --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=HIGH-BITS
// RUN: kf-run emit-mlir %s --function many --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=MANY
// RUN: kf-run emit-mlir %s --function floats --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=FLOATS
// RUN: kf-run emit-mlir %s --function many_floats --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=MANY-FLOATS
// RUN: kf-run emit-mlir %s --function small --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=SMALL
// RUN: kf-run emit-mlir %s --function small --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=SMALL
// RUN: kf-run emit-mlir %s --function known_rows --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=KNOWN-ROWS
// RUN: kf-run emit-mlir %s --function pair --target-cpu znver4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=PAIR

// ONCE:  kf.target = #kf.cpu_target<cpu = "znver5", int8_dot = true, bf16_dot = true, prefetch = once, workers = 1>
// ONCE:  kf.kernel @matmul_0
// ONCE:  schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = once>
// ONCE:  kf.kernel @softmax_0
// ONCE-NOT: prefetch = once

// HARDWARE:  kf.target = #kf.cpu_target<cpu = "znver4", int8_dot = true, bf16_dot = true, prefetch = hardware, workers = 1>
// HARDWARE:  kf.kernel @matmul_0
// HARDWARE:  schedule = #kf.vector<workgroup = [1, 2048], tile = [1, 32], lanes = 16, dot = i8, prefetch = hardware>

// TWICE-NOT: prefetch =
func.func @one_row(%x: tensor<1x1024xf32>) -> tensor<1x2048xf32> {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<1x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  %1 = kf.softmax %0 : tensor<1x2048xf32>
  return %1 : tensor<1x2048xf32>
}

// Tiles of several rows ask for the next panel in shares, and so does a tile of
// two rows beside others, for which q4_0 comes in time; alone it does not. Of
// codes whose low and high bits are two streams every tile asks.
// ONCE-ROWS:      schedule = #kf.vector<{{.*}}dot = i8
// ONCE-ROWS-NOT:  prefetch =
// HARDWARE-ROWS:      schedule = #kf.vector<{{.*}}dot = i8, hardware_rows = 2
// HARDWARE-ROWS-NOT:  prefetch =
func.func @rows(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x2048xf32>
}

// HIGH-BITS:      schedule = #kf.vector<{{.*}}dot = i8
// HIGH-BITS-NOT:  {{prefetch|hardware_rows}} =
func.func @high_bits(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 4 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q6_k>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q6_k>>
  return %0 : tensor<?x2048xf32>
}

// MANY:      schedule = #kf.vector<{{.*}}dot = i8, panels = unpacked
// MANY-NOT:  {{prefetch|hardware_rows}} =
func.func @many(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x2048xf32>
}

// Floats of fewer than 32 rows are waited for.
// FLOATS: schedule = #kf.vector<{{.*}}prefetch = hardware
func.func @floats(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 24 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024xf16>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024xf16>
  return %0 : tensor<?x2048xf32>
}

// MANY-FLOATS:      schedule = #kf.vector<{{.*}}panels = unpacked
// MANY-FLOATS-NOT:  prefetch =
func.func @many_floats(%x: tensor<?x1024xf32>) -> tensor<?x2048xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<2048x1024xf16>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<2048x1024xf16>
  return %0 : tensor<?x2048xf32>
}

// Of three rows, which are known, none is alone in tiles of at most two.
// KNOWN-ROWS:      schedule = #kf.vector<{{.*}}dot = i8
// KNOWN-ROWS-NOT:  hardware_rows =
func.func @known_rows(%x: tensor<3x1024xf32>) -> tensor<3x2048xf32> {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<3x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  return %0 : tensor<3x2048xf32>
}

// PAIR: schedule = #kf.vector<{{.*}}dot = i8, hardware_rows = 2
func.func @pair(%x: tensor<2x1024xf32>) -> tensor<2x2048xf32> {
  %w = kf.weight ["w"] : tensor<2048x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<2x1024xf32>, tensor<2048x1024x!kf.quant<q4_0>>
  return %0 : tensor<2x2048xf32>
}

// A weight that the second-level cache holds is asked for in the nearest.
// SMALL:      schedule = #kf.vector<workgroup = [1, 512], tile = [1, 32], lanes = 16
// SMALL-NOT:  prefetch =
func.func @small(%x: tensor<1x256xf32>) -> tensor<1x512xf32> {
  %w = kf.weight ["w"] : tensor<512x256xf16>
  %0 = kf.matmul %x, %w : tensor<1x256xf32>, tensor<512x256xf16>
  return %0 : tensor<1x512xf32>
}
