// RUN: kf-opt %s --kf-spirv-convert-gpu=types=f16,i16 | FileCheck %s
// RUN: kf-opt %s --kf-spirv-convert-gpu="types=f16,i16 denorm-preserve" | FileCheck %s --check-prefixes=CHECK,BOTH

// Subnormal numbers of f16 are widened as what they are.
// CHECK-LABEL: spirv.module @halves
// CHECK:         spirv.FConvert %{{.*}} : f16 to f32
// CHECK:         spirv.ExecutionMode @halves "DenormPreserve", 16
// BOTH:          spirv.ExecutionMode @halves "DenormPreserve", 32
gpu.module @halves {
  gpu.func @halves(%x: memref<?xf16>, %y: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %i = gpu.thread_id x
    %h = memref.load %x[%i] : memref<?xf16>
    %f = arith.extf %h : f16 to f32
    memref.store %f, %y[%i] : memref<?xf32>
    gpu.return
  }
}
