// Products of many rows on a CPU with tiles, whatever machine this runs on.
//
// RUN: kf-run emit-mlir %s --function many --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=MANY
// RUN: kf-run emit-mlir %s --function many --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=SHARED
// RUN: kf-run emit-mlir %s --function long --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=LONG
// RUN: kf-run emit-mlir %s --function few --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=FEW
// RUN: kf-run emit-mlir %s --function many --target-cpu sapphirerapids --compile-to=binary -o %t
// RUN: python3 %S/Inputs/object.py %t %t.o
// RUN: llvm-objdump --disassemble --no-show-raw-insn --mattr=+amx-tile,+amx-bf16 %t.o | FileCheck %s --check-prefix=CODE

// MANY:   kf.target = #kf.cpu_target<cpu = "sapphirerapids", int8_dot = true, amx = true, workers = 1>
// Rows are rounded once, but not to 8 bits.
// MANY:   kf.kernel @trunc_0
// MANY:   schedule = #kf.vector<workgroup = [256, 1024], tile = [32, 32], lanes = 16, dot = bf16>
// SHARED-NOT: kf.quantize_rows
// Two threads of a core share its caches.
// SHARED: schedule = #kf.vector<workgroup = [256, 128], tile = [32, 32], reduction = 512, lanes = 16, dot = bf16>
// Rows take 800000 bytes each: 64 MiB hold 83 of them, so that there are 7 groups
// of 74, which are three tiles.
// LONG:   schedule = #kf.vector<workgroup = [96, 32], tile = [32, 32], reduction = 2048, lanes = 16, dot = bf16>
// The same layout of the weight.
// FEW:    !kf.quant<q4_0>, #kf.layout<panel = 32>>
// FEW:    schedule = #kf.vector<{{.*}}dot = i8, row_tiles = even>

// CODE:         ldtilecfg
// CODE:         tilezero
// CODE:         tileloadd
// CODE:         tdpbf16ps
// CODE:         tilestored
// CODE:         tilerelease
func.func @many(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<1024x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x1024xf32>
}

func.func @few(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> attributes {kf.max_tokens = 16 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1024x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1024xf32>, tensor<1024x1024x!kf.quant<q4_0>>
  return %0 : tensor<?x1024xf32>
}

func.func @long(%x: tensor<512x400000xf32>) -> tensor<512x32xf32> {
  %w = kf.weight ["w"] : tensor<32x400000xbf16>
  %0 = kf.matmul %x, %w : tensor<512x400000xf32>, tensor<32x400000xbf16>
  return %0 : tensor<512x32xf32>
}
