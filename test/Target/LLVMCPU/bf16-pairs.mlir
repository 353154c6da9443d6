// Products of many rows on a CPU that multiplies pairs of bf16, whatever machine
// this runs on.
//
// RUN: kf-run emit-mlir %s --function many --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=MANY
// RUN: kf-run emit-mlir %s --function many --target-cpu znver5 --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=SHARED
// RUN: kf-run emit-mlir %s --function few --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=FEW
// RUN: kf-run emit-mlir %s --function odd --target-cpu znver5 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=ODD --implicit-check-not=bf16_pairs
// RUN: kf-run emit-mlir %s --function many --target-cpu cooperlake --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=FLOATS --implicit-check-not=bf16_pairs
// RUN: kf-run emit-mlir %s --function many --target-cpu x86-64-v4 --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=FLOATS --implicit-check-not=bf16_pairs
// RUN: kf-run emit-mlir %s --function many --target-cpu znver5 --compile-to=binary -o %t
// RUN: python3 %S/Inputs/object.py %t %t.o
// RUN: llvm-objdump --disassemble --no-show-raw-insn --mattr=+avx512bf16 %t.o | FileCheck %s --check-prefix=CODE

// MANY:     kf.target = #kf.cpu_target<cpu = "znver5", int8_dot = true, bf16_dot = true, prefetch = once, workers = 1>
// MANY-NOT: arith.truncf
// MANY:     #kf.layout<panel = 32, interleave = 16>
// MANY:     schedule = #kf.vector<workgroup = [504, 1024], tile = [14, 32], lanes = 16, unroll = 8, dot = bf16_pairs, panels = unpacked>
// Rows are rounded once.
// SHARED:   kf.kernel @trunc_0
// SHARED:   schedule = #kf.vector<{{.*}}dot = bf16_pairs, panels = unpacked>
// The same layout of the weight.
// FEW:      #kf.layout<panel = 32, interleave = 16>
// FEW-NOT:  bf16_pairs
// ODD:      schedule = #kf.vector<{{.*}}tile = [14, 32]
// FLOATS:   schedule = #kf.vector<{{.*}}tile = [14, 32]

// CODE:         vcvtneps2bf16
// CODE:         vdpbf16ps
func.func @many(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> attributes {kf.max_tokens = 504 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024xbf16>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<1024x1024xbf16>
  return %0 : tensor<?x1024xf32>
}

func.func @few(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> attributes {kf.max_tokens = 7 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024xbf16>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<1024x1024xbf16>
  return %0 : tensor<?x1024xf32>
}

func.func @odd(%x: tensor<504x1023xf32>) -> tensor<504x1024xf32> {
  %w = kf.weight ["w"] : tensor<1024x1023xbf16>
  %0 = kf.matmul %x, %w : tensor<504x1023xf32>, tensor<1024x1023xbf16>
  return %0 : tensor<504x1024xf32>
}
