// RUN: kf-run emit-mlir %s --function elements --device cuda --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=ELEMENTS
// RUN: kf-run emit-mlir %s --function rows --device cuda --target-cpu sm_90 --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=ROWS
// RUN: kf-run emit-mlir %s --function product --device cuda --target-cpu sm_90a --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=PRODUCT
// RUN: kf-run emit-mlir %s --function many_rows --device cuda --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=MANY
// RUN: kf-run emit-mlir %s --function rows --device cuda --target-cpu sm_89 --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=ADA
// RUN: kf-run emit-mlir %s --function append --device cuda --target-cpu sm_90a --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=APPEND
// RUN: kf-run emit-mlir %s --function six_rows --device cuda --target-cpu sm_90a --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=SIX

// One kernel of each kind of schedule, down to the text that the driver gets.
// Nothing is rounded but as IEEE says, and denormals stay: no .approx, no .ftz.

// ELEMENTS:      kernel @div_maximum_0 threads [128, 1, 1] shared 0
// ELEMENTS:      .version 8.0
// ELEMENTS-NEXT: .target sm_80
// ELEMENTS-NEXT: .address_size 64
// ELEMENTS:      .visible .entry kf_kernel(
// ELEMENTS-NEXT:   .param .u64 .ptr {{.*}}kf_kernel_param_0,
// ELEMENTS-NEXT:   .param .u64 .ptr {{.*}}kf_kernel_param_1,
// ELEMENTS-NEXT:   .param .u64 .ptr {{.*}}kf_kernel_param_2,
// ELEMENTS-NEXT:   .param .u64 .ptr {{.*}}kf_kernel_param_3
// ELEMENTS:      .reqntid 128
// ELEMENTS-NOT:  .approx
// ELEMENTS-NOT:  .ftz
// ELEMENTS-NOT:  call
// ELEMENTS:      div.rn.f32
// ELEMENTS:      max.NaN.f32
// ELEMENTS:      st.global
func.func @elements(%a: tensor<?x70xf32>, %b: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %0 = arith.divf %a, %b : tensor<?x70xf32>
  %1 = arith.maximumf %0, %b : tensor<?x70xf32>
  return %1 : tensor<?x70xf32>
}

// The sum goes through shared memory. From sm_90 on, a kernel waits itself for
// those before it: what they write is not constant then, weights are.
// ROWS:          kernel @rms_norm_0 threads [64, 1, 1] shared 256, waits
// ADA:           kernel @rms_norm_0 threads [64, 1, 1] shared 256{{$}}
// ADA-NOT:       griddepcontrol
// ADA:           ld.global.nc
// ROWS:          .target sm_90{{$}}
// ROWS-NOT:      .approx
// ROWS-NOT:      call
// ROWS:          .shared .align 16 .b8 {{.*}}[256];
// ROWS-NOT:      ld.global{{$}}
// ROWS:          griddepcontrol.launch_dependents;
// ROWS:          griddepcontrol.wait;
// ROWS:          ld.global.b32
// ROWS:          st.shared
// ROWS:          bar.sync
// ROWS:          sqrt.rn.f32
// ROWS:          ld.global.nc
func.func @rows(%x: tensor<?x70xf32>) -> tensor<?x70xf32> {
  %w = kf.weight ["w"] : tensor<70xf32>
  %0 = kf.rms_norm %x, %w eps(1.0e-5) : tensor<?x70xf32>, tensor<70xf32>
  return %0 : tensor<?x70xf32>
}

// A product by threads alone begins when those before it are over.
// PRODUCT:       kernel @matmul_0 threads [16, 16, 1] shared {{[0-9]+$}}
// PRODUCT:       .target sm_90a
// PRODUCT:       .reqntid 16, 16, 1
// PRODUCT-NOT:   griddepcontrol
// PRODUCT:       ld.global.nc
// PRODUCT:       bar.sync
// PRODUCT:       ld.shared
// PRODUCT:       bar.sync
func.func @product(%x: tensor<?x64xf32>) -> tensor<?x520xf32> {
  %w = kf.weight ["w"] : tensor<520x64xf32>
  %0 = kf.matmul %x, %w : tensor<?x64xf32>, tensor<520x64xf32>
  return %0 : tensor<?x520xf32>
}

// Matrix units, whose operands are copied past registers.
// MANY:          kernel @rms_norm_trunc_0
// MANY:          kernel @matmul_mul_0 threads [128, 1, 1] shared {{[1-9]}}
// MANY:          .target sm_80
// MANY-DAG:      cp.async.cg.shared.global
// MANY-DAG:      cp.async.commit_group
// MANY-DAG:      cp.async.wait_group
// MANY-DAG:      bar.sync
// MANY-DAG:      ldmatrix.sync.aligned.m8n8.x4.shared.b16
// MANY-DAG:      mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
func.func @many_rows(%x: tensor<?x512xf32>, %y: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  %g = kf.weight ["g"] : tensor<512xf32>
  %w = kf.weight ["w"] : tensor<1024x512xbf16>
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x512xf32>, tensor<512xf32>
  %1 = kf.matmul %0, %w : tensor<?x512xf32>, tensor<1024x512xbf16>
  %2 = arith.mulf %1, %y : tensor<?x1024xf32>
  return %2 : tensor<?x1024xf32>
}

// Scales of q8_0 are stored byte by byte, and ptxas 13.0 gets the lower one wrong
// if cvt.rn.f16.f32 made it.
// APPEND:        kernel @kv_append_0
// APPEND-NOT:    cvt.rn.f16
// APPEND:        st.global.b8
// APPEND-NOT:    cvt.rn.f16
// APPEND:        kernel @
!cache = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 32, type = !kf.quant<q8_0>>
func.func @append(%c: !cache, %k: tensor<?x2x32xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<1x4xi32>) -> tensor<?x2x32xf32> {
  kf.kv_append %c, %k, %k, %p, %s, %t {layer = 0 : i64} : !cache, tensor<?x2x32xf32>, tensor<?xi32>, tensor<1x4xi32>
  %0 = kf.attention %k, %c, %p, %s, %t {layer = 0 : i64, scale = 1.0 : f32} : tensor<?x2x32xf32>, !cache, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x2x32xf32>
}

// Two codes at a time become f16, by one instruction from sm_90 on.
// RUN: kf-run emit-mlir %s --function float8 --device cuda --target-cpu sm_90a --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=FLOAT8
// RUN: kf-run emit-mlir %s --function float8 --device cuda --target-cpu sm_89 --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=FLOAT8-OLD
// FLOAT8:         .version 8.0
// FLOAT8:         ld.shared.v4.{{[bu]}}32
// FLOAT8-COUNT-8: cvt.rn.f16x2.e4m3x2
// FLOAT8-OLD-NOT: e4m3
// FLOAT8-OLD:     prmt.b32
// FLOAT8-OLD:     mul.rn.f16x2
func.func @float8(%x: tensor<1x256xf32>) -> tensor<1x64xf32> {
  %w = kf.weight ["w"] : tensor<64x256xf8E4M3FN>
  %s = kf.weight ["s"] : tensor<64xf32>
  %0 = kf.matmul %x, %w weight_scales(%s : tensor<64xf32>) : tensor<1x256xf32>, tensor<64x256xf8E4M3FN>
  return %0 : tensor<1x64xf32>
}

// A float becomes one bit by way of 32: LLVM compares its bits with 0 otherwise.
// RUN: kf-run emit-mlir %s --function one_bit --device cuda --target-cpu sm_90a --compile-to=binary -o %t
// RUN: %ptx print %t | FileCheck %s --check-prefix=BIT
// BIT: cvt.rzi.s32.f32
func.func @one_bit(%a: tensor<?x70xf32>) -> tensor<?x70xi1> {
  %0 = arith.fptosi %a : tensor<?x70xf32> to tensor<?x70xi1>
  return %0 : tensor<?x70xi1>
}

// Accesses are joined to 16 bytes, so every variable begins at a multiple,
// whatever the sizes of those before it.
// SIX:           .reqntid
// SIX-NOT:       .shared .align 4 .b8 {{.*}}[24];
// SIX:           .shared .align 16 .b8 {{.*}}[24];
// SIX-NOT:       .shared .align 4 .b8 {{.*}}[24];
// SIX:           st.shared.v4.b32
!half = !kf.kv_cache<layers = 1, kv_heads = 2, head_dim = 64, type = f16>
func.func @six_rows(%q: tensor<?x6x64xf32>, %p: tensor<?xi32>, %sp: tensor<?xi32>, %pt: tensor<1x4xi32>, %s: tensor<6xf32>, %c: !half) -> tensor<?x6x64xf32> {
  %0 = kf.attention %q, %c, %p, %sp, %pt sinks(%s : tensor<6xf32>) {layer = 0 : i64, scale = 0.12 : f32} : tensor<?x6x64xf32>, !half, tensor<?xi32>, tensor<1x4xi32>
  return %0 : tensor<?x6x64xf32>
}
