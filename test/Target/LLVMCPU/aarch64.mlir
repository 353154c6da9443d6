// Object code for AArch64, on whatever machine this runs.
//
// RUN: kf-run emit-mlir %s --function blocks --target-cpu aarch64-linux-gnu/cortex-a76 --compile-to=scheduled \
// RUN:   | FileCheck %s --check-prefix=SCHEDULE
// RUN: kf-run emit-mlir %s --function bytes --target-cpu aarch64-linux-gnu/cortex-a76 --compile-to=scheduled \
// RUN:   | FileCheck %s --check-prefix=SIGNED
// RUN: kf-run emit-mlir %s --function blocks --target-cpu aarch64-linux-gnu/cortex-a76 \
// RUN:   | FileCheck %s --check-prefix=LLVM
// RUN: kf-run emit-mlir %s --function blocks --target-cpu aarch64-linux-gnu/cortex-a76 --compile-to=binary -o %t.a76
// RUN: python3 %S/Inputs/object.py %t.a76 %t.a76.o
// RUN: llvm-objdump --disassemble --mattr=+dotprod %t.a76.o | FileCheck %s --check-prefix=SDOT
// RUN: kf-run emit-mlir %s --function bytes --target-cpu aarch64-linux-gnu/cortex-a76 --compile-to=binary -o %t.s8
// RUN: grep -a -o '"int8_ops":{"constant":[0-9]*' %t.s8 | FileCheck %s --check-prefix=WORK
// RUN: kf-run emit-mlir %s --function bytes --target-cpu aarch64-linux-gnu/neoverse-n2 --compile-to=binary -o %t.n2
// RUN: python3 %S/Inputs/object.py %t.n2 %t.n2.o
// RUN: llvm-objdump --disassemble --mattr=+dotprod,+i8mm %t.n2.o | FileCheck %s --check-prefix=USDOT
// RUN: kf-run emit-mlir %s --function blocks --target-cpu aarch64-linux-gnu/generic --compile-to=binary -o %t.any
// RUN: python3 %S/Inputs/object.py %t.any %t.any.o
// RUN: llvm-objdump --disassemble --mattr=+dotprod %t.any.o | FileCheck %s --check-prefix=NONE
// RUN: kf-run emit-mlir %s --function floats --target-cpu aarch64-linux-gnu/cortex-a76 --compile-to=binary -o %t.f32
// RUN: python3 %S/Inputs/object.py %t.f32 %t.f32.o
// RUN: llvm-objdump --disassemble %t.f32.o | FileCheck %s --check-prefix=FMLA

// Codes of 4 bits are the same with a sign or without, those of 8 bits are not.
// SCHEDULE: kf.target = #kf.cpu_target<cpu = "cortex-a76", triple = "aarch64-linux-gnu", lanes = 4, registers = 32, int8_dot = true, byte_dot = sdot>
// SCHEDULE: schedule = #kf.vector<{{.*}}tile = [4, 8], lanes = 4, dot = i8>
// SIGNED:   schedule = #kf.vector<{{.*}}tile = [4, 8], lanes = 4, dot = s8>
func.func @blocks(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %w = kf.weight ["w"] : tensor<32x64x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64x!kf.quant<q4_0>>
  return %0 : tensor<4x32xf32>
}

// LLVM: llvm.call_intrinsic "llvm.aarch64.neon.sdot"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>

// SDOT:     file format elf64-littleaarch64
// SDOT:     sdot v{{[0-9]+}}.4s, v{{[0-9]+}}.16b, v{{[0-9]+}}.{{16b|4b}}
// SDOT:     fmla v{{[0-9]+}}.4s
// SDOT-NOT: udot
// NONE:     file format elf64-littleaarch64
// NONE-NOT: sdot
// NONE:     fmla v{{[0-9]+}}.4s

func.func @bytes(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %w = kf.weight ["w"] : tensor<32x64x!kf.quant<q8_0>>
  %0 = kf.matmul %x, %w : tensor<4x64xf32>, tensor<32x64x!kf.quant<q8_0>>
  return %0 : tensor<4x32xf32>
}

// With a sign they are products of 8 bits, too: 2 * 4 * 32 * 64.
// WORK: "int8_ops":{"constant":16384{{$}}

// USDOT: usdot v{{[0-9]+}}.4s, v{{[0-9]+}}.16b, v{{[0-9]+}}.{{16b|4b}}

// 14 rows of 8 columns are 28 of the 32 registers.
// FMLA-COUNT-28: fmla v{{[0-9]+}}.4s
// FMLA-NOT:      {{(str|stp) q[0-9]+,.*\[sp}}
// FMLA:          b.{{[a-z]+}}
func.func @floats(%x: tensor<14x64xf32>) -> tensor<14x32xf32> {
  %w = kf.weight ["w"] : tensor<32x64xf32>
  %0 = kf.matmul %x, %w : tensor<14x64xf32>, tensor<32x64xf32>
  return %0 : tensor<14x32xf32>
}
