// RUN: kf-opt %s --kf-set-target=target=vulkan --kf-compile | FileCheck %s

// The whole path: a function of kf ops becomes a program and SPIR-V kernels.
// Weights stay as they are; the last binding is the scalar buffer.

// CHECK:       kf.dispatch @rms_norm_0
// CHECK:       kf.dispatch @matmul_add_0
// CHECK:       spirv.module @matmul_add_0 Logical GLSL450
// CHECK-SAME:    [Shader, Matrix]
// CHECK-COUNT-4: bind(0, {{[0-3]}}) : !spirv.ptr<!spirv.struct<(!spirv.rtarray<f32, stride=4> [0])>, StorageBuffer>
// CHECK:         bind(0, 4) : !spirv.ptr<!spirv.struct<(!spirv.rtarray<i32, stride=4> [0])>, StorageBuffer>
// CHECK:         spirv.func @matmul_add_0()
// CHECK:           spirv.ControlBarrier
// CHECK:         spirv.EntryPoint "GLCompute" @matmul_add_0
// CHECK:         spirv.ExecutionMode @matmul_add_0 "LocalSize", 16, 16, 1
func.func @f(%x: tensor<?x64xf32>, %g: tensor<64xf32>, %w: tensor<40x64xf32>,
             %r: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = kf.rms_norm %x, %g eps(1.0e-5) : tensor<?x64xf32>, tensor<64xf32>
  %1 = kf.matmul %0, %w : tensor<?x64xf32>, tensor<40x64xf32>
  %2 = arith.addf %1, %r : tensor<?x40xf32>
  return %2 : tensor<?x40xf32>
}
