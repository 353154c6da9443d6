// Products of many rows on a CPU with tiles, whatever machine this runs on.
//
// RUN: kf-run emit-mlir %s --function many --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=MANY
// RUN: kf-run emit-mlir %s --function many --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=SHARED
// RUN: kf-run emit-mlir %s --function long --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=LONG
// RUN: kf-run emit-mlir %s --function turns --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=TURNS
// RUN: kf-run emit-mlir %s --function turns --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=ALL
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
// LONG:   schedule = #kf.vector<workgroup = [96, 32], tile = [32, 32], reduction = 512, lanes = 16, dot = bf16>
// Parts are multiples of 256, of which steps of the next panel are unpacked
// meanwhile, and not three times 448.
// TURNS:  reduction = 512, lanes = 16, dot = bf16>
// One worker has all of it in one part.
// ALL:    tile = [32, 32], lanes = 16, dot = bf16>
// The same layout of the weight.
// FEW:    !kf.quant<q4_0>, #kf.layout<panel = 32>>
// FEW:    schedule = #kf.vector<{{.*}}dot = i8, row_tiles = even>

// Attention of many rows, whose cache is not of f32; of a table for several
// sequences, a token may be alone.
// RUN: kf-run emit-mlir %s --function attention --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=ATTENTION
// RUN: kf-run emit-mlir %s --function attentions --target-cpu sapphirerapids --threads 1 --compile-to=scheduled | FileCheck %s --check-prefix=SEVERAL
// RUN: kf-run emit-mlir %s --function whole --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=WHOLE
// RUN: kf-run emit-mlir %s --function token --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=WHOLE
// RUN: kf-run emit-mlir %s --function wide_heads --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=WHOLE
// RUN: kf-run emit-mlir %s --function wide_token --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=WHOLE
// RUN: kf-run emit-mlir %s --function wide_heads --target-cpu sapphirerapids --threads 16 --compile-to=binary -o %t
// Of few rows and several sequences most are alone, and in as many workgroups as
// on a CPU without tiles.
// RUN: kf-run emit-mlir %s --function several_few --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=ALONE
// RUN: kf-run emit-mlir %s --function several_few --target-cpu icelake-server --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=ALONE
// RUN: kf-run emit-mlir %s --function several --target-cpu sapphirerapids --threads 16 --compile-to=scheduled | FileCheck %s --check-prefix=SHARING
// RUN: kf-run emit-mlir %s --function attention --target-cpu sapphirerapids --compile-to=binary -o %t
// RUN: python3 %S/Inputs/object.py %t %t.o
// RUN: llvm-objdump --disassemble --no-show-raw-insn --mattr=+amx-tile,+amx-bf16 %t.o | FileCheck %s --check-prefix=CODE
// ATTENTION: schedule = #kf.vector<workgroup = [32, 8], tile = [16], reduction = 64, lanes = 16, dot = bf16>
// SEVERAL:   schedule = #kf.vector<workgroup = [32, 8], tile = [16, 4], reduction = 64, lanes = 16, dot = bf16>
// WHOLE-NOT: dot = bf16
// ALONE:     schedule = #kf.vector<workgroup = [2, 4], tile = [6, 4], reduction = 64, lanes = 16>
// SHARING:   schedule = #kf.vector<workgroup = [8, 4], tile = [16, 4], reduction = 64, lanes = 16, dot = bf16>

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

func.func @turns(%x: tensor<?x1280xf32>) -> tensor<?x1024xf32> attributes {kf.max_tokens = 512 : i64} {
  %w = kf.weight ["w"] : tensor<1024x1280x!kf.quant<q4_0>>
  %0 = kf.matmul %x, %w : tensor<?x1280xf32>, tensor<1024x1280x!kf.quant<q4_0>>
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

func.func @attention(%q: tensor<?x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x64xi32>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x32x64xf32>
}

func.func @attentions(%q: tensor<?x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<4x64xi32>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, tensor<?xi32>, tensor<4x64xi32>
  return %0 : tensor<?x32x64xf32>
}

func.func @whole(%q: tensor<?x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x64xi32>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 512 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f32>, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x32x64xf32>
}

func.func @token(%q: tensor<1x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x64xi32>) -> tensor<1x32x64xf32> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 4, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x64xi32>
  return %0 : tensor<1x32x64xf32>
}

func.func @wide_token(%q: tensor<1x64x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, %p: tensor<1xi32>, %sp: tensor<1xi32>, %pt: tensor<1x64xi32>) -> tensor<1x64x64xf32> attributes {kf.max_tokens = 1 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<1x64x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 64, type = f16>, tensor<1xi32>, tensor<1x64xi32>
  return %0 : tensor<1x64x64xf32>
}

func.func @several_few(%q: tensor<?x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<4x64xi32>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 16 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, tensor<?xi32>, tensor<4x64xi32>
  return %0 : tensor<?x32x64xf32>
}

func.func @several(%q: tensor<?x32x64xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<4x64xi32>) -> tensor<?x32x64xf32> attributes {kf.max_tokens = 64 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x32x64xf32>, !kf.kv_cache<layers = 1, kv_heads = 8, head_dim = 64, type = f16>, tensor<?xi32>, tensor<4x64xi32>
  return %0 : tensor<?x32x64xf32>
}

// More columns than tiles take.
func.func @wide_heads(%q: tensor<?x1x8192xf32>, %c: !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8192, type = f16>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x64xi32>) -> tensor<?x1x8192xf32> attributes {kf.max_tokens = 32 : i64} {
  %0 = kf.attention %q, %c, %p, %sp, %pt {layer = 0 : i64, scale = 0.125 : f32} : tensor<?x1x8192xf32>, !kf.kv_cache<layers = 1, kv_heads = 1, head_dim = 8192, type = f16>, tensor<?xi32>, tensor<1x64xi32>
  return %0 : tensor<?x1x8192xf32>
}
